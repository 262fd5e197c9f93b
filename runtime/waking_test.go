package emq_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// left and right are two queues of one process.
type (
	left  struct{ N int }
	right struct{ N int }
)

func (left) EmqSpec() emq.Spec[left] {
	return emq.Spec[left]{Queue: "left", Kind: "left", Attempts: 3, Timeout: time.Minute}
}

func (right) EmqSpec() emq.Spec[right] {
	return emq.Spec[right]{Queue: "right", Kind: "right", Attempts: 3, Timeout: time.Minute}
}

// longLease makes a lost token visible: nobody looks at a queue by himself within half of it.
const longLease = 2 * time.Minute

func quantiles(ds []time.Duration) (p50, p99, most time.Duration) {
	slices.Sort(ds)
	return ds[len(ds)/2], ds[len(ds)*99/100], ds[len(ds)-1]
}

// Experiment 8.
func TestAnIdleQueueStartsAJobWithinMilliseconds(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const n = 150
		began := make(chan time.Time, 1)
		run(t, s.Client, emq.WorkerConfig{Lease: longLease}, emq.Handle(func(context.Context, job) error { began <- time.Now(); return nil }))
		var waits []time.Duration
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := range n {
			<-tick.C
			sent := time.Now()
			put(t, s, job{i})
			waits = append(waits, (<-began).Sub(sent))
		}
		p50, p99, most := quantiles(waits)
		t.Logf("from before the enqueue to the handler: p50 %v, p99 %v, at most %v", p50, p99, most)
		if p50 > 100*time.Millisecond || most > 5*time.Second {
			t.Errorf("p50 %v, at most %v", p50, most)
		}
	})
}

func TestATokenThatComesWhileEverySlotIsTakenWakesAnotherProcess(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const workers = 3
		started, finish := make(chan int, workers), make(chan struct{})
		for range workers {
			client := another(t, s)
			run(t, client, emq.WorkerConfig{Concurrency: 1, Lease: longLease, Logger: new(logbook).logger()}, emq.Handle(func(_ context.Context, j job) error {
				started <- j.N
				<-finish
				return nil
			}))
		}
		for round := range 25 {
			for i := range workers {
				put(t, s, job{i})
				select {
				case <-started:
				case <-time.After(20 * time.Second):
					t.Fatalf("round %d: a job waits beside an idle worker: %+v", round, s.counts(t, "work"))
				}
			}
			for range workers {
				finish <- struct{}{}
			}
		}
		eventually(t, "all complete", func() bool { return s.counts(t, "work").Totals["completed"] == 25*workers })
	})
}

// another opens a further client of a store, as another process has one.
func another(t *testing.T, s *store) *emq.Client {
	t.Helper()
	if !s.embedded {
		return openClient(t, s.url)
	}
	return openClient(t, s.url, emq.InProcess(nil))
}

func TestAFullQueueNeitherHidesItsOwnJobsNorThoseOfItsNeighbour(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		inLeft, freeLeft := make(chan int, 100), make(chan struct{})
		var rights atomic.Int32
		run(t, s.Client, emq.WorkerConfig{Lease: longLease, Queues: map[string]emq.QueueConfig{"left": {Concurrency: 1}}, Logger: new(logbook).logger()},
			emq.Handle(func(_ context.Context, l left) error { inLeft <- l.N; <-freeLeft; return nil }),
			emq.Handle(func(context.Context, right) error { rights.Add(1); return nil }))
		for round := range 20 {
			put(t, s, left{0})
			<-inLeft
			for range 3 { // each leaves a token that the full queue can only pass on
				put(t, s, left{0})
				put(t, s, right{0})
			}
			eventually(t, "the neighbour's jobs run", func() bool { return rights.Load() == int32(3*(round+1)) })
			for range 3 {
				freeLeft <- struct{}{}
				select {
				case <-inLeft:
				case <-time.After(20 * time.Second):
					t.Fatalf("round %d: a job of the queue that was full is not seen: %+v", round, s.counts(t, "left"))
				}
			}
			freeLeft <- struct{}{}
		}
		if s.embedded {
			return // it counts no commands
		}
		eventually(t, "all complete", func() bool { return s.counts(t, "left").Totals["completed"] == 80 })
		if n := s.measured(t, time.Second); n > 20 {
			t.Errorf("%d commands a second after the queue was full: it claims in vain", n)
		}
	})
}

