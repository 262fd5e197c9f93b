package emq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Three kinds that hold a unique key for different times.
type (
	untilDone  struct{ Key string }
	untilStart struct{ Key string }
	window     struct{ Key string }
)

const windowLength = 700 * time.Millisecond

func (untilDone) EmqSpec() emq.Spec[untilDone] {
	return emq.Spec[untilDone]{Queue: "unique", Kind: "until_done", Attempts: 1, Timeout: time.Minute,
		UniqueKey: func(u untilDone) string { return emq.UniqueKey("until_done", u.Key) }}
}

func (untilStart) EmqSpec() emq.Spec[untilStart] {
	return emq.Spec[untilStart]{Queue: "unique", Kind: "until_start", Attempts: 1, Timeout: time.Minute, UniqueFor: emq.UntilStart(),
		UniqueKey: func(u untilStart) string { return emq.UniqueKey("until_start", u.Key) }}
}

func (window) EmqSpec() emq.Spec[window] {
	return emq.Spec[window]{Queue: "unique", Kind: "window", Attempts: 1, Timeout: time.Minute, UniqueFor: emq.ForWindow(windowLength),
		UniqueKey: func(u window) string { return emq.UniqueKey("window", u.Key) }}
}

// conflicts enqueues a job that must not get in, and answers who holds its key.
func conflicts[J emq.Payload[J]](t *testing.T, e emq.Enqueuer, payload J) emq.ID {
	t.Helper()
	r, err := emq.Enqueue(t.Context(), e, payload)
	if err != nil || r.Status != emq.Conflict {
		t.Errorf("want a conflict: %v, %v", r, err)
	}
	return r.Holder
}

func TestAUniqueKeyIsHeldUntilItsJobHasEndedInWhicheverWay(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		endings := map[string]error{"done": nil, "dead": errors.New("fails"), "discarded": emq.Discard(nil), "killed": emq.Dead(nil)}
		finish := make(chan struct{})
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(_ context.Context, u untilDone) error {
			<-finish
			return endings[u.Key]
		}))
		refs := make(map[string]emq.Ref)
		for key := range endings {
			refs[key] = put(t, s, untilDone{key})
			if holder := conflicts(t, s, untilDone{key}); holder != refs[key].ID {
				t.Errorf("%s: the holder is %q, want %q", key, holder, refs[key].ID)
			}
		}
		eventually(t, "all run", func() bool { return s.counts(t, "unique").Active == 4 })
		for key := range endings {
			conflicts(t, s, untilDone{key})
		}
		close(finish)
		eventually(t, "all have ended", func() bool { c := s.counts(t, "unique"); return c.Active+c.Pending == 0 })
		for key := range endings {
			if ref := put(t, s, untilDone{key}); ref.ID == refs[key].ID {
				t.Errorf("%s: the same id again", key)
			}
		}
		// one of the dead letters wants its key back and does not get it
		if err := s.Queue("unique").Reprocess(t.Context(), refs["dead"].ID); err != nil && !errors.Is(err, emq.ErrLocked) {
			t.Errorf("%v", err)
		}
	})
}

func TestAKeyUntilStartIsFreeWhenItsJobRuns(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		first := put(t, s, untilStart{"a"}, emq.In(time.Hour))
		if holder := conflicts(t, s, untilStart{"a"}); holder != first.ID {
			t.Errorf("the holder is %q", holder)
		}
		started, finish := make(chan struct{}, 2), make(chan struct{})
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(context.Context, untilStart) error {
			started <- struct{}{}
			<-finish
			return nil
		}))
		put(t, s, untilStart{"b"})
		<-started
		put(t, s, untilStart{"b"})
		<-started // two at once: the key says nothing of running
		close(finish)
		eventually(t, "both complete", func() bool { return s.counts(t, "unique").Totals["completed"] == 2 })
	})
}

func TestAKeyForAWindowOutlivesItsJob(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(context.Context, window) error { return nil }))
		began := time.Now()
		first := put(t, s, window{"a"})
		eventually(t, "it completes", func() bool { return s.counts(t, "unique").Totals["completed"] == 1 })
		var second emq.Receipt
		conflict := 0
		eventually(t, "the window is over", func() bool {
			var err error
			if second, err = emq.Enqueue(t.Context(), s.Client, window{"a"}); err != nil {
				t.Fatal(err)
			}
			if second.Status == emq.Conflict {
				conflict++
				if second.Holder != first.ID {
					t.Fatalf("the holder is %q", second.Holder)
				}
			}
			return second.Status == emq.Enqueued
		})
		if open := time.Since(began); open < windowLength-50*time.Millisecond { // the embedded server's clock has a tick
			t.Errorf("the window of %v was over after %v", windowLength, open)
		}
		if conflict == 0 && time.Since(began) < windowLength {
			t.Error("the key was free at once")
		}
	})
}

