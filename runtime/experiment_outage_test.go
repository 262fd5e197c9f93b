package emq_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Experiment 33: the server is away for three leases, frozen and killed in turn, each twice, while 200
// long jobs run.
func TestExperimentServerAwayForThreeLeases(t *testing.T) {
	t.Parallel()
	const lease = time.Second
	e := newExperiment(t, "--appendonly", "yes")
	g := e.gate("gate")
	var jobs []emq.Job
	for i := range 200 {
		jobs = append(jobs, g.errand(i))
	}
	e.enqueue(jobs...)
	settings := part{Lease: lease, Concurrency: 100}
	e.start(settings)
	e.start(settings)
	e.reached("200 jobs run", func() bool { return len(e.stints()) == 200 })
	for range 2 {
		e.signalServer(syscall.SIGSTOP)
		time.Sleep(3 * lease) // this is the outage
		e.signalServer(syscall.SIGCONT)
		e.settleDown(lease)
		e.server.Kill()
		time.Sleep(3 * lease) // this is the outage
		if err := e.server.Run(); err != nil {
			t.Fatal(err)
		}
		e.settleDown(lease)
	}
	g.open()
	e.reached("all complete", func() bool { return e.counts().Totals["completed"] == 200 })
	c := e.counts()
	t.Logf("experiment 33: away for 3 leases four times, 200 long jobs: %d runs, %d completed, %d leases reaped, %d stale",
		len(e.stints()), c.Totals["completed"], c.Totals["reaped"], c.Totals["stale"])
	if c.Totals["reaped"] != 0 || c.Totals["stale"] != 0 || c.Totals["released"] != 0 {
		t.Errorf("%+v", c)
	}
	e.eachOnce(200)
	var cancelled []stint
	for _, s := range e.stints() {
		if !s.cancelled.IsZero() {
			cancelled = append(cancelled, s)
		}
	}
	e.none(cancelled, "the context of a living run was cancelled")
}

func (e *experiment) signalServer(sig syscall.Signal) {
	e.t.Helper()
	if err := e.server.Signal(sig); err != nil {
		e.t.Fatal(err)
	}
}

// settleDown waits until every lease is held again and the server has been back for longer than the
// grace and a beat of the pump, so that a reaper has had its chance.
func (e *experiment) settleDown(lease time.Duration) {
	e.t.Helper()
	back := time.Now()
	e.reached("all leases are held again", func() bool {
		head, err := e.raw.Do(e.t.Context(), e.raw.B().Zrange().Key("emq:{errands}:active").Min("0").Max("0").Withscores().Build()).AsZScores()
		held := err == nil && len(head) == 1 && int64(head[0].Score) > time.Now().UnixMilli()
		return held && time.Since(back) > lease
	})
}

// Experiment 14: a server that writes everything to disk is killed and restarted under load.
func TestExperimentServerKilledUnderLoad(t *testing.T) {
	t.Parallel()
	e := newExperiment(t, "--appendonly", "yes", "--appendfsync", "always")
	settings := part{Lease: time.Second, Concurrency: 10}
	e.start(settings)
	e.start(settings)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var batches []batch
	var producer sync.WaitGroup
	producer.Go(func() { batches = e.produce(ctx) })
	var worst time.Duration
	var kills []time.Time
	for range 3 {
		before := len(e.stints())
		e.reached("jobs are consumed", func() bool { return len(e.stints()) > before+200 })
		e.server.Kill()
		killed := time.Now()
		kills = append(kills, killed)
		if err := e.server.Run(); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		e.reached("jobs are consumed again", func() bool {
			stints := e.stints()
			i := slices.IndexFunc(stints, func(s stint) bool { return s.start.After(killed) })
			if i >= 0 {
				worst = max(worst, stints[i].start.Sub(back))
			}
			return i >= 0
		})
	}
	stop()
	producer.Wait()
	e.reached("the queue is empty", func() bool {
		c := e.counts()
		return c.Totals["completed"] > 0 && c.Pending+c.Active+c.Scheduled == 0
	})

	jobs := byJob(e.stints())
	taken, lost, resent := 0, 0, 0
	var twice []stint
	for _, b := range batches {
		for _, n := range b.taken {
			taken++
			switch runs := jobs[n]; {
			case len(with(runs, "ok")) == 0:
				lost++
			case len(runs) > 1 && b.during(kills):
				resent++ // the answer went with the server, and the job had ended when it was sent again
			case len(runs) > 1:
				twice = append(twice, runs...)
			}
		}
	}
	t.Logf("experiment 14: killed 3 times: consuming again after %d ms at most; %d jobs acknowledged, %d of them lost; %d enqueued again after a lost answer, %d others ran twice; %d leases reaped",
		worst.Milliseconds(), taken, lost, resent, len(twice)/2, e.counts().Totals["reaped"])
	if worst > 5*time.Second || lost > 0 || taken < 600 || e.counts().Dead != 0 {
		t.Errorf("%+v", e.counts())
	}
	e.none(twice, "each outage was shorter than a lease, but a job ran again")
	e.neverTwiceAtOnce()
	e.noAttemptSpent()
}

