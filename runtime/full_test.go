package emq_test

import (
	"context"
	"errors"
	"testing"

	emq "github.com/echomq/emq/runtime"
)

func TestAQueueAtItsLengthAndAServerAtItsMemoryRefuseJobsButDrain(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	s.do(t, "HSET", "emq:{work}:meta", "max_len", "2")
	receipts, err := s.Enqueue(t.Context(), emq.New(job{1}), emq.New(job{2}), emq.New(job{3}), emq.New(left{4}))
	if !errors.Is(err, emq.ErrFull) {
		t.Errorf("%v", err)
	}
	for i, want := range []emq.Status{emq.Enqueued, emq.Enqueued, emq.Refused, emq.Enqueued} {
		if receipts[i].Status != want {
			t.Errorf("job %d: %v, want %v", i, receipts[i].Status, want)
		}
	}
	s.do(t, "CONFIG", "SET", "maxmemory", "1")
	if r, err := emq.Enqueue(t.Context(), s.Client, left{5}); !errors.Is(err, emq.ErrFull) || r.Status != emq.Refused {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := s.Enqueue(t.Context(), emq.New(left{6}), emq.New(right{7}, emq.In(1))); !errors.Is(err, emq.ErrFull) {
		t.Errorf("%v", err)
	}
	run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()},
		emq.Handle(func(context.Context, job) error { return nil }), emq.Handle(func(context.Context, left) error { return nil }))
	eventually(t, "what is inside is drained", func() bool {
		return s.counts(t, "work").Totals["completed"] == 2 && s.counts(t, "left").Totals["completed"] == 1
	})
	s.do(t, "CONFIG", "SET", "maxmemory", "0")
	put(t, s, job{8})
	if c := s.counts(t, "right"); c.Pending+c.Scheduled != 0 {
		t.Errorf("%+v", c)
	}
}
