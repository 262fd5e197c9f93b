package emq_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

func TestAWorkerConsumesAgainSoonAfterItsServerIsBack(t *testing.T) {
	t.Parallel()
	s := realStore(t, "--appendonly", "yes", "--appendfsync", "always")
	var ran atomic.Int64
	var log logbook
	run(t, s.Client, emq.WorkerConfig{Lease: 8 * time.Second, Logger: log.logger()}, emq.Handle(func(context.Context, job) error { ran.Add(1); return nil }))
	for round := range 3 {
		refs := putMany(t, s, 10, func(i int) job { return job{i} })
		eventually(t, "it works", func() bool { return ran.Load() == int64(11*round+10) })
		later := put(t, s, job{}, emq.In(100*time.Millisecond)) // due while the server is away
		s.server.Kill()
		gone := time.Now()
		eventually(t, "the server was away for a while", func() bool { return time.Since(gone) > 1500*time.Millisecond })
		if err := s.server.Run(); err != nil {
			t.Fatal(err)
		}
		back := time.Now()
		eventually(t, "the job that came due runs", func() bool { return ran.Load() == int64(11*round+11) })
		took := time.Since(back)
		t.Logf("round %d: consuming %v after the server's return", round, took)
		if took > 3*time.Second { // 2 s, and some for a busy machine
			t.Errorf("it took %v", took)
		}
		eventually(t, "no row is left", func() bool { return len(s.row(t, later))+len(s.row(t, refs[0])) == 0 })
	}
	if lines := len(log.with("emq:")); lines > 60 {
		t.Errorf("%d log lines", lines)
	}
}

// Experiment 13, scaled.
func TestAServerThatForgetsItsScriptsUnderLoadIsNobodysError(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	const n = 6000
	runs := make([]atomic.Int32, n)
	var w watcher
	run(t, s.Client, emq.WorkerConfig{Concurrency: 20, Observer: &w, Logger: new(logbook).logger()}, emq.Handle(func(_ context.Context, j job) error {
		runs[j.N].Add(1)
		return nil
	}))
	over, flushed := make(chan struct{}), make(chan int)
	go func() {
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for times := 0; ; {
			select {
			case <-tick.C:
				times++
				if _, err := s.server.Command("SCRIPT", "FLUSH"); err != nil {
					t.Error(err)
				}
			case <-over:
				flushed <- times
				return
			}
		}
	}()
	next := 0
	for i := range 30 {
		batch := make([]emq.Job, n/30)
		for k := range batch {
			if i%3 == 0 && k%2 == 0 { // two scripts in one pipeline
				batch[k] = emq.New(job{next}, emq.In(time.Millisecond))
			} else {
				batch[k] = emq.New(job{next})
			}
			next++
		}
		receipts, err := s.Enqueue(t.Context(), batch...)
		if err != nil {
			t.Fatal(err)
		}
		for k, r := range receipts {
			if r.Status != emq.Enqueued {
				t.Fatalf("job %d of batch %d: %v", k, i, r.Status)
			}
		}
		put(t, s, left{i}) // single ones too, for nobody
		eventually(t, "the batch has run", func() bool { return s.counts(t, "work").Totals["completed"] == int64(next) })
	}
	close(over)
	t.Logf("scripts were flushed %d times under %d jobs", <-flushed, next)
	for i := range runs {
		if runs[i].Load() != 1 {
			t.Errorf("job %d ran %d times", i, runs[i].Load())
		}
	}
	if refused := len(w.named(emq.EventRefused)) + len(w.named(emq.EventResent)); refused != 0 {
		t.Errorf("%d refusals reached the observer", refused)
	}
}

