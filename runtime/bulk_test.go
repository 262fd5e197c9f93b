package emq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/scripts"
)

// The kinds of a queue on which an operator works; a sole one is unique by its key.
type (
	chore      struct{ N int }
	otherChore struct{ N int }
	sole       struct {
		N   int
		Key string
	}
)

func (chore) EmqSpec() emq.Spec[chore] {
	return emq.Spec[chore]{Queue: "chores", Kind: "chore", Attempts: 1, Timeout: time.Minute}
}

func (otherChore) EmqSpec() emq.Spec[otherChore] {
	return emq.Spec[otherChore]{Queue: "chores", Kind: "other", Attempts: 1, Timeout: time.Minute}
}

func (sole) EmqSpec() emq.Spec[sole] {
	return emq.Spec[sole]{Queue: "chores", Kind: "sole", Attempts: 1, Timeout: time.Minute,
		UniqueKey: func(s sole) string { return emq.UniqueKey("sole", s.Key) }}
}

// hands calls the transitions of the queue chores without a worker.
func (s *store) hands(t *testing.T) *scripts.Queue {
	t.Helper()
	server, err := scripts.NewServer(s.raw, "")
	if err != nil {
		t.Fatal(err)
	}
	return server.Queue("chores")
}

// claims takes up to n jobs that wait.
func claims(t *testing.T, q *scripts.Queue, n int) []scripts.Fence {
	t.Helper()
	got, err := q.Claim(t.Context(), scripts.Claim{Lease: time.Minute, N: n, By: fmt.Sprintf("by%06d", time.Now().UnixNano()%1e6)})
	if err != nil {
		t.Fatal(err)
	}
	var fences []scripts.Fence
	for _, j := range got.Jobs {
		fences = append(fences, scripts.Fence{ID: j.ID, Attempts: j.Attempts, By: j.By})
	}
	return fences
}

// bury makes dead letters of all jobs that wait.
func bury(t *testing.T, q *scripts.Queue) {
	t.Helper()
	for {
		fences := claims(t, q, 500)
		if len(fences) == 0 {
			return
		}
		for _, f := range fences {
			if _, err := q.Kill(t.Context(), f, "poisoned"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// keysOf lists the keys of a queue.
func (s *store) keysOf(t *testing.T, queue string) []string {
	t.Helper()
	return s.keysLike(t, "emq:{"+queue+"}:*")
}

func TestRemoveDeletesWhatDoesNotRun(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q, hands := t.Context(), s.Queue("chores"), s.hands(t)
		dead := put(t, s, sole{1, "dead"})
		bury(t, hands)
		kept := put(t, s, sole{2, "kept"})
		if _, err := hands.Complete(ctx, claims(t, hands, 1)[0], time.Hour, nil); err != nil {
			t.Fatal(err)
		}
		active := put(t, s, sole{3, "active"}, emq.InLane("a"))
		claims(t, hands, 1)
		waiting, later, laned := put(t, s, sole{4, "waiting"}), put(t, s, sole{5, "later"}, emq.In(time.Hour)), put(t, s, sole{6, "lane"}, emq.InLane("a"))
		for name, ref := range map[string]emq.Ref{"dead": dead, "kept": kept, "waiting": waiting, "later": later, "lane": laned} {
			if err := q.Remove(ctx, ref.ID); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := q.Remove(ctx, ref.ID); !errors.Is(err, emq.ErrGone) {
				t.Errorf("%s again: %v", name, err)
			}
		}
		if err := q.Remove(ctx, active.ID); !errors.Is(err, emq.ErrLocked) || !strings.Contains(err.Error(), "cancel it instead") {
			t.Errorf("active: %v", err)
		}
		if err := q.Remove(ctx, "JOBx"); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("a bad id: %v", err)
		}
		if err := s.Queue("emq").Remove(ctx, waiting.ID); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("a bad queue: %v", err)
		}
		if c := s.counts(t, "chores"); c.Pending+c.Scheduled+c.Dead+c.Completed != 0 || c.Active != 1 || c.Totals["removed"] != 5 {
			t.Errorf("%+v", c)
		}
		for _, key := range []string{"dead", "kept", "waiting", "later", "lane"} {
			put(t, s, sole{7, key})
		}
		conflicts(t, s, sole{7, "active"})
	})
}

