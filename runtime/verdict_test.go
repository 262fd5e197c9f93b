package emq_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// Experiment 1.
func TestAServerThatRefusesScriptsJustAsAHandlerSucceedsMeansOneRun(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	var runs atomic.Int32
	var w watcher
	var log logbook
	refs := putMany(t, s, 3, func(i int) job { return job{i} })
	refused := make(chan struct{})
	run(t, s.Client, emq.WorkerConfig{Concurrency: 1, Lease: time.Second, Observer: &w, Logger: log.logger()},
		emq.Handle(func(context.Context, job) error {
			if runs.Add(1) == 1 {
				s.do(t, "ACL", "SETUSER", "default", "-evalsha", "-eval")
				close(refused)
			}
			return nil
		}))
	<-refused
	began := time.Now()
	// the lease of a second is over before the server takes scripts again; the slot is held all the while
	eventually(t, "1.5 s have passed", func() bool { return time.Since(began) > 1500*time.Millisecond })
	if n := runs.Load(); n != 1 {
		t.Errorf("%d handlers ran in one slot while a settle waited for its verdict", n)
	}
	s.do(t, "ACL", "SETUSER", "default", "+evalsha", "+eval")
	eventually(t, "all complete", func() bool { return s.counts(t, "work").Totals["completed"] == 3 })
	if c := s.counts(t, "work"); runs.Load() != 3 || c.Totals["reaped"] != 0 || c.Totals["stale"] != 0 {
		t.Errorf("%d runs of 3 jobs; totals %v", runs.Load(), c.Totals)
	}
	if n := len(w.named(emq.EventCompleted)); n != 3 {
		t.Errorf("%d completions were reported, want 3", n)
	}
	if resent, lines := len(w.named(emq.EventResent)), len(log.with("no verdict")); resent < 2 || resent > 20 || lines != 1 {
		t.Errorf("%d resends and %d log lines in 1.5 s", resent, lines)
	}
	for _, ref := range refs {
		if row := s.row(t, ref); len(row) > 0 {
			t.Errorf("a row is left: %v", row)
		}
	}
}

// The settles alone are refused, for three leases: the heartbeats, which go on, keep the job.
func TestHeartbeatsGoOnWhileASettleWaitsForItsVerdict(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	p := startProxy(t, s.url)
	client := openClient(t, p.URL())
	put(t, client, job{})
	var w watcher
	var runs atomic.Int32
	began := time.Now()
	p.denying(touchesRow)
	run(t, client, emq.WorkerConfig{Lease: 500 * time.Millisecond, Observer: &w, Logger: new(logbook).logger()},
		emq.Handle(func(context.Context, job) error { runs.Add(1); return nil }))
	eventually(t, "three leases have passed", func() bool { return time.Since(began) > 1600*time.Millisecond })
	if c := s.counts(t, "work"); c.Active != 1 || c.Totals["reaped"] != 0 {
		t.Errorf("the job is not in flight: %+v", c)
	}
	if refused := p.denying(nil); refused < 2 {
		t.Errorf("%d settles were refused", refused)
	}
	eventually(t, "the job completes", func() bool { return s.counts(t, "work").Totals["completed"] == 1 })
	if runs.Load() != 1 || len(w.named(emq.EventLost)) != 0 {
		t.Errorf("%d runs, %d lost leases", runs.Load(), len(w.named(emq.EventLost)))
	}
}

// lostReply runs one job whose settle's first replies are lost, and answers the events.
func lostReply(t *testing.T, is func([]string) bool, handler func() error) (*store, emq.Ref, *watcher, int32) {
	t.Helper()
	s := realStore(t)
	p := startProxy(t, s.url)
	client := openClient(t, p.URL())
	var w watcher
	var runs atomic.Int32
	stop := run(t, client, emq.WorkerConfig{Observer: &w, Logger: new(logbook).logger()}, emq.Handle(func(_ context.Context, j job) error {
		if j.N == 1 {
			runs.Add(1)
			p.losing(times(2, is))
		}
		return handler()
	}))
	verdicts := func() int {
		return len(w.named(emq.EventCompleted)) + len(w.named(emq.EventDiscarded)) + len(w.named(emq.EventSnoozed)) + len(w.named(emq.EventStale))
	}
	put(t, client, job{0}) // loads the script: else what is lost is NOSCRIPT
	eventually(t, "the first settle has a verdict", func() bool { return verdicts() == 1 })
	ref := put(t, client, job{1})
	eventually(t, "two replies are lost and the settle has a verdict", func() bool {
		return p.Count(redistest.Lose) == 2 && len(w.named(emq.EventResent)) >= 2 && verdicts() == 2
	})
	stop()
	return s, ref, &w, runs.Load()
}

