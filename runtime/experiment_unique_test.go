package emq_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/echomq/emq/internal/wire"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/scripts"
)

// longWindow holds its key for longer than any test takes.
type longWindow struct{ Key string }

func (longWindow) EmqSpec() emq.Spec[longWindow] {
	return emq.Spec[longWindow]{Queue: "unique", Kind: "long_window", Attempts: 1, Timeout: time.Minute, UniqueFor: emq.ForWindow(time.Hour),
		UniqueKey: func(w longWindow) string { return emq.UniqueKey("long_window", w.Key) }}
}

// locked is one job with a unique key, and the means of ending it.
type locked struct {
	t     *testing.T
	s     *store
	q     *emq.Queue
	hands *scripts.Queue
	ref   emq.Ref
	key   string        // on the server
	fence scripts.Fence // once it runs
}

// where a job stands before its end.
const (
	waits      = "waits"
	waitsLaned = "waits in a lane"
	scheduled  = "is scheduled"
	running    = "runs"
	runsLaned  = "runs in a lane"
	isDead     = "is dead"
	isKept     = "is kept"
)

// bring enqueues the job and lets it come to where it stands before its end.
func (l *locked) bring(j func(opts ...emq.Option) emq.Job, to string) {
	l.t.Helper()
	var opts []emq.Option
	switch to {
	case waitsLaned, runsLaned:
		opts = append(opts, emq.InLane("lane"))
	case scheduled:
		opts = append(opts, emq.In(time.Hour))
	}
	r, err := l.s.Enqueue(l.t.Context(), j(opts...))
	if err != nil || r[0].Status != emq.Enqueued {
		l.t.Fatal(r, err)
	}
	l.ref = r[0].Ref
	if !slices.Contains([]string{running, runsLaned, isDead, isKept}, to) {
		return
	}
	l.fence = claims(l.t, l.hands, 1)[0]
	switch to {
	case isDead:
		l.settle(scripts.Burial(l.fence, "broken"))
	case isKept:
		l.settle(scripts.Completion(l.fence, time.Millisecond, nil))
	}
}

func (l *locked) settle(s scripts.Settle) {
	l.t.Helper()
	if v, err := l.hands.Settle(l.t.Context(), s); err != nil || v.Again {
		l.t.Fatal(v, err)
	}
}

func (l *locked) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// lapse lets a lease run out and be reaped.
func (l *locked) lapse(budget int) {
	l.t.Helper()
	if _, err := l.hands.Extend(l.t.Context(), time.Millisecond, []scripts.Fence{l.fence}); err != nil {
		l.t.Fatal(err)
	}
	eventually(l.t, "the lease is reaped", func() bool {
		l.s.do(l.t, "HSET", "emq:{unique}:meta", "seen", fmt.Sprint(l.s.now(l.t).UnixMilli()), "grace", "0")
		n, _, err := l.hands.Reap(l.t.Context(), budget, 10, time.Minute)
		l.ok(err)
		return n == 1
	})
}

// expire lets the pump's part run until something was deleted.
func (l *locked) expire() {
	l.t.Helper()
	eventually(l.t, "it expires", func() bool {
		n, _, err := l.hands.Expire(l.t.Context(), 10)
		l.ok(err)
		return n == 1
	})
}

