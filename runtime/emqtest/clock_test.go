package emqtest_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/emqtest"
	"github.com/echomq/emq/runtime/scripts"
)

// want compares what a Work did, in short.
func want(t *testing.T, r emqtest.Report, events ...emq.EventName) {
	t.Helper()
	var got []emq.EventName
	for _, o := range r.Runs {
		got = append(got, o.Event)
	}
	if len(got) != len(events) {
		t.Fatalf("runs: %v, want %v: %s", got, events, r)
	}
	for i, e := range events {
		if got[i] != e {
			t.Fatalf("runs: %v, want %v: %s", got, events, r)
		}
	}
}

func counts(t *testing.T, env *emqtest.Env, queue string) emq.Counts {
	t.Helper()
	c, err := env.Client.Queue(queue).Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAJobOfTomorrowRunsTomorrowAndNotBefore(t *testing.T) {
	env := emqtest.New(t)
	var h handled[greet]
	b := emq.Handle(h.handle)
	enqueue(t, env.Client, greet{Name: "in"}, emq.In(24*time.Hour))
	want(t, env.Work(b))
	env.Advance(24*time.Hour - time.Millisecond)
	want(t, env.Work(b))
	env.Advance(time.Millisecond)
	want(t, env.Work(b), emq.EventCompleted)
	want(t, env.Work(b))
	if len(h.jobs) != 1 || h.jobs[0].Name != "in" {
		t.Errorf("the handler got %v", h.jobs)
	}
}

func TestATimeOfTheCodeUnderTestIsDueAfterAsMuchAsItSays(t *testing.T) {
	for range 20 { // the fractions of milliseconds vary
		env := emqtest.New(t)
		b := emq.Handle((&handled[greet]{}).handle)
		at := time.Now().Add(24 * time.Hour)
		enqueue(t, env.Client, greet{}, emq.At(at))
		env.Advance(23 * time.Hour)
		want(t, env.Work(b))
		env.Advance(time.Hour)
		want(t, env.Work(b), emq.EventCompleted)
		enqueue(t, env.Client, greet{}, emq.At(env.Now().Add(time.Hour)))
		env.Advance(time.Hour - time.Millisecond)
		want(t, env.Work(b))
		env.Advance(time.Millisecond)
		want(t, env.Work(b), emq.EventCompleted)
	}
}

func TestABackoffPassesAndTheLastAttemptIsADeadLetter(t *testing.T) {
	env := emqtest.New(t)
	errDown := errors.New("the provider is down")
	h := handled[greet]{errs: []error{errDown, errDown, errDown}}
	b := emq.Handle(h.handle)
	ref := enqueue(t, env.Client, greet{Name: "ada"}).Ref
	for attempt, event := range []emq.EventName{emq.EventRetried, emq.EventRetried, emq.EventDead} {
		r := env.Work(b)
		want(t, r, event)
		o := r.Runs[0]
		if o.Ref != ref || o.Kind != "greet" || o.Attempt != attempt+1 || o.Payload != any(greet{Name: "ada"}) || !errors.Is(o.Err, errDown) {
			t.Errorf("run %d was %+v", attempt+1, o)
		}
		if err := r.Err(); !errors.Is(err, errDown) || !strings.Contains(err.Error(), ref.String()) {
			t.Errorf("the report's error is %v", err)
		}
		env.Advance(10*time.Minute - time.Millisecond)
		want(t, env.Work(b))
		env.Advance(time.Millisecond)
	}
	want(t, env.Work(b))
	if c := counts(t, env, "mail"); c.Dead != 1 {
		t.Errorf("the queue has %+v", c)
	}
	if err := env.Client.Queue("mail").Reprocess(t.Context(), ref.ID); err != nil {
		t.Fatal(err)
	}
	r := env.Work(b)
	want(t, r, emq.EventCompleted)
	if r.Err() != nil || r.Completed != 1 {
		t.Errorf("the report of a run that went well: %+v, %v", r, r.Err())
	}
}

func TestEachEndIsReported(t *testing.T) {
	env := emqtest.New(t)
	h := handled[greet]{errs: []error{nil, errors.New("x"), emq.RetryIn(time.Second, errors.New("y")), emq.Snooze(time.Hour), emq.Discard(nil), emq.Dead(errors.New("z"))}}
	for range h.errs {
		enqueue(t, env.Client, greet{})
	}
	r := env.Work(emq.Handle(h.handle))
	want(t, r, emq.EventCompleted, emq.EventRetried, emq.EventRetried, emq.EventSnoozed, emq.EventDiscarded, emq.EventDead)
	if r.Completed != 1 || r.Retried != 2 || r.Snoozed != 1 || r.Discarded != 1 || r.Dead != 1 || r.Released != 0 || r.Cancelled != 0 {
		t.Errorf("the report counts %+v", r)
	}
	if text := r.String(); !strings.Contains(text, "6 runs") || !strings.Contains(text, "attempt 1: dead") || !strings.Contains(text, "z") {
		t.Errorf("the report reads %s", text)
	}
}

func TestAUniqueWindowPasses(t *testing.T) {
	env := emqtest.New(t)
	b := emq.Handle((&handled[daily]{}).handle)
	first := enqueue(t, env.Client, daily{7})
	want(t, env.Work(b), emq.EventCompleted)
	env.Advance(24*time.Hour - time.Millisecond)
	if r := enqueue(t, env.Client, daily{7}); r.Status != emq.Conflict || r.Holder != first.ID {
		t.Errorf("within its day: %+v", r)
	}
	env.Advance(time.Millisecond)
	if r := enqueue(t, env.Client, daily{7}); r.Status != emq.Enqueued {
		t.Errorf("after its day: %+v", r)
	}
	if n := len(emqtest.Enqueued[daily](env)); n != 2 {
		t.Errorf("%d jobs are enqueued, want 2: a conflict is none", n)
	}
}

func TestDeadLettersAndKeptJobsEndWithTheirTime(t *testing.T) {
	env := emqtest.New(t)
	charges := emq.HandleResult(func(context.Context, charge) (receipt, error) { return receipt{"1"}, nil }, emq.Upgrade[chargeV1](1))
	enqueue(t, env.Client, charge{})
	want(t, env.Work(charges), emq.EventCompleted)
	env.Advance(time.Hour - time.Millisecond)
	env.Work(charges)
	if c := counts(t, env, "billing"); c.Completed != 1 {
		t.Errorf("within its retention: %+v", c)
	}
	env.Advance(time.Millisecond)
	env.Work(charges)
	if c := counts(t, env, "billing"); c.Completed != 0 {
		t.Errorf("after its retention: %+v", c)
	}

	greets := emq.Handle((&handled[greet]{errs: []error{emq.Dead(nil)}}).handle)
	enqueue(t, env.Client, greet{})
	want(t, env.Work(greets), emq.EventDead)
	for age, left := range map[time.Duration]int64{89 * 24 * time.Hour: 1, 91 * 24 * time.Hour: 0} {
		other := emqtest.New(t)
		enqueue(t, other.Client, greet{})
		again := emq.Handle((&handled[greet]{errs: []error{emq.Dead(nil)}}).handle)
		want(t, other.Work(again), emq.EventDead)
		other.Advance(age)
		other.Work(again)
		if c := counts(t, other, "mail"); c.Dead != left {
			t.Errorf("a dead letter %v old: %+v, want %d", age, c, left)
		}
	}
}

// claimAndDie claims as a process does that then dies.
func claimAndDie(t *testing.T, env *emqtest.Env, queue string, lease time.Duration) []scripts.ClaimedJob {
	t.Helper()
	r, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{env.Addr()}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	server, err := scripts.NewServer(r, "")
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := server.Queue(queue).Claim(t.Context(), scripts.Claim{Lease: lease, N: 10, By: "12345678"})
	if err != nil {
		t.Fatal(err)
	}
	return claimed.Jobs
}

func TestALeaseThatNobodyRenewsLapses(t *testing.T) {
	for _, lease := range []time.Duration{time.Second, 15 * time.Second} {
		env := emqtest.New(t)
		var h handled[greet]
		b := emq.Handle(h.handle)
		enqueue(t, env.Client, greet{Name: "ada"})
		if n := len(claimAndDie(t, env, "mail", lease)); n != 1 {
			t.Fatalf("%d jobs were claimed", n)
		}
		want(t, env.Work(b))
		env.Advance(lease - time.Millisecond)
		want(t, env.Work(b))
		env.Advance(time.Millisecond)
		r := env.Work(b)
		want(t, r, emq.EventCompleted)
		if r.Runs[0].Attempt != 1 || counts(t, env, "mail").Totals["reaped"] != 1 {
			t.Errorf("after the lease: %+v, %+v: a lost lease costs no attempt", r.Runs[0], counts(t, env, "mail"))
		}
	}
}

func TestALostLeaseIsTakenBackAlsoAfterALongSilence(t *testing.T) {
	env := emqtest.New(t)
	b := emq.Handle((&handled[greet]{}).handle)
	enqueue(t, env.Client, greet{})
	claimAndDie(t, env, "mail", 15*time.Second)
	env.Advance(30 * 24 * time.Hour)
	want(t, env.Work(b), emq.EventCompleted)
}

func TestARunKeepsItsLeaseWhileTheClockMoves(t *testing.T) {
	env := emqtest.New(t)
	env.Worker.Concurrency = 2 // the other slot claims and pumps meanwhile
	var runs atomic.Int32
	enqueue(t, env.Client, greet{})
	r := env.Work(emq.Handle(func(ctx context.Context, _ greet) error {
		runs.Add(1)
		for range 30 {
			env.Advance(4 * time.Second) // in sum 8 leases
			enqueue(t, env.Client, daily{int(env.Now().UnixMilli())})
		}
		env.Advance(24 * time.Hour)
		return ctx.Err()
	}), emq.Handle(func(context.Context, daily) error { return nil }))
	if r.Completed != 31 || runs.Load() != 1 || len(r.Runs) != 31 {
		t.Errorf("the job ran %d times: %s", runs.Load(), r)
	}
	if c := counts(t, env, "mail"); c.Totals["reaped"] != 0 || c.Totals["stale"] != 0 {
		t.Errorf("the queue has %+v", c)
	}
}

// The handler waits for the test and the test for the handler: no time has to pass.
func TestAWorkerOfTheTestFollowsTheClock(t *testing.T) {
	env := emqtest.New(t)
	got := make(chan greet)
	release := make(chan struct{})
	w, err := emq.NewWorker(env.Client, emq.WorkerConfig{}, emq.Handle(func(ctx context.Context, j greet) error {
		got <- j
		if j.Name == "long" {
			<-release
			return ctx.Err()
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	enqueue(t, env.Client, greet{Name: "long"})
	<-got
	for _, d := range []time.Duration{time.Hour, 3 * time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second, 3 * time.Second, 24 * time.Hour} {
		enqueue(t, env.Client, greet{Name: "later"}, emq.In(d))
		env.Advance(d)
		<-got
	}
	close(release)
	stop()
	wg.Wait()
	if c := counts(t, env, "mail"); c.Totals["completed"] != 9 || c.Totals["reaped"] != 0 {
		t.Errorf("the queue has %+v", c)
	}
}
