package emqtest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/emqtest"
)

func TestWorkRunsOneAfterTheOtherInOrder(t *testing.T) {
	env := emqtest.New(t)
	var h handled[greet]
	for i := range 300 { // more than one claim and one beat of the pump may take
		enqueue(t, env.Client, greet{Name: fmt.Sprint(i)})
	}
	r := env.Work(emq.Handle(h.handle))
	if r.Completed != 300 {
		t.Fatal(r)
	}
	for i, j := range h.jobs {
		if j.Name != fmt.Sprint(i) {
			t.Fatalf("job %d is %s", i, j.Name)
		}
	}
}

func TestWorkRunsAllThatIsDueHoweverMany(t *testing.T) {
	env := emqtest.New(t)
	env.Worker.Concurrency = 50
	jobs := make([]emq.Job, 1000)
	for i := range jobs {
		jobs[i] = emq.New(greet{}, emq.In(time.Hour))
	}
	if _, err := env.Client.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
	env.Advance(time.Hour)
	if r := env.Work(emq.Handle((&handled[greet]{}).handle)); r.Completed != 1000 {
		t.Errorf("%d completed", r.Completed)
	}
}

func TestWorkRunsWhatHandlersEnqueueInOtherQueuesToo(t *testing.T) {
	env := emqtest.New(t)
	var ran []string
	b := emq.Bind(
		emq.Handle(func(ctx context.Context, j charge) error {
			ran = append(ran, fmt.Sprint("charge ", j.Cents))
			_, err := emq.Enqueue(ctx, env.Client, greet{Name: fmt.Sprint(j.Cents)})
			return err
		}, emq.Upgrade[chargeV1](1)),
		emq.Handle(func(ctx context.Context, j greet) error {
			ran = append(ran, "greet "+j.Name)
			if len(ran) == 6 {
				return nil
			}
			_, err := emq.Enqueue(ctx, env.Client, charge{Cents: len(ran)})
			return err
		}))
	enqueue(t, env.Client, charge{Cents: 1})
	r := env.Work(b)
	if r.Completed != 6 || !slices.Equal(ran, []string{"charge 1", "greet 1", "charge 2", "greet 2", "charge 4", "greet 4"}) {
		t.Errorf("ran %v: %s", ran, r)
	}
	if n := len(env.Jobs()); n != 6 {
		t.Errorf("%d jobs were enqueued", n)
	}
}

func TestWhatWasDueBeforeComesBeforeWhatIsNew(t *testing.T) {
	env := emqtest.New(t)
	var h handled[greet]
	enqueue(t, env.Client, greet{Name: "planned"}, emq.In(time.Hour))
	env.Advance(2 * time.Hour)
	enqueue(t, env.Client, greet{Name: "new"})
	env.Work(emq.Handle(h.handle))
	if !slices.Equal(h.jobs, []greet{{"planned"}, {"new"}}) {
		t.Errorf("ran %v", h.jobs)
	}
}

