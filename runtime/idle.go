package emq

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// RunUntilIdle runs what is ready, and what becomes ready meanwhile, and returns when nothing more can
// run now: for work in batches, and for tests. Jobs that are due later stay, and so does what a pause, a
// limit or a worker elsewhere holds back. Queues take turns, whatever their weights. With a Concurrency
// of 1 jobs run one after the other, in the order of their queue.
//
// It is a run like that of Run, and a worker runs once. It returns nil when it is idle, ErrPartialQueue
// as Run does, and ErrShutdown if ctx has ended or Abort was called before that; with the cause of ctx if it has.
func (w *Worker) RunUntilIdle(ctx context.Context) error {
	var idle *idler
	token := make(chan struct{}, 1)
	err := w.run(ctx, token, func(context.Context, *sync.WaitGroup, *consumer) {}, func(claims context.Context, front *sync.WaitGroup) <-chan struct{} {
		w.left, w.slots.lends = make(chan struct{}, 1), false // a job begins when the one before is settled
		idle = &idler{w: w, token: token, ended: make(chan struct{})}
		w.loops.start(claims, w, front, "fetch", longestPause, idle.loop)
		return idle.ended
	})
	if err != nil {
		return err
	}
	select {
	case <-idle.reached():
		return nil
	default:
		if ctx.Err() != nil {
			return fmt.Errorf("%w: it was not idle yet: %w", ErrShutdown, context.Cause(ctx))
		}
		return fmt.Errorf("%w: it was not idle yet", ErrShutdown)
	}
}

// idler claims for all queues in turn, in one goroutine.
type idler struct {
	w     *Worker
	token chan struct{} // for whichever queue
	next  int           // the consumer to begin with: the one after the last that got a job
	ready int           // how many consumers have joined
	ended chan struct{} // closed when nothing is left to run
}

// reached is closed once everything has run; a run that was aborted before it began has no idler.
func (d *idler) reached() <-chan struct{} {
	if d == nil {
		return nil
	}
	return d.ended
}

func (d *idler) loop(ctx context.Context, ok func()) error {
	d.ready = 0
	for ctx.Err() == nil {
		if err := d.join(ctx); errors.Is(err, ErrPartialQueue) {
			d.w.fail(err)
			return nil
		} else if err != nil {
			return err
		}
		alone := d.w.running.empty() // before the round: what ends during it may leave something to do
		busy, err := d.round(ctx)
		if err != nil {
			return err
		}
		ok()
		switch {
		case busy:
		case alone && ctx.Err() == nil && d.ready == len(d.w.all()):
			close(d.ended)
			return nil
		default:
			d.wait(ctx)
		}
	}
	return nil
}

// join begins with the consumers that have come: at first all of them, later those of further shards.
func (d *idler) join(ctx context.Context) error {
	for all := d.w.all(); d.ready < len(all); all = d.w.all() {
		c := all[d.ready]
		if err := c.join(ctx); err != nil {
			return err
		}
		if err := c.refreshCrons(); err != nil {
			return err
		}
		if _, err := c.pump.beat(); err != nil { // what was due before takes its place in the order
			return err
		}
		d.ready++
	}
	return nil
}

// round claims once for each queue, pumps those that gave nothing, and answers whether there is more to do
// at once.
func (d *idler) round(ctx context.Context) (busy bool, err error) {
	first := d.next
	all := d.w.all()
	for i := range all {
		at := (first + i) % len(all)
		c := all[at]
		n := c.w.slots.takeFree(c.share, largestClaim)
		if n == 0 {
			continue
		}
		jobs, more, err := c.claimOrPump(n)
		c.w.slots.free(c.share, n-len(jobs))
		switch {
		case err != nil:
			return false, err
		case ctx.Err() != nil:
			c.handBackAll(jobs)
			return false, nil
		case len(jobs) > 0:
			d.next = at + 1
		}
		c.startAll(jobs)
		busy = busy || more || len(jobs) > 0
	}
	return busy, nil
}

// claimOrPump claims; if nothing is ready it pumps and claims again. more: the pump has moved as many jobs
// as it may at once.
func (c *consumer) claimOrPump(n int) (jobs []scripts.ClaimedJob, more bool, err error) {
	claimed, err := c.claim(n)
	if err != nil || len(claimed.Jobs) > 0 {
		return claimed.Jobs, false, err
	}
	due, err := c.pump.beat()
	if err != nil {
		return nil, false, err
	}
	claimed, err = c.claim(n)
	return claimed.Jobs, due == 0, err
}

// wait until a slot is free or a job may be ready.
func (d *idler) wait(ctx context.Context) {
	beat := time.NewTimer(d.w.cfg.Lease / 2)
	defer beat.Stop()
	select {
	case <-d.w.left:
	case <-d.token:
	case <-beat.C:
	case <-ctx.Done():
	}
}

// beatNow and lookNow follow a clock that was moved by hand.
func (w *Worker) beatNow() {
	for _, c := range w.all() {
		if err := c.extend(w.life, c.registered()); err != nil && w.life.Err() == nil {
			w.log.Warn("emq: a heartbeat failed", "queue", c.q.Name(), "error", err)
		}
		if err := c.refreshCrons(); err != nil && w.life.Err() == nil {
			w.log.Warn("emq: a declared cron entry was not refreshed", "queue", c.q.Name(), "error", err)
		}
	}
}

func (w *Worker) lookNow() {
	for _, c := range w.all() {
		c.pump.kick()
		signalOne(c.token)
	}
}
