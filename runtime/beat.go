package emq

import (
	"context"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// beat is the heartbeat of one queue: at a third of the lease, one call for all jobs that run. It is the
// last thing of a worker to stop. A job whose cancellation is notified has a heartbeat of its own at once,
// which finds the cancellation in the row: the notice is only a hint.
func (c *consumer) beat(ctx context.Context, ok func()) error {
	defer c.w.client.listener.listen(&hearer{
		channel: c.q.Channel("cancel"), heard: c.notice, renewed: c.renewed, refused: func(error) {},
	})()
	t := time.NewTicker(c.w.cfg.Lease / 3)
	defer t.Stop()
	for runs := c.registered(); ; {
		if err := c.extend(ctx, runs); err != nil {
			return err // the loop starts again soon: living jobs cannot wait for the next tick
		}
		ok()
		select {
		case <-t.C:
			runs = c.registered()
		case <-c.hurry:
			runs = c.hurried()
		case <-ctx.Done():
			return nil
		}
	}
}

// mostNoticed bounds the notices that wait for a heartbeat; what is over it waits for the next one.
const mostNoticed = 10_000

// notice hears that a job, which may run anywhere, was cancelled.
func (c *consumer) notice(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.noticed) < mostNoticed {
		c.noticed[id] = true
	}
	signalOne(c.hurry)
}

// renewed asks for a heartbeat of all runs: what was notified before the subscription, or while it was cut,
// was not heard.
func (c *consumer) renewed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unheard = true
	signalOne(c.hurry)
}

// hurried gives the runs of this process whose cancellation was notified, or may have been.
func (c *consumer) hurried() []*run {
	c.mu.Lock()
	defer c.mu.Unlock()
	var runs []*run
	for _, r := range c.runs {
		if c.unheard || c.noticed[r.job.ID] {
			runs = append(runs, r)
		}
	}
	clear(c.noticed)
	c.unheard = false
	return runs
}

// extend gives runs a new lease, and takes what the server says of them.
func (c *consumer) extend(ctx context.Context, runs []*run) error {
	var alive []*run
	for _, r := range runs {
		if !r.checkStuck() {
			alive = append(alive, r)
		}
	}
	for len(alive) > 0 {
		part := alive[:min(len(alive), scripts.MaxBeats)]
		alive = alive[len(part):]
		fences := make([]scripts.Fence, len(part))
		for i, r := range part {
			fences[i] = r.job.Fence
		}
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		beats, err := c.q.Extend(callCtx, c.w.cfg.Lease, fences)
		cancel()
		if err != nil {
			return err
		}
		for i, b := range beats {
			part[i].beaten(b)
		}
	}
	return nil
}

// beaten takes the answer of a heartbeat. A job whose handler has returned is being settled, and the
// settle's own verdict counts.
func (r *run) beaten(b scripts.Beat) {
	if r.returned.Load() {
		return
	}
	switch b {
	case scripts.Lost:
		if r.lost.CompareAndSwap(false, true) {
			r.logger().Warn("emq: the lease was lost: the job may run elsewhere, and its handler's context is cancelled")
			r.observe(EventLost, nil)
		}
		r.cancel(ErrLeaseLost)
	case scripts.Cancelled:
		r.cancel(ErrCancelled)
	}
}
