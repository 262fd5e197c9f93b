package emq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// rented is a job of a tenant; shared has no lane field.
type (
	rented struct {
		Tenant string
		N      int
	}
	shared struct{ N int }
)

func (rented) EmqSpec() emq.Spec[rented] {
	return emq.Spec[rented]{Queue: "rented", Kind: "rented", Attempts: 3, Timeout: time.Minute, Backoff: emq.Fixed(20 * time.Millisecond),
		Lane: func(r rented) string { return r.Tenant }}
}

func (shared) EmqSpec() emq.Spec[shared] {
	return emq.Spec[shared]{Queue: "rented", Kind: "shared", Attempts: 3, Timeout: time.Minute}
}

func TestLanesTakeTurnsAndTheHandlerKnowsItsOwn(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		for n := range 4 {
			put(t, s, rented{"a", n})
		}
		for n := range 2 {
			put(t, s, rented{"b", n})
			put(t, s, shared{n}, emq.InLane("c"))
		}
		put(t, s, rented{}) // the empty lane is none
		put(t, s, shared{}, emq.InLane(""))
		if c := s.counts(t, "rented"); c.Pending != 10 {
			t.Errorf("%d jobs wait", c.Pending)
		}
		var mu sync.Mutex
		var order []string
		saw := func(ctx context.Context, lane string) error {
			info, _ := emq.InfoFrom(ctx)
			if info.Lane != lane && lane != "?" {
				t.Errorf("the lane is %q, want %q", info.Lane, lane)
			}
			mu.Lock()
			defer mu.Unlock()
			order = append(order, info.Lane)
			return nil
		}
		run(t, s.Client, emq.WorkerConfig{Concurrency: 1, Logger: new(logbook).logger()},
			emq.Handle(func(ctx context.Context, r rented) error { return saw(ctx, r.Tenant) }),
			emq.Handle(func(ctx context.Context, _ shared) error { return saw(ctx, "?") }))
		eventually(t, "all are done", func() bool { return s.counts(t, "rented").Totals["completed"] == 10 })
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(order, "."); got != "..a.b.c.a.b.c.a.a" && got != "...a.b.c.a.b.c.a.a" {
			t.Errorf("the order is %s", got)
		}
		if left := s.keys(t); strings.Contains(strings.Join(left, " "), ":g:") || strings.Contains(strings.Join(left, " "), ":ring") {
			t.Errorf("lanes leave keys behind: %v", left)
		}
	})
}

// Experiment 22 with workers: a lane's limit and a paused lane.
func TestALaneLimitHoldsAndAFreedSlotIsTakenAtOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q := s.Queue("rented")
		if err := errors.Join(q.SetLaneLimit(t.Context(), "a", 2), q.PauseLane(t.Context(), "p")); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		running, most := 0, 0
		count := func(d int) {
			mu.Lock()
			defer mu.Unlock()
			running += d
			most = max(most, running)
		}
		finish := make(chan struct{})
		run(t, s.Client, emq.WorkerConfig{Concurrency: 8, Lease: 20 * time.Second, Logger: new(logbook).logger()},
			emq.Handle(func(_ context.Context, r rented) error {
				if r.Tenant == "a" {
					count(1)
					defer count(-1)
					<-finish
				}
				return nil
			}))
		for n := range 10 {
			put(t, s, rented{"a", n})
			put(t, s, rented{"b", n})
			put(t, s, rented{"p", n})
		}
		eventually(t, "b is done beside a", func() bool { return s.counts(t, "rented").Totals["completed"] == 10 })
		l, err := q.Lane(t.Context(), "a")
		if err != nil || l != (emq.Lane{Name: "a", Waiting: 8, Active: 2, Weight: 1, Limit: 2}) {
			t.Errorf("%+v, %v", l, err)
		}
		began := time.Now()
		close(finish)
		eventually(t, "a is done", func() bool { return s.counts(t, "rented").Totals["completed"] == 20 })
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("freed slots were taken only by the beat: %v", took)
		}
		if most != 2 {
			t.Errorf("%d jobs of the lane ran at once, the limit is 2", most)
		}
		if err := q.ResumeLane(t.Context(), "p"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "p is done", func() bool { return s.counts(t, "rented").Totals["completed"] == 30 })
	})
}

