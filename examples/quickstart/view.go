package main

import (
	"context"
	"fmt"
	"io"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// view shows what the queue's counts say.
type view struct {
	out      io.Writer
	queue    *emq.Queue
	enqueued int64
}

// until keeps a progress line up to date until the counts are as wanted.
func (v *view) until(ctx context.Context, wanted func(emq.Counts) bool) (emq.Counts, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for shown := ""; ; {
		c, err := v.queue.Counts(ctx)
		if err != nil {
			return c, err
		}
		line := fmt.Sprintf("\rprogress   %4d of %d completed, %4d wait, %2d scheduled, %2d run, %d dead",
			c.Totals["completed"], v.enqueued, c.Pending, c.Scheduled, c.Active, c.Dead)
		if line != shown {
			fmt.Fprint(v.out, line)
			shown = line
		}
		if wanted(c) {
			fmt.Fprintln(v.out)
			return c, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			fmt.Fprintln(v.out)
			return c, context.Cause(ctx)
		}
	}
}

// totals prints the sum and checks that every job is accounted for: completed exactly once, whatever
// was retried, buried and taken back on the way.
func (v *view) totals(c emq.Counts) error {
	t, enqueued := c.Totals, v.enqueued
	fmt.Fprintf(v.out, "totals     enqueued %d = completed %d; retried %d, dead and reprocessed %d, taken back %d, stale refused %d\n",
		enqueued, t["completed"], t["retried"], t["failed"], t["reaped"], t["stale"])
	const retried = customers/flakyEvery + 2 // each flaky receipt once, the poisoned parcel twice
	switch {
	case t["completed"] != enqueued:
		return fmt.Errorf("%d jobs were enqueued and %d completed", enqueued, t["completed"])
	case c.Pending+c.Active+c.Scheduled+c.Dead+c.Completed != 0:
		return fmt.Errorf("the queue should be empty: %+v", c)
	case t["retried"] != retried || t["failed"] != 1:
		return fmt.Errorf("%d retries and %d dead letters, not %d and 1", t["retried"], t["failed"], retried)
	case t["reaped"] < 1 || t["stale"] < 1:
		return fmt.Errorf("%d leases taken back and %d late settles refused, not one each", t["reaped"], t["stale"])
	}
	return nil
}