// endings are all ways in which a job ends, from where it stands.
var endings = []struct {
	name, from string
	end        func(l *locked)
	all        bool // it takes every key of the queue, on purpose
}{
	{name: "completed", from: running, end: func(l *locked) { l.settle(scripts.Completion(l.fence, 0, nil)) }},
	{name: "completed in a lane", from: runsLaned, end: func(l *locked) { l.settle(scripts.Completion(l.fence, 0, nil)) }},
	{name: "completed and kept", from: running, end: func(l *locked) { l.settle(scripts.Completion(l.fence, time.Hour, nil)) }},
	{name: "completed with others", from: running, end: func(l *locked) {
		done := l.hands.SettleAll(l.t.Context(), []scripts.Settle{scripts.Completion(l.fence, 0, nil), scripts.Completion(l.fence, 0, nil)})
		l.ok(done[0].Err)
	}},
	{name: "kept and expired", from: isKept, end: (*locked).expire},
	{name: "kept and removed", from: isKept, end: func(l *locked) { l.ok(l.q.Remove(l.t.Context(), l.ref.ID)) }},
	{name: "dead by its attempts", from: running, end: func(l *locked) { l.settle(scripts.Failure(l.fence, time.Second, 1, "broken")) }},
	{name: "dead at once", from: running, end: func(l *locked) { l.settle(scripts.Burial(l.fence, "broken")) }},
	{name: "dead by its lapses", from: running, end: func(l *locked) { l.lapse(1) }},
	{name: "dead by its lapses in a lane", from: runsLaned, end: func(l *locked) {
		l.s.do(l.t, "ZADD", "emq:{unique}:active", "1", string(l.ref.ID))
		l.s.do(l.t, "HSET", "emq:{unique}:meta", "crash_budget", "1")
		l.s.do(l.t, "HSET", "emq:{unique}:meta", "seen", fmt.Sprint(l.s.now(l.t).UnixMilli()), "grace", "0")
		n, err := l.q.ReapLane(l.t.Context(), "lane")
		if n != 1 {
			l.t.Fatal(n, err)
		}
	}},
	{name: "dead and removed", from: isDead, end: func(l *locked) { l.ok(l.q.Remove(l.t.Context(), l.ref.ID)) }},
	{name: "dead and aged", from: isDead, end: func(l *locked) {
		l.ok(l.q.SetDeadCaps(l.t.Context(), 1000, time.Millisecond))
		l.expire()
	}},
	{name: "dead, and one too many", from: isDead, end: func(l *locked) {
		l.s.do(l.t, "HSET", "emq:{unique}:meta", "dead_max", "0")
		l.expire()
	}},
	{name: "discarded", from: running, end: func(l *locked) { l.settle(scripts.Disposal(l.fence)) }},
	{name: "cancelled while it waits", from: waits, end: func(l *locked) { l.ok(l.s.Cancel(l.t.Context(), l.ref)) }},
	{name: "cancelled while it waits in a lane", from: waitsLaned, end: func(l *locked) { l.ok(l.s.Cancel(l.t.Context(), l.ref)) }},
	{name: "cancelled while scheduled", from: scheduled, end: func(l *locked) { l.ok(l.s.Cancel(l.t.Context(), l.ref)) }},
	{name: "cancelled while it runs", from: running, end: func(l *locked) {
		l.ok(l.s.Cancel(l.t.Context(), l.ref))
		l.settle(scripts.HandBack(l.fence, 0))
	}},
	{name: "cancelled, and its lease lapses", from: running, end: func(l *locked) {
		l.ok(l.s.Cancel(l.t.Context(), l.ref))
		l.lapse(0)
	}},
	{name: "removed while it waits", from: waits, end: func(l *locked) { l.ok(l.q.Remove(l.t.Context(), l.ref.ID)) }},
	{name: "removed while scheduled", from: scheduled, end: func(l *locked) { l.ok(l.q.Remove(l.t.Context(), l.ref.ID)) }},
	{name: "drained", from: waits, end: func(l *locked) { l.drain(emq.DrainOptions{}) }},
	{name: "drained from the lanes", from: waitsLaned, end: func(l *locked) { l.drain(emq.DrainOptions{}) }},
	{name: "drained from one lane", from: waitsLaned, end: func(l *locked) {
		if p, err := l.q.DrainLane(l.t.Context(), "lane"); p.Done != 1 {
			l.t.Fatal(p, err)
		}
	}},
	{name: "drained while scheduled", from: scheduled, end: func(l *locked) { l.drain(emq.DrainOptions{Scheduled: true}) }},
	{name: "obliterated while it waits", from: waits, all: true, end: (*locked).obliterate},
	{name: "obliterated while scheduled", from: scheduled, all: true, end: (*locked).obliterate},
	{name: "obliterated while it runs", from: runsLaned, all: true, end: (*locked).obliterate},
	{name: "obliterated when it is dead", from: isDead, all: true, end: (*locked).obliterate},
	{name: "obliterated while it is kept", from: isKept, all: true, end: (*locked).obliterate},
}

func (l *locked) drain(o emq.DrainOptions) {
	l.t.Helper()
	if p, err := l.q.Drain(l.t.Context(), o); p.Done != 1 {
		l.t.Fatal(p, err)
	}
}

func (l *locked) obliterate() {
	l.t.Helper()
	l.ok(l.q.Pause(l.t.Context()))
	if p, err := l.q.Obliterate(l.t.Context(), emq.ObliterateOptions{Force: true}); p.Done != 1 {
		l.t.Fatal(p, err)
	}
}

func (l *locked) holder() string {
	l.t.Helper()
	id, err := l.s.do(l.t, "GET", l.key).ToString()
	if err != nil {
		return ""
	}
	return id
}

// modes are the times for which a key is held.
var modes = []struct {
	name, kind string
	job        func(opts ...emq.Option) emq.Job
	holds      func(where string) bool
}{
	{"done", "until_done", func(opts ...emq.Option) emq.Job { return emq.New(untilDone{"k"}, opts...) },
		func(where string) bool { return where != isDead && where != isKept }},
	{"start", "until_start", func(opts ...emq.Option) emq.Job { return emq.New(untilStart{"k"}, opts...) },
		func(where string) bool { return where == waits || where == waitsLaned || where == scheduled }},
	{"window", "long_window", func(opts ...emq.Option) emq.Job { return emq.New(longWindow{"k"}, opts...) },
		func(string) bool { return true }},
}