func TestACompletionWhoseReplyIsLostIsOneSuccess(t *testing.T) {
	t.Parallel()
	s, _, w, runs := lostReply(t, touchesRow, func() error { return nil })
	if c := s.counts(t, "work"); runs != 1 || c.Totals["completed"] != 2 || c.Totals["stale"] != 0 || c.Active+c.Pending != 0 {
		t.Errorf("%d runs, %+v", runs, c)
	}
	if len(w.named(emq.EventCompleted)) != 2 || len(w.named(emq.EventStale)) != 0 {
		t.Errorf("the events are %v", w.events)
	}
}

func TestADiscardWhoseReplyIsLostIsOneDiscard(t *testing.T) {
	t.Parallel()
	s, _, w, runs := lostReply(t, touchesRow, func() error { return emq.Discard(nil) })
	if c := s.counts(t, "work"); runs != 1 || c.Totals["discarded"] != 2 || c.Active+c.Pending != 0 {
		t.Errorf("%d runs, %+v", runs, c)
	}
	if len(w.named(emq.EventDiscarded)) != 2 || len(w.named(emq.EventStale)) != 0 {
		t.Errorf("the events are %v", w.events)
	}
}

func TestASnoozeWhoseReplyIsLostIsForgivenOnce(t *testing.T) {
	t.Parallel()
	snoozes := func(words []string) bool {
		return len(words) > 6 && (words[0] == "EVALSHA" || words[0] == "EVAL") && len(words[3]) > 0 && hasRow(words)
	}
	s, ref, _, runs := lostReply(t, snoozes, func() error { return emq.Snooze(time.Hour) })
	row := s.row(t, ref)
	if c := s.counts(t, "work"); runs != 1 || c.Totals["snoozed"] != 2 || row["forgiven"] != "1" || row["state"] != "scheduled" {
		t.Errorf("%d runs, %+v, %v", runs, c, row)
	}
}

// hasRow tells whether the key of a job's row is among a script's first keys.
func hasRow(words []string) bool {
	for _, w := range words[3:min(len(words), 9)] {
		if len(w) > 18 && w[len(w)-18:len(w)-14] == "job:" {
			return true
		}
	}
	return false
}

func TestEveryConnectionCutOverAndOverLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	p := startProxy(t, s.url)
	client := openClient(t, p.URL())
	const n = 300
	var runs [n]atomic.Int32
	run(t, client, emq.WorkerConfig{Concurrency: 5, Lease: 500 * time.Millisecond, Logger: new(logbook).logger()},
		emq.Handle(func(_ context.Context, j job) error { runs[j.N].Add(1); return nil }))
	done := make(chan struct{})
	cutter := make(chan struct{})
	go func() {
		defer close(cutter)
		tick := time.NewTicker(60 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.CutAll()
			case <-done:
				return
			}
		}
	}()
	status := make(map[emq.Status]int)
	for i := range n {
		id, err := client.NewID()
		if err != nil {
			t.Fatal(err)
		}
		var r emq.Receipt
		eventually(t, "the enqueue has a verdict", func() bool {
			r, err = emq.Enqueue(t.Context(), client, job{i}, emq.WithID(id))
			return err == nil
		})
		status[r.Status]++
	}
	time.AfterFunc(300*time.Millisecond, func() { close(done) })
	<-cutter
	eventually(t, "every job has completed", func() bool {
		c := s.counts(t, "work")
		return c.Pending+c.Active+c.Scheduled == 0 && c.Totals["completed"] >= n
	})
	again := 0
	for i := range runs {
		if runs[i].Load() == 0 {
			t.Errorf("job %d never ran", i)
		}
		again += int(runs[i].Load()) - 1
	}
	if c := s.counts(t, "work"); c.Dead != 0 {
		t.Errorf("%d dead letters", c.Dead)
	}
	t.Logf("receipts %v; %d further runs (an enqueue without an answer is at-least-once)", status, again)
}
