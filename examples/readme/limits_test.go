package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/echomq/emq/examples/readme/exports"
	"github.com/echomq/emq/examples/readme/mail"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// limitExports, showSettings and shareSlots are what docs/limits.md shows.
func limitExports(ctx context.Context, client *emq.Client) error {
	queue := client.Queue("exports")
	err := errors.Join(
		queue.SetConcurrency(ctx, 40),                 // at most 40 of its jobs run at once
		queue.SetRate(ctx, 600, time.Minute),          // at most 600 begin in any minute
		queue.SetMaxLength(ctx, 100_000),              // then an enqueue is emq.ErrFull
		queue.SetDeadCaps(ctx, 5000, 30*24*time.Hour), // dead letters that are kept
		queue.SetCrashBudget(ctx, 3),                  // lost leases that make a dead letter
	)
	return err
}

func showSettings(ctx context.Context, queue *emq.Queue) error {
	settings, err := queue.Settings(ctx)
	if err != nil {
		return err
	}
	if settings.Paused || settings.Concurrency > 0 {
		slog.Info("exports", "paused", settings.Paused, "concurrency", settings.Concurrency, "rate", settings.Rate, "per", settings.RatePer)
	}
	return nil
}

func shareSlots(client *emq.Client, bindings ...emq.Binding) (*emq.Worker, error) {
	return emq.NewWorker(client, emq.WorkerConfig{
		Concurrency: 50,
		Queues: map[string]emq.QueueConfig{
			"mail":    {Weight: 3},       // three jobs for one of the exports
			"exports": {Concurrency: 20}, // weight 1, and never more than 20 of them here
		},
		// Strict: true, // then exports get only the slots that mail has no jobs for
	}, bindings...)
}

type exporter struct{ done func() }

func (e exporter) HandleExport(context.Context, exports.Export) error { e.done(); return nil }

func TestTheLimitsOfTheDocs(t *testing.T) {
	client, err := embedded.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	queue := client.Queue("exports")
	if err := errors.Join(limitExports(t.Context(), client), showSettings(t.Context(), queue)); err != nil {
		t.Fatal(err)
	}
	settings, err := queue.Settings(t.Context())
	want := emq.Settings{Concurrency: 40, Rate: 600, RatePer: time.Minute, MaxLength: 100_000, DeadJobs: 5000, DeadAge: 30 * 24 * time.Hour, CrashBudget: 3, FlatWeight: 1}
	if err != nil || settings != want {
		t.Errorf("%+v, %v", settings, err)
	}

	if _, err := exports.NewProducer(client).EnqueueExport(t.Context(), exports.Export{Tenant: "acme", Month: "May"}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	worker, err := shareSlots(client, exports.Bind(exporter{stop}), mail.Bind(&mailer{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Run(ctx); err != nil {
		t.Fatal(err)
	}
}
