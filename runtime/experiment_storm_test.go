package emq_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Experiment 9, scaled: 20 rounds of kill -9 over a few thousand jobs with 4 worker processes, and an
// auditor beside them.
func TestExperimentKillStorm(t *testing.T) {
	t.Parallel()
	const rounds, batch, long = 20, 150, 40
	e := newExperiment(t)
	settings := part{Lease: time.Second, Concurrency: 10}
	workers := make([]*process, 4)
	for i := range workers {
		workers[i] = e.start(settings)
	}
	enqueued, audits := 0, 0
	audit := func() {
		t.Helper()
		audits++
		if c := e.census(); c.sum() != enqueued {
			t.Fatalf("enqueued %d, but %v", enqueued, c)
		}
	}
	random := rand.New(rand.NewPCG(9, 9))
	for round := range rounds {
		var jobs []emq.Job
		for i := range batch {
			do := ""
			if i%15 == 0 {
				do = failOnce
			}
			jobs = append(jobs, emq.New(errand{N: enqueued + i, Do: do, For: time.Duration(random.IntN(40)) * time.Millisecond}))
		}
		e.enqueue(jobs...)
		enqueued += batch
		e.reached("the round's jobs are under way", func() bool {
			audit()
			c := e.census()
			return c.completed > round*batch/2 && c.active > 5
		})
		victim := random.IntN(len(workers))
		workers[victim].kill()
		audit()
		workers[victim] = e.start(settings)
	}
	e.reached("all complete", func() bool {
		audit()
		return e.census().completed == enqueued
	})
	c := e.counts()
	stints := e.stints()
	cut := len(with(stints, ""))

	// what is in flight is what runs: long jobs on all slots, and half of the workers die
	g := e.gate("gate")
	var jobs []emq.Job
	for i := range long {
		jobs = append(jobs, g.errand(enqueued+i))
	}
	e.enqueue(jobs...)
	enqueued += long
	e.reached("all slots are taken", func() bool { return len(e.stints()) == len(stints)+long })
	workers[0].kill()
	workers[3].kill()
	e.reached("in flight is what runs", func() bool {
		audit()
		return e.census().pending > 0 && slices.Equal(e.inFlight(), e.running())
	})
	running := len(e.running())
	g.open()
	e.reached("all complete", func() bool { return e.census().completed == enqueued })
	audit()

	left, _ := e.rows()
	t.Logf("experiment 9: %d kills over %d jobs, %d runs cut off, %d leases reaped, %d retried, %d dead; %d audits; then %d of %d in flight beside 2 dead workers; %v, %d rows left",
		rounds, enqueued, cut, c.Totals["reaped"], c.Totals["retried"], c.Dead, audits, running, long, e.census(), len(left))
	if cut < rounds || running != long/2 || len(left) != 0 || c.Totals["reaped"] == 0 {
		t.Errorf("cut off %d, in flight %d, rows left %d, reaped %d", cut, running, len(left), c.Totals["reaped"])
	}
	done := byJob(with(e.stints(), "ok"))
	for i := range enqueued {
		if len(done[i]) == 0 {
			t.Errorf("job %d has never ended well", i)
		}
	}
	e.neverTwiceAtOnce()
}

// census is where all jobs are, at one instant.
type census struct{ pending, active, scheduled, dead, completed int }

func (c census) sum() int { return c.pending + c.active + c.scheduled + c.dead + c.completed }

func (c census) String() string {
	return fmt.Sprintf("%d pending, %d active, %d scheduled, %d dead, %d completed", c.pending, c.active, c.scheduled, c.dead, c.completed)
}

func (e *experiment) census() (c census) {
	e.t.Helper()
	const script = `local b = 'emq:{errands}:'
		return { redis.call('ZCARD', b .. 'pending'), redis.call('ZCARD', b .. 'active'), redis.call('ZCARD', b .. 'schedule'),
			redis.call('ZCARD', b .. 'dead'), tonumber(redis.call('HGET', b .. 'metrics:completed', 'count') or 0) }`
	ns, err := e.do("EVAL", script, "0").AsIntSlice()
	if err != nil || len(ns) != 5 {
		e.t.Fatal(ns, err)
	}
	return census{int(ns[0]), int(ns[1]), int(ns[2]), int(ns[3]), int(ns[4])}
}

// inFlight lists the ids in the active set.
func (e *experiment) inFlight() []string {
	e.t.Helper()
	ids, err := e.do("ZRANGE", "emq:{errands}:active", "0", "-1").AsStrSlice()
	if err != nil {
		e.t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

// running lists the ids that run in living processes, by the journal.
func (e *experiment) running() []string {
	e.t.Helper()
	ids := []string{}
	for _, s := range e.stints() {
		if s.end.IsZero() {
			ids = append(ids, s.id)
		}
	}
	slices.Sort(ids)
	return ids
}
