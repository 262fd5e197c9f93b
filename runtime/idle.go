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
	err := w.run(ctx, func(claims context.Context, front *sync.WaitGroup) <-chan struct{} {
		idle = newIdler(w)
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
	ended chan struct{} // closed when nothing is left to run
}

func newIdler(w *Worker) *idler {
	d := &idler{w: w, token: make(chan struct{}, 1), ended: make(chan struct{})}
	w.left = make(chan struct{}, 1)
	for _, c := range w.consumers {
		c.token = d.token
	}
	return d
}

// reached is closed once everything has run; a run that was aborted before it began has no idler.
func (d *idler) reached() <-chan struct{} {
	if d == nil {
		return nil
	}
	return d.ended
}

func (d *idler) loop(ctx context.Context, ok func()) error {
	for _, c := range d.w.consumers {
		if err := c.join(ctx); errors.Is(err, ErrPartialQueue) {
			d.w.fail(err)
			return nil
		} else if err != nil {
			return err
		}
		if err := c.refreshCrons(); err != nil {
			return err
		}
		if _, err := c.pump.beat(); err != nil { // what was due before takes its place in the order
			return err
		}
	}
	for ctx.Err() == nil {
		alone := d.w.running.empty() // before the round: what ends during it may leave something to do
		busy, err := d.round(ctx)
		if err != nil {
			return err
		}
		ok()
		switch {
		case busy:
		case alone && ctx.Err() == nil:
			close(d.ended)
			return nil
		default:
			d.wait(ctx)
		}
	}
	return nil
}

// round claims once for each queue, pumps those that gave nothing, and answers whether there is more to do
// at once.
func (d *idler) round(ctx context.Context) (busy bool, err error) {
	first := d.next
	for i := range d.w.consumers {
		at := (first + i) % len(d.w.consumers)
		c := d.w.consumers[at]
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
	for _, c := range w.consumers {
		if err := c.extend(w.life, c.registered()); err != nil && w.life.Err() == nil {
			w.log.Warn("emq: a heartbeat failed", "queue", c.q.Name(), "error", err)
		}
		if err := c.refreshCrons(); err != nil && w.life.Err() == nil {
			w.log.Warn("emq: a declared cron entry was not refreshed", "queue", c.q.Name(), "error", err)
		}
	}
}

func (w *Worker) lookNow() {
	for _, c := range w.consumers {
		c.pump.kick()
		signalOne(c.token)
	}
}
