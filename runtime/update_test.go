package emq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// order is a job with a unique field and a lane field; timed is unique for a time.
type (
	order struct {
		No, Shop, Note string
	}
	timed struct {
		No, Note string
	}
)

func (order) EmqSpec() emq.Spec[order] {
	return emq.Spec[order]{Queue: "exhibits", Kind: "order", Aliases: []string{"old_order"}, Version: 2, Attempts: 3, Timeout: time.Minute,
		Lane:      func(o order) string { return o.Shop },
		UniqueKey: func(o order) string { return emq.UniqueKey("order", o.No) }}
}

func (timed) EmqSpec() emq.Spec[timed] {
	return emq.Spec[timed]{Queue: "exhibits", Kind: "timed", Attempts: 3, Timeout: time.Minute, UniqueFor: emq.ForWindow(time.Hour),
		UniqueKey: func(o timed) string { return emq.UniqueKey("timed", o.No) }}
}

func TestAJobThatDoesNotRunGetsAnotherPayload(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, h := t.Context(), newHall(t, s, "exhibits")
		for _, state := range browsed {
			s.flush(t)
			ref := put(t, s, order{No: "7", Shop: "a", Note: "old"})
			s.do(t, "HSET", "emq:{exhibits}:job:"+string(ref.ID), "kind", "old_order", "v", "1") // as an older program wrote it
			h.bring(t, 1, state)
			before := s.everything(t)
			want := map[emq.State]error{emq.StateActive: emq.ErrLocked, emq.StateCompleted: emq.ErrState}[state]
			err := emq.UpdatePayload(ctx, s.Client, ref, order{No: "7", Shop: "a", Note: "new"})
			if !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("%s: %v; want %v", state, err, want)
			}
			row := s.row(t, ref)
			if want == nil && (row["payload"] != `{"No":"7","Shop":"a","Note":"new"}` || row["v"] != "2" || row["kind"] != "old_order") {
				t.Errorf("%s: %v", state, row)
			}
			changed := differing(before, s.everything(t))
			if want == nil && (len(changed) != 1 || !strings.HasSuffix(changed[0], string(ref.ID))) || want != nil && len(changed) != 0 {
				t.Errorf("%s: %v changed", state, changed)
			}
		}
	})
}

func TestANewPayloadThatIsNotTheJobsIsRefused(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		ref := put(t, s, order{No: "7", Shop: "a"})
		window := put(t, s, timed{No: "7"})
		laned := put(t, s, timed{No: "8"}, emq.InLane("b"))
		before := s.everything(t)
		for what, err := range map[string]error{
			"another unique key":                   emq.UpdatePayload(ctx, s.Client, ref, order{No: "8", Shop: "a"}),
			"another lane":                         emq.UpdatePayload(ctx, s.Client, ref, order{No: "7", Shop: "b"}),
			"no lane":                              emq.UpdatePayload(ctx, s.Client, ref, order{No: "7"}),
			"another kind":                         emq.UpdatePayload(ctx, s.Client, ref, exhibit{}),
			"a unique key that is held for a time": emq.UpdatePayload(ctx, s.Client, window, timed{No: "9"}),
			"a hostile lane":                       emq.UpdatePayload(ctx, s.Client, ref, order{No: "7", Shop: "\x00"}),
			"a hostile queue":                      emq.UpdatePayload(ctx, s.Client, emq.Ref{Queue: "{}", ID: ref.ID}, order{}),
			"a hostile id":                         emq.UpdatePayload(ctx, s.Client, emq.Ref{Queue: "exhibits", ID: "x"}, order{}),
		} {
			if !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := emq.UpdatePayload(ctx, s.Client, ref, order{No: "7", Shop: "a", Note: strings.Repeat("x", 512<<10)}); !errors.Is(err, emq.ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
		gone := emq.Ref{Queue: "exhibits", ID: idAt(time.Now())}
		for _, err := range []error{emq.UpdatePayload(ctx, s.Client, gone, order{}), emq.UpdatePayload(ctx, s.Client, gone, exhibit{})} {
			if !errors.Is(err, emq.ErrGone) {
				t.Errorf("gone: %v", err)
			}
		}
		if d := differing(before, s.everything(t)); len(d) > 0 {
			t.Errorf("%v changed", d)
		}
		for _, err := range []error{
			emq.UpdatePayload(ctx, s.Client, window, timed{No: "7", Note: "new"}),
			emq.UpdatePayload(ctx, s.Client, laned, timed{No: "8", Note: "new"}), // the call chose its lane
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

func TestAJobRunsWithItsNewPayload(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, job{1})
		if err := emq.UpdatePayload(t.Context(), s.Client, ref, job{2}); err != nil {
			t.Fatal(err)
		}
		got := make(chan job, 1)
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(_ context.Context, j job) error {
			got <- j
			return nil
		}))
		if j := <-got; j.N != 2 {
			t.Errorf("it ran with %+v", j)
		}
	})
}