// latest and latestOne are debounced kinds.
type (
	latest    struct{ Key, Text string }
	latestOne struct{ Key, Text string }
	everLater struct{ Key string }
)

func (latest) EmqSpec() emq.Spec[latest] {
	return emq.Spec[latest]{Queue: "unique", Kind: "latest", Attempts: 2, Timeout: time.Minute, UniqueFor: emq.UntilStart().Debounced(),
		UniqueKey: func(l latest) string { return emq.UniqueKey("latest", l.Key) }}
}

func (latestOne) EmqSpec() emq.Spec[latestOne] {
	return emq.Spec[latestOne]{Queue: "unique", Kind: "latest_one", Attempts: 1, Timeout: time.Minute, UniqueFor: emq.UntilDone().Debounced(),
		UniqueKey: func(l latestOne) string { return emq.UniqueKey("latest_one", l.Key) }}
}

func (everLater) EmqSpec() emq.Spec[everLater] {
	return emq.Spec[everLater]{Queue: "unique", Kind: "ever_later", Attempts: 1, Timeout: time.Minute, UniqueFor: emq.ForWindow(time.Hour).Debounced(),
		UniqueKey: func(e everLater) string { return emq.UniqueKey("ever_later", e.Key) }}
}

// replaces enqueues a job that must take the place of another, and answers which.
func replaces[J emq.Payload[J]](t *testing.T, e emq.Enqueuer, payload J, opts ...emq.Option) emq.ID {
	t.Helper()
	r, err := emq.Enqueue(t.Context(), e, payload, opts...)
	if err != nil || r.Status != emq.Replaced || r.ID == r.Holder {
		t.Errorf("want a replacement: %v, %v", r, err)
	}
	return r.Holder
}

func TestTheLastCallOfADebouncedKeyWins(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		first := put(t, s, latest{"a", "one"}, emq.In(time.Hour), emq.InLane("x"), emq.WithHeader("n", "1"))
		for _, text := range []string{"two", "three"} {
			if holder := replaces(t, s, latest{"a", text}, emq.In(2*time.Hour), emq.InLane("y"), emq.WithHeader("n", text)); holder != first.ID {
				t.Errorf("the holder is %q, want %q", holder, first.ID)
			}
		}
		if c := s.counts(t, "unique"); c.Scheduled != 1 || c.Pending != 0 {
			t.Errorf("%+v", c)
		}
		replaces(t, s, latest{"a", "four"}, emq.InLane("z"), emq.WithHeader("n", "4"))
		type ran struct{ id, lane, header, text string }
		seen, finish := make(chan ran, 4), make(chan struct{})
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(ctx context.Context, l latest) error {
			info, _ := emq.InfoFrom(ctx)
			seen <- ran{string(info.ID), info.Lane, info.Headers["n"], l.Text}
			<-finish
			return nil
		}), emq.Handle(func(_ context.Context, l latestOne) error {
			seen <- ran{text: l.Text}
			<-finish
			return nil
		}))
		if got, want := <-seen, (ran{string(first.ID), "z", "4", "four"}); got != want {
			t.Errorf("it ran as %+v, want %+v", got, want)
		}
		put(t, s, latest{"a", "five"}, emq.In(time.Hour)) // the first runs, and its key is free
		put(t, s, latestOne{"a", "six"})
		<-seen
		conflicts(t, s, latestOne{"a", "seven"}) // it runs, and holds its key
		close(finish)
		eventually(t, "both complete", func() bool { return s.counts(t, "unique").Totals["completed"] == 2 })
		if c := s.counts(t, "unique"); c.Scheduled != 1 || c.Pending != 0 {
			t.Errorf("%+v", c)
		}
	})
}

func TestInOneBatchTheLastJobOfADebouncedKeyWins(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		receipts, err := s.Enqueue(t.Context(), emq.New(latest{"a", "one"}), emq.New(latest{"a", "two"}), emq.New(latest{"b", "one"}))
		if err != nil {
			t.Fatal(err)
		}
		if receipts[0].Status != emq.Enqueued || receipts[1].Status != emq.Replaced || receipts[1].Holder != receipts[0].ID || receipts[2].Status != emq.Enqueued {
			t.Errorf("%v", receipts)
		}
	})
}

