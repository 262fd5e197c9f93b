package scripts

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
)

// everything takes every transition once, on a queue where each of them has something to do.
func everything(s *scene) {
	s.all(only(jobA), onlyUntilStart(jobN(1)), later(jobB, delay), onlyFor(jobN(2), delay))
	s.all(debounced(jobN(3)), debounced(jobN(4)).parked(), debounced(jobN(5)).in("a"), debounced(jobN(6)).in("b"), debounced(jobN(7)).parked().in("b"), debounced(jobN(8)))
	s.all(setMeta("concurrency", "9"), setMeta("rate_max", "1000"), setMeta("rate_ms", "3600000"))
	s.pass(delay2)
	s.all(setMeta("events", "1"))
	s.all(pump{Tag: "process1", Budget: 3, Limit: 100, Lease: lease}, promote{100}, setMeta("rate_max", "100000"))
	for i := range 12 {
		s.all(enter(jobN(10 + i)))
	}
	by := "mine0001"
	s.all(claim{Lease: lease, N: 9, By: by})
	fences := []Fence{}
	for _, e := range s.m.members("active") {
		fences = append(fences, fenceOf(e.id, int64(s.m.jobs[e.id].attempts), by))
	}
	s.all(await{fences[1].ID})
	s.all(extend{lease, fences}, cancel{fences[0].ID}, wakeOne{})
	for i, f := range fences {
		all := verbs(f)
		s.do(all[i%len(all)].step)
		s.do(all[i%len(all)].step)
	}
	for id, j := range s.m.jobs {
		if j.state == "dead" {
			s.all(reprocess{id})
			break
		}
	}
	for i := range 6 {
		s.all(inLane(jobN(30+i), string(rune('a'+i%2))))
	}
	s.all(tune{"a", "limit", 1}, tune{"b", "weight", 3}, tune{"", "weight", 2}, browse{})
	s.all(claim{Lease: lease, N: 9, By: "other001"}, tune{"a", "pause", 0}, tune{"b", "pause", 0}, browse{}, tune{"a", "resume", 0})
	for _, e := range s.m.members("active") {
		s.chatter(fenceOf(e.id, int64(s.m.jobs[e.id].attempts), s.m.jobs[e.id].text["by"]), 2, "a", "b", "c")
	}
	s.all(update{ID: jobB, Payload: []byte("new"), Version: 2, Kinds: []string{"mail.send"}})
	s.readAll()
	s.all(set("paused", "1"), set("paused", "", "concurrency", "", "rate_max", ""), rate(9, time.Hour))
	s.lapse(5)
	s.all(cancel{jobN(21)}, setMeta("dead_max", "0"), expire{100}, nudge{"process1"}, handover{"process1"})
	everythingOfCron(s)
	everythingInBulk(s)
}

// everythingInBulk takes every transition of an operator's once.
func everythingInBulk(s *scene) {
	only := func(id string) enqueue { e := inLane(id, "c"); e.Unique = uniqueKeyName + id; return e }
	s.morgue("one", 100, 3, only)
	s.morgue("one", 110, 2, enter)
	s.all(revive{Look: 1, Up: 1}, remove{jobN(100)}, remove{jobN(110)})
	s.fill("c", 120, 3)
	s.all(reassign{"c", "d", 2}, reassign{"d", "", 2}, reassign{"b", "c", 100})
	s.all(claim{Lease: lease, N: 5, By: "other002"}, reapLane{"c", 1, lease})
	s.pass(lease / 3)
	s.pass(lease / 3)
	s.all(extend{lease, nil})
	s.pass(lease / 3)
	s.pass(lease / 3)
	s.all(reapLane{"c", 1, lease}, reapLane{"a", 1, lease})
	s.all(only(jobN(130)), claim{Lease: lease, N: 5, By: "other003"}, unlist(jobN(130), "active"), deleteRow(jobN(121)), audit{Look: true}, audit{})
	s.all(setMeta("paused", "1"))
	for _, list := range []string{"active", "schedule", "pending", "lane", "lanes", "dead", "completed"} {
		s.all(drain{List: list, Lane: "a", Limit: 100, Guard: PausedOnly})
	}
	s.must("RPUSH", s.queue.keys.Row(jobN(199))+":logs", "line")
	if n, err := s.queue.AuditSubkeys(context.Background(), false, []string{jobN(199), "logs"}); err != nil || n != 1 {
		failf("audit_subkeys: %d, %v", n, err)
	}
	if n, err := s.queue.SetShards(context.Background(), 1, 3); err != nil || n != 3 {
		failf("shards: %d, %v", n, err)
	}
	if gone, err := s.queue.Obliterate(context.Background(), PausedOnly, []string{s.key("metrics:completed")}); err != nil || !gone {
		failf("obliterate: %t, %v", gone, err)
	}
}

var quoted = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)

