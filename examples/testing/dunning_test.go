package dunning

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/emqtest"
)

// office is the books and the post of a test.
type office struct {
	paid    bool
	refuses error
	sent    []Remind
}

func (o *office) Paid(context.Context, string) (bool, error) { return o.paid, nil }

func (o *office) Send(_ context.Context, invoice string, cents int64) error {
	if o.refuses != nil {
		return o.refuses
	}
	o.sent = append(o.sent, Remind{invoice, cents})
	return nil
}

func (o *office) bind() emq.Binding { return Bind(&Reminder{Books: o, Post: o}) }

// A recorder: what does the code enqueue, and what does it do when it cannot?
func TestBillPlansAReminder(t *testing.T) {
	rec := emqtest.NewRecorder(t)
	if err := Bill(t.Context(), NewProducer(rec), "2026-17", 9900); err != nil {
		t.Fatal(err)
	}
	if got := emqtest.One[Remind](t, rec); got != (Remind{"2026-17", 9900}) {
		t.Errorf("enqueued %+v", got)
	}
	if delay := rec.Jobs()[0].Delay(); delay != 14*24*time.Hour {
		t.Errorf("it is due in %v", delay)
	}
}

func TestNothingToPayIsNothingToRemindOf(t *testing.T) {
	rec := emqtest.NewRecorder(t)
	if err := Bill(t.Context(), NewProducer(rec), "2026-18", 0); err != nil {
		t.Fatal(err)
	}
	emqtest.None[Remind](t, rec)
}

func TestBillTellsOfAQueueThatIsFull(t *testing.T) {
	rec := emqtest.NewRecorder(t)
	rec.SetErr(emq.ErrFull)
	if err := Bill(t.Context(), NewProducer(rec), "2026-17", 9900); !errors.Is(err, emq.ErrFull) {
		t.Errorf("Bill says %v", err)
	}
}

// One handler by itself: what does it ask for?
func TestWhatAReminderAsksFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		office office
		want   error
	}{
		{"paid", office{paid: true}, emq.Discard(nil)},
		{"closed", office{refuses: ErrHoliday}, emq.Snooze(24 * time.Hour)},
		{"unreachable", office{refuses: ErrNoAddress}, emq.Dead(ErrNoAddress)},
		{"sent", office{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := emqtest.Run(t, c.office.bind(), Remind{"2026-17", 9900}); !errors.Is(err, c.want) {
				t.Errorf("the handler returned %v, want %v", err, c.want)
			}
		})
	}
}

// What the last release has left in the queue.
func TestRemindersOfTheFirstVersionAreStillSent(t *testing.T) {
	var o office
	if err := emqtest.RunOld(t, o.bind(), "remind", 1, `{"invoice":"2025-3","euros":99}`); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.sent, []Remind{{"2025-3", 9900}}) {
		t.Errorf("sent %+v", o.sent)
	}
	err := emqtest.RunOld(t, o.bind(), "remind", 1, `{"invoice":"2025-4","euros":0}`)
	if !errors.Is(err, emq.Dead(nil)) {
		t.Errorf("a reminder of nothing: %v, want a dead letter", err)
	}
}

// The whole path, two weeks long.
func TestAReminderIsSentWhenItIsTimeAndAgainWhenThePostWasDown(t *testing.T) {
	env := emqtest.New(t)
	o := office{refuses: errors.New("the post does not answer")}
	jobs := NewProducer(env.Client)
	if err := Bill(t.Context(), jobs, "2026-17", 9900); err != nil {
		t.Fatal(err)
	}

	env.Advance(Patience - time.Minute)
	if r := env.Work(o.bind()); len(r.Runs) != 0 {
		t.Errorf("a reminder before its time: %v", r)
	}
	env.Advance(time.Minute)
	if r := env.Work(o.bind()); r.Retried != 1 {
		t.Errorf("want a failure, got %v", r)
	}
	o.refuses = nil
	env.Advance(10 * time.Minute) // the backoff
	if r := env.Work(o.bind()); r.Completed != 1 || r.Runs[0].Attempt != 2 {
		t.Errorf("want a reminder, got %v", r)
	}
	if !slices.Equal(o.sent, []Remind{{"2026-17", 9900}}) {
		t.Errorf("sent %+v", o.sent)
	}
}

func TestAnInvoiceIsRemindedOfOnceAWeek(t *testing.T) {
	env := emqtest.New(t)
	jobs := NewProducer(env.Client)
	status := func() emq.Status {
		t.Helper()
		r, err := jobs.EnqueueRemind(t.Context(), Remind{"2026-17", 9900})
		if err != nil {
			t.Fatal(err)
		}
		return r.Status
	}
	first := status()
	env.Advance(6 * 24 * time.Hour)
	second := status()
	env.Advance(24 * time.Hour)
	if third := status(); first != emq.Enqueued || second != emq.Conflict || third != emq.Enqueued {
		t.Errorf("enqueued three times: %v, %v, %v", first, second, third)
	}
}

func TestAReminderThatFailsThreeTimesIsADeadLetter(t *testing.T) {
	env := emqtest.New(t)
	o := office{refuses: errors.New("the post does not answer")}
	if _, err := NewProducer(env.Client).EnqueueRemind(t.Context(), Remind{"2026-17", 9900}); err != nil {
		t.Fatal(err)
	}
	var last emqtest.Report
	for range 3 {
		last = env.Work(o.bind())
		env.Advance(10 * time.Minute)
	}
	if last.Dead != 1 || !errors.Is(last.Err(), o.refuses) {
		t.Errorf("the third run: %v", last)
	}
	counts, err := env.Client.Queue(QueueDunning).Counts(t.Context())
	if err != nil || counts.Dead != 1 {
		t.Errorf("the queue has %+v, %v", counts, err)
	}
}