// A queue that is woken while its neighbour has all the slots of the process gives the token on.
func TestATokenThatComesWhileANeighbourHasEverySlotWakesAnotherProcess(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		inLeft, finish := make(chan int, 4), make(chan struct{})
		open := sync.OnceFunc(func() { close(finish) })
		t.Cleanup(open)
		var rights atomic.Int64
		bindings := []emq.Binding{
			emq.Handle(func(_ context.Context, l left) error { inLeft <- l.N; <-finish; return nil }),
			emq.Handle(func(context.Context, right) error { rights.Add(1); return nil }),
		}
		cfg := emq.WorkerConfig{Concurrency: 2, Lease: longLease, Logger: new(logbook).logger()}
		run(t, s.Client, cfg, bindings...)
		for i := range 3 { // each wakes its queue, which parks again, as it has a slot more than jobs
			put(t, s, right{i})
			eventually(t, "it runs", func() bool { return s.counts(t, "right").Totals["completed"] == int64(i+1) })
		}
		put(t, s, left{1})
		put(t, s, left{2})
		<-inLeft
		<-inLeft // all slots are the neighbour's
		run(t, another(t, s), cfg, bindings...)
		eventually(t, "both are parked", func() bool { return s.embedded || s.blocked(t) >= 2 }) // on a cluster a process has one for each queue
		for i := range 20 {
			put(t, s, right{i})
			eventually(t, "the idle process runs the job", func() bool { return rights.Load() == int64(i+4) })
		}
		open()
	})
}

// fleet runs n workers, each with a client of its own.
func fleet(t *testing.T, s *store, n int, cfg emq.WorkerConfig, b ...emq.Binding) {
	t.Helper()
	cfg.Logger = new(logbook).logger()
	for range n {
		run(t, another(t, s), cfg, b...)
	}
}

// sent counts what workers send: scripts and blocking pops. The client library's PING, one a second
// for each connection that is quiet, is not among it.
func (s *store) sent(t *testing.T) int64 {
	t.Helper()
	c := s.commands(t)
	return c["evalsha"] + c["eval"] + c["blpop"]
}

// measured counts what is sent in a span of time.
func (s *store) measured(t *testing.T, d time.Duration) int64 {
	t.Helper()
	before, until := s.sent(t), time.Now().Add(d)
	eventually(t, "the span is over", func() bool { return time.Now().After(until) })
	return s.sent(t) - before
}

// Experiment 34's first part, scaled.
func TestWorkersAtAConcurrencyLimitDoNotSpinAndAFreedSlotIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	s.do(t, "HSET", "emq:{work}:meta", "concurrency", "2")
	const jobs = 100
	putMany(t, s, jobs, func(i int) job { return job{i} })
	started, finish := make(chan time.Time, jobs), make(chan struct{})
	var running, most atomic.Int32
	fleet(t, s, 8, emq.WorkerConfig{Lease: 6 * time.Second}, emq.Handle(func(context.Context, job) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		started <- time.Now()
		<-finish
		return nil
	}))
	<-started
	<-started
	n := s.measured(t, 3*time.Second)
	t.Logf("8 workers at a limit of 2 with 98 jobs waiting sent %d commands in 3 s (half a lease)", n)
	// each: one claim and a pop in half a lease, the pump's second, a heartbeat: 40 at most, and some spare
	if n > 80 {
		t.Errorf("%d commands in 3 s: they spin", n)
	}
	var waits []time.Duration
	for range jobs - 2 {
		freed := time.Now()
		finish <- struct{}{}
		waits = append(waits, (<-started).Sub(freed))
	}
	finish <- struct{}{}
	finish <- struct{}{}
	p50, p99, longest := quantiles(waits)
	t.Logf("a freed slot was taken after p50 %v, p99 %v, at most %v", p50, p99, longest)
	if p50 > 100*time.Millisecond || longest > 2*time.Second {
		t.Errorf("a freed slot was taken after p50 %v, at most %v", p50, longest)
	}
	eventually(t, "all complete", func() bool { return s.counts(t, "work").Totals["completed"] == jobs })
	if most.Load() != 2 {
		t.Errorf("%d ran at once, want 2", most.Load())
	}
}

