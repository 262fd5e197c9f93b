package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/bench/jobs"
	"github.com/echomq/emq/runtime/scripts"
)

// bareSystem is the limit that emq is measured by: a loop that claims 64 jobs at a time and completes them
// with emq's own scripts, without decoding, heartbeats or a handler. Its jobs are enqueued by emq.
type bareSystem struct {
	*emqSystem
	raw   rueidis.Client
	queue *scripts.Queue
}

func newBare(e *emqSystem) (*bareSystem, error) {
	raw, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{e.redis.Addr()}, DisableCache: true, PipelineMultiplex: -1, MaxFlushDelay: 20 * time.Microsecond,
	})
	if err != nil {
		return nil, err
	}
	server, err := scripts.NewServer(raw, "")
	if err != nil {
		return nil, err
	}
	return &bareSystem{e, raw, server.Queue(jobs.QueueBench)}, nil
}

func (s *bareSystem) name() string { return "bare loop" }

func (s *bareSystem) work(ctx context.Context, concurrency int, each func(int64)) (func() error, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	fences := make(chan scripts.Fence, concurrency)
	var wg sync.WaitGroup
	for range concurrency {
		wg.Go(func() {
			for f := range fences {
				if _, err := s.queue.Complete(context.WithoutCancel(ctx), f, 0, nil); err != nil {
					cancel(fmt.Errorf("bare: %w", err))
				}
				each(0)
			}
		})
	}
	wg.Go(func() {
		defer close(fences)
		for ctx.Err() == nil {
			claimed, err := s.queue.Claim(ctx, scripts.Claim{Lease: time.Minute, N: min(64, concurrency), By: "barebare"})
			if err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("bare: %w", err))
			}
			for _, j := range claimed.Jobs {
				fences <- j.Fence
			}
		}
	})
	return func() error {
		cancel(nil)
		wg.Wait()
		if err := context.Cause(ctx); err != context.Canceled {
			return err
		}
		return nil
	}, nil
}
