package emq_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

func TestLimitsOfAQueueAreSetReadAndTakenAway(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("work")
		preset := emq.Settings{DeadJobs: 10_000, DeadAge: 90 * 24 * time.Hour, FlatWeight: 1}
		if got, err := q.Settings(ctx); err != nil || got != preset {
			t.Errorf("nothing is set: %+v, %v", got, err)
		}
		for range 2 { // all are safe to repeat
			if err := errors.Join(q.Pause(ctx), q.SetConcurrency(ctx, 7), q.SetRate(ctx, 50, time.Minute), q.SetMaxLength(ctx, 1000),
				q.SetDeadCaps(ctx, 100, 36*time.Hour), q.SetCrashBudget(ctx, 2), q.SetLaneWeight(ctx, "", 5)); err != nil {
				t.Fatal(err)
			}
			want := emq.Settings{
				Paused: true, Concurrency: 7, Rate: 50, RatePer: time.Minute, MaxLength: 1000,
				DeadJobs: 100, DeadAge: 36 * time.Hour, CrashBudget: 2, FlatWeight: 5,
			}
			if got, err := q.Settings(ctx); err != nil || got != want {
				t.Errorf("all is set: %+v, %v", got, err)
			}
		}
		for range 2 {
			if err := errors.Join(q.Resume(ctx), q.ClearConcurrency(ctx), q.ClearRate(ctx), q.ClearMaxLength(ctx),
				q.ClearDeadCaps(ctx), q.ClearCrashBudget(ctx), q.SetLaneWeight(ctx, "", 1)); err != nil {
				t.Fatal(err)
			}
			if got, err := q.Settings(ctx); err != nil || got != preset {
				t.Errorf("all is taken away: %+v, %v", got, err)
			}
		}
		for _, key := range s.keys(t) {
			if strings.Contains(key, "{work}") {
				t.Errorf("%s is left behind", key)
			}
		}
	})
}

func TestTheLargestLimitsAreKept(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("work")
		most := emq.MaxLimit
		if err := errors.Join(q.SetConcurrency(ctx, most), q.SetRate(ctx, most, emq.MaxSpan), q.SetMaxLength(ctx, most),
			q.SetDeadCaps(ctx, most, emq.MaxSpan), q.SetCrashBudget(ctx, most), q.SetLaneLimit(ctx, "a", most), q.SetLaneWeight(ctx, "a", emq.MaxLaneWeight)); err != nil {
			t.Fatal(err)
		}
		want := emq.Settings{
			Concurrency: most, Rate: most, RatePer: emq.MaxSpan, MaxLength: most, DeadJobs: most, DeadAge: emq.MaxSpan,
			CrashBudget: most, FlatWeight: 1,
		}
		if got, err := q.Settings(ctx); err != nil || got != want {
			t.Errorf("%+v, %v", got, err)
		}
		put(t, s.Client, job{1}, emq.InLane("a"))
		put(t, s.Client, job{2})
		run(t, s.Client, emq.WorkerConfig{}, emq.Handle(func(_ context.Context, j job) error {
			if j.N == 2 {
				return emq.Dead(nil)
			}
			return nil
		}))
		eventually(t, "they run", func() bool { c := s.counts(t, "work"); return c.Dead == 1 && c.Totals["completed"] == 1 })
	})
}

func TestWhatALimitCannotBeIsRefusedBeforeAnyIO(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("work")
		before := len(s.keys(t))
		for _, n := range []int{0, -1} {
			for word, err := range map[string]error{
				"ClearConcurrency": q.SetConcurrency(ctx, n),
				"ClearRate":        q.SetRate(ctx, n, time.Second),
				"ClearMaxLength":   q.SetMaxLength(ctx, n),
				"ClearDeadCaps":    q.SetDeadCaps(ctx, n, time.Hour),
				"ClearCrashBudget": q.SetCrashBudget(ctx, n),
				"at least 1ms":     q.SetRate(ctx, 5, time.Duration(n)),
				"for at least 1ms": q.SetDeadCaps(ctx, 5, time.Duration(n)),
			} {
				if !errors.Is(err, emq.ErrInvalid) || !strings.Contains(err.Error(), word) || !strings.Contains(err.Error(), `"work"`) {
					t.Errorf("%d: %v does not say %s", n, err, word)
				}
			}
		}
		for what, err := range map[string]error{
			"concurrency":  q.SetConcurrency(ctx, emq.MaxLimit+1),
			"rate of":      q.SetRate(ctx, math.MaxInt, time.Hour),
			"millisecond;": q.SetRate(ctx, 1001, time.Millisecond),
			"876000h":      q.SetRate(ctx, 1, emq.MaxSpan+1),
			"maximum":      q.SetMaxLength(ctx, math.MaxInt),
			"dead letters": q.SetDeadCaps(ctx, math.MaxInt, time.Hour),
			"at most 8760": q.SetDeadCaps(ctx, 1, math.MaxInt64),
			"crash budget": q.SetCrashBudget(ctx, math.MaxInt),
			"limit of":     q.SetLaneLimit(ctx, "a", math.MaxInt),
			"weight of":    q.SetLaneWeight(ctx, "a", math.MaxInt),
		} {
			if !errors.Is(err, emq.ErrInvalid) || !strings.Contains(err.Error(), what) {
				t.Errorf("a number that no script can reckon with: %v does not say %s", err, what)
			}
		}
		bad := s.Queue("a:{b}")
		_, err := bad.Settings(ctx)
		for _, err := range []error{err, bad.Pause(ctx), bad.SetConcurrency(ctx, 1), bad.SetConcurrency(ctx, 0), bad.ClearRate(ctx)} {
			if !errors.Is(err, emq.ErrInvalid) || !strings.Contains(err.Error(), "a:{b}") {
				t.Errorf("a hostile queue: %v", err)
			}
		}
		if after := len(s.keys(t)); after != before {
			t.Errorf("%d keys were written", after-before)
		}
	})
}

