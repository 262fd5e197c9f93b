package emq_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// store is a server with a client under test, and with a connection that looks at its keys from outside.
type store struct {
	*emq.Client
	url      string
	raw      rueidis.Client
	server   *redistest.Server // of the test's own; nil for the embedded one and for a stand
	embedded bool
	masters  []*redistest.Server // of a stand
	holders  []rueidis.Client    // one for each server that holds keys
}

// onEachStore runs a test on each kind of server, beside other tests.
func onEachStore(t *testing.T, test func(t *testing.T, s *store)) {
	t.Helper()
	t.Parallel()
	for _, kind := range storesOf(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, openStore(t, kind))
		})
	}
}

// realStore starts a real server and opens a client of it.
func realStore(t *testing.T, args ...string) *store {
	t.Helper()
	server := redistest.Start(t, args...)
	return newStore(t, &store{Client: openClient(t, server.URL()), url: server.URL(), server: server})
}

// newStore adds the connections from outside.
func newStore(t *testing.T, s *store) *store {
	t.Helper()
	s.raw = outside(t, s.url)
	s.holders = []rueidis.Client{s.raw}
	if len(s.masters) > 0 {
		s.holders = nil
	}
	for _, m := range s.masters {
		s.holders = append(s.holders, outsideOf(t, m.URL(), true))
	}
	return s
}

// openClient opens a client that is closed when the test ends.
func openClient(t testing.TB, url string, opts ...emq.ClientOption) *emq.Client {
	t.Helper()
	client, err := emq.Open(t.Context(), url, append([]emq.ClientOption{emq.WithLogger(new(logbook).logger())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// outside is a client of the library alone, of all servers that a URL stands for.
func outside(t *testing.T, url string) rueidis.Client {
	t.Helper()
	return outsideOf(t, url, false)
}

// outsideOf may also be of one server of a cluster, and no other.
func outsideOf(t *testing.T, url string, alone bool) rueidis.Client {
	t.Helper()
	option, err := rueidis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	option.DisableCache, option.PipelineMultiplex, option.ForceSingleClient = true, -1, alone
	option.Dialer = net.Dialer{Timeout: 5 * time.Second, KeepAlive: time.Hour} // no PINGs among the counted commands
	raw, err := rueidis.NewClient(option)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	return raw
}

// do sends a command from outside; its reply must not be an error.
func (s *store) do(t *testing.T, words ...string) rueidis.RedisResult {
	t.Helper()
	return send(t, s.raw, words...)
}

// each sends a command from outside to every server that holds keys.
func (s *store) each(t *testing.T, words ...string) []rueidis.RedisResult {
	t.Helper()
	results := make([]rueidis.RedisResult, len(s.holders))
	for i, h := range s.holders {
		results[i] = send(t, h, words...)
	}
	return results
}

// flush deletes all keys.
func (s *store) flush(t *testing.T) {
	t.Helper()
	s.each(t, "FLUSHALL")
}

// keysLike lists the keys of a pattern.
func (s *store) keysLike(t *testing.T, pattern string) []string {
	t.Helper()
	var all []string
	for _, res := range s.each(t, "KEYS", pattern) {
		keys, err := res.AsStrSlice()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, keys...)
	}
	slices.Sort(all)
	return all
}

func send(t *testing.T, raw rueidis.Client, words ...string) rueidis.RedisResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		res := raw.Do(ctx, raw.B().Arbitrary(words...).Build())
		err := res.Error()
		if err == nil || rueidis.IsRedisNil(err) {
			return res
		}
		// a connection that has outlived its server says so once
		if _, answered := rueidis.IsRedisErr(err); answered || ctx.Err() != nil {
			t.Fatalf("%v: %v", words, err)
		}
	}
}

// row is a job's row; empty when it is gone.
func (s *store) row(t *testing.T, ref emq.Ref) map[string]string {
	t.Helper()
	row, err := s.do(t, "HGETALL", "emq:{"+ref.Queue+"}:job:"+string(ref.ID)).AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// counts are the queue's, at one moment.
func (s *store) counts(t *testing.T, queue string) emq.Counts {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := s.Queue(queue).Counts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// now is the server's clock, of any server of a cluster.
func (s *store) now(t *testing.T) time.Time {
	t.Helper()
	return s.nowOf(t, "")
}

// nowOf is the clock of the server that holds a queue: those of a cluster agree, but not to a millisecond.
func (s *store) nowOf(t *testing.T, queue string) time.Time {
	t.Helper()
	words, err := s.do(t, "EVAL", "return redis.call('TIME')", "1", "emq:{"+queue+"}:meta").AsStrSlice()
	if err != nil || len(words) != 2 {
		t.Fatal("TIME answered ", words, err)
	}
	sec, err1 := strconv.ParseInt(words[0], 10, 64)
	usec, err2 := strconv.ParseInt(words[1], 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return time.Unix(sec, usec*1000)
}

// put enqueues one job that must be new.
func put[J emq.Payload[J]](t *testing.T, e emq.Enqueuer, payload J, opts ...emq.Option) emq.Ref {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := emq.Enqueue(ctx, e, payload, opts...)
	if err != nil || r.Status != emq.Enqueued {
		t.Fatalf("enqueue: %v, %v", r.Status, err)
	}
	return r.Ref
}

// putMany enqueues n jobs in batches.
func putMany[J emq.Payload[J]](t *testing.T, e emq.Enqueuer, n int, payload func(i int) J) []emq.Ref {
	t.Helper()
	batch := make([]emq.Job, n)
	for i := range batch {
		batch[i] = emq.New(payload(i))
	}
	receipts, err := e.Enqueue(t.Context(), batch...)
	if err != nil {
		t.Fatal(err)
	}
	refs := make([]emq.Ref, n)
	for i, r := range receipts {
		if r.Status != emq.Enqueued {
			t.Fatalf("job %d: %v", i, r.Status)
		}
		refs[i] = r.Ref
	}
	return refs
}

// commands counts the calls of each command that the server has run: those that clients sent and those
// that scripts called.
func (s *store) commands(t *testing.T) map[string]int64 {
	t.Helper()
	calls := make(map[string]int64)
	for line := range strings.Lines(s.infoText(t, "commandstats")) {
		name, values, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":")
		var n int64
		if !ok {
			continue
		}
		if _, err := fmt.Sscanf(values, "calls=%d,", &n); err == nil {
			calls[name] += n
		}
	}
	return calls
}

// infoText is a section of INFO of each server that holds keys, one after another.
func (s *store) infoText(t *testing.T, section string) string {
	t.Helper()
	var all strings.Builder
	for _, res := range s.each(t, "INFO", section) {
		text, err := res.ToString()
		if err != nil {
			t.Fatal(err)
		}
		all.WriteString(text)
	}
	return all.String()
}

// info is a number that INFO tells, of all servers together.
func (s *store) info(t *testing.T, section, name string) int {
	t.Helper()
	sum, found := 0, false
	for line := range strings.Lines(s.infoText(t, section)) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
			n, err := strconv.Atoi(v)
			if err != nil {
				t.Fatal(err)
			}
			sum, found = sum+n, true
		}
	}
	if !found {
		t.Fatalf("INFO %s has no %s", section, name)
	}
	return sum
}
