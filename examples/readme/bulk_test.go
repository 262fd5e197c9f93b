package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/echomq/emq/examples/readme/exports"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// replay, reassign, deleteQueue and look are what docs/bulk.md shows.
func replay(ctx context.Context, client *emq.Client) (emq.BulkProgress, error) {
	queue := client.Queue("exports")
	progress, err := queue.ReprocessAll(ctx, emq.ReprocessOptions{
		Kind: "export", // only this kind; empty: all
		Rate: 50,       // new lives a second; 0: as fast as it goes
		Progress: func(p emq.BulkProgress) {
			slog.Info("replaying", "done", p.Done, "refused", p.Refused)
		},
	})
	return progress, err
}

func reassign(ctx context.Context, queue *emq.Queue) error {
	moved, err := queue.ReassignLane(ctx, "acme", "acme-batch")
	if errors.Is(err, emq.ErrNoLane) {
		return nil // no job of theirs is here
	}
	slog.Info("moved", "jobs", moved.Done)
	return err
}

func deleteQueue(ctx context.Context, queue *emq.Queue) (int, error) {
	if err := queue.Pause(ctx); err != nil {
		return 0, err
	}
	gone, err := queue.Obliterate(ctx, emq.ObliterateOptions{}) // Force: also the jobs that run
	return gone.Done, err
}

func look(ctx context.Context, queue *emq.Queue) (emq.AuditReport, error) {
	report, err := queue.Audit(ctx, emq.AuditOptions{DryRun: true}) // only says what it would mend
	return report, err
}

// fullDisk fails until it is mended.
type fullDisk struct {
	mended bool
	ran    chan struct{}
}

func (e *fullDisk) HandleExport(context.Context, exports.Export) error {
	if !e.mended {
		return emq.Dead(errors.New("the disk is full"))
	}
	e.ran <- struct{}{}
	return nil
}

// exportUntil runs a worker until a count is reached.
func exportUntil(t *testing.T, client *emq.Client, e *fullDisk, reached func(emq.Counts) bool) {
	t.Helper()
	worker, err := emq.NewWorker(client, emq.WorkerConfig{}, exports.Bind(e))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(ctx) }()
	for deadline := time.Now().Add(20 * time.Second); ; {
		counts, err := client.Queue("exports").Counts(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%+v, %v", counts, err)
		}
		if reached(counts) {
			break
		}
		time.Sleep(2 * time.Millisecond) // polling with a deadline
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestTheOperatorsVerbsOfTheDocs(t *testing.T) {
	ctx := t.Context()
	client, err := embedded.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	queue := client.Queue("exports")
	if _, err := exports.NewProducer(client).EnqueueExport(ctx, exports.Export{Tenant: "acme", Month: "May"}); err != nil {
		t.Fatal(err)
	}
	e := &fullDisk{ran: make(chan struct{}, 1)}
	exportUntil(t, client, e, func(c emq.Counts) bool { return c.Dead == 1 })
	if p, err := replay(ctx, client); err != nil || p.Done != 1 {
		t.Errorf("replay: %+v, %v", p, err)
	}
	if err := reassign(ctx, queue); err != nil {
		t.Error(err)
	}
	if lane, err := queue.Lane(ctx, "acme-batch"); err != nil || lane.Waiting != 1 {
		t.Errorf("%+v, %v", lane, err)
	}
	if err := reassign(ctx, queue); err != nil {
		t.Error(err)
	}
	if report, err := look(ctx, queue); err != nil || report != (emq.AuditReport{Rows: 1, Members: 1}) {
		t.Errorf("%+v, %v", report, err)
	}
	e.mended = true
	exportUntil(t, client, e, func(c emq.Counts) bool { return c.Totals["completed"] == 1 })
	<-e.ran
	if n, err := deleteQueue(ctx, queue); err != nil || n != 0 {
		t.Errorf("%d jobs, %v", n, err)
	}
}
