package emq_test

import (
	"context"
	"errors"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// A job of a lane waits behind a pause, fails, and completes: its lines and events say how long it waited
// and ran.
func TestLinesAndEventsOfARunSayHowLongItWaitedAndRan(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const pause = 60 * time.Millisecond
		var log logbook
		var w watcher
		q := s.Queue("rented")
		if err := q.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		put(t, s, rented{"acme", 1})
		run(t, s.Client, emq.WorkerConfig{Logger: log.logger(), Observer: &w}, emq.Handle(func(ctx context.Context, _ rented) error {
			emq.Logger(ctx).Info("in the handler")
			if info, _ := emq.InfoFrom(ctx); info.Attempt == 1 {
				return errors.New("not yet")
			}
			return nil
		}))
		for began := s.now(t); s.now(t).Sub(began) < pause; { // by the clock that counts
		}
		if err := q.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it completes", func() bool { return len(w.named(emq.EventCompleted)) == 1 })
		for _, words := range [][]string{
			{"INFO in the handler", "queue=rented", "kind=rented", "id=JOB", "attempt=1", "lane=acme", "wait="},
			{"INFO in the handler", "attempt=2", "lane=acme", "wait="},
			{"DEBUG emq: job retried", "attempt=1", "lane=acme", "wait=", "run=", "error=not yet"},
			{"DEBUG emq: job completed", "attempt=2", "lane=acme", "wait=", "run="},
		} {
			if lines := log.with(words...); len(lines) != 1 {
				t.Errorf("%d lines have %q; those of the job: %q", len(lines), words, log.with("id=JOB"))
			}
		}
		failed, done := w.named(emq.EventRetried), w.named(emq.EventCompleted)
		// the id has the producer's milliseconds, and the machine is the same
		if len(failed) != 1 || failed[0].Wait < pause || failed[0].Wait > time.Minute {
			t.Errorf("it waited for %v: %+v", pause, failed)
		}
		// the second time since its backoff was over, not since it was enqueued
		if done[0].Wait < 0 || done[0].Wait > time.Minute || done[0].Took <= 0 {
			t.Errorf("%+v", done[0])
		}
	})
}

func TestADeadLettersLineSaysHowLongItRan(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	var log logbook
	put(t, s, job{1})
	run(t, s.Client, emq.WorkerConfig{Logger: log.logger()}, emq.Handle(func(context.Context, job) error { return emq.Dead(errors.New("hopeless")) }))
	eventually(t, "it is dead", func() bool { return s.counts(t, "work").Dead == 1 })
	eventually(t, "its line is written", func() bool {
		return len(log.with("ERROR emq: the job is a dead letter", "queue=work", "attempt=1", "wait=", "run=", "error=dead: hopeless")) == 1
	})
}
