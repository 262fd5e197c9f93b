// Command tenants shows what lanes are for: one noisy tenant with thousands of jobs, and 99 quiet ones who
// come right after it with a few. Once all wait in one line, and once each tenant has a lane. It needs
// nothing but Go: without EMQ_URL it starts a server inside the process.
//
//	go run ./examples/tenants
//	EMQ_URL=redis://localhost:6379 go run ./examples/tenants
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/echomq/emq/examples/tenants/reports"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Stdout, os.Getenv("EMQ_URL"), full); err != nil {
		fmt.Fprintln(os.Stderr, "tenants:", err)
		os.Exit(1)
	}
}

// load is how much the tenants ask for.
type load struct {
	noisy, quiet int           // jobs of the noisy tenant, and of each quiet one
	slots        int           // jobs that run at once
	work         time.Duration // that each job takes
}

const quietTenants = 99

var full = load{noisy: 5000, quiet: 5, slots: 10, work: 2 * time.Millisecond}

func run(ctx context.Context, out io.Writer, url string, l load) error {
	client, err := open(ctx, url)
	if err != nil {
		return err
	}
	defer client.Close()
	fmt.Fprintf(out, "first a noisy tenant enqueues %d jobs, then %d quiet ones %d each; %d run at once\n\n",
		l.noisy, quietTenants, l.quiet, l.slots)
	oneLine, lanes, err := measure(ctx, client, l)
	if err != nil {
		return err
	}
	table(out, oneLine, lanes)
	return nil
}

func measure(ctx context.Context, client *emq.Client, l load) (oneLine, lanes waits, err error) {
	oneLine, err = serve(ctx, client, l, reports.QueueOneLine, func(tenant string) emq.Job {
		return emq.New(reports.Queued{Tenant: tenant})
	})
	if err != nil {
		return nil, nil, err
	}
	lanes, err = serve(ctx, client, l, reports.QueueLanes, func(tenant string) emq.Job {
		return emq.New(reports.Laned{Tenant: tenant})
	})
	return oneLine, lanes, err
}

func open(ctx context.Context, url string) (*emq.Client, error) {
	if url == "" {
		return embedded.Open(ctx)
	}
	return emq.Open(ctx, url, emq.WithPrefix("tenants"))
}

func quiet(n int) string { return fmt.Sprintf("quiet-%02d", n+1) }

const noisy = "noisy"

// serve enqueues everything, then runs a worker until all is done, and answers how long each job waited.
func serve(ctx context.Context, client *emq.Client, l load, queue string, job func(tenant string) emq.Job) (waits, error) {
	var jobs []emq.Job
	for range l.noisy {
		jobs = append(jobs, job(noisy))
	}
	for n := range quietTenants {
		for range l.quiet {
			jobs = append(jobs, job(quiet(n)))
		}
	}
	if _, err := client.Enqueue(ctx, jobs...); err != nil {
		return nil, err
	}

	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := newStopwatch(l.work, len(jobs), stop)
	worker, err := emq.NewWorker(client, emq.WorkerConfig{
		Concurrency: l.slots, Only: []string{queue}, Logger: slog.New(slog.DiscardHandler),
	}, reports.Bind(s))
	if err != nil {
		return nil, err
	}
	if err := worker.Run(ctx); err != nil {
		return nil, err
	}
	return s.result(len(jobs))
}