// Experiment 6: a job ends in each possible way, with each mode of its key, and leaves no lock but a window's;
// and if the key has another holder by then, it stays that one's.
func TestExperimentEveryEndingFreesItsOwnKeyAndNoOther(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		server, err := scripts.NewServer(s.raw, "")
		if err != nil {
			t.Fatal(err)
		}
		const newer = "JOB0000newer00"
		cases := 0
		for _, m := range modes {
			for _, e := range endings {
				for _, taken := range []bool{false, true} {
					cases++
					s.flush(t)
					l := &locked{t: t, s: s, q: s.Queue("unique"), hands: server.Queue("unique"), key: "emq:{unique}:de:" + emq.UniqueKey(m.kind, "k")}
					l.bring(m.job, e.from)
					what := fmt.Sprintf("mode %s, a job that %s is %s", m.name, e.from, e.name)
					if held := l.holder() == string(l.ref.ID); held != m.holds(e.from) {
						t.Errorf("%s: before that it holds its key: %v", what, held)
					}
					want := ""
					if taken {
						want = newer
						s.do(t, "SET", l.key, newer)
					} else if m.name == "window" {
						want = string(l.ref.ID)
					}
					if e.all {
						want = ""
					}
					e.end(l)
					if got := l.holder(); got != want {
						t.Errorf("%s: then the key is held by %q, want %q", what, got, want)
					}
					if ttl, err := s.do(t, "PTTL", l.key).AsInt64(); err != nil || want != "" && !taken && (ttl <= 0 || ttl > time.Hour.Milliseconds()) {
						t.Errorf("%s: the window ends in %d ms, %v", what, ttl, err)
					}
				}
			}
		}
		t.Logf("experiment 6: %d cases", cases)
	})
}

// Experiment 6: an enqueue whose id is there already takes no key, whatever key it names, alone, later and
// in a batch.
func TestExperimentADuplicateIDTakesNoKey(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		minter, err := wire.NewMinter(7, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range modes {
			s.flush(t)
			text, err := minter.Mint()
			if err != nil {
				t.Fatal(err)
			}
			id := emq.ID(text)
			r, err := s.Enqueue(t.Context(), m.job(emq.WithID(id)))
			if err != nil || r[0].Status != emq.Enqueued {
				t.Fatal(r, err)
			}
			before := s.keysOf(t, "unique")
			other := map[string]func(opts ...emq.Option) emq.Job{
				"until_done":  func(opts ...emq.Option) emq.Job { return emq.New(untilDone{"other"}, opts...) },
				"until_start": func(opts ...emq.Option) emq.Job { return emq.New(untilStart{"other"}, opts...) },
				"long_window": func(opts ...emq.Option) emq.Job { return emq.New(longWindow{"other"}, opts...) },
				"the same":    m.job,
			}
			for name, job := range other {
				for how, batch := range map[string][]emq.Job{
					"alone": {job(emq.WithID(id))}, "later": {job(emq.WithID(id), emq.In(time.Hour))}, "in a lane": {job(emq.WithID(id), emq.InLane("lane"))},
					"in a batch": {job(emq.WithID(id)), m.job()},
				} {
					r, err := s.Enqueue(t.Context(), batch...)
					if err != nil || r[0].Status != emq.Duplicate || len(r) > 1 && (r[1].Status != emq.Conflict || r[1].Holder != id) {
						t.Errorf("mode %s, %s, %s: %v, %v", m.name, name, how, r, err)
					}
				}
			}
			if after := s.keysOf(t, "unique"); !slices.Equal(before, after) && !onlyRegistry(before, after) {
				t.Errorf("mode %s: the keys were %q and are %q", m.name, before, after)
			}
			// the job ends, and its id may be a duplicate of nothing: its key is free but for a window
			if err := s.Cancel(t.Context(), emq.Ref{Queue: "unique", ID: id}); err != nil {
				t.Fatal(err)
			}
			r, err = s.Enqueue(t.Context(), m.job(emq.WithID(id)))
			if want := map[bool]emq.Status{true: emq.Conflict, false: emq.Enqueued}[m.name == "window"]; err != nil || r[0].Status != want {
				t.Errorf("mode %s: after its end %v, %v", m.name, r, err)
			}
		}
	})
}

// onlyRegistry tells whether nothing but the registry of kinds has come.
func onlyRegistry(before, after []string) bool {
	return slices.Equal(before, slices.DeleteFunc(slices.Clone(after), func(key string) bool { return key == "emq:{unique}:kinds" }))
}

// Experiment 6: the newer holder has come by itself, as the old job is dead or runs, and then the old one goes.
func TestExperimentAnOldJobThatGoesLeavesTheNewerOneItsKey(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		server, err := scripts.NewServer(s.raw, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range modes[:2] {
			for _, e := range endings {
				if m.holds(e.from) || e.all {
					continue
				}
				s.flush(t)
				l := &locked{t: t, s: s, q: s.Queue("unique"), hands: server.Queue("unique"), key: "emq:{unique}:de:" + emq.UniqueKey(m.kind, "k")}
				l.bring(m.job, e.from)
				newer, err := s.Enqueue(t.Context(), m.job())
				if err != nil || newer[0].Status != emq.Enqueued {
					t.Fatal(newer, err)
				}
				e.end(l)
				third, err := s.Enqueue(t.Context(), m.job())
				if err != nil || third[0].Status != emq.Conflict || third[0].Holder != newer[0].ID {
					t.Errorf("mode %s, a job that %s is %s: then %v, %v; want a conflict with %s", m.name, e.from, e.name, third, err, newer[0].ID)
				}
			}
		}
	})
}
