package emq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// sum is a job with a result.
type sum struct {
	A, B int
	Do   string
}

type total struct{ Total int }

func (sum) EmqSpec() emq.Spec[sum] {
	return emq.Spec[sum]{Queue: "sums", Kind: "sum", Version: 1, Attempts: 2, Timeout: time.Minute, Retain: time.Hour, Backoff: emq.Fixed(5 * time.Millisecond)}
}

func (sum) EmqResult() (t total) { return }

// forgetful has a result that is not kept.
type forgetful struct{ N int }

func (forgetful) EmqSpec() emq.Spec[forgetful] {
	return emq.Spec[forgetful]{Queue: "sums", Kind: "forgetful", Version: 1, Attempts: 1, Timeout: time.Minute}
}

func (forgetful) EmqResult() (n int) { return }

func add(_ context.Context, s sum) (total, error) {
	switch s.Do {
	case "fail":
		return total{}, errors.New("no sum today\nand a stack")
	case "die":
		return total{}, emq.Dead(errors.New("hopeless"))
	case "discard":
		return total{}, emq.Discard(nil)
	}
	return total{s.A + s.B}, nil
}

func enqueueSum(t *testing.T, client *emq.Client, s sum, opts ...emq.Option) emq.Ref {
	t.Helper()
	r, err := emq.Enqueue(t.Context(), client, s, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return r.Ref
}

// inTime ends a wait before the row is looked at again without a notice.
func inTime(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), 20*time.Second)
}

func TestAwaitGivesTheResultBeforeAndAfterTheEnd(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, client *emq.Client) {
		ref := enqueueSum(t, client, sum{A: 3, B: 4})
		got := make(chan any, 1)
		go func() {
			ctx, cancel := inTime(t)
			defer cancel()
			r, err := emq.Await[sum](ctx, client, ref)
			got <- fmt.Sprint(r, err)
		}()
		run(t, client, emq.WorkerConfig{}, emq.HandleResult(add))
		if g := <-got; g != "{7} <nil>" {
			t.Errorf("a wait that begins before the end gives %v", g)
		}
		began := time.Now()
		if r, err := emq.Await[sum](t.Context(), client, ref); err != nil || r.Total != 7 {
			t.Errorf("a wait that begins after the end gives %v, %v", r, err)
		}
		t.Logf("a wait after the end took %v", time.Since(began))
	})
}

// Every end of a job, told to somebody who waits and to somebody who comes later.
func TestAwaitTellsEveryEnd(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, client *emq.Client) {
		queue := client.Queue("sums")
		ends := []struct {
			name  string
			do    string
			end   func(ctx context.Context, ref emq.Ref) error // beside a handler
			later bool
			is    error
			says  emq.EventName
			after emq.EventName // to who comes later
		}{
			{name: "fails at last", do: "fail", is: emq.ErrDead, says: emq.EventDead, after: emq.EventDead},
			{name: "asks for its death", do: "die", is: emq.ErrDead, says: emq.EventDead, after: emq.EventDead},
			{name: "is discarded", do: "discard", is: emq.ErrGone, says: emq.EventDiscarded},
			{name: "is cancelled while it waits", later: true, end: client.Cancel, is: emq.ErrGone, says: emq.EventCancelled},
			{name: "is cancelled while it runs", do: "hold", end: client.Cancel, is: emq.ErrGone, says: emq.EventCancelled},
			{name: "is removed", later: true, is: emq.ErrGone, says: emq.EventRemoved,
				end: func(ctx context.Context, ref emq.Ref) error { return queue.Remove(ctx, ref.ID) }},
			{name: "is drained", later: true, is: emq.ErrGone, says: emq.EventRemoved,
				end: func(ctx context.Context, _ emq.Ref) error {
					_, err := queue.Drain(ctx, emq.DrainOptions{Scheduled: true})
					return err
				}},
		}
		started := make(chan emq.ID, len(ends))
		refs, errs := make([]emq.Ref, len(ends)), make([]chan error, len(ends))
		for i, e := range ends {
			var opts []emq.Option
			if e.later {
				opts = append(opts, emq.In(time.Hour))
			}
			refs[i] = enqueueSum(t, client, sum{Do: e.do}, opts...)
			errs[i] = make(chan error, 1)
			go func() {
				_, err := emq.Await[sum](t.Context(), client, refs[i])
				errs[i] <- err
			}()
		}
		for _, ref := range refs {
			eventually(t, "somebody waits for "+ref.String(), func() bool { return awaited(t, client, ref) })
		}
		run(t, client, emq.WorkerConfig{Concurrency: 3}, emq.HandleResult(func(ctx context.Context, s sum) (total, error) {
			if s.Do == "hold" {
				info, _ := emq.InfoFrom(ctx)
				started <- info.ID
				<-ctx.Done()
				return total{}, ctx.Err()
			}
			return add(ctx, s)
		}))
		<-started
		for i, e := range ends {
			if e.end != nil {
				if err := e.end(t.Context(), refs[i]); err != nil {
					if e.name != "is drained" || !errors.Is(err, emq.ErrGone) {
						t.Fatalf("a job that %s: %v", e.name, err)
					}
				}
			}
			err := <-errs[i]
			var job *emq.JobError
			if !errors.Is(err, e.is) || !errors.As(err, &job) || job.End != e.says || job.Ref != refs[i] {
				t.Errorf("a job that %s: %v", e.name, err)
			}
			t.Logf("a job that %s: %v", e.name, err)
			if _, err := emq.Await[sum](t.Context(), client, refs[i]); !errors.Is(err, e.is) || !errors.As(err, &job) || job.End != e.after {
				t.Errorf("a job that %s, later: %v", e.name, err)
			}
		}
	})
}

