package emq_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// later is on another queue than job.
type later struct{ N int }

func (later) EmqSpec() emq.Spec[later] {
	return emq.Spec[later]{Queue: "more-work", Kind: "later", Attempts: 3, Timeout: time.Minute, Backoff: emq.Fixed(time.Hour)}
}

func TestRunUntilIdleRunsAllThatCanRunNowAndNoMore(t *testing.T) {
	for _, slots := range []int{1, 4} {
		onEachServer(t, func(t *testing.T, client *emq.Client) {
			var first, children atomic.Int32
			bindings := []emq.Binding{
				emq.Handle(func(ctx context.Context, j job) error {
					first.Add(1)
					if info, _ := emq.InfoFrom(ctx); info.Attempt < 3 {
						return emq.RetryIn(0, errors.New("again at once"))
					}
					_, err := emq.Enqueue(ctx, client, later(j))
					return err
				}),
				emq.Handle(func(_ context.Context, j later) error {
					children.Add(1)
					if j.N == 0 {
						return errors.New("not now")
					}
					return nil
				}),
			}
			work := func() error {
				w, err := emq.NewWorker(client, emq.WorkerConfig{Concurrency: slots, Logger: new(logbook).logger()}, bindings...)
				if err != nil {
					t.Fatal(err)
				}
				return w.RunUntilIdle(t.Context())
			}
			if err := work(); err != nil {
				t.Fatalf("with nothing to do: %v", err)
			}
			for n := range 20 {
				if _, err := emq.Enqueue(t.Context(), client, job{n}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := emq.Enqueue(t.Context(), client, job{20}, emq.In(time.Hour)); err != nil {
				t.Fatal(err)
			}
			if err := work(); err != nil {
				t.Fatal(err)
			}
			if first.Load() != 60 || children.Load() != 20 {
				t.Errorf("%d runs of 20 jobs with 3 attempts, and %d of the 20 that they enqueued", first.Load(), children.Load())
			}
			for queue, left := range map[string]emq.Counts{"work": {Scheduled: 1}, "more-work": {Scheduled: 1}} {
				c, err := client.Queue(queue).Counts(t.Context())
				if err != nil || c.Pending != 0 || c.Active != 0 || c.Scheduled != left.Scheduled {
					t.Errorf("left in %s: %+v, %v", queue, c, err)
				}
			}
			if err := work(); err != nil || first.Load() != 60 {
				t.Errorf("again: %v, %d runs", err, first.Load())
			}
		})
	}
}

func TestRunUntilIdleIsWokenByAnEnqueueWhileItsHandlersWait(t *testing.T) {
	onEachServer(t, func(t *testing.T, client *emq.Client) {
		child := make(chan struct{})
		w, err := emq.NewWorker(client, emq.WorkerConfig{Concurrency: 2, Lease: time.Hour}, emq.Handle(func(ctx context.Context, j job) error {
			if j.N == 2 {
				close(child)
				return nil
			}
			for range 50 { // calls enough for the worker to have looked, found nothing more, and begun to wait
				if _, err := client.Queue("work").Counts(ctx); err != nil {
					return err
				}
			}
			if _, err := emq.Enqueue(ctx, client, job{2}); err != nil {
				return err
			}
			select {
			case <-child:
				return nil
			case <-time.After(20 * time.Second):
				return errors.New("the child did not run")
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := emq.Enqueue(t.Context(), client, job{1}); err != nil {
			t.Fatal(err)
		}
		if err := w.RunUntilIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c, err := client.Queue("work").Counts(t.Context()); err != nil || c.Totals["completed"] != 2 {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

func TestRunUntilIdleSaysThatItWasStopped(t *testing.T) {
	onEachServer(t, func(t *testing.T, client *emq.Client) {
		newWorker := func(fn func(context.Context, job) error) *emq.Worker {
			w, err := emq.NewWorker(client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(fn))
			if err != nil {
				t.Fatal(err)
			}
			return w
		}
		w := newWorker(func(context.Context, job) error { return nil })
		w.Abort()
		if err := w.RunUntilIdle(t.Context()); !errors.Is(err, emq.ErrShutdown) {
			t.Errorf("aborted before: %v", err)
		}
		if err := w.RunUntilIdle(t.Context()); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("a second time: %v", err)
		}
		for range 3 {
			if _, err := emq.Enqueue(t.Context(), client, job{}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		w = newWorker(func(context.Context, job) error {
			stop()
			return emq.Snooze(0) // there is always more to do
		})
		if err := w.RunUntilIdle(ctx); !errors.Is(err, emq.ErrShutdown) || !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
		why := errors.New("the batch is over")
		over, end := context.WithCancelCause(t.Context())
		end(why)
		w = newWorker(func(context.Context, job) error { return nil })
		if err := w.RunUntilIdle(over); !errors.Is(err, emq.ErrShutdown) || !errors.Is(err, why) {
			t.Errorf("stopped before it began: %v", err)
		}
		w = newWorker(func(context.Context, job) error {
			w.Abort()
			return emq.Snooze(0)
		})
		if err := w.RunUntilIdle(t.Context()); !errors.Is(err, emq.ErrShutdown) {
			t.Errorf("aborted: %v", err)
		}
		c, err := client.Queue("work").Counts(t.Context())
		if err != nil || c.Active != 0 || c.Pending+c.Scheduled != 3 {
			t.Errorf("left: %+v, %v", c, err)
		}
	})
}

// Every observer that was given is told.
func TestObserversAreTold(t *testing.T) {
	var first, second watcher
	client, err := embedded.Open(t.Context(), emq.WithObserver(&first), emq.WithObserver(&second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := emq.Enqueue(t.Context(), client, job{}); err != nil {
		t.Fatal(err)
	}
	w, err := emq.NewWorker(client, emq.WorkerConfig{}, emq.Handle(func(context.Context, job) error { return nil }))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(first.named(emq.EventCompleted)) != 1 || len(second.named(emq.EventCompleted)) != 1 {
		t.Error("one of two observers was not told")
	}
}

// What a program links that uses emq, and nothing more.
func TestNoTestServerIsLinkedIntoAProgram(t *testing.T) {
	for _, program := range []string{".", "../examples/emails/worker", "../examples/emails/web"} {
		out, err := exec.Command("go", "list", "-deps", program).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for pkg := range strings.FieldsSeq(string(out)) {
			if pkg == "testing" || strings.Contains(pkg, "miniredis") || strings.HasSuffix(pkg, "/emqtest") || strings.HasSuffix(pkg, "/embedded") || strings.HasSuffix(pkg, "/redistest") {
				t.Errorf("%s links %s", program, pkg)
			}
		}
	}
}
