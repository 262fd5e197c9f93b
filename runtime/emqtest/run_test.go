package emqtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/emqtest"
)

// lossy has a field that JSON does not carry.
type lossy struct {
	Kept string
	lost string
	Fn   func() `json:"-"`
}

func (lossy) EmqSpec() emq.Spec[lossy] {
	return emq.Spec[lossy]{Queue: "mail", Kind: "lossy", Attempts: 4, Timeout: time.Hour, Lane: func(j lossy) string { return j.Kept }}
}

func TestRunIsWhatAWorkerWouldDo(t *testing.T) {
	var order []string
	middleware := func(name string) emq.Middleware {
		return func(next emq.HandleFunc) emq.HandleFunc {
			return func(ctx context.Context, d *emq.Delivery) error {
				order = append(order, name)
				return next(ctx, d)
			}
		}
	}
	b := emq.Handle(func(ctx context.Context, j lossy) error {
		order = append(order, "handler")
		if j.Kept != "eu" || j.lost != "" {
			t.Errorf("the handler gets %+v, want what JSON carries", j)
		}
		info, ok := emq.InfoFrom(ctx)
		if _, err := emq.ParseID(string(info.ID)); err != nil || !ok || info.Queue != "mail" || info.Kind != "lossy" || info.Lane != "eu" ||
			info.Attempt != 1 || info.MaxAttempts != 4 || info.EnqueuedAt.IsZero() || info.Due.IsZero() {
			t.Errorf("the handler's Info is %+v, %v", info, err)
		}
		if d, ok := ctx.Deadline(); !ok || time.Until(d) > time.Hour || time.Until(d) < 59*time.Minute {
			t.Errorf("the deadline is %v", d)
		}
		return nil
	}).With(middleware("outer"), middleware("inner"))
	if err := emqtest.Run(t, b, lossy{Kept: "eu", lost: "x"}); err != nil {
		t.Fatal(err)
	}
	if len(order) != 3 || order[0] != "outer" || order[1] != "inner" || order[2] != "handler" {
		t.Errorf("called in the order %v", order)
	}
}

func TestRunReturnsWhatTheHandlerReturned(t *testing.T) {
	plain := errors.New("no route")
	for _, c := range []struct {
		returned error
		event    emq.EventName
		delay    time.Duration
		is, not  []error
	}{
		{nil, emq.EventCompleted, 0, nil, []error{emq.Dead(nil)}},
		{plain, emq.EventRetried, 0, []error{plain}, []error{emq.Dead(nil), emq.RetryIn(0, nil)}},
		{emq.RetryIn(time.Minute, plain), emq.EventRetried, time.Minute,
			[]error{plain, emq.RetryIn(time.Minute, nil), emq.RetryIn(time.Minute, plain)},
			[]error{emq.RetryIn(time.Hour, nil), emq.RetryIn(time.Minute, errNegative), emq.Dead(nil)}},
		{emq.Snooze(time.Hour), emq.EventSnoozed, time.Hour, []error{emq.Snooze(time.Hour)}, []error{emq.Snooze(time.Minute), emq.Discard(nil)}},
		{emq.Dead(plain), emq.EventDead, 0, []error{plain, emq.Dead(nil), emq.Dead(plain)}, []error{emq.Dead(errNegative), emq.Discard(nil)}},
		{emq.Discard(nil), emq.EventDiscarded, 0, []error{emq.Discard(nil)}, []error{emq.Dead(nil), emq.Discard(plain)}},
	} {
		err := emqtest.Run(t, emq.Handle(func(context.Context, greet) error { return c.returned }), greet{})
		if event, delay := emq.OutcomeOf(err); event != c.event || delay != c.delay {
			t.Errorf("%v: outcome %s in %v, want %s in %v", c.returned, event, delay, c.event, c.delay)
		}
		for _, target := range c.is {
			if !errors.Is(err, target) {
				t.Errorf("%v is not %v", err, target)
			}
		}
		for _, target := range c.not {
			if errors.Is(err, target) {
				t.Errorf("%v is %v", err, target)
			}
		}
	}
}

