package emq_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// deaf is a job whose handler ignores its context.
type deaf struct{ N int }

func (deaf) EmqSpec() emq.Spec[deaf] {
	return emq.Spec[deaf]{Queue: "deaf", Kind: "deaf", Attempts: 3, Timeout: 100 * time.Millisecond, Backoff: emq.Fixed(time.Hour)}
}

func ignoreTheContext(until <-chan struct{}) { <-until }

// Experiment 4.
func TestASlotIsHeldUntilTheHandlerReturnsAndAStuckOneIsReported(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		var running, most atomic.Int32
		release := make(chan struct{})
		var w watcher
		var log logbook
		putMany(t, s, 20, func(i int) deaf { return deaf{i} })
		run(t, s.Client, emq.WorkerConfig{
			Concurrency: 2, Lease: 300 * time.Millisecond, HardStop: 100 * time.Millisecond, Observer: &w, Logger: log.logger(),
		}, emq.Handle(func(context.Context, deaf) error {
			n := running.Add(1)
			defer running.Add(-1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			ignoreTheContext(release)
			return nil
		}))
		eventually(t, "both handlers are reported as stuck and their leases have lapsed", func() bool {
			return len(w.named(emq.EventStuck)) == 2 && s.counts(t, "deaf").Active == 0
		})
		if c := s.counts(t, "deaf"); running.Load() != 2 || c.Pending != 20 {
			t.Errorf("%d handlers run beside %d waiting jobs; the slots were not held", running.Load(), c.Pending)
		}
		if lines := log.with("stuck", "ignoreTheContext", "slot_test.go"); len(lines) != 2 {
			t.Errorf("%d log lines show where the handlers hang, want 2: %v", len(lines), log.with("stuck"))
		}
		for _, e := range w.named(emq.EventStuck) {
			if !errors.Is(e.Err, emq.ErrTimeout) || e.Queue != "deaf" || e.Kind != "deaf" || e.Took < 200*time.Millisecond {
				t.Errorf("the event is %+v", e)
			}
		}
		close(release)
		eventually(t, "everything completes", func() bool { return s.counts(t, "deaf").Totals["completed"] == 20 })
		if most.Load() != 2 {
			t.Errorf("up to %d handlers ran at once, want 2", most.Load())
		}
	})
}

// brisk has times in milliseconds (experiment 5).
type brisk struct{ N int }

func (brisk) EmqSpec() emq.Spec[brisk] {
	return emq.Spec[brisk]{Queue: "brisk", Kind: "brisk", Attempts: 2, Timeout: 500 * time.Millisecond, Backoff: emq.Fixed(time.Hour)}
}

func TestTimeoutDelayAndLeaseAreHonouredInMilliseconds(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		type span struct{ waited, ran time.Duration }
		spans := make(chan span, 1)
		before := s.nowOf(t, "brisk").Truncate(time.Millisecond) // as the wire rounds
		id := put(t, s, brisk{}, emq.In(250*time.Millisecond)).ID
		due, err := s.do(t, "ZSCORE", "emq:{brisk}:schedule", string(id)).AsFloat64()
		if err != nil {
			t.Fatal(err)
		}
		if delay := time.UnixMilli(int64(due)).Sub(before); delay < 250*time.Millisecond || delay > 250*time.Millisecond+s.nowOf(t, "brisk").Sub(before) {
			t.Errorf("a delay of 250 ms is stored as %v", delay)
		}
		run(t, s.Client, emq.WorkerConfig{Lease: 700 * time.Millisecond, Logger: new(logbook).logger()}, emq.Handle(func(ctx context.Context, _ brisk) error {
			waited := s.nowOf(t, "brisk").Sub(before)
			began := time.Now()
			if d, ok := ctx.Deadline(); !ok || time.Until(d) > 500*time.Millisecond {
				t.Errorf("the deadline is %v away (%v)", time.Until(d), ok)
			}
			<-ctx.Done()
			spans <- span{waited, time.Since(began)}
			return ctx.Err()
		}))
		got := <-spans
		t.Logf("delay 250 ms: ran after %v; timeout 500 ms: cancelled after %v", got.waited, got.ran)
		// how late the machine is on top of that is not the point, nor in our hands
		if got.waited < 250*time.Millisecond || got.waited > 10*time.Second {
			t.Errorf("a delay of 250 ms took %v", got.waited)
		}
		if got.ran < 350*time.Millisecond || got.ran > 10*time.Second {
			t.Errorf("a timeout of 500 ms took %v", got.ran)
		}
		eventually(t, "the failure is settled", func() bool { return s.counts(t, "brisk").Totals["retried"] == 1 })
	})
}

func TestAClaimGivesTheLeaseOfTheWorkerInMilliseconds(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		put(t, s, brisk{})
		lease := make(chan time.Duration, 1)
		run(t, s.Client, emq.WorkerConfig{Lease: 700 * time.Millisecond}, emq.Handle(func(context.Context, brisk) error {
			score, err := s.do(t, "ZPOPMIN", "emq:{brisk}:active").AsZScore()
			if err != nil {
				t.Error(err)
			}
			s.do(t, "ZADD", "emq:{brisk}:active", "9e12", score.Member)
			lease <- time.UnixMilli(int64(score.Score)).Sub(s.nowOf(t, "brisk")) // asked last: a beat may extend it meanwhile
			return nil
		}))
		if d := <-lease; d > 700*time.Millisecond || d < 100*time.Millisecond {
			t.Errorf("a lease of 700 ms ends %v after the claim", d)
		}
		eventually(t, "the job completes", func() bool { return s.counts(t, "brisk").Totals["completed"] == 1 })
	})
}

