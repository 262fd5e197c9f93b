package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// system is one job library on its server.
type system interface {
	name() string
	reset(ctx context.Context) error                      // empties the store
	enqueue(ctx context.Context, from, n, size int) error // one at a time; jobs are numbered
	bulk(ctx context.Context, n, size int) error          // as the library does it best
	work(ctx context.Context, concurrency int, each func(sent int64)) (stop func() error, err error)
	left(ctx context.Context) (int64, error) // jobs that wait, run or failed
	store() store
}

// store is the server beneath a system.
type store interface {
	cpu() (time.Duration, error) // that its processes have used
	bytes(ctx context.Context) (int64, error)
}

// enqueueAll enqueues n jobs one at a time from some goroutines.
func enqueueAll(ctx context.Context, s system, n, goroutines, size int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for g := range goroutines {
		from, to := n*g/goroutines, n*(g+1)/goroutines
		wg.Go(func() {
			if err := s.enqueue(ctx, from, to-from, size); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// runner runs a worker and tells when n jobs have been handled.
type runner struct {
	ran  atomic.Int64
	all  chan struct{}
	stop func() error
}

// startRunner starts a worker whose handlers take so long each.
func startRunner(ctx context.Context, s system, n, concurrency int, takes time.Duration) (*runner, error) {
	r := &runner{all: make(chan struct{})}
	stop, err := s.work(ctx, concurrency, func(int64) {
		time.Sleep(takes)
		if r.ran.Add(1) == int64(n) {
			close(r.all)
		}
	})
	r.stop = stop
	return r, err
}

func (r *runner) wait(ctx context.Context) error {
	select {
	case <-r.all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
