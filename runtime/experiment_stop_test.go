package emq_test

import (
	"syscall"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Experiment 3: SIGTERM under load with a soft limit of 1 s; eight handlers heed their contexts, but
// need 3 s more, three times the lease. A second worker would take whatever is handed back.
func TestExperimentStopWithSlowHandlers(t *testing.T) {
	t.Parallel()
	const slow, quick = 8, 400
	e := newExperiment(t)
	g := e.gate("gate")
	settings := part{Lease: time.Second, SoftStop: time.Second, Concurrency: 12}
	first := e.start(settings)
	for i := range slow {
		e.enqueue(emq.New(errand{N: i, Do: windDown, Gate: g.file, For: 3 * time.Second}))
	}
	e.reached("the slow ones run", func() bool { return len(e.stints()) == slow })
	second := e.start(settings)
	for i := range quick {
		e.enqueue(emq.New(errand{N: slow + i, For: 50 * time.Millisecond}))
	}
	e.reached("both work", func() bool {
		by := make(map[int]int)
		for _, s := range e.stints() {
			by[s.pid]++
		}
		return by[first.pid()] > slow+10 && by[second.pid()] > 10
	})
	told := time.Now()
	first.signal(syscall.SIGTERM)
	if err := first.exit(20 * time.Second); err != nil {
		t.Errorf("exit after SIGTERM: %v", err)
	}
	took := first.died.Sub(told)
	e.reached("the second one has them all", func() bool { return len(e.stints()) == 2*slow+quick })
	g.open()
	e.reached("all complete", func() bool { return e.counts().Totals["completed"] == slow+quick })
	told2 := time.Now()
	second.signal(syscall.SIGTERM)
	if err := second.exit(20 * time.Second); err != nil {
		t.Errorf("exit after SIGTERM: %v", err)
	}
	idle := second.died.Sub(told2)

	c := e.counts()
	jobs := byJob(e.stints())
	var cancelled time.Duration
	for i := range slow + quick {
		runs := jobs[i]
		if i >= slow {
			if len(runs) != 1 {
				t.Errorf("a quick job ran %d times: %v", len(runs), runs)
			}
			continue
		}
		if len(runs) != 2 || runs[0].cancelled.IsZero() || !runs[0].cancelled.Before(runs[0].end) || runs[1].outcome != "ok" {
			t.Fatalf("a slow job: %v", runs)
		}
		cancelled = max(cancelled, runs[0].cancelled.Sub(told))
	}
	t.Logf("experiment 3: contexts cancelled after %.2f s, exit after %.2f s, idle stop in %d ms; %d handed back, %d leases reaped, %d dead",
		cancelled.Seconds(), took.Seconds(), idle.Milliseconds(), c.Totals["released"], c.Totals["reaped"], c.Dead)
	// a claim that was under way at the signal is handed back too, unrun
	if released := c.Totals["released"]; released < slow || released > slow+int64(settings.Concurrency) || c.Totals["reaped"] != 0 || c.Totals["retried"] != 0 || c.Dead != 0 {
		t.Errorf("%+v", c)
	}
	e.neverTwiceAtOnce()
	e.noAttemptSpent()
}