// Experiment 15, scaled. It measures the whole process, so it does not run beside other tests.
func TestAServerThatIsAwayCostsLittleAndGrowsNothing(t *testing.T) {
	s := realStore(t)
	var log logbook
	var ran atomic.Int64
	run(t, s.Client, emq.WorkerConfig{Logger: log.logger(), Lease: 5 * time.Second},
		emq.Handle(func(context.Context, left) error { ran.Add(1); return nil }),
		emq.Handle(func(context.Context, right) error { ran.Add(1); return nil }))
	put(t, s, left{})
	eventually(t, "it works", func() bool { return ran.Load() == 1 })
	s.server.Kill()
	gone := time.Now()
	awayFor := func(d time.Duration) {
		eventually(t, "the server is away", func() bool { return time.Since(gone) > d })
	}
	awayFor(time.Second)
	goroutines, cpu := runtime.NumGoroutine(), cpuTime(t)
	const span = 7 * time.Second
	most := goroutines
	until := time.Now().Add(span)
	for time.Now().Before(until) {
		time.Sleep(50 * time.Millisecond) // the pace of the samples; eventually would burn what is measured
		most = max(most, runtime.NumGoroutine())
	}
	used := cpuTime(t) - cpu
	t.Logf("in %v without a server: %.2f %% CPU, %d log lines, goroutines %d to %d", span, 100*used.Seconds()/span.Seconds(), len(log.with("emq:")), goroutines, most)
	if used > span/20 {
		t.Errorf("%v of CPU in %v is over 5 %%", used, span)
	}
	if lines := log.with("emq:"); len(lines) > 20 {
		t.Errorf("%d log lines: %v", len(lines), lines)
	}
	if most > goroutines+10 {
		t.Errorf("goroutines grew from %d to %d", goroutines, most)
	}
	if err := s.server.Run(); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	eventually(t, "the server takes a job", func() bool {
		_, err := emq.Enqueue(t.Context(), s.Client, right{})
		return err == nil
	})
	eventually(t, "it works again", func() bool { return ran.Load() >= 2 })
	took := time.Since(back)
	t.Logf("consuming %v after the server's return", took)
	if took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
}

// cpuTime is what this process has used, in user and system mode.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Experiment 28.
func TestFiftyQueuesWithManySlotsTakeFewConnections(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	var ran atomic.Int64
	hold := make(chan struct{})
	bindings := make([]emq.Binding, 1, 2)
	bindings[0] = emq.Handle(func(context.Context, left) error { ran.Add(1); <-hold; return nil })
	var queues []string
	for i := range 49 {
		queues = append(queues, "q"+string(rune('A'+i%26))+string(rune('a'+i/26)))
	}
	bindings[0] = bindings[0].AlsoOn(queues...)
	client := openClient(t, s.url)
	before := s.info(t, "clients", "connected_clients:")
	run(t, client, emq.WorkerConfig{Concurrency: 200, Logger: new(logbook).logger()}, bindings...)
	putMany(t, client, 200, func(i int) left { return left{i} })
	most := 0
	eventually(t, "200 slots are full", func() bool {
		most = max(most, s.info(t, "clients", "connected_clients:"))
		return ran.Load() == 200
	})
	most = max(most, s.info(t, "clients", "connected_clients:"))
	t.Logf("50 queues with 200 slots: %d connections", most-before+1)
	if n := most - before + 1; n > 6 { // before counts one of this client, and the outside's
		t.Errorf("%d connections", n)
	}
	close(hold)
	var producers sync.WaitGroup
	for g := range 16 { // enqueues and settles at once, which have connections of their own
		producers.Go(func() {
			for i := range 100 {
				if _, err := client.Enqueue(t.Context(), emq.New(left{1000 + 100*g + i})); err != nil {
					t.Error(err)
				}
			}
		})
	}
	eventually(t, "all complete", func() bool {
		most = max(most, s.info(t, "clients", "connected_clients:"))
		return s.counts(t, "left").Totals["completed"] == 1800
	})
	producers.Wait()
	if n := most - before + 1; n < 4 || n > 6 {
		t.Errorf("%d connections while jobs come and go", n)
	}
}
