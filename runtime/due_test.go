package emq_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Experiment 18, scaled. Early is judged by the server's clock alone: Due is what the server has written,
// and the time of the claim is on its clock too. How late a job starts is measured by this process's
// clock, which is the same machine's.
func TestScheduledJobsAreNeverEarlyAndHardlyLate(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		n := 2000
		if s.embedded {
			n = 300 // the embedded server takes a millisecond a script, several under the race detector
		}
		const span = 3 * time.Second
		batch := make([]emq.Job, n)
		wanted := make([]time.Duration, n)
		for i := range batch {
			wanted[i] = time.Duration(rand.Int64N(int64(span)))
			if i%2 == 0 {
				batch[i] = emq.New(job{i}, emq.In(wanted[i]))
			} else {
				batch[i] = emq.New(job{i}, emq.At(time.Now().Add(wanted[i])))
			}
		}
		var mu sync.Mutex
		lates := make([]time.Duration, 0, n)
		ran := make([]time.Time, n)
		dues := make([]time.Time, n)
		run(t, s.Client, emq.WorkerConfig{Concurrency: 50, Logger: new(logbook).logger()}, emq.Handle(func(ctx context.Context, j job) error {
			now := time.Now()
			info, _ := emq.InfoFrom(ctx)
			mu.Lock()
			defer mu.Unlock()
			ran[j.N], dues[j.N] = now, info.Due
			lates = append(lates, now.Sub(info.Due))
			return nil
		}))
		before := s.nowOf(t, "work")
		if _, err := s.Enqueue(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all have run", func() bool { return s.counts(t, "work").Totals["completed"] == int64(n) })
		mu.Lock()
		defer mu.Unlock()
		if len(lates) != n {
			t.Fatalf("%d runs of %d jobs", len(lates), n)
		}
		for i := range n {
			if ran[i].Before(dues[i]) {
				t.Errorf("job %d ran %v early", i, dues[i].Sub(ran[i]))
			}
			// before is rounded down to a millisecond by the wire, as is the due time
			if i%2 == 0 && dues[i].Before(before.Add(wanted[i]).Truncate(time.Millisecond)) {
				t.Errorf("job %d was due %v before its delay", i, before.Add(wanted[i]).Sub(dues[i]))
			}
		}
		p50, p99, most := quantiles(lates)
		t.Logf("%d random delays: late by p50 %v, p99 %v, at most %v", n, p50, p99, most)
		if p99 > 10*time.Second { // a busy machine is late by a second; a worker that sleeps until a beat by far more
			t.Errorf("p99 late %v", p99)
		}
	})
}

// A worker that sleeps until a far due time is woken for an earlier one.
func TestAnEarlierDueTimeWakesTheProcessThatPumps(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		began := make(chan int, 2)
		w := emq.Handle(func(_ context.Context, j job) error { began <- j.N; return nil })
		run(t, s.Client, emq.WorkerConfig{Lease: longLease, Logger: new(logbook).logger()}, w)
		put(t, s, job{1}, emq.In(time.Hour))
		eventually(t, "it pumps", func() bool { return s.pumps(t, "work") })
		var lates []time.Duration
		for range 20 {
			due := time.Now().Add(40 * time.Millisecond)
			put(t, s, job{2}, emq.At(due))
			if got := <-began; got != 2 {
				t.Fatalf("job %d ran", got)
			}
			lates = append(lates, time.Since(due))
		}
		p50, _, most := quantiles(lates)
		t.Logf("late by p50 %v, at most %v", p50, most)
		if p50 > 500*time.Millisecond {
			t.Errorf("late by p50 %v: it slept until its own beat", p50)
		}
	})
}