func TestReprocessAllTakesAKindOrAllAndLeavesWhatIsLocked(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q, hands := t.Context(), s.Queue("chores"), s.hands(t)
		for range 3 {
			put(t, s, sole{1, "one of a kind"})
			bury(t, hands)
		}
		const chores, others = 450, 30
		putMany(t, s, chores, func(i int) chore { return chore{N: i} })
		putMany(t, s, others, func(i int) otherChore { return otherChore{i} })
		bury(t, hands)

		for _, o := range []emq.ReprocessOptions{{Kind: "No Kind"}, {Rate: -1}, {Limit: -1}} {
			if _, err := q.ReprocessAll(ctx, o); !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("%+v: %v", o, err)
			}
		}
		p, err := q.ReprocessAll(ctx, emq.ReprocessOptions{Limit: 10})
		if err != nil || p.Done != 10 || p.Refused != 2 {
			t.Errorf("with a limit of 10: %+v, %v", p, err)
		}
		calls := 0
		p, err = q.ReprocessAll(ctx, emq.ReprocessOptions{Kind: "chore", Rate: 100_000, Progress: func(emq.BulkProgress) { calls++ }})
		if want := (emq.BulkProgress{Done: chores - 9, Skipped: others + 2}); err != nil || p != want || calls < 3 {
			t.Errorf("of a kind: %+v after %d calls, want %+v; %v", p, calls, want, err)
		}
		if c := s.counts(t, "chores"); c.Dead != others+2 || c.Pending != chores+1 {
			t.Errorf("%+v", c)
		}
		stopped, stop := context.WithCancel(ctx)
		p, err = q.ReprocessAll(stopped, emq.ReprocessOptions{Kind: "other", Rate: 1, Progress: func(emq.BulkProgress) { stop() }})
		if !errors.Is(err, context.Canceled) || p.Done != 1 {
			t.Errorf("stopped: %+v, %v", p, err)
		}
		p, err = q.ReprocessAll(ctx, emq.ReprocessOptions{})
		if want := (emq.BulkProgress{Done: others - 1, Refused: 2}); err != nil || p != want {
			t.Errorf("all: %+v, want %+v; %v", p, want, err)
		}
	})
}

// Its jobs die again at once, faster than they are taken: each has one new life.
func TestReprocessAllDoesNotTakeWhatDiesWhileItGoesOn(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const jobs = 900
		hands := s.hands(t)
		putMany(t, s, jobs, func(i int) chore { return chore{N: i} })
		bury(t, hands)
		p, err := s.Queue("chores").ReprocessAll(t.Context(), emq.ReprocessOptions{Progress: func(emq.BulkProgress) {
			put(t, s, chore{N: jobs})
			bury(t, hands)
		}})
		if err != nil || p.Done != jobs {
			t.Errorf("%+v, %v", p, err)
		}
		if c := s.counts(t, "chores"); c.Pending != 0 || c.Dead <= jobs {
			t.Errorf("%+v", c)
		}
	})
}

