package scripts

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
)

// TestNoMemory: at maxmemory work is refused at the door, and what is inside is still beaten, settled
// and drained.
func TestNoMemory(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	if failed := (scenario{"no memory", noMemory}).play(newTarget(t, server.Addr(), 0, ownLibrary(t))); failed != "" {
		t.Fatal(failed)
	}
	// and it is the order of the writes that does it
	for _, first := range []string{"redis.call('HDEL', meta, '-')", "redis.call('HDEL', m_stale, '-')", "redis.call('HDEL', row, '-')"} {
		scripts, hits := mutate(ownLibrary(t), first, "")
		s := newTarget(t, server.Addr(), 0, scripts)
		s.must("CONFIG", "SET", "maxmemory", "0")
		if failed := (scenario{"no memory", noMemory}).play(s); hits == 0 || !strings.Contains(failed, "OOM") {
			t.Errorf("without %s, in %d scripts: %.300s", first, hits, failed)
		}
	}
}

func noMemory(s *scene) {
	s.enterMany(40)
	s.all(inLane(jobN(50), "a"), inLane(jobN(51), "a"), tune{"a", "pause", 0})
	s.all(later(jobA, delay), claim{Lease: lease, N: 20, By: "mine0001"}, popWake())
	s.all(kill{fenceOf(jobN(19), 1, "mine0001"), "poisoned"}, popPump())
	s.pass(delay2)
	s.must("CONFIG", "SET", "maxmemory", "1")
	ctx := context.Background()
	for _, e := range []enqueue{enter(jobB), later(jobB, delay), only(jobB), onlyFor(jobB, delay)} {
		got := e.call(ctx, s.target)
		if !strings.Contains(got.Says, "OOM") {
			failf("%+v answers %q", e, got.Says)
		}
		s.same()
	}
	var fences []Fence
	for i := range 19 {
		fences = append(fences, fenceOf(jobN(i), 1, "mine0001"))
	}
	s.says(strings.TrimSpace(strings.Repeat("1 ", 19)), extend{lease, fences})
	for i, f := range fences[:9] {
		v := verbs(f)[i]
		s.says(v.ok, v.step)
		s.do(v.step)
	}
	s.says("EMQSTALE", complete{Fence: fenceOf(jobN(10), 7, "mine0001")})
	s.says("cancelling", cancel{jobN(10)})
	s.says("cancelled", kill{fenceOf(jobN(10), 1, "mine0001"), "poisoned"})
	s.says("moved 1", promote{100})
	s.says("cancelled", cancel{jobA})
	s.says("revived", reprocess{jobN(19)})
	s.takes(2, claim{Lease: lease, N: 2, By: "other001"})
	s.all(tune{"a", "resume", 0}, tune{"a", "limit", 1})
	s.says("cancelled", cancel{jobN(51)})
	s.all(wakeOne{})
	s.says("pumped 0 0 0", pump{Tag: "process1", Budget: 5, Limit: 100, Lease: lease})
	s.all(nudge{"process1"}, handover{"process1"})
	s.must("CONFIG", "SET", "maxmemory", "0") // what lets time pass is no script of the queue
	s.pass(2 * lease)
	s.all(reap{5, 100, lease})
	s.pass(lease/3 + time.Minute)
	s.must("CONFIG", "SET", "maxmemory", "1")
	s.says("moved 11", reap{5, 100, lease})
	s.all(expire{100})
	s.must("CONFIG", "SET", "maxmemory", "0")
	noMemoryInBulk(s)
}

// noMemoryInBulk: the operator's verbs make room, so they are not refused.
func noMemoryInBulk(s *scene) {
	s.morgue("one", 200, 4, func(id string) enqueue { return inLane(id, "a") })
	s.fill("a", 210, 4)
	e := later(jobN(220), delay)
	e.Lane = "a"
	s.all(e, inLane(jobN(221), "c"), setMeta("concurrency", "100"), tune{"a", "limit", 9}, claim{Lease: lease, N: 50, By: "other002"})
	s.fill("a", 230, 2)
	s.all(enter(jobN(240)), claim{Lease: lease, N: 1, By: "other003"}, unlist(jobN(240), "active"), enter(jobN(241)), unlist(jobN(241), "pending"))
	s.must("CONFIG", "SET", "maxmemory", "1")
	s.all(remove{jobN(200)}, revive{Look: 1, Up: 1}, reassign{"a", "b", 1}, reassign{"b", "", 1}, audit{Look: true}, audit{})
	s.must("CONFIG", "SET", "maxmemory", "0")
	s.all(setMeta("paused", "1"))
	s.pass(2 * lease)
	s.all(extend{lease, nil})
	s.pass(lease/3 + time.Minute)
	s.must("CONFIG", "SET", "maxmemory", "1")
	s.all(reapLane{"c", 5, lease})
	for _, list := range []string{"active", "schedule", "pending", "lanes", "dead", "completed"} {
		s.all(drain{List: list, Limit: 100, Guard: PausedOnly})
	}
	s.must("CONFIG", "SET", "maxmemory", "0")
}