// batch is one call of Enqueue under load.
type batch struct {
	began, ended time.Time
	taken        []int // numbers of the jobs that are in the queue by their receipts
}

// during tells whether one of the kills was during the call.
func (b batch) during(kills []time.Time) bool {
	return slices.ContainsFunc(kills, func(k time.Time) bool { return b.began.Before(k) && k.Before(b.ended) })
}

// produce enqueues batches until ctx ends, whatever becomes of them.
func (e *experiment) produce(ctx context.Context) (batches []batch) {
	for n := 0; ctx.Err() == nil; {
		jobs := make([]emq.Job, 20)
		for i := range jobs {
			jobs[i] = emq.New(errand{N: n + i, For: 5 * time.Millisecond})
		}
		b := batch{began: time.Now()}
		callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		receipts, _ := e.client.Enqueue(callCtx, jobs...) // the receipts tell
		cancel()
		b.ended = time.Now()
		for i, r := range receipts {
			if r.Status == emq.Enqueued {
				b.taken = append(b.taken, n+i)
			}
		}
		batches = append(batches, b)
		n += len(jobs)
		time.Sleep(10 * time.Millisecond) // the load's rate
	}
	return batches
}

// Experiment 14, second part: the server comes back without its last writes and so forgets a claim.
func TestExperimentServerForgetsAClaim(t *testing.T) {
	t.Parallel()
	e := newExperiment(t, "--appendonly", "yes", "--appendfsync", "no")
	g := e.gate("gate")
	id := e.enqueue(g.errand(0))[0].ID
	older := filepath.Join(t.TempDir(), "older")
	if err := os.CopyFS(older, os.DirFS(e.server.Dir)); err != nil {
		t.Fatal(err)
	}
	settings := part{Lease: 2 * time.Second, Concurrency: 1}
	first := e.start(settings)
	e.reached("the job runs", func() bool { return len(e.stints()) == 1 })
	e.server.Kill()
	e.restore(older)
	if err := e.server.Run(); err != nil {
		t.Fatal(err)
	}
	e.start(settings)
	e.reached("the job runs under a second claim", func() bool { return len(e.stints()) == 2 })
	if token := e.field(id, "attempts"); token != "1" {
		t.Fatalf("the second claim has the token %s: the server has not forgotten the first", token)
	}
	g.openIn(first)
	e.reached("the late settle is refused", func() bool { return e.counts().Totals["stale"] == 1 })
	e.reached("the late settle is in the log", func() bool { return strings.Contains(first.output(), "a late settle was refused") })
	if c := e.counts(); c.Active != 1 || c.Totals["completed"] != 0 {
		t.Errorf("the forgotten holder has changed something: %+v", c)
	}
	g.open()
	e.reached("the second run completes", func() bool { return e.counts().Totals["completed"] == 1 })
	t.Logf("experiment 14: both claims had the token 1; the forgotten one's settle was refused: %d stale, %d completed",
		e.counts().Totals["stale"], e.counts().Totals["completed"])
}

// restore puts older files in place of the server's.
func (e *experiment) restore(older string) {
	e.t.Helper()
	entries, err := os.ReadDir(e.server.Dir)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(e.server.Dir, entry.Name())); err != nil {
			e.t.Fatal(err)
		}
	}
	if err := os.CopyFS(e.server.Dir, os.DirFS(older)); err != nil {
		e.t.Fatal(err)
	}
}