func TestLanesAreBrowsedAndSet(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("rented")
		for n := range 30 {
			put(t, s, rented{fmt.Sprint("tenant/", n%10), n})
		}
		err := errors.Join(q.SetLaneWeight(ctx, "tenant/3", 7), q.SetLaneLimit(ctx, "idle", 4), q.PauseLane(ctx, "tenant/4"), q.SetLaneWeight(ctx, "", 2))
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]emq.Lane{}
		for cursor, more := "", true; more; {
			page, err := q.Lanes(ctx, cursor, 5)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range page.Lanes {
				seen[l.Name] = l
			}
			cursor, more = page.Next, page.Next != ""
		}
		if len(seen) != 11 || seen["tenant/3"] != (emq.Lane{Name: "tenant/3", Waiting: 3, Weight: 7}) ||
			seen["idle"] != (emq.Lane{Name: "idle", Weight: 1, Limit: 4}) || !seen["tenant/4"].Paused {
			t.Errorf("%+v", seen)
		}
		err = errors.Join(q.SetLaneWeight(ctx, "tenant/3", 1), q.ClearLaneLimit(ctx, "idle"), q.ResumeLane(ctx, "tenant/4"), q.SetLaneWeight(ctx, "", 1))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range s.keys(t) {
			if strings.HasSuffix(key, ":glimit") || strings.HasSuffix(key, ":gweight") || strings.HasSuffix(key, ":paused") {
				t.Errorf("%s is left behind", key)
			}
		}
	})
}

func TestWhatLanesCannotBeIsRefusedBeforeAnyIO(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("rented")
		before := len(s.keys(t))
		calls := map[string]error{
			"a limit of 0":         q.SetLaneLimit(ctx, "a", 0),
			"a limit below 0":      q.SetLaneLimit(ctx, "a", math.MinInt),
			"a weight of 0":        q.SetLaneWeight(ctx, "a", 0),
			"a weight below 0":     q.SetLaneWeight(ctx, "a", -1),
			"too large a weight":   q.SetLaneWeight(ctx, "a", emq.MaxLaneWeight+1),
			"a limit for no lane":  q.SetLaneLimit(ctx, "", 1),
			"no lane to clear":     q.ClearLaneLimit(ctx, ""),
			"a pause for no lane":  q.PauseLane(ctx, ""),
			"a resume for no lane": q.ResumeLane(ctx, ""),
			"a hostile lane":       q.PauseLane(ctx, "a\x00"),
			"a long lane":          q.SetLaneWeight(ctx, strings.Repeat("x", 256), 1),
			"a hostile queue":      s.Queue("a:{b}").PauseLane(ctx, "a"),
			"a lane twice":         emq.New(rented{Tenant: "a"}, emq.InLane("b")).Err(),
			"a lane for a field":   emq.New(rented{}, emq.InLane("")).Err(),
			"an option's lane":     emq.New(shared{}, emq.InLane("a\n")).Err(),
			"a field's lane":       emq.New(rented{Tenant: "\xff"}).Err(),
		}
		for _, cursor := range []string{"other/ring/0", "rented/ring/x", "rented/ring/", "rented/one/0", "rented", "rented/ring/0/1"} {
			_, calls["cursor "+cursor] = q.Lanes(ctx, cursor, 10)
		}
		for _, n := range []int{0, -1, 501} {
			_, calls[fmt.Sprint("a page of ", n)] = q.Lanes(ctx, "", n)
		}
		_, calls["a lane without a name"] = q.Lane(ctx, "")
		for what, err := range calls {
			if !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if after := len(s.keys(t)); after != before {
			t.Errorf("%d keys were written", after-before)
		}
	})
}
