package emq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Experiment 32: the server is at its maxmemory under load: first just at it, while what is drained
// makes room for what comes, and then far below what is used.
func TestExperimentServerAtMaxmemory(t *testing.T) {
	t.Parallel()
	const quick, long = 1600, 10
	e := newExperiment(t, "--maxmemory-policy", "noeviction")
	g := e.gate("gate")
	settings := part{Lease: time.Second, Concurrency: 15}
	e.start(settings)
	e.start(settings)
	var jobs []emq.Job
	for i := range long {
		jobs = append(jobs, g.errand(i)) // these live by their heartbeats
	}
	e.enqueue(jobs...)
	e.reached("the long jobs run", func() bool { return len(e.stints()) == long })
	jobs = jobs[:0]
	for i := range quick {
		do := ""
		if i%10 == 0 {
			do = failOnce // these are retried, scheduled and promoted
		}
		jobs = append(jobs, emq.New(errand{N: long + i, Do: do, For: 40 * time.Millisecond}))
	}
	e.enqueue(jobs...)
	full := time.Now()
	e.limitMemory(e.infoNumber("memory", "used_memory") + 50_000)
	taken, refused := 0, 0
	for time.Since(full) < 1500*time.Millisecond {
		n, m := e.push(long + quick + taken)
		taken, refused = taken+n, refused+m
	}
	if taken == 0 || refused == 0 {
		t.Errorf("at the limit %d jobs were taken and %d refused; want both", taken, refused)
	}
	e.limitMemory(1_000_000)
	late := e.start(settings) // a worker that starts meanwhile helps too
	want := int64(quick + taken)
	e.reached("the queue drains", func() bool {
		n, m := e.push(0)
		refused += m
		if n > 0 {
			t.Fatal("a job was taken over the limit")
		}
		return e.counts().Totals["completed"] == want
	})
	took := time.Since(full)
	drained := time.Now()
	e.limitMemory(0)
	g.open()
	e.reached("all complete", func() bool { return e.counts().Totals["completed"] == want+long })
	e.enqueue(emq.New(errand{N: -1}))
	e.reached("work goes on", func() bool { return e.counts().Totals["completed"] == want+long+1 })
	c := e.counts()
	t.Logf("experiment 32: %.1f s at maxmemory: %d jobs taken at the limit, %d refused with ErrFull; %d completed, %d retried, %d leases reaped, %d dead",
		took.Seconds(), taken, refused, c.Totals["completed"], c.Totals["retried"], c.Totals["reaped"], c.Dead)
	if c.Totals["reaped"] != 0 || c.Totals["stale"] != 0 || c.Dead != 0 || c.Totals["retried"] != quick/10 {
		t.Errorf("%+v", c)
	}
	var twice []stint
	helped := false
	for n, runs := range byJob(e.stints()) {
		if len(with(runs, "ok")) != 1 || len(runs) > 2 || n < long && len(runs) > 1 {
			twice = append(twice, runs...)
		}
		for _, s := range runs {
			helped = helped || s.pid == late.pid() && s.start.Before(drained)
		}
	}
	e.none(twice, "a second run")
	if !helped {
		t.Errorf("the worker that started at maxmemory has not helped:\n%s", late.output())
	}
	e.neverTwiceAtOnce()
}

func (e *experiment) limitMemory(bytes int) {
	e.t.Helper()
	if _, err := e.server.Command("CONFIG", "SET", "maxmemory", strconv.Itoa(bytes)); err != nil {
		e.t.Fatal(err)
	}
}

// push enqueues one job alone and three in a batch, and tells how many were taken; every other one must
// have been refused with ErrFull.
func (e *experiment) push(n int) (taken, refused int) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), 5*time.Second)
	defer cancel()
	pad := strings.Repeat("x", 4000)
	for _, size := range []int{1, 3} {
		var jobs []emq.Job
		for range size {
			jobs = append(jobs, emq.New(errand{N: n + taken + len(jobs), Pad: pad}))
		}
		receipts, err := e.client.Enqueue(ctx, jobs...)
		lost := 0
		for _, r := range receipts {
			if r.Status != emq.Enqueued {
				lost++
			}
		}
		if lost > 0 && !errors.Is(err, emq.ErrFull) || lost == 0 && err != nil {
			e.t.Fatalf("%d of %d jobs refused: %v", lost, size, err)
		}
		taken, refused = taken+size-lost, refused+lost
	}
	return taken, refused
}
