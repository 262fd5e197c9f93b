package main

import (
	"context"
	"encoding/json"

	"github.com/hibiken/asynq"
)

// asynqSystem is asynq with its default settings.
type asynqSystem struct {
	redis     *redisStore
	client    *asynq.Client
	inspector *asynq.Inspector
}

func newAsynq(redis *redisStore) *asynqSystem {
	opt := asynq.RedisClientOpt{Addr: redis.Addr()}
	return &asynqSystem{redis, asynq.NewClient(opt), asynq.NewInspector(opt)}
}

func (s *asynqSystem) name() string { return "asynq" }
func (s *asynqSystem) store() store { return s.redis }

// reset empties the server, but for the name of the queue, which a client writes only once.
func (s *asynqSystem) reset(ctx context.Context) error {
	if err := s.redis.flush(ctx); err != nil {
		return err
	}
	return s.redis.client.SAdd(ctx, "asynq:queues", "default").Err()
}

func (s *asynqSystem) enqueue(ctx context.Context, _, n, size int) error {
	for range n {
		body, err := json.Marshal(newWork(size))
		if err != nil {
			return err
		}
		if _, err := s.client.EnqueueContext(ctx, asynq.NewTask("plain", body)); err != nil {
			return err
		}
	}
	return nil
}

// bulk: asynq has no call for many tasks, so its users enqueue from many goroutines.
func (s *asynqSystem) bulk(ctx context.Context, n, size int) error {
	return enqueueAll(ctx, s, n, 128, size)
}

func (s *asynqSystem) work(_ context.Context, concurrency int, each func(int64)) (func() error, error) {
	srv := asynq.NewServer(asynq.RedisClientOpt{Addr: s.redis.Addr()}, asynq.Config{Concurrency: concurrency, LogLevel: asynq.FatalLevel})
	err := srv.Start(asynq.HandlerFunc(func(_ context.Context, t *asynq.Task) error {
		var w work
		if err := json.Unmarshal(t.Payload(), &w); err != nil {
			return err
		}
		each(w.Sent)
		return nil
	}))
	return func() error {
		srv.Shutdown()
		return nil
	}, err
}

func (s *asynqSystem) left(context.Context) (int64, error) {
	q, err := s.inspector.GetQueueInfo("default")
	if err != nil {
		return 0, err
	}
	return int64(q.Pending + q.Active + q.Scheduled + q.Retry + q.Archived), nil
}