// quaking is an error whose text cannot be read: a nil pointer in an interface, as handlers return it
// by mistake.
type quaking struct{ text string }

func (q *quaking) Error() string { return q.text }

type crash struct{ How string }

func (crash) EmqSpec() emq.Spec[crash] {
	return emq.Spec[crash]{Queue: "crash", Kind: "crash", Attempts: 1, Timeout: time.Minute}
}

func crashAs(how string) error {
	switch how {
	case "panic":
		panic("the sky falls")
	case "panic(nil)":
		panic(nil) //nolint:govet // what is tested
	case "panic(error)":
		panic(errors.New("an error as a panic"))
	case "Goexit":
		runtime.Goexit()
	case "nil error pointer":
		return (*quaking)(nil)
	}
	return nil
}

func TestAHandlerThatPanicsExitsOrReturnsABrokenErrorFailsItsAttemptAndTheWorkerLives(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		words := map[string][]string{
			"panic":             {"the sky falls", "crashAs", "slot_test.go"},
			"panic(nil)":        {"panic called with nil", "crashAs", "slot_test.go"},
			"panic(error)":      {"an error as a panic", "crashAs", "slot_test.go"},
			"Goexit":            {"runtime.Goexit", "crashAs", "slot_test.go"},
			"nil error pointer": {"quaking"},
		}
		refs := make(map[string]emq.Ref)
		for how := range words {
			refs[how] = put(t, s, crash{how})
		}
		put(t, s, crash{"not at all"})
		var log logbook
		run(t, s.Client, emq.WorkerConfig{Logger: log.logger(), Concurrency: 1}, emq.Handle(func(_ context.Context, c crash) error { return crashAs(c.How) }))
		eventually(t, "all are dead and the last one completes", func() bool {
			c := s.counts(t, "crash")
			return c.Dead == int64(len(words)) && c.Totals["completed"] == 1
		})
		for how, ref := range refs {
			row := s.row(t, ref)
			for _, w := range words[how] {
				if !strings.Contains(row["last_error"], w) {
					t.Errorf("%s: last_error lacks %q: %s", how, w, row["last_error"])
				}
			}
			if len(log.with(string(ref.ID), words[how][0])) == 0 {
				t.Errorf("%s: nothing was logged", how)
			}
		}
	})
}

type bad struct{ N int }

func (bad) EmqSpec() emq.Spec[bad] {
	return emq.Spec[bad]{Queue: "bad", Kind: "bad", Attempts: 2, Timeout: time.Minute, Retain: time.Hour, Backoff: emq.Fixed(time.Millisecond)}
}

func (bad) EmqResult() (r answer) { return }

type answer struct{ Boom bool }

// MarshalJSON panics, as a method of the user's can.
func (a answer) MarshalJSON() ([]byte, error) {
	if a.Boom {
		panic("no text for this result")
	}
	return []byte(`{"fine":true}`), nil
}

func TestAResultThatCannotBeEncodedIsADeadLetterAndTheWorkerLives(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		refs := putMany(t, s, 2, func(i int) bad { return bad{i} })
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger(), Lease: 500 * time.Millisecond},
			emq.HandleResult(func(_ context.Context, b bad) (answer, error) { return answer{b.N == 0}, nil }))
		eventually(t, "one is dead and one completes", func() bool {
			c := s.counts(t, "bad")
			return c.Dead == 1 && c.Completed == 1
		})
		if row := s.row(t, refs[0]); !strings.Contains(row["last_error"], "no text for this result") || row["attempts"] != "1" {
			t.Errorf("the row is %v", row)
		}
		if row := s.row(t, refs[1]); row["result"] != `{"fine":true}` || row["state"] != "completed" {
			t.Errorf("the row is %v", row)
		}
	})
}

func TestAPanicInMiddlewareIsTheAttemptsFailure(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, crash{"not at all"})
		var order []string
		var mu sync.Mutex
		note := func(name string) emq.Middleware {
			return func(next emq.HandleFunc) emq.HandleFunc {
				return func(ctx context.Context, d *emq.Delivery) error {
					mu.Lock()
					order = append(order, name)
					mu.Unlock()
					if name == "inner" {
						panic("middleware broke")
					}
					return next(ctx, d)
				}
			}
		}
		b := emq.Handle(func(context.Context, crash) error { return nil }).With(note("binding"), note("inner"))
		run(t, s.Client, emq.WorkerConfig{Middleware: []emq.Middleware{note("worker")}, Logger: new(logbook).logger()}, b)
		eventually(t, "the job is dead", func() bool { return s.counts(t, "crash").Dead == 1 })
		if row := s.row(t, ref); !strings.Contains(row["last_error"], "middleware broke") {
			t.Errorf("the row is %v", row)
		}
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(order, " "); got != "worker binding inner" {
			t.Errorf("middleware ran as %s", got)
		}
	})
}