// awaited tells whether somebody waits for a job.
func awaited(t *testing.T, client *emq.Client, ref emq.Ref) bool {
	t.Helper()
	d, err := client.Queue(ref.Queue).Job(t.Context(), ref.ID)
	if err != nil {
		t.Fatal(err)
	}
	return d.Awaited
}

func TestAwaitRefusesWhatCannotBeAwaitedBeforeItAsks(t *testing.T) {
	t.Parallel()
	client, err := emq.Open(t.Context(), redistest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	client.Close() // any I/O is another error
	ref := emq.Ref{Queue: "sums", ID: "JOB0KHTOWnGLuA"}
	_, kept := emq.Await[forgetful](t.Context(), client, ref)
	_, elsewhere := emq.Await[sum](t.Context(), client, emq.Ref{Queue: "other", ID: ref.ID})
	_, id := emq.Await[sum](t.Context(), client, emq.Ref{Queue: "sums", ID: "7"})
	_, none := emq.Await[sum](t.Context(), nil, ref)
	_, raw := client.AwaitResult(t.Context(), emq.Ref{Queue: "{}", ID: ref.ID})
	for _, err := range []error{kept, elsewhere, id, none, raw} {
		if !errors.Is(err, emq.ErrInvalid) {
			t.Error(err)
		}
	}
	if _, err := emq.Await[sum](t.Context(), client, ref); err == nil || errors.Is(err, emq.ErrInvalid) {
		t.Errorf("a closed client: %v", err)
	}
}

func TestAwaitEndsWithItsContextAndAnUnknownJobIsGone(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, client *emq.Client) {
		why := errors.New("the caller went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		ref := enqueueSum(t, client, sum{})
		go cancel(why)
		if _, err := emq.Await[sum](ctx, client, ref); !errors.Is(err, why) {
			t.Errorf("the wait ended with %v", err)
		}
		id, err := client.NewID()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := emq.Await[sum](t.Context(), client, emq.Ref{Queue: "sums", ID: id}); !errors.Is(err, emq.ErrGone) {
			t.Errorf("an unknown job: %v", err)
		}
	})
}

// big has a result that cannot be kept.
type big struct{ N int }

func (big) EmqSpec() emq.Spec[big] {
	return emq.Spec[big]{Queue: "big", Kind: "big", Version: 1, Attempts: 5, Timeout: time.Minute, Retain: time.Hour, Backoff: emq.Fixed(time.Millisecond)}
}

func (big) EmqResult() (v any) { return }

func TestAResultThatCannotBeKeptIsADeadLetterAndRunsOnce(t *testing.T) {
	t.Parallel()
	client, err := emq.Open(t.Context(), redistest.Start(t).URL(), emq.WithMaxPayload(100))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	results := []any{strings.Repeat("x", 98), strings.Repeat("x", 99), math.NaN()}
	var runs atomic.Int32
	run(t, client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.HandleResult(func(_ context.Context, b big) (any, error) {
		runs.Add(1)
		return results[b.N], nil
	}))
	for n := range results {
		r, err := emq.Enqueue(t.Context(), client, big{n})
		if err != nil {
			t.Fatal(err)
		}
		_, err = emq.Await[big](t.Context(), client, r.Ref)
		if fits := n == 0; fits != (err == nil) || !fits && !(errors.Is(err, emq.ErrDead) && strings.Contains(err.Error(), "cannot be kept")) {
			t.Errorf("result %d: %v", n, err)
		}
	}
	if runs.Load() != 3 {
		t.Errorf("%d runs", runs.Load())
	}
}