func TestWorkersAtARateLimitDoNotSpinAndKeepTheRate(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	s.do(t, "HSET", "emq:{work}:meta", "rate_max", "5", "rate_ms", "1000")
	putMany(t, s, 200, func(i int) job { return job{i} })
	var ran atomic.Int64
	fleet(t, s, 4, emq.WorkerConfig{Lease: 6 * time.Second}, emq.Handle(func(context.Context, job) error { ran.Add(1); return nil }))
	eventually(t, "the first jobs have run", func() bool { return ran.Load() >= 2 })
	before := ran.Load()
	n := s.measured(t, 3*time.Second)
	done := ran.Load() - before
	t.Logf("4 workers at 5 a second sent %d commands in 3 s and ran %d jobs", n, done)
	// each of them looks when the next job may run: 4 * 5 claims a second, and the settles
	if n > 150 {
		t.Errorf("%d commands in 3 s: they spin", n)
	}
	if done < 8 || done > 16 {
		t.Errorf("%d jobs in 3 s at 5 a second", done)
	}
}

func TestAPausedQueueDoesNotSpin(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	s.do(t, "HSET", "emq:{work}:meta", "paused", "1")
	putMany(t, s, 50, func(i int) job { return job{i} })
	fleet(t, s, 4, emq.WorkerConfig{Lease: 3 * time.Second}, emq.Handle(func(context.Context, job) error {
		t.Error("a job of a paused queue ran")
		return nil
	}))
	n := s.measured(t, 2*time.Second)
	t.Logf("4 workers on a paused queue with 50 jobs sent %d commands in 2 s", n)
	if n > 60 {
		t.Errorf("%d commands in 2 s: they spin", n)
	}
}

// What idle workers cost, in commands: of the holder of the pump one a second, and of each process and
// queue one in a third of the lease (5 s by default).
func TestIdleWorkersCostTheServerAlmostNothing(t *testing.T) {
	t.Parallel()
	for _, queues := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d queues", queues), func(t *testing.T) {
			t.Parallel()
			s := realStore(t)
			const lease, span = 3 * time.Second, 6 * time.Second
			handlers := []emq.Binding{
				emq.Handle(func(context.Context, left) error { return nil }),
				emq.Handle(func(context.Context, right) error { return nil }),
			}[:queues]
			fleet(t, s, 1, emq.WorkerConfig{Lease: lease}, handlers...)
			eventually(t, "the first worker pumps and is parked", func() bool { return s.blocked(t) == 1 && s.pumps(t, "left") })
			s.measured(t, lease/2) // until its first beats are over
			holder := s.measured(t, span)
			fleet(t, s, 1, emq.WorkerConfig{Lease: lease}, handlers...)
			eventually(t, "the second is parked", func() bool { return s.blocked(t) == 2 })
			s.measured(t, lease/2)
			both := s.measured(t, span)
			t.Logf("in %v, two leases: the holder of the pump sent %d commands, a second worker %d", span, holder, both-holder)
			// a span of six periods may meet seven of what comes once in each
			most := int64(queues) * int64(span/(lease/3)+1)
			if pumping := int64(queues) * int64(span/time.Second+1); holder > pumping+most {
				t.Errorf("the holder sent %d commands, want at most %d", holder, pumping+most)
			}
			if both-holder > most+2*int64(queues) { // nor need the holder's have been as many in both spans
				t.Errorf("an idle worker sent %d commands, want at most %d", both-holder, most)
			}
		})
	}
}

