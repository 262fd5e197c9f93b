// Command readme is the program of the README, as it stands there: the tests compare the two.
package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/echomq/emq/examples/readme/mail"
	emq "github.com/echomq/emq/runtime"
)

func main() {
	if err := run(context.Background()); err != nil {
		slog.Error("readme", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	client, err := emq.Open(ctx, "redis://localhost:6379") // or embedded.Open(ctx): no server
	if err != nil {
		return err
	}
	defer client.Close()
	if err := signup(ctx, mail.NewProducer(client)); err != nil {
		return err
	}
	return work(ctx, client, func(context.Context, string) error { return nil })
}

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
