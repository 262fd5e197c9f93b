package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/echomq/emq/examples/readme/reports"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// accountant is the handler of docs/results.md.
type accountant struct{}

func (accountant) HandleReport(ctx context.Context, job reports.Report) (reports.Sales, error) {
	if job.Day == "" {
		return reports.Sales{}, emq.Dead(errors.New("which day?"))
	}
	return reports.Sales{Orders: 3, Cents: 4200}, nil
}

// waitForSales and tellEnd are what docs/results.md shows.
func waitForSales(ctx context.Context, client *emq.Client, day string) error {
	receipt, err := reports.NewProducer(client).EnqueueReport(ctx, reports.Report{Day: day})
	if err != nil {
		return err
	}
	sales, err := emq.Await[reports.Report](ctx, client, receipt.Ref) // a reports.Sales
	if err != nil {
		return tellEnd(err)
	}
	slog.Info("sold", "orders", sales.Orders, "cents", sales.Cents)
	return nil
}

func tellEnd(err error) error {
	var job *emq.JobError
	switch {
	case errors.Is(err, emq.ErrDead) && errors.As(err, &job):
		slog.Error("the report failed for good", "job", job.Ref, "why", job.LastError)
	case errors.Is(err, emq.ErrGone):
		slog.Warn("it was cancelled, discarded or removed, or its retention is over")
	}
	return err
}

// watch is what docs/events.md shows.
func watch(ctx context.Context, client *emq.Client, show func(emq.JobEvent)) error {
	queue := client.Queue(reports.QueueReports)
	if err := queue.SetEvents(ctx, true); err != nil { // once; every process then publishes
		return err
	}
	return queue.Subscribe(ctx, func(e emq.JobEvent) { // until ctx ends
		switch e.Name {
		case emq.EventSubscribed:
			slog.Info("listening", "events missing", e.Reason) // empty at first
		case emq.EventDead:
			slog.Error("dead", "job", e.Ref, "kind", e.Kind, "attempt", e.Attempt, "why", e.Reason)
		}
		show(e)
	})
}

func TestTheResultsAndEventsOfTheDocs(t *testing.T) {
	client, err := embedded.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	events := make(chan emq.EventName, 100)
	wg.Go(func() {
		if err := watch(ctx, client, func(e emq.JobEvent) { events <- e.Name }); err != nil {
			t.Error(err)
		}
	})
	if first := <-events; first != emq.EventSubscribed {
		t.Errorf("the first event is %s", first)
	}
	worker, err := emq.NewWorker(client, emq.WorkerConfig{}, reports.Bind(accountant{}))
	if err != nil {
		t.Fatal(err)
	}
	wg.Go(func() {
		if err := worker.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := waitForSales(ctx, client, "2026-05-01"); err != nil {
		t.Error(err)
	}
	if err := waitForSales(ctx, client, ""); !errors.Is(err, emq.ErrDead) {
		t.Errorf("a day that is missing: %v", err)
	}
	for _, want := range []emq.EventName{emq.EventCompleted, emq.EventDead} {
		if got := <-events; got != want {
			t.Errorf("heard %s, want %s", got, want)
		}
	}
	stop()
}