// blocked is how many clients wait in a blocking command.
func (s *store) blocked(t *testing.T) int {
	t.Helper()
	return s.info(t, "clients", "blocked_clients:")
}

func (s *store) pumps(t *testing.T, queue string) bool {
	t.Helper()
	n, err := s.do(t, "EXISTS", "emq:{"+queue+"}:pump").AsInt64()
	return err == nil && n == 1
}

// A stopping process may have taken a token with its last blocking pop, and must give one back.
func TestATokenThatAStoppingProcessTookWakesTheOneThatStays(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	var ran atomic.Int64
	handler := emq.Handle(func(context.Context, job) error { ran.Add(1); return nil })
	fleet(t, s, 1, emq.WorkerConfig{Lease: longLease}, handler)
	leaving := &store{Client: another(t, s), url: s.url, raw: s.raw, holders: s.holders, server: s.server}
	parked := func() bool { return s.blocked(t) == 2 }
	for i := range 60 {
		_, cancel, ended := start(t, leaving, emq.WorkerConfig{Lease: longLease}, handler)
		eventually(t, "both are parked", parked)
		// the one that has waited longest is served first: let it be the one that leaves
		before := ran.Load()
		put(t, s, job{i})
		eventually(t, "the other has run a job and is parked again", func() bool { return ran.Load() == before+1 && parked() })
		go cancel()
		put(t, s, job{i})
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		eventually(t, fmt.Sprintf("the job of round %d runs", i), func() bool { return ran.Load() == before+2 })
	}
}

func TestManyWorkersOfManyQueuesLoseNoTokenWhileTheyStartAndStop(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		var ran atomic.Int64
		bindings := []emq.Binding{
			emq.Handle(func(context.Context, left) error { ran.Add(1); return nil }),
			emq.Handle(func(context.Context, right) error { ran.Add(1); return nil }),
		}
		cfg := emq.WorkerConfig{Concurrency: 1, Lease: longLease, Logger: new(logbook).logger()}
		// one stays; others come and go, and each that goes may have taken a token with it
		run(t, s.Client, cfg, bindings...)
		var wg sync.WaitGroup
		over := make(chan struct{})
		for range 3 {
			client := another(t, s)
			wg.Go(func() {
				for {
					select {
					case <-over:
						return
					default:
					}
					w, err := emq.NewWorker(client, cfg, bindings...)
					if err != nil {
						t.Error(err)
						return
					}
					ctx, cancel := context.WithTimeout(context.Background(), 15*time.Millisecond)
					if err := w.Run(ctx); err != nil {
						t.Error(err)
					}
					cancel()
				}
			})
		}
		for i := range 200 {
			if i%2 == 0 {
				put(t, s, left{i})
			} else {
				put(t, s, right{i})
			}
			eventually(t, fmt.Sprintf("job %d runs", i), func() bool { return ran.Load() == int64(i+1) })
		}
		close(over)
		wg.Wait()
	})
}

func TestTheLoopsOfAnIdleWorkerStayHealthyAlsoWhereAnotherProcessPumps(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	handler := emq.Handle(func(context.Context, job) error { return nil })
	cfg := emq.WorkerConfig{Lease: 600 * time.Millisecond}
	first, _, _ := start(t, s, cfg, handler)
	eventually(t, "the first pumps", func() bool { return s.pumps(t, "work") })
	second, _, _ := start(t, s, cfg, handler)
	began := time.Now()
	eventually(t, "five leases have passed", func() bool { return time.Since(began) > 3*time.Second })
	for name, w := range map[string]*emq.Worker{"the holder of the pump": first, "the other": second} {
		h := w.Health()
		for _, loop := range []string{"fetch work", "pump work", "heartbeat work", "wait work"} {
			if age, ok := h[loop]; !ok || age > 2500*time.Millisecond {
				t.Errorf("%s: %s last succeeded %v ago (%v)", name, loop, age, ok)
			}
		}
	}
}