func TestDrainRemovesWhatWaits(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q, hands := t.Context(), s.Queue("chores"), s.hands(t)
		put(t, s, sole{1, "dead"})
		bury(t, hands)
		put(t, s, sole{2, "active"}, emq.InLane("a"))
		claims(t, hands, 1)
		putMany(t, s, 1200, func(i int) chore { return chore{N: i} })
		for i := range 30 {
			put(t, s, chore{N: i}, emq.InLane(fmt.Sprint("lane", i%7)))
		}
		put(t, s, sole{3, "waiting"}, emq.InLane("a"))
		put(t, s, sole{4, "later"}, emq.In(time.Hour))
		p, err := q.DrainLane(ctx, "lane3")
		if err != nil || p.Done != 4 {
			t.Errorf("one lane: %+v, %v", p, err)
		}
		if p, err := q.DrainLane(ctx, "no lane"); err != nil || p.Done != 0 {
			t.Errorf("an unknown lane: %+v, %v", p, err)
		}
		if _, err := q.DrainLane(ctx, ""); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("no lane: %v", err)
		}
		stopped, stop := context.WithCancel(ctx)
		p, err = q.Drain(stopped, emq.DrainOptions{Progress: func(emq.BulkProgress) { stop() }})
		if !errors.Is(err, context.Canceled) || p.Done != 200 {
			t.Errorf("stopped: %+v, %v", p, err)
		}
		if p, err = q.Drain(ctx, emq.DrainOptions{}); err != nil || p.Done != 1200+27-200 {
			t.Errorf("the rest: %+v, %v", p, err)
		}
		if c := s.counts(t, "chores"); c.Pending != 0 || c.Scheduled != 1 || c.Active != 1 || c.Dead != 1 || c.Totals["removed"] != 1231 {
			t.Errorf("%+v", c)
		}
		put(t, s, sole{5, "waiting"})
		conflicts(t, s, sole{5, "later"})
		if p, err = q.Drain(ctx, emq.DrainOptions{Scheduled: true}); err != nil || p.Done != 2 {
			t.Errorf("with what is scheduled: %+v, %v", p, err)
		}
		put(t, s, sole{6, "later"})
	})
}

func TestALaneIsReassigned(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("chores")
		for _, c := range [][2]string{{"", "b"}, {"a", "a"}, {"a", "b\n"}, {"a\x00", "b"}} {
			if _, err := q.ReassignLane(ctx, c[0], c[1]); !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("%q: %v", c, err)
			}
		}
		before := s.keysOf(t, "chores")
		if _, err := q.ReassignLane(ctx, "a", "b"); !errors.Is(err, emq.ErrNoLane) || !slices.Equal(s.keysOf(t, "chores"), before) {
			t.Errorf("an unknown lane: %v, %v", err, s.keysOf(t, "chores"))
		}
		const jobs = 450
		for i := range jobs {
			put(t, s, chore{N: i}, emq.InLane("a"))
		}
		put(t, s, chore{N: jobs}, emq.InLane("a"), emq.In(time.Hour))
		p, err := q.ReassignLane(ctx, "a", "b")
		if err != nil || p.Done != jobs+1 {
			t.Errorf("%+v, %v", p, err)
		}
		if b, err := q.Lane(ctx, "b"); err != nil || b.Waiting != jobs {
			t.Errorf("%+v, %v", b, err)
		}
		if p, err := q.ReassignLane(ctx, "b", ""); err != nil || p.Done != jobs+1 {
			t.Errorf("out of lanes: %+v, %v", p, err)
		}
		if c := s.counts(t, "chores"); c.Pending != jobs || c.Scheduled != 1 {
			t.Errorf("%+v", c)
		}
		page, err := q.Lanes(ctx, "", 100)
		if err != nil || len(page.Lanes) != 0 {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

func TestALapsedLeaseOfALaneIsTakenBackNow(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q, hands := t.Context(), s.Queue("chores"), s.hands(t)
		lapsed, living := put(t, s, chore{N: 1}, emq.InLane("a")), put(t, s, chore{N: 2}, emq.InLane("a"))
		other := put(t, s, chore{N: 3}, emq.InLane("b"))
		claims(t, hands, 3)
		if _, err := q.ReapLane(ctx, ""); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("no lane: %v", err)
		}
		s.do(t, "ZADD", "emq:{chores}:active", "1", string(lapsed.ID), "1", string(other.ID))
		// nobody was seen, so that the call waits for the grace, and does not outlive its context
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if _, err := q.ReapLane(short, "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("during the grace: %v", err)
		}
		s.do(t, "HSET", "emq:{chores}:meta", "seen", fmt.Sprint(s.now(t).UnixMilli()), "grace", "0")
		if n, err := q.ReapLane(ctx, "a"); err != nil || n != 1 {
			t.Errorf("%d, %v", n, err)
		}
		for ref, state := range map[emq.Ref]string{lapsed: "pending", living: "active", other: "active"} {
			if got := s.row(t, ref)["state"]; got != state {
				t.Errorf("%s is %s, want %s", ref, got, state)
			}
		}
	})
}
