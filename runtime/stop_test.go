package emq_test

import (
	"context"
	"errors"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Experiment 3, scaled.
func TestAStoppingWorkerHandsAJobBackOnlyAfterItsHandlerHasEnded(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, job{})
		var running, copies, runs atomic.Int32
		started := make(chan struct{}, 1)
		handler := emq.Handle(func(ctx context.Context, _ job) error {
			copies.Store(max(copies.Load(), running.Add(1)))
			defer running.Add(-1)
			if info, _ := emq.InfoFrom(ctx); info.Attempt != 1 {
				t.Errorf("run %d is attempt %d", runs.Load()+1, info.Attempt)
			}
			if runs.Add(1) > 1 {
				return nil
			}
			started <- struct{}{}
			<-ctx.Done()
			if cause := context.Cause(ctx); cause != emq.ErrShutdown {
				t.Errorf("the cause is %v", cause)
			}
			if row := s.row(t, ref); row["state"] != "active" {
				t.Errorf("the context ended after the job was handed back: %v", row)
			}
			// it obeys, but needs longer than the lease to wind up
			enough := time.Now().Add(700 * time.Millisecond)
			eventually(t, "the handler has wound up", func() bool { return time.Now().After(enough) })
			return context.Cause(ctx)
		})
		cfg := emq.WorkerConfig{SoftStop: 100 * time.Millisecond, Lease: 500 * time.Millisecond, Logger: new(logbook).logger()}
		stop := run(t, s.Client, cfg, handler)
		<-started
		run(t, s.Client, cfg, handler)
		stop()
		eventually(t, "the job completes elsewhere", func() bool { return s.counts(t, "work").Totals["completed"] == 1 })
		if c := s.counts(t, "work"); copies.Load() != 1 || runs.Load() != 2 || c.Totals["released"] != 1 || c.Totals["reaped"] != 0 {
			t.Errorf("%d copies at once, %d runs, totals %v", copies.Load(), runs.Load(), c.Totals)
		}
	})
}

func TestAStoppingWorkerLetsItsJobsFinishWithinSoftStop(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		started, finish := make(chan struct{}), make(chan struct{})
		put(t, s, job{})
		w, err := emq.NewWorker(s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(ctx context.Context, _ job) error {
			close(started)
			<-finish
			return ctx.Err()
		}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		<-started
		cancel()
		put(t, s, job{}) // comes after the stop: nobody may claim it
		close(finish)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if c := s.counts(t, "work"); c.Totals["completed"] != 1 || c.Pending != 1 || c.Active != 0 {
			t.Errorf("%+v", c)
		}
	})
}

// start runs a worker that the test stops by hand.
func start(t *testing.T, s *store, cfg emq.WorkerConfig, b ...emq.Binding) (w *emq.Worker, cancel context.CancelFunc, ended chan error) {
	t.Helper()
	cfg.Logger = new(logbook).logger()
	w, err := emq.NewWorker(s.Client, cfg, b...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	ended = make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return w, cancel, ended
}

func TestAbortHandsBackWhatRunsAtOnceAndALateHandlerChangesNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		refs := putMany(t, s, 3, func(i int) job { return job{i} })
		var running atomic.Int32
		release, late := make(chan struct{}), make(chan struct{}, 3)
		w, _, ended := start(t, s, emq.WorkerConfig{}, emq.Handle(func(context.Context, job) error {
			running.Add(1)
			<-release
			late <- struct{}{}
			return nil
		}))
		eventually(t, "three run", func() bool { return running.Load() == 3 })
		began := time.Now()
		w.Abort()
		w.Abort()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if d := time.Since(began); d > 3*time.Second {
			t.Errorf("Abort took %v: it waited for handlers", d)
		}
		close(release)
		for range 3 {
			<-late
		}
		for _, ref := range refs {
			if row := s.row(t, ref); row["state"] != "pending" || row["attempts"] != "1" || row["forgiven"] != "1" || row["lapses"] != "" {
				t.Errorf("%v", row)
			}
		}
		if c := s.counts(t, "work"); c.Totals["released"] != 3 || c.Totals["completed"] != 0 || c.Totals["stale"] != 0 {
			t.Errorf("%v", c.Totals)
		}
	})
}

func TestAnAbortUnderLoadLeavesNoJobInFlight(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		putMany(t, s, 3000, func(i int) job { return job{i} })
		for round := range 24 {
			var ran atomic.Int32
			w, cancel, ended := start(t, s, emq.WorkerConfig{Concurrency: 8}, emq.Handle(func(context.Context, job) error { ran.Add(1); return nil }))
			eventually(t, "it works", func() bool { return ran.Load() > int32(round%5) })
			if round%2 == 0 {
				w.Abort()
			} else {
				cancel()
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
			if c := s.counts(t, "work"); c.Active != 0 {
				t.Fatalf("round %d: %d jobs are in flight and nobody runs them", round, c.Active)
			}
		}
	})
}

