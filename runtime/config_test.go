package emq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// timeless declares nothing that makes sense.
type timeless struct{}

func (timeless) EmqSpec() emq.Spec[timeless] {
	return emq.Spec[timeless]{Queue: "no queue", Kind: "No Kind"}
}

func TestNewWorkerReportsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	fine := emq.Handle(func(context.Context, job) error { return nil })
	_, err := emq.NewWorker(s.Client, emq.WorkerConfig{
		Concurrency: -1, Lease: time.Millisecond, SoftStop: -1, HardStop: -2,
		Queues: map[string]emq.QueueConfig{"nowhere": {}, "work": {Concurrency: -3}}, Only: []string{"elsewhere"},
	}, fine, fine, emq.Handle[left](nil), emq.Handle(func(context.Context, timeless) error { return nil }),
		emq.Handle(func(context.Context, parcel) error { return nil }, emq.Upgrade[parcelV1](3), emq.Upgrade[parcelV2](2), emq.Upgrade[parcelV2](2), emq.Old[parcel]{}),
		emq.HandleResult[bad, answer](nil))
	if !errors.Is(err, emq.ErrInvalid) {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Concurrency is negative: -1", "Lease is 1ms, at least 100ms", "SoftStop is negative", "HardStop is negative",
		`Queues names "nowhere"`, `queue "work" is negative: -3`, `Only names "elsewhere"`,
		"kind job of queue work is bound twice", "left/left: the handler is nil", "bad/bad: the handler is nil",
		`queue "no queue"`, `kind "No Kind"`, "attempts=0 and timeout=0s",
		"upgrade from version 3 to 3", "upgrade from version 2 to 3", "upgrade from version 0 to 3",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing: %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
	for name, make := range map[string]func() (*emq.Worker, error){
		"nothing bound": func() (*emq.Worker, error) { return emq.NewWorker(s.Client, emq.WorkerConfig{}) },
		"an empty binding": func() (*emq.Worker, error) {
			return emq.NewWorker(s.Client, emq.WorkerConfig{}, emq.Bind(), emq.Binding{})
		},
		"a nil client": func() (*emq.Worker, error) { return emq.NewWorker(nil, emq.WorkerConfig{}, fine) },
		"an alias that is another's kind": func() (*emq.Worker, error) {
			return emq.NewWorker(s.Client, emq.WorkerConfig{}, emq.Handle(func(context.Context, parcel) error { return nil }),
				emq.Handle(func(context.Context, packet) error { return nil }))
		},
	} {
		if w, err := make(); !errors.Is(err, emq.ErrInvalid) || w != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := emq.NewWorker(s.Client, emq.WorkerConfig{Only: []string{"work"}, Queues: map[string]emq.QueueConfig{"work": {}, "left": {}}}, fine,
		emq.Handle(func(context.Context, left) error { return nil })); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// packet has the name that parcel once had.
type packet struct{}

func (packet) EmqSpec() emq.Spec[packet] {
	return emq.Spec[packet]{Queue: "post", Kind: "package", Attempts: 1, Timeout: time.Minute}
}

func TestOnlyServesASubsetOfWhatIsBound(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ran := make(chan string, 2)
		put(t, s, left{})
		put(t, s, right{})
		run(t, s.Client, emq.WorkerConfig{Only: []string{"right"}, Logger: new(logbook).logger()},
			emq.Handle(func(context.Context, left) error { ran <- "left"; return nil }),
			emq.Handle(func(context.Context, right) error { ran <- "right"; return nil }))
		if got := <-ran; got != "right" {
			t.Errorf("%s ran", got)
		}
		eventually(t, "it completes", func() bool { return s.counts(t, "right").Totals["completed"] == 1 })
		if c := s.counts(t, "left"); c.Pending != 1 {
			t.Errorf("%+v", c)
		}
	})
}

func TestAQueuesOwnConcurrencyAndTheProcessesBothHold(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		inLeft, inRight, finish := make(chan struct{}, 50), make(chan struct{}, 50), make(chan struct{})
		putMany(t, s, 20, func(i int) left { return left{i} })
		run(t, s.Client, emq.WorkerConfig{Concurrency: 5, Queues: map[string]emq.QueueConfig{"left": {Concurrency: 2}}, Logger: new(logbook).logger()},
			emq.Handle(func(context.Context, left) error { inLeft <- struct{}{}; <-finish; return nil }),
			emq.Handle(func(context.Context, right) error { inRight <- struct{}{}; <-finish; return nil }))
		<-inLeft
		<-inLeft
		putMany(t, s, 20, func(i int) right { return right{i} })
		eventually(t, "five run", func() bool { return s.counts(t, "left").Active+s.counts(t, "right").Active == 5 })
		if l, r := s.counts(t, "left").Active, s.counts(t, "right").Active; l != 2 || r != 3 {
			t.Errorf("%d and %d are in flight", l, r)
		}
		close(finish)
		eventually(t, "all complete", func() bool {
			return s.counts(t, "left").Totals["completed"] == 20 && s.counts(t, "right").Totals["completed"] == 20
		})
	})
}

func TestAHandlerKnowsItsRun(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		var log logbook
		infos := make(chan emq.Info, 1)
		due := time.Now().Add(50 * time.Millisecond)
		ref := put(t, s, job{7}, emq.WithHeader("trace", "abc"), emq.WithHeader("user", "ü"), emq.At(due))
		run(t, s.Client, emq.WorkerConfig{Logger: log.logger()}, emq.Handle(func(ctx context.Context, j job) error {
			info, ok := emq.InfoFrom(ctx)
			if !ok || j.N != 7 {
				t.Error("no info, or another payload")
			}
			emq.Logger(ctx).Info("hello from the handler")
			infos <- info
			return nil
		}))
		i := <-infos
		if i.Ref != ref || i.Kind != "job" || i.Attempt != 1 || i.MaxAttempts != 3 || i.Headers["trace"] != "abc" || i.Headers["user"] != "ü" || !i.Tick.IsZero() {
			t.Errorf("%+v", i)
		}
		if d := i.Due.Sub(due); d < 0 || d > time.Millisecond || i.EnqueuedAt.After(due) || time.Since(i.EnqueuedAt) > time.Minute {
			t.Errorf("due %v after its time, enqueued at %v", d, i.EnqueuedAt)
		}
		if lines := log.with("hello from the handler", "queue=work", "kind=job", "id="+string(ref.ID), "attempt=1"); len(lines) != 1 {
			t.Errorf("%v", log.with("hello"))
		}
	})
	if _, ok := emq.InfoFrom(context.Background()); ok {
		t.Error("there is an info outside a handler")
	}
	if emq.Logger(context.Background()) == nil {
		t.Error("there is no logger outside a handler")
	}
}