// Hundreds wait at once, on one connection; when all have their answers nothing is left of it.
func TestManyWaitOnOneSubscriptionAndLeaveNothing(t *testing.T) {
	server := redistest.Start(t)
	raw := outside(t, server.URL())
	subscriptions(t, raw, "emq:{sums}:ended") // its own goroutines begin with the first call
	before := goleak.IgnoreCurrent()
	client, err := emq.Open(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	const waiters = 500
	refs := make([]emq.Ref, waiters)
	for i := range refs {
		refs[i] = enqueueSum(t, client, sum{A: i})
	}
	var wg sync.WaitGroup
	ctx, cancel := inTime(t)
	defer cancel()
	for i, ref := range refs {
		wg.Go(func() {
			if r, err := emq.Await[sum](ctx, client, ref); err != nil || r.Total != i {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
	for _, ref := range refs {
		eventually(t, "everybody waits", func() bool { return awaited(t, client, ref) })
	}
	if subs := subscriptions(t, raw, "emq:{sums}:ended"); subs != 1 {
		t.Errorf("%d connections are subscribed", subs)
	}
	stop := run(t, client, emq.WorkerConfig{Concurrency: 20}, emq.HandleResult(add))
	began := time.Now()
	wg.Wait()
	t.Logf("%d results in %v", waiters, time.Since(began))
	stop()
	eventually(t, "nobody is subscribed any more", func() bool { return subscriptions(t, raw, "emq:{sums}:ended") == 0 })
	client.Close()
	goleak.VerifyNone(t, before)
}

// subscriptions is how many connections are subscribed to a channel.
func subscriptions(t *testing.T, raw rueidis.Client, channel string) int64 {
	t.Helper()
	n, err := raw.Do(t.Context(), raw.B().PubsubNumsub().Channel(channel).Build()).AsIntMap()
	if err != nil {
		t.Fatal(err)
	}
	return n[channel]
}

func TestAWaitSurvivesCutConnections(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	raw := outside(t, server.URL())
	p := startProxy(t, server.URL())
	client, err := emq.Open(t.Context(), p.Proxy.URL(), emq.WithLogger(new(logbook).logger()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	other, err := emq.Open(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	ref := enqueueSum(t, other, sum{A: 1, B: 1})
	got := make(chan error, 1)
	go func() {
		ctx, cancel := inTime(t)
		defer cancel()
		_, err := emq.Await[sum](ctx, client, ref)
		got <- err
	}()
	eventually(t, "somebody waits", func() bool { return awaited(t, other, ref) })
	// the end comes while nothing gets through, so its notice is lost
	p.denying(func(words []string) bool { return strings.EqualFold(words[0], "SUBSCRIBE") })
	p.CutAll()
	eventually(t, "the subscription is cut", func() bool { return subscriptions(t, raw, "emq:{sums}:ended") == 0 })
	run(t, other, emq.WorkerConfig{}, emq.HandleResult(add))
	eventually(t, "the job has ended", func() bool {
		c, err := other.Queue("sums").Counts(t.Context())
		return err == nil && c.Completed == 1
	})
	began := time.Now()
	p.denying(nil)
	if err := <-got; err != nil {
		t.Error(err)
	}
	t.Logf("the result came %v after the subscription was possible again", time.Since(began))
}

// difference is another kind of the same queue with a result.
type difference struct{ A, B int }

func (difference) EmqSpec() emq.Spec[difference] {
	s := sum{}.EmqSpec()
	return emq.Spec[difference]{Queue: s.Queue, Kind: "difference", Attempts: 1, Timeout: time.Minute, Retain: time.Hour}
}

func (difference) EmqResult() (t total) { return t }

func TestAwaitRefusesAJobOfAnotherKind(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, cancel := inTime(t)
		defer cancel()
		ref := enqueueSum(t, s.Client, sum{A: 1, B: 2})
		if got, err := emq.Await[difference](ctx, s.Client, ref); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("of a job that waits: %v, %v", got, err)
		}
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.HandleResult(add))
		if got, err := emq.Await[sum](ctx, s.Client, ref); err != nil || got.Total != 3 {
			t.Errorf("%v, %v", got, err)
		}
		if got, err := emq.Await[difference](ctx, s.Client, ref); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("of a job that has ended: %v, %v", got, err)
		}
	})
}
