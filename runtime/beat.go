package emq

import (
	"context"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// beat is the heartbeat of one queue: at a third of the lease, one call for all jobs that run. It is the
// last thing of a worker to stop.
func (c *consumer) beat(ctx context.Context, ok func()) error {
	t := time.NewTicker(c.w.cfg.Lease / 3)
	defer t.Stop()
	for {
		if err := c.extendAll(ctx); err != nil {
			return err // the loop starts again soon: living jobs cannot wait for the next tick
		}
		ok()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *consumer) extendAll(ctx context.Context) error {
	var alive []*run
	for _, r := range c.registered() {
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
