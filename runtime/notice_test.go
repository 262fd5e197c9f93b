package emq_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// held is a handler that tells when it has begun, and when its context has ended and why.
type held struct {
	began chan emq.Ref
	ended chan error
}

func newHeld() held { return held{make(chan emq.Ref, 100), make(chan error, 100)} }

func (h held) handle(ctx context.Context, _ job) error {
	info, _ := emq.InfoFrom(ctx)
	h.began <- info.Ref
	<-ctx.Done()
	h.ended <- context.Cause(ctx)
	return ctx.Err()
}

func TestARunningJobIsCancelledAtOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, client *emq.Client) {
		h := newHeld()
		run(t, client, emq.WorkerConfig{}, emq.Handle(h.handle)) // a heartbeat every 5 s
		var longest time.Duration
		for i := range 10 {
			if _, err := emq.Enqueue(t.Context(), client, job{i}); err != nil {
				t.Fatal(err)
			}
			ref := <-h.began
			began := time.Now()
			if err := client.Cancel(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
			if cause := <-h.ended; !errors.Is(cause, emq.ErrCancelled) {
				t.Fatalf("the context ended with %v", cause)
			}
			longest = max(longest, time.Since(began))
		}
		t.Logf("the slowest of 10 cancellations was seen after %v", longest)
		if longest > 2*time.Second {
			t.Error("a cancellation waits for the heartbeat")
		}
		eventually(t, "all have ended as cancelled", func() bool {
			c, err := client.Queue("work").Counts(t.Context())
			return err == nil && c.Totals["cancelled"] == 10 && c.Active == 0
		})
	})
}

// roaming is a job on any queue.
type roaming struct{ Queue string }

func (r roaming) EmqSpec() emq.Spec[roaming] {
	return emq.Spec[roaming]{Queue: r.Queue, Kind: "job", Version: 1, Attempts: 1, Timeout: time.Minute}
}

// What is published reaches every node, so one connection to any of them hears of all queues.
func TestAClusterTellsEndsCancellationsAndEvents(t *testing.T) {
	t.Parallel()
	client := openClient(t, cluster(t)[0].URL())
	h := newHeld()
	run(t, client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(h.handle).AlsoOn("more"), emq.HandleResult(add))
	for _, queue := range []string{"work", "more"} {
		if err := client.Queue(queue).SetEvents(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		events, stop := subscribe(t, client, queue, nil)
		r, err := client.Enqueue(t.Context(), emq.New(roaming{queue}), emq.New(roaming{queue}, emq.In(time.Hour)))
		if err != nil {
			t.Fatal(err)
		}
		ref := <-h.began
		began := time.Now()
		if err := client.Cancel(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		if cause := <-h.ended; !errors.Is(cause, emq.ErrCancelled) {
			t.Errorf("the context ended with %v", cause)
		}
		t.Logf("a cancellation on a cluster was seen after %v", time.Since(began))
		if time.Since(began) > 4*time.Second {
			t.Error("a cancellation waits for the heartbeat")
		}
		eventually(t, "its end is heard", func() bool { return slices.Equal(events.of(ref.ID), []string{"cancelled"}) })
		if names := events.of(r[1].ID); !slices.Equal(names, []string{"scheduled"}) {
			t.Errorf("heard %v", names)
		}
		stop()
	}
	ctx, cancel := inTime(t)
	defer cancel()
	if r, err := emq.Await[sum](ctx, client, enqueueSum(t, client, sum{A: 1, B: 2})); err != nil || r.Total != 3 {
		t.Errorf("%v, %v", r, err)
	}
}

// A notice is a hint: the row decides.
func TestANoticeOfAJobThatNobodyHasCancelledChangesNothing(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	h := newHeld()
	stop := run(t, s.Client, emq.WorkerConfig{SoftStop: time.Millisecond}, emq.Handle(h.handle))
	r, err := emq.Enqueue(t.Context(), s.Client, job{1})
	if err != nil {
		t.Fatal(err)
	}
	<-h.began
	eventually(t, "the worker listens", func() bool { return subscriptions(t, s.raw, "emq:{work}:cancel") == 1 })
	before := s.commands(t)["evalsha"]
	s.do(t, "PUBLISH", "emq:{work}:cancel", string(r.ID))
	s.do(t, "PUBLISH", "emq:{work}:cancel", "JOB0KHTOWnGLuA")
	eventually(t, "the heartbeat has looked", func() bool { return s.commands(t)["evalsha"] > before })
	stop()
	if cause := <-h.ended; !errors.Is(cause, emq.ErrShutdown) {
		t.Errorf("the context ended with %v", cause)
	}
}

// While the subscription cannot be had a cancellation is found at the next heartbeat, and when it can be
// had again it is as fast as before.
func TestACancellationIsFoundWithoutASubscriptionAndFastAgainWithOne(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	raw := outside(t, server.URL())
	p := startProxy(t, server.URL())
	client, err := emq.Open(t.Context(), p.Proxy.URL(), emq.WithLogger(new(logbook).logger()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	other := openClient(t, server.URL())
	h := newHeld()
	const lease = 3 * time.Second
	run(t, client, emq.WorkerConfig{Lease: lease, Logger: new(logbook).logger()}, emq.Handle(h.handle))
	var refused atomic.Bool
	p.denying(func(words []string) bool { return refused.Load() && strings.EqualFold(words[0], "SUBSCRIBE") })
	took := func() time.Duration {
		if _, err := emq.Enqueue(t.Context(), other, job{1}); err != nil {
			t.Fatal(err)
		}
		ref := <-h.began
		began := time.Now()
		if err := other.Cancel(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
		if cause := <-h.ended; !errors.Is(cause, emq.ErrCancelled) {
			t.Fatalf("the context ended with %v", cause)
		}
		return time.Since(began)
	}
	listens := func(n int64) func() bool {
		return func() bool { return subscriptions(t, raw, "emq:{work}:cancel") == n }
	}
	eventually(t, "the worker listens", listens(1))
	with := took()
	refused.Store(true)
	p.CutAll()
	eventually(t, "the subscription is cut", listens(0))
	without := took()
	refused.Store(false)
	eventually(t, "the worker listens again", listens(1))
	again := took()
	t.Logf("seen after %v with the subscription, %v without it, %v with it again; a heartbeat is every %v", with, without, again, lease/3)
	if max(with, again) > lease/3*9/10 || without > 3*lease {
		t.Error("too late")
	}
}

// What was notified while nobody could hear it is found when the subscription is had, not at the next heartbeat.
func TestACancellationThatWasNotHeardIsFoundWhenTheSubscriptionIsHad(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := startProxy(t, server.URL())
	client, err := emq.Open(t.Context(), p.Proxy.URL(), emq.WithLogger(new(logbook).logger()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p.denying(func(words []string) bool { return strings.EqualFold(words[0], "SUBSCRIBE") })
	h := newHeld()
	const lease = 2 * time.Minute
	run(t, client, emq.WorkerConfig{Lease: lease, Logger: new(logbook).logger()}, emq.Handle(h.handle))
	if _, err := emq.Enqueue(t.Context(), client, job{1}); err != nil {
		t.Fatal(err)
	}
	ref := <-h.began
	if err := client.Cancel(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p.denying(nil)
	if cause := <-h.ended; !errors.Is(cause, emq.ErrCancelled) {
		t.Fatalf("the context ended with %v", cause)
	}
	if took := time.Since(began); took > lease/6 {
		t.Errorf("it was found after %v: by a heartbeat", took)
	}
}
