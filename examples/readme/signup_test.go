package main

import (
	"context"
	"testing"

	"github.com/echomq/emq/examples/readme/mail"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

func TestSignupGreets(t *testing.T) {
	client, err := embedded.Open(t.Context()) // a server in this process, for this test
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := signup(t.Context(), mail.NewProducer(client)); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	err = work(ctx, client, func(_ context.Context, email string) error {
		defer stop() // the worker finishes this job, and then its Run returns
		if email != "ada@example.org" {
			t.Errorf("greeted %s", email)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// recorder is an emq.Enqueuer: what the code under test enqueues stays here.
type recorder struct{ jobs []emq.Job }

func (r *recorder) Enqueue(_ context.Context, jobs ...emq.Job) ([]emq.Receipt, error) {
	r.jobs = append(r.jobs, jobs...)
	receipts := make([]emq.Receipt, len(jobs))
	for i, job := range jobs {
		receipts[i] = emq.Receipt{Ref: emq.Ref{Queue: job.Queue()}, Status: emq.Stored}
	}
	return receipts, nil
}

func TestSignupEnqueuesAWelcome(t *testing.T) {
	var rec recorder
	if err := signup(t.Context(), mail.NewProducer(&rec)); err != nil {
		t.Fatal(err)
	}
	if job, ok := rec.jobs[0].Value().(mail.Welcome); !ok || job.UserID != 7 || rec.jobs[0].Err() != nil {
		t.Errorf("enqueued %+v", rec.jobs)
	}
}
