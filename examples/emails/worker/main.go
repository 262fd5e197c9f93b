// Command worker sends the service's mails. It runs until SIGTERM; a second one does not wait.
package main

import (
	"cmp"
	"context"
	"flag"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/echomq/emq/examples/emails/jobs"
	emq "github.com/echomq/emq/runtime"
)

func main() {
	softStop := flag.Duration("soft-stop", 20*time.Second, "how long running jobs may go on after SIGTERM")
	flag.Parse()
	if err := run(context.Background(), *softStop); err != nil {
		slog.Error("worker", "error", err)
		os.Exit(1)
	}
	slog.Info("stopped")
}

func run(ctx context.Context, softStop time.Duration) error {
	client, err := emq.Open(ctx, cmp.Or(os.Getenv("EMQ_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	defer client.Close()

	mails := &mailer{api: os.Getenv("MAIL_API"), http: http.DefaultClient}
	worker, err := emq.NewWorker(client, emq.WorkerConfig{
		Concurrency: 20,
		SoftStop:    softStop,
		Middleware:  []emq.Middleware{logged},
	}, jobs.Bind(mails))
	if err != nil {
		return err
	}
	slog.Info("working", "queue", jobs.QueueEmails)
	return emq.RunUntilSignal(ctx, worker)
}

// logged is middleware: it sees every run of every kind.
func logged(next emq.HandleFunc) emq.HandleFunc {
	return func(ctx context.Context, d *emq.Delivery) error {
		began := time.Now()
		err := next(ctx, d)
		emq.Logger(ctx).Info("ran", "job", d.Payload, "took", time.Since(began), "error", err)
		return err
	}
}
