package scripts

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
)

// realServer is the redis-server that the tests of this package share; each takes a database.
var realServer *redistest.Server

var lastDatabase atomic.Int64

const databases = 1024

// longest is how long a test waits for a server that answers nothing. However busy the machine is, it is not that busy.
const longest = 5 * time.Minute

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	// a history that fails is in the output: no files in the source tree, unless the caller wants them
	if err := flag.Set("rapid.nofailfile", "true"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	// most tests wait for a server: more of them run at once than there are processors, unless the caller says how many
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	dir, err := os.MkdirTemp("", "emq-scripts")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	realServer, err = redistest.New(dir, "--databases", strconv.Itoa(databases), "--lua-time-limit", "0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer realServer.Stop()
	return m.Run()
}

// target is a server under test with one queue on it.
type target struct {
	client rueidis.Client
	queue  *Queue
	// mini is the embedded server, whose clock the tests set; nil on a real one.
	mini  *miniredis.Miniredis
	clock time.Time
	*ear
	// gathered sends every settle through the script for many.
	gathered bool
}

const testQueue = "q"

// newTarget connects to a database and prepares a queue with a library, which may be a mutated one.
func newTarget(t testing.TB, addr string, db int, scripts map[string]*script) *target {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{addr}, SelectDB: db, DisableCache: true, ForceSingleClient: true, PipelineMultiplex: -1,
		ConnWriteTimeout: longest, Dialer: net.Dialer{Timeout: longest, KeepAlive: time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	// databases share their channels, so each target has a prefix
	server := &Server{client: client, prefix: fmt.Sprintf("db%d", db), scripts: scripts, direct: newDirect()}
	return &target{client: client, queue: server.Queue(testQueue)}
}

func ownLibrary(t testing.TB) map[string]*script {
	t.Helper()
	scripts, err := library()
	if err != nil {
		t.Fatal(err)
	}
	return scripts
}

// onRedis is a database of its own on the real server.
func onRedis(t testing.TB, scripts map[string]*script) *target {
	t.Helper()
	db := lastDatabase.Add(1)
	if db >= databases {
		t.Fatalf("more than %d tests want a database", databases)
	}
	return newTarget(t, realServer.Addr(), int(db), scripts)
}

// onRedisGathered is onRedis with every settle in a gathered call.
func onRedisGathered(t testing.TB, scripts map[string]*script) *target {
	t.Helper()
	s := onRedis(t, scripts)
	s.gathered = true
	return s
}

// onMini is an embedded server of its own, with a clock that stands still.
func onMini(t testing.TB, scripts map[string]*script) *target {
	t.Helper()
	mini := miniredis.RunT(t)
	s := newTarget(t, mini.Addr(), 0, scripts)
	s.mini = mini
	s.clock = time.UnixMilli(1_764_660_000_000)
	mini.SetTime(s.clock)
	return s
}

// targets are the servers that a test of the contract runs on. One that takes long to start is opened once.
var targets = []struct {
	name string
	open func(testing.TB, map[string]*script) *target
	once bool
}{{"redis-server", onRedis, false}, {"miniredis", onMini, false}, {"gathered settles", onRedisGathered, false}, {"cluster", onCluster, true}}

// full tells that the tests are to take their time: all that the histories can find, and the full numbers of
// the experiments.
func full() bool { return os.Getenv("EMQ_TEST_FULL") != "" }

// onCluster is a cluster of its own. It has one node, which refuses all the same a script that touches keys
// of two slots.
func onCluster(t testing.TB, scripts map[string]*script) *target {
	t.Helper()
	c, err := redistest.NewCluster(t.TempDir(), 1, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return newTarget(t, c.Nodes[0].Addr(), 0, scripts)
}

// do sends one command.
func (s *target) do(words ...string) rueidis.RedisResult {
	return s.client.Do(context.Background(), s.client.B().Arbitrary(words...).Build())
}

func (s *target) must(words ...string) { check(s.do(words...).Error()) }

func (s *target) key(name string) string { return s.queue.keys.Fixed(name) }

// clear begins a new scene on the same connection.
func (s *target) clear() { s.must("FLUSHDB") }

// now is the server's clock.
func (s *target) now() stamp {
	parts, err := s.do("TIME").AsStrSlice()
	check(err)
	return parseStamp(parts[0])*1000 + stamp(int64(parseStamp(parts[1]))/1000)
}

// nowAfter waits until the server's clock has passed t, so that two steps never share a millisecond.
func (s *target) nowAfter(t stamp) stamp {
	if s.mini != nil {
		return s.now()
	}
	for {
		if now := s.now(); now > t {
			return now
		}
	}
}

const advanceText = endsText + `
local d = tonumber(ARGV[1])
for _, k in ipairs(redis.call('KEYS', '*')) do
  local t = redis.call('TYPE', k)
  t = t.ok or t
  local over = ends(k)
  if over >= 0 then redis.call('PEXPIREAT', k, string.format('%.0f', over - d)) end
  if t == 'zset' and (k:match('}:active$') or k:match('}:schedule$') or k:match('}:completed$') or k:match('}:dead:at$') or k:match('}:repeat$')) then
    local m = redis.call('ZRANGE', k, 0, -1, 'WITHSCORES')
    for i = 1, #m, 2 do 
      if tonumber(m[i + 1]) < 9e15 then redis.call('ZADD', k, m[i + 1] - d, m[i]) end
    end
  elseif t == 'hash' then
    for _, f in ipairs({'due', 'settled_at', 'seen', 'grace', 'rate_tat', 'next', 'refreshed'}) do
      local v = tonumber(redis.call('HGET', k, f) or 0)
      if v ~= 0 and v < 9e15 then redis.call('HSET', k, f, string.format('%.17g', v - d)) end
    end
  end
end
return 1`

// advance lets time pass. A real server's clock cannot be set: there every time that it has stored
// is moved into the past instead, and the answer is by how much.
func (s *target) advance(d time.Duration) stamp {
	if s.mini != nil {
		s.clock = s.clock.Add(d)
		s.mini.SetTime(s.clock)
		if d > 0 {
			s.mini.FastForward(d)
		}
		return 0
	}
	check(s.client.Do(context.Background(),
		s.client.B().Eval().Script(advanceText).Numkeys(0).Arg(ms(d)).Build()).Error())
	return stamp(d.Milliseconds())
}
