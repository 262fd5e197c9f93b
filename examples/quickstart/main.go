// Command quickstart runs a small shop's jobs and shows what emq does when things go wrong. It needs
// nothing but Go: without EMQ_URL it starts a server inside the process.
//
//	go run ./examples/quickstart
//	EMQ_URL=redis://localhost:6379 go run ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/echomq/emq/examples/quickstart/orders"
	emq "github.com/echomq/emq/runtime"
)

func main() {
	// Both signals, because the run has keys to clean up; a second one kills.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	err := run(ctx, os.Stdout, os.Getenv("EMQ_URL"))
	switch {
	case err != nil && ctx.Err() != nil: // the errors of the calls that it cut say nothing
		fmt.Fprintln(os.Stderr, "quickstart: interrupted")
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

const (
	customers = 500 // each orders once: two jobs
	reminder  = 2 * time.Second
)

func run(ctx context.Context, out io.Writer, url string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s, err := connect(ctx, url)
	if err != nil {
		return err
	}
	defer s.close()
	fmt.Fprintf(out, "server     %s\n", s.name)

	// The producer is generated: it has a method for each job, and the compiler knows their fields.
	shop := orders.NewProducer(s.client)

	// A worker claims a job and freezes. Nobody knows yet.
	held, err := shop.EnqueuePackParcel(ctx, orders.PackParcel{Order: heldOrder, Address: "1 Frozen Lane"})
	if err != nil {
		return err
	}
	frozen, err := freeze(ctx, s, held.ID)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "claimed    %s by a worker that froze\n", held.Ref)

	// Many jobs of any kind in one call, each with a receipt of its own.
	receipts, err := shop.Enqueue(ctx, thousandJobs()...)
	if err != nil {
		return err
	}
	poisoned := receipts[poisonedOrder*2+1].ID
	due := time.Now().Truncate(time.Millisecond).Add(reminder) // the server counts in whole milliseconds
	if _, err := shop.EnqueueSendReceipt(ctx, orders.SendReceipt{Order: laterOrder, Email: "late@example.org"}, emq.In(reminder)); err != nil {
		return err
	}
	enqueued := int64(len(receipts)) + 2
	v := newView(out, s.client.Queue(orders.QueueOrders), enqueued)
	fmt.Fprintf(out, "enqueued   %d jobs of two kinds, one of them for %v from now\n", enqueued, reminder)

	// A worker runs every job of the bound packages. A handler that lacks a job does not compile.
	h := newHandler()
	worker, err := emq.NewWorker(s.client, emq.WorkerConfig{
		Concurrency: 50,
		Lease:       3 * time.Second, // the default, 15 s, would make the frozen worker's job wait longer
		Logger:      slog.New(slog.DiscardHandler),
	}, orders.Bind(h))
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- worker.Run(working) }()
	defer func() { // running jobs are finished or handed back
		stop()
		if e := <-stopped; err == nil {
			err = e
		}
	}()

	// The frozen worker's lease ends and its job runs again. While it does, the frozen one wakes up.
	if _, err := v.until(ctx, func(emq.Counts) bool { return h.heldRuns.Load() }); err != nil {
		return err
	}
	refusal := frozen.complete(ctx)
	close(h.refused)

	// Soon all is done but one: a job that has failed at each of its attempts is a dead letter.
	counts, err := v.until(ctx, func(c emq.Counts) bool { return c.Totals["completed"] == enqueued-1 && c.Dead == 1 })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "retried    %d times; order %d had its receipt at attempt %d\n", counts.Totals["retried"], flakyEvery, h.attempt.Load())
	late := (*h.laterRan.Load()).Sub(due)
	fmt.Fprintf(out, "scheduled  the job ran %v after its time\n", late.Round(time.Millisecond/10))
	if late < 0 {
		return fmt.Errorf("a scheduled job ran %v early", -late)
	}
	if err := reportRefusal(out, refusal); err != nil {
		return err
	}

	// The cause is mended, and the dead letter gets a new life.
	h.mended.Store(true)
	if err := v.queue.Reprocess(ctx, poisoned); err != nil {
		return err
	}
	counts, err = v.until(ctx, func(c emq.Counts) bool { return c.Totals["completed"] == enqueued })
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "reprocess  %s was dead after 3 attempts and is done now\n", poisoned)
	return v.totals(counts)
}

// thousandJobs makes two jobs for each customer.
func thousandJobs() []emq.Job {
	jobs := make([]emq.Job, 0, 2*customers)
	for order := range customers {
		jobs = append(jobs,
			emq.New(orders.SendReceipt{Order: order, Email: fmt.Sprintf("customer%d@example.org", order)}),
			emq.New(orders.PackParcel{Order: order, Address: fmt.Sprintf("%d Main Street", order)}))
	}
	return jobs
}