// TestEveryKeyIsDeclared watches what the scripts do on a server: each key that a script touches is one
// of its KEYS, or a row, a unique key or a lane's key, which only the script can know.
func TestEveryKeyIsDeclared(t *testing.T) {
	server := redistest.Start(t)
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	lines.Scan()
	s := newTarget(t, server.Addr(), 0, ownLibrary(t))
	story := scenario{"everything", everything}
	if failed := story.play(s); failed != "" {
		t.Fatal(failed)
	}
	s.must("ECHO", "the end")
	var keys []string
	commands := map[string]bool{}
	own := false
	for lines.Scan() {
		line := lines.Text()
		_, from, _ := strings.Cut(line, "[")
		var words []string
		for _, m := range quoted.FindAllStringSubmatch(from, -1) {
			words = append(words, m[1])
		}
		if len(words) < 2 {
			continue
		}
		if words[0] == "ECHO" {
			break
		}
		if !strings.HasPrefix(from, "0 lua]") {
			own = (words[0] == "EVALSHA" || words[0] == "EVAL") && words[2] != "0"
			if own {
				var n int
				if _, err := fmt.Sscan(words[2], &n); err != nil {
					t.Fatal(err)
				}
				keys = words[3 : 3+n]
			}
			continue
		}
		if !own {
			continue
		}
		name := strings.ToUpper(words[0])
		commands[name] = true
		touched := words[1:2]
		switch name {
		case "DEL", "EXISTS", "UNLINK":
			touched = words[1:]
		case "TIME":
			touched = nil
		case "PUBLISH": // a channel, which is in no slot
			touched = nil
			if !slices.Contains([]string{s.key("events"), s.key("ended"), s.key("cancel")}, words[1]) {
				t.Errorf("an unknown channel: %s", line)
			}
		}
		for _, k := range touched {
			if !slices.Contains(keys, k) && !strings.Contains(k, "}:job:JOB") && !strings.Contains(k, "}:de:") && !strings.Contains(k, "}:g:") && !strings.Contains(k, "}:repeat:") {
				t.Errorf("%s of a key that is not in KEYS: %s", name, line)
			}
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	// all of these are older than 6.2; ZRANGE … BYSCORE is of 6.2
	known := strings.Fields(`DEL EXISTS GET SET PTTL PEXPIRE PUBLISH HDEL HEXISTS HGET HGETALL HINCRBY HMGET HSCAN HSET LLEN LPUSH LRANGE LTRIM
		SADD SCARD SISMEMBER SREM SSCAN TIME UNLINK ZADD ZCARD ZRANGE ZRANK ZREM ZREMRANGEBYRANK ZSCAN ZSCORE`)
	for name := range commands {
		if !slices.Contains(known, name) {
			t.Errorf("the scripts use %s, which is not in the list of commands", name)
		}
	}
	if len(commands) < 12 {
		t.Fatalf("only %d commands were seen", len(commands))
	}
}

// TestEveryScriptIsLegalOnACluster: a key in another slot, or one that a node does not serve, would be
// refused.
func TestEveryScriptIsLegalOnACluster(t *testing.T) {
	server := redistest.Start(t, "--cluster-enabled", "yes")
	if _, err := server.Command("CLUSTER", "ADDSLOTSRANGE", "0", "16383"); err != nil {
		t.Fatal(err)
	}
	s := newTarget(t, server.Addr(), 0, ownLibrary(t))
	for ready := false; !ready; {
		info, err := s.do("CLUSTER", "INFO").ToString()
		if err != nil {
			t.Fatal(err)
		}
		ready = strings.Contains(info, "cluster_state:ok")
	}
	story := scenario{"everything", everything}
	if failed := story.play(s); failed != "" {
		t.Fatal(failed)
	}
}

// TestScriptsAreLoadedAgain: a server that has lost its scripts is no error, for one call or for many,
// at the start or in the middle.
func TestScriptsAreLoadedAgain(t *testing.T) {
	for _, server := range targets {
		t.Run(server.name, func(t *testing.T) {
			s := server.open(t, ownLibrary(t))
			ctx := context.Background()
			flush := func() { s.must("SCRIPT", "FLUSH") }
			for n := range 5 {
				flush()
				if got := enter(jobN(n)).call(ctx, s); got.Says != "enqueued" {
					t.Fatalf("after SCRIPT FLUSH: %s", got.Says)
				}
			}
			flush()
			var jobs []Admit
			for n := range 200 {
				e := enter(jobN(100 + n))
				if n%2 == 0 {
					e = later(jobN(100+n), delay)
				}
				jobs = append(jobs, Admit{s.queue, NewJob(e)})
			}
			done := make(chan struct{})
			go func() { // strikes wherever it can
				defer close(done)
				for range 20 {
					flush()
				}
			}()
			for i, a := range s.queue.EnqueueAll(ctx, jobs) {
				if a.Err != nil || a.Status == "" || (a.Status == "duplicate" && a.Src != "src00001") {
					t.Fatalf("job %d of a pipeline: %+v", i, a)
				}
			}
			<-done
			sp, _ := s.dump()
			if p, q := len(sp[s.key("pending")].Text), len(sp[s.key("schedule")].At); p != 105 || q != 100 {
				t.Fatalf("%d jobs wait and %d are scheduled", p, q)
			}
		})
	}
}

// TestLimitsAreClamped: no caller can make a script unbounded.
func TestLimitsAreClamped(t *testing.T) {
	s := onRedis(t, ownLibrary(t))
	ctx := context.Background()
	var jobs []Admit
	for n := range 1100 {
		jobs = append(jobs, Admit{s.queue, NewJob(later(jobN(n), 0))})
	}
	for _, a := range s.queue.EnqueueAll(ctx, jobs) {
		if a.Err != nil {
			t.Fatal(a.Err)
		}
	}
	s.nowAfter(s.now())
	for _, want := range []string{"moved 500", "moved 500", "moved 100"} {
		if got := (promote{1 << 30}).call(ctx, s); got.Says != want {
			t.Fatalf("promote: %s, want %s", got.Says, want)
		}
	}
	got, err := s.queue.Claim(ctx, Claim{Lease: time.Millisecond, N: 1 << 30, By: "mine0001"})
	if err != nil || len(got.Jobs) != MaxClaim {
		t.Fatalf("claim: %d jobs, %v", len(got.Jobs), err)
	}
	if _, err := s.queue.Extend(ctx, lease, make([]Fence, MaxBeats+1)); err == nil {
		t.Fatal("extend takes any number of jobs")
	}
}
