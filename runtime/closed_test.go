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
		ctx, ref := t.Context(), receipts[0].Ref
		ref.Queue, ref.ID = "work", "JOB0KHTOWnGLuA"
		calls := map[string]func() error{
			"Counts": func() error { _, err := q.Counts(ctx); return err },
			"Lane":   func() error { _, err := q.Lane(ctx, "a"); return err },
			"Pause":  func() error { return q.Pause(ctx) },
			"Remove": func() error { return q.Remove(ctx, ref.ID) },
			"Job":    func() error { _, err := q.Job(ctx, ref.ID); return err },
			"Audit":  func() error { _, err := q.Audit(ctx, emq.AuditOptions{}); return err },
			"Cancel": func() error { return s.Cancel(ctx, ref) },
			"Result": func() error { _, err := s.AwaitResult(ctx, ref); return err },
			"Update": func() error { return emq.UpdatePayload(ctx, s.Client, ref, job{4}) },
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, emq.ErrClosed) {
				t.Errorf("%s: %v", name, err)
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