// The lease of these workers is so long that nobody looks by himself: only a token can wake them.
func TestAChangeOfALimitIsHeardAtOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("work")
		var running atomic.Int64
		finish := make(chan struct{})
		if err := q.Pause(ctx); err != nil {
			t.Fatal(err)
		}
		putMany(t, s, 40, func(i int) job { return job{i} })
		run(t, s.Client, emq.WorkerConfig{Concurrency: 40, Lease: longLease, Logger: new(logbook).logger()},
			emq.Handle(func(context.Context, job) error {
				running.Add(1)
				defer running.Add(-1)
				<-finish
				return nil
			}))
		for _, c := range []struct {
			name   string
			change func() error
			runs   int64
		}{
			{"a limit", func() error { return errors.Join(q.SetConcurrency(ctx, 2), q.Resume(ctx)) }, 2},
			{"a higher one", func() error { return q.SetConcurrency(ctx, 9) }, 9},
			{"a lower one", func() error { return q.SetConcurrency(ctx, 3) }, 9},
			{"a pause and a resume", func() error { return errors.Join(q.Pause(ctx), q.SetConcurrency(ctx, 12), q.Resume(ctx)) }, 12},
			{"a rate that lets one through", func() error { return errors.Join(q.SetRate(ctx, 1, 24*time.Hour), q.ClearConcurrency(ctx)) }, 13},
			{"no limit at all", func() error { return q.ClearRate(ctx) }, 40},
		} {
			if err := c.change(); err != nil {
				t.Fatal(c.name, err)
			}
			eventually(t, c.name, func() bool { return running.Load() >= c.runs })
			if n := s.counts(t, "work").Active; n != c.runs {
				t.Errorf("%s: %d are in flight, want %d", c.name, n, c.runs)
			}
		}
		close(finish)
		eventually(t, "all complete", func() bool { return s.counts(t, "work").Totals["completed"] == 40 })
	})
}

// A worker that has taken what the rate allows for now knows when it allows more. If its slots are full
// then, it must tell the others.
func TestARateIsKeptUpByManySmallWorkers(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const workers = 6
		q := s.Queue("work")
		if err := errors.Join(q.Pause(t.Context()), q.SetRate(t.Context(), 10, time.Second)); err != nil {
			t.Fatal(err)
		}
		putMany(t, s, workers, func(i int) job { return job{i} })
		var running atomic.Int64
		finish := make(chan struct{})
		for range workers {
			run(t, another(t, s), emq.WorkerConfig{Concurrency: 1, Lease: longLease, Logger: new(logbook).logger()},
				emq.Handle(func(context.Context, job) error {
					running.Add(1)
					<-finish
					return nil
				}))
		}
		open := sync.OnceFunc(func() { close(finish) })
		t.Cleanup(open)
		eventually(t, "all are parked", func() bool { return s.embedded || s.blocked(t) == workers })
		if err := q.Resume(t.Context()); err != nil { // one token
			t.Fatal(err)
		}
		eventually(t, "each of them runs a job", func() bool { return running.Load() == workers })
		open()
		eventually(t, "all complete", func() bool { return s.counts(t, "work").Totals["completed"] == workers })
	})
}

func TestAQueueAtItsMaximumLengthIsErrFull(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("work")
		if err := q.SetMaxLength(ctx, 2); err != nil {
			t.Fatal(err)
		}
		put(t, s, job{1})
		put(t, s, job{2}, emq.In(time.Hour))
		if r, err := emq.Enqueue(ctx, s.Client, job{3}); !errors.Is(err, emq.ErrFull) || r.Status != emq.Refused || r.ID == "" {
			t.Errorf("%+v, %v", r, err)
		}
		if err := q.SetMaxLength(ctx, 3); err != nil {
			t.Fatal(err)
		}
		receipts, err := s.Enqueue(ctx, emq.New(job{4}), emq.New(left{5}), emq.New(job{6}))
		if !errors.Is(err, emq.ErrFull) || receipts[0].Status != emq.Enqueued || receipts[1].Status != emq.Enqueued || receipts[2].Status != emq.Refused {
			t.Errorf("%+v, %v", receipts, err)
		}
		if err := q.ClearMaxLength(ctx); err != nil {
			t.Fatal(err)
		}
		put(t, s, job{7})
	})
}

func TestTheCapsOfTheDeadLettersAreKeptByTheWorkers(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		if err := s.Queue("work").SetDeadCaps(t.Context(), 3, time.Hour); err != nil {
			t.Fatal(err)
		}
		putMany(t, s, 10, func(i int) job { return job{i} })
		run(t, s.Client, emq.WorkerConfig{Lease: 300 * time.Millisecond, Logger: new(logbook).logger()},
			emq.Handle(func(context.Context, job) error { return emq.Dead(errors.New("hopeless")) }))
		eventually(t, "three are left", func() bool {
			c := s.counts(t, "work")
			return c.Totals["failed"] == 10 && c.Dead == 3
		})
	})
}
