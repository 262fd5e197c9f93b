package main

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// result is one round of one case on one system.
type result struct {
	rate           float64       // jobs a second
	server, client time.Duration // CPU for each job
	p50, p99       time.Duration // of a pickup case
	bytes          float64       // for each job of a memory case
}

// benchCase is one kind of work.
type benchCase struct {
	name string
	n    int // jobs in a whole round; a fiftieth of it warms up
	run  func(ctx context.Context, s system, n int) (result, error)
	// what it runs on, by the names of the fleet
	on []string
}

func cases() []benchCase {
	all := []string{"emq", "asynq", "river", "river1ms"}
	working := []string{"emq", "bare", "asynq", "river", "river1ms"}
	enqueues := []string{"emq", "asynq", "river"}
	own := []string{"emq", "emq lanes", "emq unique", "emq limits"}
	everysec := []string{"emq everysec", "asynq everysec", "river"}
	return []benchCase{
		{"enqueue one at a time, 1 goroutine", 20_000, enqueueFrom(1, small), enqueues},
		{"enqueue one at a time, 16 goroutines", 50_000, enqueueFrom(16, small), enqueues},
		{"enqueue one at a time, 128 goroutines", 100_000, enqueueFrom(128, small), enqueues},
		{"enqueue in bulk", 100_000, enqueueBulk, enqueues},
		{"process preloaded jobs, concurrency 10", 100_000, process(10, small), working},
		{"process preloaded jobs, concurrency 100", 100_000, process(100, small), working},
		{"process preloaded jobs, concurrency 1000", 100_000, process(1000, small), working},
		{"process preloaded jobs of 1 ms, concurrency 10", 20_000, processing(10, small, time.Millisecond), all},
		{"process preloaded jobs of 20 ms, concurrency 100", 20_000, processing(100, small, 20*time.Millisecond), all},
		{"full cycle: 128 goroutines enqueue while 100 slots work", 100_000, cycle(100), all},
		{"pickup on an idle queue", 100, pickup, all},
		{"process 1 KB payloads, concurrency 100", 50_000, process(100, 1<<10), all},
		{"process 100 KB payloads, concurrency 100", 2_000, process(100, 100<<10), all},
		{"process with lanes, unique keys, limits; concurrency 100", 50_000, process(100, small), own},
		{"enqueue, 128 goroutines, appendonly everysec", 50_000, enqueueFrom(128, small), everysec},
		{"process, concurrency 100, appendonly everysec", 50_000, process(100, small), everysec},
		{"bytes for a waiting job with 100 bytes of payload", 10_000, memory, enqueues},
	}
}

const small = 100

// timed measures a piece of work over n jobs.
func timed(s system, n int, f func() error) (result, error) {
	server, err := s.store().cpu()
	if err != nil {
		return result{}, err
	}
	client, began := ownCPU(), time.Now()
	if err := f(); err != nil {
		return result{}, err
	}
	took := time.Since(began)
	used := ownCPU() - client
	after, err := s.store().cpu()
	return result{rate: float64(n) / took.Seconds(), server: (after - server) / time.Duration(n), client: used / time.Duration(n)}, err
}

func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// holds checks that exactly so many jobs are there: nothing lost, nothing doubled.
func holds(ctx context.Context, s system, want int) error {
	var left int64
	for range 100 { // asynq and River settle behind the handler's back
		var err error
		if left, err = s.left(ctx); err != nil {
			return err
		}
		if left == int64(want) {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s: %d jobs are there, %d should be", s.name(), left, want)
}

func enqueueFrom(goroutines, size int) func(context.Context, system, int) (result, error) {
	return func(ctx context.Context, s system, n int) (result, error) {
		r, err := timed(s, n, func() error { return enqueueAll(ctx, s, n, goroutines, size) })
		if err != nil {
			return r, err
		}
		return r, holds(ctx, s, n)
	}
}

func enqueueBulk(ctx context.Context, s system, n int) (result, error) {
	r, err := timed(s, n, func() error { return s.bulk(ctx, n, small) })
	if err != nil {
		return r, err
	}
	return r, holds(ctx, s, n)
}

// worked runs f with a worker for n jobs, which take so long each, and checks that all were handled once.
func worked(ctx context.Context, s system, n, concurrency int, takes time.Duration, f func() error) (result, error) {
	var run *runner
	r, err := timed(s, n, func() (err error) {
		if run, err = startRunner(ctx, s, n, concurrency, takes); err != nil {
			return err
		}
		if err = f(); err != nil {
			return err
		}
		return run.wait(ctx)
	})
	if run != nil && run.stop != nil {
		if stopErr := run.stop(); err == nil {
			err = stopErr
		}
	}
	if err != nil {
		return r, err
	}
	if ran := run.ran.Load(); ran != int64(n) {
		return r, fmt.Errorf("%s: %d runs of %d jobs", s.name(), ran, n)
	}
	return r, holds(ctx, s, 0)
}

func process(concurrency, size int) func(context.Context, system, int) (result, error) {
	return processing(concurrency, size, 0)
}

func processing(concurrency, size int, takes time.Duration) func(context.Context, system, int) (result, error) {
	return func(ctx context.Context, s system, n int) (result, error) {
		if err := s.bulk(ctx, n, size); err != nil {
			return result{}, err
		}
		return worked(ctx, s, n, concurrency, takes, func() error { return nil })
	}
}

func cycle(concurrency int) func(context.Context, system, int) (result, error) {
	return func(ctx context.Context, s system, n int) (result, error) {
		return worked(ctx, s, n, concurrency, 0, func() error { return enqueueAll(ctx, s, n, 128, small) })
	}
}

// pickup enqueues single jobs to an idle worker.
func pickup(ctx context.Context, s system, n int) (result, error) {
	ran := make(chan time.Duration, 1)
	stop, err := s.work(ctx, 10, func(sent int64) { ran <- time.Duration(time.Now().UnixNano() - sent) })
	if err != nil {
		return result{}, err
	}
	var waits []time.Duration
	for i := range n {
		time.Sleep(time.Duration(15+i%11) * time.Millisecond) // idle, and out of step with any poll
		if err = s.enqueue(ctx, i, 1, small); err != nil {
			break
		}
		select {
		case wait := <-ran:
			waits = append(waits, wait)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			break
		}
	}
	if stopErr := stop(); err == nil {
		err = stopErr
	}
	if err != nil {
		return result{}, err
	}
	slices.Sort(waits)
	return result{p50: quantile(waits, 50), p99: quantile(waits, 99)}, holds(ctx, s, 0)
}

// quantile is the least of sorted values that so many in a hundred are not above.
func quantile[V any](sorted []V, percent int) V { return sorted[(len(sorted)*percent+99)/100-1] }

func memory(ctx context.Context, s system, n int) (result, error) {
	before, err := s.store().bytes(ctx)
	if err != nil {
		return result{}, err
	}
	if err := s.bulk(ctx, n, small); err != nil {
		return result{}, err
	}
	if err := holds(ctx, s, n); err != nil {
		return result{}, err
	}
	after, err := s.store().bytes(ctx)
	return result{bytes: float64(after-before) / float64(n)}, err
}
