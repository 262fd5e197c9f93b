package emq_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	emq "github.com/echomq/emq/runtime"
)

func TestQueuesShareShortSlotsByTheirWeights(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	const jobs, until = 900, 600
	putMany(t, s, jobs, func(i int) left { return left{i} })
	putMany(t, s, jobs, func(i int) right { return right{i} })
	var lefts, rights, rightsThen atomic.Int64
	run(t, s.Client, emq.WorkerConfig{Concurrency: 8, Queues: map[string]emq.QueueConfig{"left": {Weight: 4}}, Logger: new(logbook).logger()},
		emq.Handle(func(context.Context, left) error {
			if lefts.Add(1) == until {
				rightsThen.Store(rights.Load())
			}
			return nil
		}),
		emq.Handle(func(context.Context, right) error { rights.Add(1); return nil }))
	eventually(t, "all are done", func() bool { return lefts.Load() == jobs && rights.Load() == jobs })
	t.Logf("weights 4 and 1: %d and %d jobs", until, rightsThen.Load())
	if n := rightsThen.Load(); n < until/4*8/10 || n > until/4*12/10 {
		t.Errorf("beside %d jobs of the queue of weight 4 there were %d of the other, want %d", until, n, until/4)
	}
}

func TestStrictOrderEmptiesTheHigherQueueFirst(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	const jobs, slots = 300, 6
	putMany(t, s, jobs, func(i int) left { return left{i} })
	putMany(t, s, jobs, func(i int) right { return right{i} })
	var lefts, rights, early atomic.Int64
	run(t, s.Client, emq.WorkerConfig{
		Concurrency: slots, Strict: true, Logger: new(logbook).logger(),
		Queues: map[string]emq.QueueConfig{"right": {Weight: 2}}, // the later one by name
	}, emq.Handle(func(context.Context, left) error {
		if rights.Load() < jobs {
			early.Add(1)
		}
		lefts.Add(1)
		return nil
	}), emq.Handle(func(context.Context, right) error { rights.Add(1); return nil }))
	eventually(t, "all are done", func() bool { return lefts.Load() == jobs && rights.Load() == jobs })
	if n := early.Load(); n > slots { // begun while the last ones of the other queue were beginning
		t.Errorf("%d jobs of the lower queue began before the higher one was empty", n)
	}
}

// While a lower queue fills all slots, a job comes to the higher one: it has the next slot.
func TestTheNextSlotIsTheHigherQueues(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		order, finish := make(chan string, 100), make(chan struct{})
		w, _, _ := start(t, s, emq.WorkerConfig{
			Concurrency: 1, Strict: true, Lease: longLease, Logger: new(logbook).logger(),
			Queues: map[string]emq.QueueConfig{"left": {Weight: 9}, "right": {Weight: 3}},
		}, emq.Handle(func(context.Context, left) error { order <- "left"; <-finish; return nil }),
			emq.Handle(func(context.Context, right) error { order <- "right"; <-finish; return nil }))
		putMany(t, s, 12, func(i int) right { return right{i} })
		for round := range 10 {
			if got := <-order; got != "right" {
				t.Fatalf("round %d: %s ran", round, got)
			}
			put(t, s, left{round})
			eventually(t, "its queue waits for a slot", func() bool { return w.WaitsForASlot("left") })
			finish <- struct{}{}
			if got := <-order; got != "left" {
				t.Fatalf("round %d: %s had the slot", round, got)
			}
			finish <- struct{}{}
		}
		close(finish)
		eventually(t, "all complete", func() bool {
			return s.counts(t, "left").Totals["completed"] == 10 && s.counts(t, "right").Totals["completed"] == 12
		})
	})
}

// A queue that has had nothing for long is served in its turn beside one that is always busy.
func TestAnIdleQueueIsNotStarvedByABusyOne(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	var lefts atomic.Int64
	var began atomic.Int64 // jobs of the busy queue when the other's was enqueued
	waited := make(chan int64, 1)
	const busy = 1500
	putMany(t, s, busy, func(i int) left { return left{i} })
	run(t, s.Client, emq.WorkerConfig{Concurrency: 4, Lease: longLease, Logger: new(logbook).logger(), Queues: map[string]emq.QueueConfig{"left": {Weight: 10}}},
		emq.Handle(func(context.Context, left) error { lefts.Add(1); return nil }),
		emq.Handle(func(context.Context, right) error { waited <- lefts.Load() - began.Load(); return nil }))
	eventually(t, "the busy queue is well under way", func() bool { return lefts.Load() > 100 })
	began.Store(lefts.Load())
	put(t, s, right{1})
	if n := <-waited; n > busy/2 {
		t.Errorf("%d jobs of the busy queue began before the one of the idle queue", n)
	}
	eventually(t, "all are done", func() bool { return lefts.Load() == busy })
}

func TestWeightsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	l := emq.Handle(func(context.Context, left) error { return nil })
	r := emq.Handle(func(context.Context, right) error { return nil })
	type queues = map[string]emq.QueueConfig
	for _, c := range []struct {
		cfg  emq.WorkerConfig
		want string
	}{
		{emq.WorkerConfig{Queues: queues{"left": {Weight: -1}}}, `the Weight of queue "left" is negative: -1`},
		{emq.WorkerConfig{Queues: queues{"nowhere": {Weight: 2}}}, `Queues names "nowhere", which is not bound`},
		{emq.WorkerConfig{Queues: queues{"left": {Weight: 1 << 40}}}, `the Weight of queue "left" is 1099511627776, at most 1000000`},
		{emq.WorkerConfig{Queues: queues{"left": {Weight: 1_000_001}}}, "at most 1000000"},
		{emq.WorkerConfig{Only: []string{"left", "right", "left"}}, `Only names "left" twice`},
		{emq.WorkerConfig{Strict: true}, "Strict, but all queues have the same weight"},
		{emq.WorkerConfig{Strict: true, Queues: queues{"left": {Weight: 3}, "right": {Weight: 3}}}, "Strict, but all queues have the same weight"},
		{emq.WorkerConfig{Strict: true, Queues: queues{"left": {Weight: 1}}}, "Strict, but all queues have the same weight"},
	} {
		if _, err := emq.NewWorker(s.Client, c.cfg, l, r); !errors.Is(err, emq.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.cfg, err)
		}
	}
	for _, cfg := range []emq.WorkerConfig{
		{Queues: queues{"left": {Weight: 1_000_000}}},
		{Strict: true, Queues: queues{"left": {Weight: 2}}},
		{Strict: true, Queues: queues{"left": {Weight: 2}}, Only: []string{"right"}}, // one binary, many deployments
	} {
		if _, err := emq.NewWorker(s.Client, cfg, l, r); err != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}