func TestAWindowIsNotDebounced(t *testing.T) {
	if err := emq.New(everLater{"a"}).Err(); !errors.Is(err, emq.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

func TestInOneBatchTheFirstJobOfAUniqueKeyWins(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		receipts, err := s.Enqueue(t.Context(), emq.New(untilDone{"a"}), emq.New(untilDone{"a"}), emq.New(untilDone{"b"}))
		if err != nil {
			t.Fatal(err)
		}
		if receipts[0].Status != emq.Enqueued || receipts[1].Status != emq.Conflict || receipts[1].Holder != receipts[0].ID || receipts[2].Status != emq.Enqueued {
			t.Errorf("%v", receipts)
		}
	})
}

// A lost reply is sent again, and the server's row says whose it is.
func TestAnEnqueueWhoseReplyIsLostIsOneJob(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	p := startProxy(t, s.url)
	client := openClient(t, p.URL())
	put(t, client, left{}) // what a client says once for each queue is said
	put(t, client, untilDone{"before"})
	put(t, client, left{}, emq.In(time.Hour)) // and the scripts are loaded: else what is lost is NOSCRIPT
	put(t, client, latest{"x", "first"}, emq.In(time.Hour))
	p.losing(times(2, admits))
	id, err := client.NewID()
	if err != nil {
		t.Fatal(err)
	}
	for name, j := range map[string]emq.Job{
		"plain": emq.New(left{1}), "with an id": emq.New(left{2}, emq.WithID(id)), "unique": emq.New(untilDone{"x"}), "later": emq.New(left{3}, emq.In(time.Hour)),
	} {
		p.losing(times(2, admits))
		receipts, err := client.Enqueue(t.Context(), j)
		if err != nil || receipts[0].Status != emq.Enqueued {
			t.Errorf("%s: %v, %v", name, receipts, err)
		}
	}
	p.losing(times(2, admits))
	replaces(t, client, latest{"x", "second"}, emq.In(time.Hour))
	if lost := p.losing(nil); lost != 10 {
		t.Errorf("%d replies were lost, want 10", lost)
	}
	if l, u := s.counts(t, "left"), s.counts(t, "unique"); l.Pending != 3 || l.Scheduled != 2 || u.Pending != 2 || u.Scheduled != 1 {
		t.Errorf("%+v %+v", l, u)
	}
	// a batch that is cut in the middle
	batch := make([]emq.Job, 700)
	for i := range batch {
		batch[i] = emq.New(right{i})
	}
	n := 0
	p.losing(func(words []string) bool {
		if admits(words) {
			n++
		}
		return n == 100 || n == 900
	})
	receipts, err := client.Enqueue(t.Context(), batch...)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range receipts {
		if r.Status != emq.Enqueued {
			t.Fatalf("job %d: %v", i, r)
		}
	}
	if c := s.counts(t, "right"); c.Pending != 700 {
		t.Errorf("%d jobs of 700", c.Pending)
	}
}

func TestAnEnqueueThatNeverGetsAnAnswerLeavesItsReceiptsUnknownWithTheIDsToRepeat(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	p := startProxy(t, s.url)
	client := openClient(t, p.URL())
	put(t, client, left{})
	p.losing(admits)
	receipts, err := client.Enqueue(t.Context(), emq.New(left{1}), emq.New(left{2}))
	if err == nil || len(receipts) != 2 {
		t.Fatal(receipts, err)
	}
	p.losing(nil)
	for i, r := range receipts {
		if r.Status != emq.Unknown || r.ID == "" || r.Queue != "left" {
			t.Errorf("%v", r)
		}
		again, err := emq.Enqueue(t.Context(), client, left{i + 1}, emq.WithID(r.ID))
		if err != nil || again.Status != emq.Duplicate && again.Status != emq.Enqueued {
			t.Errorf("%v, %v", again, err)
		}
	}
	if c := s.counts(t, "left"); c.Pending != 3 {
		t.Errorf("%+v", c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := client.Enqueue(ctx, emq.New(left{4})); err == nil || r[0].Status != emq.Refused {
		t.Errorf("with a context that has ended: %v, %v", r, err)
	}
}
