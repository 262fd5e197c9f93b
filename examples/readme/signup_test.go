package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/echomq/emq/examples/readme/mail"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/emqtest"
)

func TestSignupEnqueuesAWelcome(t *testing.T) {
	rec := emqtest.NewRecorder(t)
	if err := signup(t.Context(), mail.NewProducer(rec)); err != nil {
		t.Fatal(err)
	}
	if got := emqtest.One[mail.Welcome](t, rec); got.UserID != 7 {
		t.Errorf("enqueued %+v", got)
	}
}

func TestAWelcomeIsGreetedAfterARetry(t *testing.T) {
	env := emqtest.New(t) // a server in this test, and a clock that only the test moves
	if err := signup(t.Context(), mail.NewProducer(env.Client)); err != nil {
		t.Fatal(err)
	}
	down := true
	bind := mail.Bind(&mailer{greet: func(context.Context, string) error {
		if down {
			return errors.New("the mail server is down")
		}
		return nil
	}})
	if r := env.Work(bind); len(r.Runs) != 0 {
		t.Errorf("too early: %v", r)
	}
	env.Advance(2 * time.Second) // as signup says: emq.In(2 * time.Second)
	if r := env.Work(bind); r.Retried != 1 {
		t.Errorf("want a failure, got %v", r)
	}
	down = false
	env.Advance(time.Second) // the backoff
	if r := env.Work(bind); r.Completed != 1 || r.Runs[0].Attempt != 2 {
		t.Errorf("want a greeting, got %v", r)
	}
}

func TestWelcomeByItself(t *testing.T) {
	bind := mail.Bind(&mailer{greet: func(context.Context, string) error {
		return emq.RetryIn(time.Minute, errNotYet)
	}})
	err := emqtest.Run(t, bind, mail.Welcome{UserID: 7}) // as a worker would call it
	if !errors.Is(err, emq.RetryIn(time.Minute, errNotYet)) {
		t.Errorf("the handler returned %v", err)
	}
	err = emqtest.RunOld(t, bind, "welcome", 1, `{"user_id":7,"email":"ada@example.org"}`) // as it lies in the queue
	if event, delay := emq.OutcomeOf(err); event != emq.EventRetried || delay != time.Minute {
		t.Errorf("an old job is %s in %v", event, delay)
	}
}