func TestAWorkerThatIsStoppedBeforeItRunsClaimsNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		put(t, s, job{})
		handler := emq.Handle(func(context.Context, job) error { t.Error("a stopped worker ran a job"); return nil })
		for range 20 {
			w, err := emq.NewWorker(s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, handler)
			if err != nil {
				t.Fatal(err)
			}
			w.Abort()
			if err := w.Run(context.Background()); err != nil {
				t.Error(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			w, err = emq.NewWorker(s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, handler)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		}
		if c := s.counts(t, "work"); c.Pending != 1 || c.Totals["released"] != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestAWorkerRunsOnlyOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		w, cancel, ended := start(t, s, emq.WorkerConfig{}, emq.Handle(func(context.Context, job) error { return nil }))
		eventually(t, "it runs", func() bool { return len(w.Health()) > 0 })
		if err := w.Run(t.Context()); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("a second Run beside the first: %v", err)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := w.Run(t.Context()); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("a second Run after the first: %v", err)
		}
	})
}

func TestAHandlerMayStopOrAbortItsOwnWorker(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		put(t, s, job{})
		var stop func()
		ready := make(chan struct{})
		_, cancel, ended := start(t, s, emq.WorkerConfig{}, emq.Handle(func(context.Context, job) error { <-ready; stop(); stop(); return nil }))
		stop = cancel
		close(ready)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if c := s.counts(t, "work"); c.Totals["completed"] != 1 {
			t.Errorf("the job that stopped its worker did not complete: %+v", c)
		}
		put(t, s, job{})
		ready = make(chan struct{})
		w, _, ended := start(t, s, emq.WorkerConfig{}, emq.Handle(func(context.Context, job) error { <-ready; stop(); stop(); return nil }))
		stop = w.Abort
		close(ready)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		// the abort may hand the job back before its handler returns, but it is never lost
		if c := s.counts(t, "work"); c.Active != 0 || c.Pending+c.Totals["completed"] != 2 {
			t.Errorf("%+v", c)
		}
	})
}

func TestAWorkerStopsWhileItsServerIsDownOrFrozen(t *testing.T) {
	t.Parallel()
	for name, hurt := range map[string]func(t *testing.T, s *store){
		"down": func(_ *testing.T, s *store) { s.server.Kill() },
		"frozen": func(t *testing.T, s *store) {
			if err := s.server.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, busy := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " with a settle that waits"}[busy], func(t *testing.T) {
				t.Parallel()
				s := realStore(t)
				started, finish := make(chan struct{}), make(chan struct{})
				w, cancel, ended := start(t, s, emq.WorkerConfig{SoftStop: 200 * time.Millisecond, HardStop: 200 * time.Millisecond},
					emq.Handle(func(context.Context, job) error { close(started); <-finish; return nil }))
				if busy {
					put(t, s, job{})
					<-started
				} else {
					eventually(t, "it has claimed and waits", func() bool { return len(w.Health()) >= 2 })
				}
				hurt(t, s)
				close(finish)
				began := time.Now()
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
				d := time.Since(began)
				t.Logf("stopped in %v", d)
				if d > 6*time.Second {
					t.Errorf("the stop took %v", d)
				}
			})
		}
	}
}

func TestAnIdleWorkerStopsAtOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		var longest time.Duration
		for range 20 {
			w, cancel, ended := start(t, s, emq.WorkerConfig{}, emq.Handle(func(context.Context, job) error { return nil }))
			eventually(t, "it has claimed and pumped", func() bool {
				h := w.Health()
				_, fetched := h["fetch work"]
				_, pumped := h["pump work"]
				return fetched && pumped
			})
			began := time.Now()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			longest = max(longest, time.Since(began))
		}
		t.Logf("the longest of 20 idle stops took %v", longest)
		// less than anything it could wait for: a beat (1 s at least), SoftStop, HardStop, the farewell
		if longest > 900*time.Millisecond {
			t.Errorf("an idle stop took %v", longest)
		}
		if keys := s.keysLike(t, "emq:{work}:wake:*"); len(keys) > 1 { // wake:pump
			t.Errorf("stops left keys behind: %v", keys)
		}
	})
}

// The claim is under way when the stop begins: its jobs are handed back, and nobody runs them here.
func TestJobsThatAClaimBringsAfterTheStopAreHandedBackUnrun(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stop", "abort"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := realStore(t)
			p := startProxy(t, s.url)
			refs := putMany(t, s, 3, func(i int) job { return job{i} })
			sent, let := make(chan struct{}), make(chan struct{})
			p.losing(func(words []string) bool {
				if claims := len(words) > 3 && words[3] == "emq:{work}:pending"; claims && sent != nil {
					close(sent)
					sent = nil
					<-let
				}
				return false
			})
			seen := sent
			slow := &store{Client: openClient(t, p.URL()), url: p.URL(), raw: s.raw, holders: s.holders, server: s.server}
			w, cancel, ended := start(t, slow, emq.WorkerConfig{}, emq.Handle(func(context.Context, job) error {
				t.Error("a handler ran after the stop")
				return nil
			}))
			<-seen
			if how == "abort" {
				w.Abort()
				w.Abort()
			} else {
				cancel()
			}
			close(let)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			for _, ref := range refs {
				if row := s.row(t, ref); row["state"] != "pending" || row["attempts"] != row["forgiven"] || row["lapses"] != "" {
					t.Errorf("%v", row)
				}
			}
		})
	}
}
