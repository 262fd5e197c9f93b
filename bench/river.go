package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// riverSystem is River on PostgreSQL's default settings; tuned shortens its fetch cooldown to 1 ms.
type riverSystem struct {
	postgres *postgresStore
	pool     *pgxpool.Pool
	client   *river.Client[pgx.Tx] // inserts only
	tuned    bool
}

const tunedCooldown = time.Millisecond

// Kind names the work for River.
func (work) Kind() string { return "plain" }

func newRiver(ctx context.Context, postgres *postgresStore, tuned bool) (*riverSystem, error) {
	config, err := pgxpool.ParseConfig(postgres.url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 64
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, err
	}
	inserts := &river.Config{Logger: slog.New(slog.DiscardHandler)}
	if tuned {
		inserts.FetchCooldown = tunedCooldown // an inserting client tells workers at most that often
	}
	client, err := river.NewClient(riverpgxv5.New(pool), inserts)
	return &riverSystem{postgres, pool, client, tuned}, err
}

func (s *riverSystem) name() string {
	if s.tuned {
		return "River (cooldown 1 ms)"
	}
	return "River"
}

func (s *riverSystem) store() store { return s.postgres }

func (s *riverSystem) reset(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, "TRUNCATE river_job")
	return err
}

func (s *riverSystem) enqueue(ctx context.Context, _, n, size int) error {
	for range n {
		if _, err := s.client.Insert(ctx, newWork(size), nil); err != nil {
			return err
		}
	}
	return nil
}

func (s *riverSystem) bulk(ctx context.Context, n, size int) error {
	const batch = 1000
	for from := 0; from < n; from += batch {
		part := make([]river.InsertManyParams, min(batch, n-from))
		for i := range part {
			part[i] = river.InsertManyParams{Args: newWork(size)}
		}
		if _, err := s.client.InsertManyFast(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

func (s *riverSystem) work(ctx context.Context, concurrency int, each func(int64)) (func() error, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[work]) error {
		each(job.Args.Sent)
		return nil
	}))
	config := &river.Config{
		Logger: slog.New(slog.DiscardHandler), Workers: workers,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: concurrency}},
	}
	if s.tuned {
		config.FetchCooldown = tunedCooldown
	}
	client, err := river.NewClient(riverpgxv5.New(s.pool), config)
	if err != nil {
		return nil, err
	}
	if err := client.Start(ctx); err != nil {
		return nil, err
	}
	return func() error { return client.Stop(context.WithoutCancel(ctx)) }, nil
}

func (s *riverSystem) left(ctx context.Context) (int64, error) {
	var n int64
	err := s.pool.QueryRow(ctx, "SELECT count(*) FROM river_job WHERE state <> 'completed'").Scan(&n)
	return n, err
}
