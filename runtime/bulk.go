package emq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// The verbs over many jobs loop over calls that are bounded, at most 500 jobs each. They stop when their
// context ends, with an error that wraps its cause, and answer how far they came. All are safe to repeat.

// ErrNoLane is a lane in which no job is and which has no control of its own.
var ErrNoLane = errors.New("emq: no such lane")

// BulkProgress says how far a verb over many jobs has come.
type BulkProgress struct {
	Done    int // jobs that were changed: removed, reprocessed or moved
	Refused int // dead letters that stay, because another job holds their unique key
	Skipped int // dead letters of other kinds
	Dropped int // ids of the lists whose jobs were gone; Totals["orphan"] counts them too
}

// ReprocessOptions say which dead letters ReprocessAll takes, and how fast.
type ReprocessOptions struct {
	Kind     string // only this kind; empty: all
	Rate     int    // at most so many in a second; 0: as fast as it goes
	Limit    int    // at most so many; 0: all
	Progress func(BulkProgress)
}

// How many jobs one call looks at: each keeps the server for 1 to 2.5 ms.
const (
	reprocessBatch = 100
	drainBatch     = 200
	reassignBatch  = 200
	reapBatch      = 100
)

// ReprocessAll gives dead letters a new life, as Reprocess does with one, the oldest deaths first. Those
// that die after it began are not taken. Dead letters whose unique key another job holds are counted and
// stay. ErrInvalid: a bad kind, or a negative Rate or Limit. Progress, if there is one, is called after each
// part, in this goroutine.
func (q *Queue) ReprocessAll(ctx context.Context, o ReprocessOptions) (BulkProgress, error) {
	if err := q.usable(); err != nil {
		return BulkProgress{}, err
	}
	if o.Kind != "" {
		if err := wire.CheckKind(o.Kind); err != nil {
			return BulkProgress{}, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	if o.Rate < 0 || o.Limit < 0 {
		return BulkProgress{}, fmt.Errorf("%w: a rate of %d, a limit of %d: neither may be negative", ErrInvalid, o.Rate, o.Limit)
	}
	began := time.Now()
	var from scripts.ReviveAt // the first shard says up to which death
	return q.bulk(ctx, func(part *Queue, p *BulkProgress) error { return part.reprocessAll(ctx, o, began, &from, p) })
}

func (q *Queue) reprocessAll(ctx context.Context, o ReprocessOptions, began time.Time, from *scripts.ReviveAt, p *BulkProgress) error {
	if o.Limit > 0 && p.Done >= o.Limit {
		return nil
	}
	dead, err := q.q.Counts(ctx)
	if err != nil {
		return err
	}
	// the number of dead letters bounds the loop, should the server's clock stand still
	for at, seen := *from, int64(0); seen < dead.Dead; {
		up := reprocessBatch
		if o.Rate > 0 {
			up = min(up, max(o.Rate/10, 1))
		}
		if o.Limit > 0 {
			up = min(up, o.Limit-p.Done)
		}
		r, err := q.q.Revive(ctx, scripts.Revive{At: at, Kind: o.Kind, Look: reprocessBatch, Up: up})
		if err != nil {
			return q.broken(ctx, "reprocess all", p.Done, err)
		}
		at, *from = r.Next, r.Next.Anew()
		seen += int64(r.Done + r.Refused + r.Other + r.Dropped)
		*p = BulkProgress{p.Done + r.Done, p.Refused + r.Refused, p.Skipped + r.Other, p.Dropped + r.Dropped}
		if o.Progress != nil {
			o.Progress(*p)
		}
		if !r.More || o.Limit > 0 && p.Done >= o.Limit {
			break
		}
		if o.Rate > 0 {
			due := began.Add(time.Duration(p.Done) * time.Second / time.Duration(o.Rate))
			if err := rest(ctx, time.Until(due)); err != nil {
				return q.broken(ctx, "reprocess all", p.Done, err)
			}
		}
	}
	return nil
}

// broken is the error of a verb over many jobs that has come so far.
func (q *Queue) broken(ctx context.Context, verb string, done int, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("emq: %s: queue %s: stopped after %d jobs; call it again to go on: %w", verb, q.name, done, context.Cause(ctx))
	}
	if done == 0 {
		return err
	}
	return fmt.Errorf("%w (after %d jobs; call it again to go on)", err, done)
}

// rest waits, at most until the context ends.
func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// DrainOptions say what Drain removes beside the jobs that may be claimed.
type DrainOptions struct {
	Scheduled bool // also those that wait for their time or for a retry
	Progress  func(BulkProgress)
}

// Drain removes the jobs that wait, in lanes too; what runs, dead letters and completed jobs stay. Jobs that
// are enqueued meanwhile may be removed too. Totals["removed"] counts them. Progress, if there is one, is
// called after each part, in this goroutine.
func (q *Queue) Drain(ctx context.Context, o DrainOptions) (BulkProgress, error) {
	lists := []string{"pending", "lanes"}
	if o.Scheduled {
		lists = append([]string{"schedule"}, lists...) // first: what becomes due meanwhile is then pending
	}
	return q.bulk(ctx, func(part *Queue, p *BulkProgress) error {
		for _, list := range lists {
			if err := part.drain(ctx, "drain", scripts.Drain{List: list}, p, o.Progress); err != nil {
				return err
			}
		}
		return nil
	})
}

// DrainLane removes the jobs that wait in one lane, as Drain does. An unknown lane has none. ErrInvalid: a
// bad name.
func (q *Queue) DrainLane(ctx context.Context, lane string) (BulkProgress, error) {
	var p BulkProgress
	if err := q.checkLane(lane); err != nil {
		return p, err
	}
	return q.bulk(ctx, func(part *Queue, p *BulkProgress) error {
		return part.drain(ctx, "drain lane", scripts.Drain{List: "lane", Lane: lane}, p, nil)
	})
}

func (q *Queue) drain(ctx context.Context, verb string, d scripts.Drain, p *BulkProgress, progress func(BulkProgress)) error {
	d.Limit, d.Verb = drainBatch, verb
	for more := true; more; {
		got, err := q.q.Drain(ctx, d)
		if err != nil {
			return q.broken(ctx, verb, p.Done, err)
		}
		more = got.More
		p.Done += got.Removed
		p.Dropped += got.Dropped
		if progress != nil {
			progress(*p)
		}
	}
	return nil
}

// ReassignLane moves the waiting jobs of one lane to another, in their order, or out of lanes if to is
// empty; scheduled jobs and dead letters of the lane will wait there too. What runs keeps its lane, and comes
// back to it when it waits again. Payloads are not changed. The limits and weights of both lanes hold, and
// stay. ErrShards: the two lanes are in different shards. ErrNoLane: nothing is in the lane and it has no control;
// ErrInvalid: a bad name, or twice the same.
func (q *Queue) ReassignLane(ctx context.Context, from, to string) (BulkProgress, error) {
	var p BulkProgress
	if err := q.usable(); err == nil && from == "" {
		return p, fmt.Errorf("%w: queue %s: reassign lane: from is empty: name the lane that the jobs are to leave; those without a lane cannot be moved", ErrInvalid, q.name)
	}
	if err := q.checkLane(from); err != nil {
		return p, err
	}
	if to != "" {
		if err := q.checkLane(to); err != nil {
			return p, err
		}
	}
	if from == to {
		return p, fmt.Errorf("%w: lane %s cannot be moved to itself", ErrInvalid, wire.Quote(from))
	}
	known := false
	parts, err := q.parts(ctx)
	if err != nil {
		return p, err
	}
	n := len(parts)
	if to != "" && wire.Shard(from, n) != wire.Shard(to, n) {
		return p, fmt.Errorf("%w: queue %s: lane %s is in shard %d and lane %s in shard %d: drain the first one, and enqueue its jobs in the other",
			ErrShards, q.name, wire.Quote(from), wire.Shard(from, n), wire.Quote(to), wire.Shard(to, n))
	}
	p, err = q.bulk(ctx, func(part *Queue, p *BulkProgress) error {
		for at := scripts.ReassignBegin; at.Stage != ""; {
			r, err := part.q.Reassign(ctx, from, to, at, reassignBatch)
			if err != nil {
				return q.broken(ctx, "reassign lane", p.Done, err)
			}
			at = r.Next
			known = known || r.Known || r.Moved > 0
			p.Done += r.Moved
			p.Dropped += r.Dropped
		}
		return nil
	})
	if err != nil {
		return p, err
	}
	if !known {
		return p, fmt.Errorf("%w: queue %s, lane %s: no job is in it and it has no limit, weight or pause", ErrNoLane, q.name, wire.Quote(from))
	}
	return p, nil
}

// ReapLane takes back now the leases of a lane's jobs that have lapsed, and answers how many: what the
// workers' pump does for all lanes. If no worker was seen for half a lease it first waits the grace, 5 s, in
// which living ones come back. ErrInvalid: a bad name.
func (q *Queue) ReapLane(ctx context.Context, lane string) (int, error) {
	if err := q.checkLane(lane); err != nil {
		return 0, err
	}
	p, err := q.bulk(ctx, func(part *Queue, p *BulkProgress) error {
		for cursor, more := "0", true; more; {
			n, next, grace, err := part.q.ReapLane(ctx, lane, cursor, defaultCrashBudget, reapBatch, defaultLease)
			if err == nil && grace > 0 {
				if err = rest(ctx, grace); err == nil {
					continue
				}
			}
			if err != nil {
				return q.broken(ctx, "reap lane", p.Done, err)
			}
			p.Done += n
			cursor, more = next, next != "0"
		}
		return nil
	})
	return p.Done, err
}
