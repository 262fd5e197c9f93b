package emq_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// gated starts a worker whose settles wait until let is closed.
func gated(t *testing.T, s *store, cfg emq.WorkerConfig, live func(w *emq.Worker, ctx context.Context) error, b emq.Binding) (w *emq.Worker, let, ended chan struct{}) {
	t.Helper()
	cfg.Logger = new(logbook).logger()
	w, err := emq.NewWorker(s.Client, cfg, b)
	if err != nil {
		t.Fatal(err)
	}
	let, ended = make(chan struct{}), make(chan struct{})
	emq.BeforeSettles(w, func() { <-let })
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		if err := live(w, ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return w, let, ended
}

func slotsAre(t *testing.T, w *emq.Worker, used, lent int) {
	t.Helper()
	eventually(t, "the slots are as they should be", func() bool {
		u, l := emq.Slots(w)
		return u == used && l == lent
	})
}

func TestTheNextJobBeginsWhileTheVerdictOnTheLastOneIsUnderWay(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		putMany(t, s, 5, func(i int) job { return job{i} })
		var runs, running, most atomic.Int32
		w, let, _ := gated(t, s, emq.WorkerConfig{Concurrency: 1}, (*emq.Worker).Run, emq.Handle(func(context.Context, job) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			runs.Add(1)
			return nil
		}))
		// the only slot was lent twice, and the third keeps it: three are held, and no more
		eventually(t, "three have run", func() bool { return runs.Load() == 3 && running.Load() == 0 })
		slotsAre(t, w, 1, 2)
		if c := s.counts(t, "work"); c.Active != 3 || c.Pending != 2 {
			t.Errorf("%d are in flight and %d wait", c.Active, c.Pending)
		}
		close(let)
		eventually(t, "all complete", func() bool { return s.counts(t, "work").Totals["completed"] == 5 })
		slotsAre(t, w, 0, 0)
		if runs.Load() != 5 || most.Load() != 1 {
			t.Errorf("%d runs of 5 jobs, %d at once in one slot", runs.Load(), most.Load())
		}
	})
}

func TestOneAfterTheOtherMeansSettledOneAfterTheOther(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		putMany(t, s, 3, func(i int) job { return job{i} })
		var runs atomic.Int32
		w, let, ended := gated(t, s, emq.WorkerConfig{Concurrency: 1}, (*emq.Worker).RunUntilIdle, emq.Handle(func(context.Context, job) error {
			runs.Add(1)
			return nil
		}))
		eventually(t, "one has run", func() bool { return runs.Load() == 1 })
		slotsAre(t, w, 1, 0)
		if c := s.counts(t, "work"); c.Active != 1 || c.Pending != 2 {
			t.Errorf("%d are in flight and %d wait", c.Active, c.Pending)
		}
		close(let)
		<-ended
		if used, lent := emq.Slots(w); used != 0 || lent != 0 || runs.Load() != 3 {
			t.Errorf("%d runs of 3; %d slots are taken and %d lent", runs.Load(), used, lent)
		}
	})
}

func TestAStopWaitsForTheSettlesOfLentSlots(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const jobs = 6
		putMany(t, s, jobs, func(i int) job { return job{i} })
		var runs atomic.Int32
		stopping := make(chan struct{})
		w, let, ended := gated(t, s, emq.WorkerConfig{Concurrency: 2}, func(w *emq.Worker, ctx context.Context) error {
			ctx, stop := context.WithCancel(ctx)
			go func() {
				<-stopping
				stop()
			}()
			return w.Run(ctx)
		}, emq.Handle(func(context.Context, job) error {
			runs.Add(1)
			return nil
		}))
		eventually(t, "all have run", func() bool { return runs.Load() == jobs })
		slotsAre(t, w, 2, 4)
		pumped := func() bool { return slices.Contains(s.keys(t), "emq:{work}:pump") }
		eventually(t, "it has the pump", pumped)
		close(stopping)
		eventually(t, "it has handed the pump over, which is the last before it waits", func() bool { return !pumped() })
		select {
		case <-ended:
			t.Error("Run has returned, and its settles have no verdict")
		default:
		}
		close(let)
		<-ended
		c := s.counts(t, "work")
		if used, lent := emq.Slots(w); used != 0 || lent != 0 || c.Active != 0 || c.Totals["completed"] != jobs || c.Totals["released"]+c.Totals["stale"]+c.Totals["reaped"] != 0 {
			t.Errorf("%d slots are taken and %d lent; %+v", used, lent, c)
		}
	})
}

// From the first try without a verdict on, a run holds a slot again, until it has one.
func TestASettleThatIsSentAgainHoldsItsSlot(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	p := startProxy(t, s.url)
	client := openClient(t, p.URL())
	const slots, jobs = 3, 40
	putMany(t, s, jobs, func(i int) job { return job{i} })
	var runs atomic.Int32
	var events watcher
	w, err := emq.NewWorker(client, emq.WorkerConfig{Concurrency: slots, Observer: &events, Logger: new(logbook).logger()}, emq.Handle(func(context.Context, job) error {
		runs.Add(1)
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	p.denying(settles)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	eventually(t, "each that has run is sent again and holds a slot", func() bool {
		used, lent := emq.Slots(w)
		return lent == 0 && used >= slots && used == int(runs.Load()) && len(events.named(emq.EventResent)) > used
	})
	if n := runs.Load(); n > 3*slots {
		t.Errorf("%d ran in %d slots while nothing could be settled", n, slots)
	}
	p.denying(nil)
	eventually(t, "all complete", func() bool { return s.counts(t, "work").Totals["completed"] == jobs })
	slotsAre(t, w, 0, 0)
	if c := s.counts(t, "work"); runs.Load() != jobs || c.Totals["stale"]+c.Totals["reaped"] != 0 {
		t.Errorf("%d runs of %d jobs; %v", runs.Load(), jobs, c.Totals)
	}
}

// At a limit it is a settle that makes room: a claim that comes before it finds nothing, and is not made again and
// again until it has come.
func TestALentSlotWaitsForItsSettleAtALimitOfTheQueue(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	if err := s.Queue("work").SetConcurrency(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	const jobs = 50
	putMany(t, s, jobs, func(i int) job { return job{i} })
	var runs atomic.Int64
	w, let, _ := gated(t, s, emq.WorkerConfig{Concurrency: 1}, (*emq.Worker).Run, emq.Handle(func(context.Context, job) error {
		runs.Add(1)
		return nil
	}))
	eventually(t, "the first has run", func() bool { return runs.Load() == 1 })
	slotsAre(t, w, 0, 1)
	n := s.measured(t, time.Second)
	t.Logf("%d commands in a second beside a settle that is under way", n)
	if n > 30 || runs.Load() != 1 {
		t.Errorf("%d commands in a second, %d runs at a limit of 1", n, runs.Load())
	}
	close(let)
	eventually(t, "all complete", func() bool { return s.counts(t, "work").Totals["completed"] == jobs })
	slotsAre(t, w, 0, 0)
}
