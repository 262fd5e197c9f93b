package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/echomq/emq/examples/readme/exports"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// What docs/operator.md shows.

func showDead(ctx context.Context, queue *emq.Queue) error {
	options := emq.BrowseOptions{State: emq.StateDead, N: 100} // the newest deaths first
	for more := true; more; {
		page, err := queue.Browse(ctx, options)
		if err != nil {
			return err
		}
		for _, job := range page.Jobs {
			fmt.Println(job.ID, job.Kind, job.Attempts, job.At, job.LastError)
		}
		options.Cursor, more = page.Next, page.Next != ""
	}
	return nil
}

func showJob(ctx context.Context, queue *emq.Queue, id emq.ID) error {
	job, err := queue.Job(ctx, id)
	if errors.Is(err, emq.ErrGone) {
		return nil // it has ended
	}
	if err != nil {
		return err
	}
	shown := job.Redacted() // without the values that its declaration hides
	fmt.Println(shown.State, shown.Counted, shown.LastError, string(shown.Payload), string(shown.Progress))
	for _, m := range shown.Timeline {
		fmt.Println(m.At, m.What) // enqueued, due, lease ends, completed, died, kept until
	}
	return nil
}

type reporter struct{}

func (e *reporter) write(_ context.Context, _ exports.Export, part int) error {
	if part == 2 {
		return emq.Dead(errors.New("the disk is full"))
	}
	return nil
}

func (e *reporter) HandleExport(ctx context.Context, job exports.Export) error {
	for done := range 3 {
		if err := e.write(ctx, job, done); err != nil {
			return err
		}
		// what cannot be told is no reason to fail
		_ = emq.SetProgress(ctx, map[string]int{"done": done + 1, "of": 3})
		_ = emq.AppendLog(ctx, fmt.Sprintf("part %d is written", done+1))
	}
	return nil
}

func followLines(ctx context.Context, queue *emq.Queue, id emq.ID) error {
	page, err := queue.Logs(ctx, id, -20, 20) // the last 20; 0 begins at the oldest that is kept
	if err != nil {
		return err
	}
	for i, line := range page.Lines {
		fmt.Println(page.First+int64(i), line)
	}
	next, err := queue.Logs(ctx, id, page.First+int64(len(page.Lines)), 20) // what has come since
	if err != nil {
		return err
	}
	if len(page.Lines) != 2 || page.First != 0 || len(next.Lines) != 0 || next.First != 2 {
		return fmt.Errorf("%+v, %+v", page, next)
	}
	return nil
}

func TestTheOperatorOfTheDocs(t *testing.T) {
	client, err := embedded.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, queue := t.Context(), client.Queue("exports")
	receipt, err := exports.NewProducer(client).EnqueueExport(ctx, exports.Export{Tenant: "acme", Month: "May"})
	if err != nil {
		t.Fatal(err)
	}
	ref, id := receipt.Ref, receipt.ID
	wait, err := queue.Latency(ctx) // how long those who are next in line have waited
	if err != nil || wait > time.Minute {
		t.Fatal(wait, err)
	}
	worker, err := emq.NewWorker(client, emq.WorkerConfig{}, exports.Bind(&reporter{}))
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- worker.Run(run) }()
	for deadline := time.Now().Add(20 * time.Second); ; {
		state, err := queue.State(ctx, id) // emq.StateAbsent is an answer, not an error
		if err != nil || time.Now().After(deadline) {
			t.Fatal(state, err)
		}
		if state == emq.StateDead {
			break
		}
	}
	stop()
	if err := errors.Join(<-ended, showDead(ctx, queue), showJob(ctx, queue, id), followLines(ctx, queue, id)); err != nil {
		t.Fatal(err)
	}
	err = emq.UpdatePayload(ctx, client, ref, exports.Export{Tenant: "acme", Month: "June"})
	if err != nil {
		t.Error(err)
	}
	job, err := queue.Job(ctx, id)
	if err != nil || string(job.Payload) != `{"tenant":"acme","month":"June"}` || string(job.Progress) != `{"done":2,"of":3}` {
		t.Errorf("%+v, %v", job, err)
	}
}
