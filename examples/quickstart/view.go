package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// view shows what the queue's counts say: on a terminal in one line that is kept up to date, elsewhere
// in a few whole lines.
type view struct {
	out      io.Writer
	queue    *emq.Queue
	enqueued int64
	start    string // of a progress line
	end      string
	pause    time.Duration // between two of them
	shown    string        // the last one
	at       time.Time     // when
}

func newView(out io.Writer, queue *emq.Queue, enqueued int64) *view {
	v := &view{out: out, queue: queue, enqueued: enqueued, end: "\n", pause: time.Second}
	if isTerminal(out) {
		v.start, v.end, v.pause = "\r", "", 0
	}
	return v
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// until shows the progress until the counts are as wanted.
func (v *view) until(ctx context.Context, wanted func(emq.Counts) bool) (emq.Counts, error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		c, err := v.queue.Counts(ctx)
		if err != nil {
			v.finish()
			return c, err
		}
		done := wanted(c)
		line := fmt.Sprintf("progress   %4d of %d completed, %4d wait, %2d scheduled, %2d run, %d dead",
			c.Totals["completed"], v.enqueued, c.Pending, c.Scheduled, c.Active, c.Dead)
		if line != v.shown && (done || time.Since(v.at) >= v.pause) {
			fmt.Fprint(v.out, v.start, line, v.end)
			v.shown, v.at = line, time.Now()
		}
		if done {
			v.finish()
			return c, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			v.finish()
			return c, context.Cause(ctx)
		}
	}
}

// finish ends the line that a terminal has been shown.
func (v *view) finish() {
	if v.end == "" {
		fmt.Fprintln(v.out)
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
