package emqtest

import (
	"context"
	"errors"
	"testing"

	emq "github.com/echomq/emq/runtime"
)

// Run calls the handler of a job as a worker would, without a server: the payload is encoded and
// decoded, so what JSON loses is lost here too; then come the binding's middleware and the handler, under
// the kind's timeout, with an Info in the context: the first attempt of a new job, which the changes may
// make another. What the handler returned is returned, and a panic is the test's own.
//
//	err := emqtest.Run(t, mail.Bind(h), mail.Welcome{UserID: 7})
//	if !errors.Is(err, emq.Snooze(time.Hour)) { … }     // just that
//	event, delay := emq.OutcomeOf(err)                  // or what it comes to
func Run[J emq.Payload[J]](t testing.TB, b emq.Binding, job J, changes ...func(*emq.Info)) error {
	t.Helper()
	made := emq.New(job)
	if err := emq.Check(made); err != nil {
		t.Fatalf("emqtest: a client would refuse this job: %v", err)
	}
	info := emq.Info{Ref: emq.Ref{Queue: made.Queue()}, Kind: made.Kind(), Lane: made.Lane()}
	return deliver(t, b, info, max(job.EmqSpec().Version, 1), made.Payload(), changes)
}

// RunOld calls the handler with a payload as it lies in the queue: one that an older version of the
// program has written, under a kind or an alias. It is decoded, and upgraded if its version asks for it,
// as a worker would. A payload that cannot be decoded is a dead letter there, and here an error for which
// errors.Is(err, emq.Dead(nil)) holds.
func RunOld(t testing.TB, b emq.Binding, kind string, version int, payload string, changes ...func(*emq.Info)) error {
	t.Helper()
	return deliver(t, b, emq.Info{Kind: kind}, version, []byte(payload), changes)
}

func deliver(t testing.TB, b emq.Binding, info emq.Info, version int, payload []byte, changes []func(*emq.Info)) error {
	t.Helper()
	id, err := newMinter(t).Mint()
	if err != nil {
		t.Fatalf("emqtest: %v", err)
	}
	info.ID = emq.ID(id)
	info.EnqueuedAt = info.ID.Time()
	info.Due, info.Attempt = info.EnqueuedAt, 1
	for _, change := range changes {
		change(&info)
	}
	began := false
	b = b.With(func(next emq.HandleFunc) emq.HandleFunc {
		return func(ctx context.Context, d *emq.Delivery) error {
			began = true
			return next(ctx, d)
		}
	})
	err = b.Deliver(t.Context(), info, version, payload)
	if errors.Is(err, emq.ErrInvalid) && !errors.Is(err, emq.Dead(nil)) && !began {
		t.Fatalf("emqtest: no handler was called: %v", err)
	}
	return err
}
