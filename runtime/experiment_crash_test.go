package emq_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Experiment 2: a worker is killed in mid-job, a second one is idle, all settings are the defaults.
func TestExperimentKilledWorkerWithDefaults(t *testing.T) {
	t.Parallel()
	e := newExperiment(t)
	g := e.gate("gate")
	first := e.start(part{})
	e.enqueue(g.errand(0))
	e.reached("the job runs", func() bool { return len(e.stints()) == 1 })
	e.start(part{})
	e.reached("the second worker waits too", func() bool { return e.infoNumber("clients", "blocked_clients") == 2 })
	first.kill()
	e.reached("the job runs again", func() bool { return len(e.stints()) == 2 })
	g.open()
	e.reached("the job completes", func() bool { return e.counts().Totals["completed"] == 1 })
	again := e.stints()[1]
	took := again.start.Sub(first.died)
	t.Logf("experiment 2: the next run began %.1f s after the kill; lease 15 s", took.Seconds())
	if took > 20*time.Second || e.counts().Totals["reaped"] != 1 {
		t.Errorf("after %v, want at most 20 s: %v; %+v", took, again, e.counts())
	}
	e.neverTwiceAtOnce()
	e.noAttemptSpent()
}

// infoNumber reads one number of INFO; -1 while the server does not answer.
func (e *experiment) infoNumber(section, field string) int {
	e.t.Helper()
	text, err := e.raw.Do(e.t.Context(), e.raw.B().Info().Section(section).Build()).ToString()
	if err != nil {
		return -1
	}
	n := -1
	if _, after, ok := strings.Cut(text, field+":"); ok {
		if _, err := fmt.Sscan(after, &n); err != nil {
			e.t.Fatal(err)
		}
	}
	return n
}

// Experiment 7: a worker is frozen past its lease, a second one claims its job, and the first one thaws.
func TestExperimentFrozenWorkerComesBack(t *testing.T) {
	t.Parallel()
	e := newExperiment(t)
	g := e.gate("gate")
	settings := part{Lease: time.Second, Concurrency: 1}
	first := e.start(settings)
	e.enqueue(g.errand(0))
	e.reached("the job runs", func() bool { return len(e.stints()) == 1 })
	first.signal(syscall.SIGSTOP)
	e.start(settings)
	e.reached("the second worker has the job", func() bool { return len(e.stints()) == 2 })
	took := e.stints()[1].start.Sub(e.stints()[0].start)

	g.openIn(first)
	first.signal(syscall.SIGCONT)
	e.reached("the late settle is refused", func() bool { return e.counts().Totals["stale"] == 1 })
	if c := e.counts(); c.Active != 1 || c.Totals["completed"] != 0 {
		t.Errorf("the late settle has changed something: %+v", c)
	}
	e.reached("the late settle is in the log", func() bool { return strings.Contains(first.output(), "a late settle was refused") })
	g.open()
	e.reached("the second run completes", func() bool { return e.counts().Totals["completed"] == 1 })
	runs := e.stints()
	t.Logf("experiment 7: lease 1 s, next run after %.1f s; the first run ended first, its settle was refused: %d stale, %d completed",
		took.Seconds(), e.counts().Totals["stale"], e.counts().Totals["completed"])
	if len(runs) != 2 || !runs[0].end.Before(runs[1].end) || runs[0].outcome != "ok" || runs[1].outcome != "ok" {
		t.Errorf("runs %v", runs)
	}
	e.noAttemptSpent()
}

// Experiment 10: one job kills its process each time it runs; 49 innocent ones run beside it.
func TestExperimentPoison(t *testing.T) {
	t.Parallel()
	// the two go on side by side: they mostly wait for leases to end
	atOnce, later := newPoisoned(t, 0), newPoisoned(t, 60*time.Millisecond)
	atOnce.reached("both poisons are buried and the others complete", func() bool {
		done := atOnce.done()
		return later.done() && done
	})
	atOnce.report("at once")
	later.report("after 60 ms")
}

// poisoned is an experiment with a poison of its own.
type poisoned struct {
	*experiment
	settings part
	worker   *process
	poison   emq.ID
	began    time.Time
	took     time.Duration
	crashes  int
}