func TestADueJobIsFoundBehindManyThatMustNotRun(t *testing.T) {
	env := emqtest.New(t)
	if err := env.Client.Queue("mail").PauseLane(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	jobs := make([]emq.Job, 500) // more than the pump moves at once
	for i := range jobs {
		jobs[i] = emq.New(greet{Name: "acme"}, emq.In(time.Hour), emq.InLane("acme"))
	}
	jobs = append(jobs, emq.New(greet{Name: "ada"}, emq.In(2*time.Hour)))
	if _, err := env.Client.Enqueue(t.Context(), jobs...); err != nil {
		t.Fatal(err)
	}
	env.Advance(2 * time.Hour)
	r := env.Work(emq.Handle((&handled[greet]{}).handle))
	want(t, r, emq.EventCompleted)
	if c := counts(t, env, "mail"); c.Pending != 500 || c.Scheduled != 0 {
		t.Errorf("the queue has %+v", c)
	}
}

func TestAQueueThatIsNeverEmptyKeepsNoOtherWaiting(t *testing.T) {
	env := emqtest.New(t)
	var ran []string
	enqueue(t, env.Client, charge{Cents: 1})
	enqueue(t, env.Client, greet{Name: "ada"})
	env.Work(emq.Handle(func(ctx context.Context, j charge) error {
		ran = append(ran, fmt.Sprint(j.Cents))
		if j.Cents == 3 {
			return nil
		}
		_, err := emq.Enqueue(ctx, env.Client, charge{Cents: j.Cents + 1})
		return err
	}, emq.Upgrade[chargeV1](1)), emq.Handle(func(_ context.Context, j greet) error {
		ran = append(ran, j.Name)
		return nil
	}))
	if !slices.Equal(ran, []string{"1", "ada", "2", "3"}) {
		t.Errorf("ran %v", ran)
	}
}

// A handler that waits for another job needs a second slot, and the other job must be seen at once.
func TestAHandlerCanWaitForAnotherJob(t *testing.T) {
	env := emqtest.New(t)
	env.Worker.Concurrency = 2
	ended := make(chan struct{})
	enqueue(t, env.Client, greet{Name: "parent"})
	r := env.Work(emq.Handle(func(ctx context.Context, j greet) error {
		if j.Name == "child" {
			close(ended)
			return nil
		}
		if _, err := emq.Enqueue(ctx, env.Client, greet{Name: "child"}); err != nil {
			return err
		}
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	want(t, r, emq.EventCompleted, emq.EventCompleted)
}

func TestWorkSaysWhatHangsAndEnds(t *testing.T) {
	var ref emq.Ref
	var cause error
	expect(t, true, func(tb testing.TB) {
		env := emqtest.New(tb)
		env.Patience = 100 * time.Millisecond
		ref = enqueue(t, env.Client, greet{}).Ref
		env.Work(emq.Handle(func(ctx context.Context, _ greet) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}))
	}, "not idle after 100ms", "Running then: mail/JOB", "(greet, attempt 1)")
	if ref.ID == "" || !errors.Is(cause, emq.ErrShutdown) {
		t.Errorf("the handler's context ended by %v", cause)
	}
}

func TestWorkSaysWhatComesBackForEver(t *testing.T) {
	expect(t, true, func(tb testing.TB) {
		env := emqtest.New(tb)
		env.Patience = 200 * time.Millisecond
		enqueue(t, env.Client, greet{})
		env.Work(emq.Handle(func(context.Context, greet) error { return emq.Snooze(0) }))
	}, "not idle after 200ms", "greet, attempt 1: snoozed")
}

func TestWorkFindsMistakesOfTheTest(t *testing.T) {
	nothing := func(context.Context, greet) error { return nil }
	expect(t, true, func(tb testing.TB) { emqtest.New(tb).Work() }, "nothing is bound")
	expect(t, true, func(tb testing.TB) { emqtest.New(tb).Work(emq.Handle(nothing), emq.Handle(nothing)) }, "bound twice")
	expect(t, true, func(tb testing.TB) { emqtest.New(tb).Advance(-1) }, "forward only")
	expect(t, true, func(tb testing.TB) { emqtest.New(tb, emq.WithMaxPayload(-1)) }, "the limit must be positive")
	expect(t, true, func(tb testing.TB) {
		env := emqtest.New(tb)
		enqueue(t, env.Client, greet{})
		env.Work(emq.Handle(func(context.Context, greet) error {
			env.Work(emq.Handle(nothing))
			return nil
		}))
	}, "Work was called while it runs")
}

func TestAHandlersPanicAndItsFatalAreFailedRuns(t *testing.T) {
	env := emqtest.New(t)
	enqueue(t, env.Client, greet{})
	r := env.Work(emq.Handle(func(context.Context, greet) error { panic("no mailer") }))
	want(t, r, emq.EventRetried)
	if err := r.Err(); !strings.Contains(err.Error(), "no mailer") {
		t.Errorf("the report says %v", err)
	}
}

func TestWorkLeavesWhatItDoesNotServe(t *testing.T) {
	env := emqtest.New(t)
	enqueue(t, env.Client, greet{})
	enqueue(t, env.Client, charge{})
	r := env.Work(emq.Handle((&handled[daily]{}).handle)) // the queue of greet, but not its kind
	want(t, r, emq.EventReleased)
	if r.Released != 1 || r.Err() != nil || r.Runs[0].Payload != nil {
		t.Errorf("the report is %+v", r)
	}
	if c := counts(t, env, "billing"); c.Pending != 1 {
		t.Errorf("the other queue has %+v", c)
	}
}

type tally struct{ n atomic.Int32 }

func (c *tally) Observe(context.Context, emq.Event) { c.n.Add(1) }

func TestTheTestsOwnOptionsAndSettingsHold(t *testing.T) {
	var client, worker tally
	var sent, wrapped atomic.Int32
	env := emqtest.New(t, emq.WithPrefix("shop"), emq.WithObserver(&client), emq.WithEnqueueMiddleware(func(next emq.Enqueuer) emq.Enqueuer {
		sent.Add(1)
		return next
	}))
	enqueue(t, env.Client, greet{})
	want(t, env.Work(emq.Handle((&handled[greet]{}).handle)), emq.EventCompleted)
	if client.n.Load() == 0 || sent.Load() != 1 {
		t.Errorf("the client's observer was told %d times, its middleware called %d times", client.n.Load(), sent.Load())
	}
	env.Worker.Observer = &worker
	env.Worker.Middleware = []emq.Middleware{func(next emq.HandleFunc) emq.HandleFunc {
		return func(ctx context.Context, d *emq.Delivery) error {
			wrapped.Add(1)
			return next(ctx, d)
		}
	}}
	enqueue(t, env.Client, greet{})
	want(t, env.Work(emq.Handle((&handled[greet]{}).handle)), emq.EventCompleted)
	if worker.n.Load() == 0 || wrapped.Load() != 1 {
		t.Errorf("the worker's observer was told %d times, its middleware called %d times", worker.n.Load(), wrapped.Load())
	}
	claimed := enqueue(t, env.Client, greet{})
	if err := env.Client.Cancel(t.Context(), claimed.Ref); err != nil {
		t.Fatal(err)
	}
	want(t, env.Work(emq.Handle((&handled[greet]{}).handle)))
}

func TestFiftyEnvsSideBySide(t *testing.T) {
	var wg sync.WaitGroup
	for n := range 50 {
		wg.Go(func() {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				env := emqtest.New(t)
				h := handled[greet]{errs: []error{errors.New("first")}}
				b := emq.Handle(h.handle)
				enqueue(t, env.Client, greet{Name: fmt.Sprint(n)}, emq.In(time.Duration(n)*time.Hour))
				env.Advance(time.Duration(n) * time.Hour)
				want(t, env.Work(b), emq.EventRetried)
				env.Advance(10 * time.Minute)
				want(t, env.Work(b), emq.EventCompleted)
				if got := emqtest.One[greet](t, env); got.Name != fmt.Sprint(n) {
					t.Errorf("%+v", got)
				}
			})
		})
	}
	wg.Wait()
}

// shaky is an observer that panics.
type shaky struct{}

func (shaky) Observe(context.Context, emq.Event) { panic("observer") }

func TestAnObserverThatPanicsHidesNothing(t *testing.T) {
	t.Parallel()
	env := emqtest.New(t, emq.WithObserver(shaky{}), emq.WithLogger(slog.New(slog.DiscardHandler)))
	for _, own := range []emq.Observer{nil, shaky{}} {
		env.Worker.Observer = own
		enqueue(t, env.Client, greet{})
		if r := env.Work(emq.Handle(func(context.Context, greet) error { return nil })); r.Completed != 1 {
			t.Errorf("%v", r)
		}
	}
}