func TestRunAsAnotherAttempt(t *testing.T) {
	b := emq.Handle(func(ctx context.Context, _ greet) error {
		if i, _ := emq.InfoFrom(ctx); i.Attempt != 3 || i.MaxAttempts != 3 || i.Headers["trace"] != "1" {
			t.Errorf("the Info is %+v", i)
		}
		return nil
	})
	err := emqtest.Run(t, b, greet{}, func(i *emq.Info) {
		i.Attempt, i.Headers = 3, map[string]string{"trace": "1"}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestRunFindsMistakesOfTheTest(t *testing.T) {
	b := emq.Handle((&handled[daily]{}).handle)
	expect(t, true, func(t testing.TB) { _ = emqtest.Run(t, b, greet{}) }, "no handler was called", `"greet"`, "bound are mail/daily")
	expect(t, true, func(t testing.TB) { _ = emqtest.Run(t, emq.Bind(), greet{}) }, "nothing is bound")
	expect(t, true, func(t testing.TB) { _ = emqtest.Run(t, emq.Handle[greet](nil), greet{}) }, "the handler is nil")
	expect(t, true, func(t testing.TB) { _ = emqtest.Run(t, b, lossy{Kept: "\x00"}) }, "a client would refuse this job", "lane")
	mine := emq.Handle(func(context.Context, greet) error { return emq.ErrInvalid })
	if err := emqtest.Run(t, mine, greet{}); !errors.Is(err, emq.ErrInvalid) {
		t.Errorf("the handler's own ErrInvalid: %v", err)
	}
}

func TestAResultThatCannotBeEncodedFailsTheRun(t *testing.T) {
	b := emq.HandleResult(func(context.Context, charge) (receipt, error) { return receipt{"1"}, nil }, emq.Upgrade[chargeV1](1))
	if err := emqtest.Run(t, b, charge{}); err != nil {
		t.Error(err)
	}
	b = b.With(func(next emq.HandleFunc) emq.HandleFunc {
		return func(ctx context.Context, d *emq.Delivery) error {
			err := next(ctx, d)
			d.Result = func() {}
			return err
		}
	})
	if err := emqtest.Run(t, b, charge{}); err == nil {
		t.Error("a result that cannot be encoded passes")
	}
}

func TestRunOldIsWhatLiesInTheQueue(t *testing.T) {
	var h handled[charge]
	b := emq.Handle(h.handle, emq.Upgrade[chargeV1](1)).AlsoOn("old-billing")
	for _, c := range []struct {
		kind    string
		version int
		payload string
	}{
		{"charge", 2, `{"cents":700}`}, {"charge", 1, `{"dollars":7}`}, {"bill", 1, `{"dollars":7}`}, {"bill", 2, `{"cents":700}`},
	} {
		if err := emqtest.RunOld(t, b, c.kind, c.version, c.payload); err != nil {
			t.Errorf("%v: %v", c, err)
		}
	}
	if len(h.jobs) != 4 {
		t.Fatalf("%d runs, want 4", len(h.jobs))
	}
	for _, j := range h.jobs {
		if j.Cents != 700 {
			t.Errorf("the handler gets %+v", j)
		}
	}
	for _, payload := range []string{`{"dollars":"7"}`, `garbage`, `{"dollars":-1}`} {
		if err := emqtest.RunOld(t, b, "charge", 1, payload); !errors.Is(err, emq.Dead(nil)) {
			t.Errorf("%s: %v, want a dead letter", payload, err)
		}
	}
	if err := emqtest.RunOld(t, b, "charge", 1, `{"dollars":-1}`); !errors.Is(err, errNegative) {
		t.Errorf("the upgrade's error is %v", err)
	}
	expect(t, true, func(t testing.TB) { _ = emqtest.RunOld(t, b, "charge", 3, `{}`) }, "version 3 is newer than version 2")
	expect(t, true, func(t testing.TB) { _ = emqtest.RunOld(t, b, "pay", 1, `{}`) }, `"pay"`, "billing/charge")
	if err := emqtest.RunOld(t, emq.Retired("mail", "gone"), "gone", 1, `{}`); !errors.Is(err, emq.Discard(nil)) {
		t.Errorf("a retired kind: %v", err)
	}
}