func newPoisoned(t *testing.T, after time.Duration) *poisoned {
	t.Helper()
	p := &poisoned{experiment: newExperiment(t), settings: part{Lease: time.Second, Concurrency: 50}, began: time.Now()}
	jobs := []emq.Job{emq.New(errand{N: 0, Do: die, For: after})}
	for i := 1; i < 50; i++ {
		jobs = append(jobs, emq.New(errand{N: i, For: 80 * time.Millisecond}))
	}
	p.poison = p.enqueue(jobs...)[0].ID
	p.worker = p.start(p.settings)
	return p
}

// done starts the worker again when it has died, and tells whether nothing is left to do.
func (p *poisoned) done() bool {
	p.t.Helper()
	if !p.worker.alive() {
		p.crashes++
		p.worker = p.start(p.settings)
	}
	c := p.counts()
	done := c.Dead >= 1 && c.Dead+c.Totals["completed"] == 50
	if done && p.took == 0 {
		p.took = time.Since(p.began)
	}
	return done
}

func (p *poisoned) report(when string) {
	p.t.Helper()
	c := p.counts()
	p.t.Logf("experiment 10: a job that kills its process %s: %d crashes, %d dead, %d innocent ones completed, %d leases reaped, %.1f s",
		when, p.crashes, c.Dead, c.Totals["completed"], c.Totals["reaped"], p.took.Seconds())
	if reason := p.field(p.poison, "last_error"); p.crashes != 5 || c.Dead != 1 || reason != "lease lapsed 5 times" {
		p.t.Errorf("%d crashes, want 5; %d dead, want the poison alone; it died of %q", p.crashes, c.Dead, reason)
	}
	p.noAttemptSpent()
	p.neverTwiceAtOnce()
}

// Experiment 11: a job of one attempt in all survives the restart of its worker, in both ways.
func TestExperimentRestartIsNoAttempt(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*process){
		"killed":  (*process).kill,
		"stopped": func(p *process) { p.signal(syscall.SIGTERM); <-p.exited },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExperiment(t)
			g := e.gate("gate")
			settings := part{Lease: time.Second, SoftStop: 200 * time.Millisecond, HardStop: 200 * time.Millisecond}
			first := e.start(settings)
			e.enqueue(emq.New(lastChance{errand{Do: untilGate, Gate: g.file}}))
			e.reached("the job runs", func() bool { return len(e.stints()) == 1 })
			stop(first)
			e.start(settings)
			e.reached("the job runs again", func() bool { return len(e.stints()) == 2 })
			g.open()
			e.reached("the job completes", func() bool { return e.counts().Totals["completed"] == 1 })
			t.Logf("experiment 11: attempts=1, worker %s in mid-job: ran again after %.1f s, dead %d", name,
				e.stints()[1].start.Sub(first.died).Seconds(), e.counts().Dead)
			if c := e.counts(); c.Dead != 0 || c.Totals["failed"] != 0 {
				t.Errorf("%+v", c)
			}
			e.noAttemptSpent()
			e.neverTwiceAtOnce()
		})
	}
}

// Experiment 12: of a batch of 50 in one claim, 3 are done when the worker is killed.
func TestExperimentKilledInMidBatch(t *testing.T) {
	t.Parallel()
	e := newExperiment(t)
	g := e.gate("gate")
	var jobs []emq.Job
	for i := range 50 {
		if i%20 == 7 {
			jobs = append(jobs, emq.New(errand{N: i}))
		} else {
			jobs = append(jobs, g.errand(i))
		}
	}
	e.enqueue(jobs...)
	settings := part{Lease: time.Second, Concurrency: 50}
	first := e.start(settings)
	e.reached("50 run and 3 of them end", func() bool { return len(e.stints()) == 50 && e.counts().Totals["completed"] == 3 })
	first.kill()
	g.open()
	second := e.start(settings)
	e.reached("all complete", func() bool { return e.counts().Totals["completed"] == 50 })
	var back int
	var last time.Time
	for _, s := range e.stints() {
		if s.pid == second.pid() {
			back, last = back+1, s.start
		}
	}
	c := e.counts()
	t.Logf("experiment 12: killed after 3 of 50: %d came back, the last %.1f s after the kill; %d reaped, %d retried, %d dead",
		back, last.Sub(first.died).Seconds(), c.Totals["reaped"], c.Totals["retried"], c.Dead)
	if back != 47 || c.Totals["reaped"] != 47 || c.Totals["retried"] != 0 || c.Dead != 0 {
		t.Errorf("want 47: %d, %+v", back, c)
	}
	e.noAttemptSpent()
	e.neverTwiceAtOnce()
}
