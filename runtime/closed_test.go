package emq_test

import (
	"errors"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

func TestAClosedClientSaysSo(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q := s.Queue("work")
		put(t, s, job{1})
		s.Close()
		receipts, err := s.Enqueue(t.Context(), emq.New(job{2}), emq.New(job{3}))
		if !errors.Is(err, emq.ErrClosed) || len(receipts) != 2 || receipts[0].Status != emq.Refused || receipts[1].Status != emq.Refused {
			t.Errorf("%v, %v", receipts, err)
		}
		_, err = q.Counts(t.Context())
		_, lanes := q.Lane(t.Context(), "a")
		for _, err := range []error{err, lanes, q.Pause(t.Context()), q.Remove(t.Context(), "JOB0KHTOWnGLuA")} {
			if !errors.Is(err, emq.ErrClosed) {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestARateIsNeverLooserThanItWasSet(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q := s.Queue("work")
		if err := q.SetRate(t.Context(), 10, 1500*time.Microsecond); err != nil {
			t.Fatal(err)
		}
		if got, err := q.Settings(t.Context()); err != nil || got.RatePer != 2*time.Millisecond {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
