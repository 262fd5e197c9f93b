package emq

import (
	"context"
	"fmt"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// Queue is the operator's view of one queue.
type Queue struct {
	client *Client
	name   string
	q      *scripts.Queue // its first shard, or the one that this is a handle of
	err    error
}

// Queue gives access to a queue by its name. It does no I/O; a bad name is the error of every call.
func (c *Client) Queue(name string) *Queue {
	if err := wire.CheckQueue(name); err != nil {
		return &Queue{client: c, name: name, err: fmt.Errorf("%w: %w", ErrInvalid, err)}
	}
	return &Queue{client: c, name: name, q: c.shard(name, 0).Queue}
}

// usable refuses a bad name, and every call after Close, whose connections some clients of the library end
// only a while later.
func (q *Queue) usable() error {
	if q.err == nil && q.client.ended.Load() {
		return fmt.Errorf("emq: queue %s: nothing was sent: %w", q.name, ErrClosed)
	}
	return q.err
}

// Counts says how many jobs are in each state, and how many have passed through since the queue began.
type Counts struct {
	Pending, Active, Scheduled, Dead, Completed int64

	InLanes int64 // those of Pending that wait in lanes

	// Totals: completed, failed (became dead letters), retried, snoozed, released, reaped, cancelled,
	// discarded, removed (by Remove or a drain), orphan (ids whose row was gone) and stale (late settles that were refused).
	Totals map[string]int64
}

// Counts answers in constant time, whatever the size of the queue; of one with shards they are added up. Safe to
// repeat.
func (q *Queue) Counts(ctx context.Context) (Counts, error) {
	var sum Counts
	err := q.each(ctx, func(part *Queue) error {
		c, err := part.q.Counts(ctx)
		if err != nil {
			return err
		}
		sum.add(Counts(c))
		return nil
	})
	if err != nil {
		return Counts{}, err
	}
	return sum, nil
}

func (c *Counts) add(o Counts) {
	c.Pending += o.Pending
	c.Active += o.Active
	c.Scheduled += o.Scheduled
	c.Dead += o.Dead
	c.Completed += o.Completed
	c.InLanes += o.InLanes
	if c.Totals == nil {
		c.Totals = o.Totals
		return
	}
	for name, n := range o.Totals {
		c.Totals[name] += n
	}
}

// Reprocess gives a dead letter a new life: it waits again and no earlier attempt counts. ErrGone,
// ErrState (not dead), ErrLocked (another job holds its unique key). Safe to repeat: the second call
// is ErrState.
func (q *Queue) Reprocess(ctx context.Context, id ID) error {
	if err := q.usable(); err != nil {
		return err
	}
	if _, err := ParseID(string(id)); err != nil {
		return err
	}
	return q.find(ctx, id, func(q *scripts.Queue) error { return q.Reprocess(ctx, string(id)) })
}
