package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/echomq/emq/examples/readme/mail" // the package of step 1
	emq "github.com/echomq/emq/runtime"
)

func signup(ctx context.Context, jobs mail.Producer) error {
	receipt, err := jobs.EnqueueWelcome(ctx, mail.Welcome{UserID: 7, Email: "ada@example.org"}, emq.In(2*time.Second))
	if err != nil {
		return err
	}
	slog.Info("signed up", "job", receipt.Ref, "status", receipt.Status) // enqueued, or conflict: greeted already
	return nil
}

type mailer struct {
	greet func(ctx context.Context, email string) error
}

func (m *mailer) HandleWelcome(ctx context.Context, job mail.Welcome) error {
	return m.greet(ctx, job.Email) // an error means: again, 5 times in all, 1s to 10m apart
}

func work(ctx context.Context, client *emq.Client, greet func(context.Context, string) error) error {
	worker, err := emq.NewWorker(client, emq.WorkerConfig{Concurrency: 50}, mail.Bind(&mailer{greet}))
	if err != nil {
		return err
	}
	return emq.RunUntilSignal(ctx, worker) // then running jobs are finished or handed back
}
