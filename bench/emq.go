package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/echomq/emq/bench/jobs"
	emq "github.com/echomq/emq/runtime"
)

// emqSystem is emq. variant chooses the job: plain, laned or unique.
type emqSystem struct {
	redis   *redisStore
	client  *emq.Client
	variant string
	limits  bool
}

const emqLanes = 100

func newEmq(ctx context.Context, redis *redisStore, variant string, limits bool) (*emqSystem, error) {
	client, err := emq.Open(ctx, redis.URL(), emq.WithLogger(slog.New(slog.DiscardHandler)))
	return &emqSystem{redis, client, variant, limits}, err
}

func (s *emqSystem) name() string { return "emq" }
func (s *emqSystem) store() store { return s.redis }

func (s *emqSystem) reset(ctx context.Context) error {
	if err := s.redis.flush(ctx); err != nil {
		return err
	}
	if !s.limits { // which no run reaches
		return nil
	}
	q := s.client.Queue(jobs.QueueBench)
	if err := q.SetConcurrency(ctx, 1_000_000); err != nil {
		return err
	}
	return q.SetRate(ctx, 1_000_000, time.Second)
}

func (s *emqSystem) job(n, size int) emq.Job {
	data := payload(size)
	switch s.variant {
	case "laned":
		return emq.New(jobs.Laned{Tenant: "tenant" + strconv.Itoa(n%emqLanes), Data: data})
	case "unique":
		return emq.New(jobs.Unique{N: n, Data: data})
	}
	return emq.New(jobs.Plain{Sent: time.Now().UnixNano(), Data: data})
}

func (s *emqSystem) enqueue(ctx context.Context, from, n, size int) error {
	for i := range n {
		if _, err := s.client.Enqueue(ctx, s.job(from+i, size)); err != nil {
			return err
		}
	}
	return nil
}

func (s *emqSystem) bulk(ctx context.Context, n, size int) error {
	const batch = 1000
	for from := 0; from < n; from += batch {
		part := make([]emq.Job, min(batch, n-from))
		for i := range part {
			part[i] = s.job(from+i, size)
		}
		if _, err := s.client.Enqueue(ctx, part...); err != nil {
			return err
		}
	}
	return nil
}

// handler runs the empty work.
type handler struct{ each func(sent int64) }

func (h handler) HandlePlain(_ context.Context, job jobs.Plain) error {
	h.each(job.Sent)
	return nil
}

func (h handler) HandleLaned(context.Context, jobs.Laned) error {
	h.each(0)
	return nil
}

func (h handler) HandleUnique(context.Context, jobs.Unique) error {
	h.each(0)
	return nil
}

func (s *emqSystem) work(ctx context.Context, concurrency int, each func(int64)) (func() error, error) {
	w, err := emq.NewWorker(s.client, emq.WorkerConfig{Concurrency: concurrency, Logger: slog.New(slog.DiscardHandler)}, jobs.Bind(handler{each}))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

func (s *emqSystem) left(ctx context.Context) (int64, error) {
	c, err := s.client.Queue(jobs.QueueBench).Counts(ctx)
	if err != nil {
		return 0, err
	}
	if lost := c.Totals["stale"] + c.Totals["reaped"] + c.Totals["orphan"]; lost > 0 {
		return 0, fmt.Errorf("%d jobs were lost, reaped or stale", lost)
	}
	return c.Pending + c.Active + c.Scheduled + c.Dead, nil
}
