package emq

import (
	"context"
	"fmt"
	"slices"

	"github.com/echomq/emq/runtime/scripts"
)

// Shards is how many shards the queue has. Safe to repeat.
func (q *Queue) Shards(ctx context.Context) (int, error) {
	if err := q.usable(); err != nil {
		return 0, err
	}
	return q.q.Shards(ctx)
}

// SetShards gives the queue more shards, or takes away the last ones, which must be empty. A worker serves new
// ones from its next claim on, and a process that enqueues jobs of another declaration learns of them when it
// starts. To take some away stop all processes first, since those that run keep to the number that they know, and
// one that starts with a larger declared number brings it back; the totals of the shards that go are lost.
//
// ErrInvalid: n outside 1 to MaxShards. ErrState: a shard that is to go has jobs or cron entries, or a limit of the
// queue is too small to be split (Settings); nothing has changed then, unless jobs came while shards went. Safe to
// repeat, which also goes on with a call that broke off.
func (q *Queue) SetShards(ctx context.Context, n int) error {
	if n < 1 || n > MaxShards {
		return q.refuse("%d shards: a queue has 1 to %d", n, MaxShards)
	}
	has, err := q.Shards(ctx)
	if err == nil {
		err = checkShards(q.name, has)
	}
	if err != nil {
		return err
	}
	q.client.learnShards(q.name, has, 0)
	if n < has {
		if err := q.shrinkShards(ctx, has, n); err != nil {
			return err
		}
		q.client.forgetShards(q.name)
		q.client.learnShards(q.name, n, 0)
		return nil
	}
	grown, err := q.growShards(ctx, has, n)
	if err != nil {
		return err
	}
	q.client.learnShards(q.name, grown, n)
	return moveCrons(ctx, q.first(grown))
}

// checkShards refuses a number that only somebody's hand can have written.
func checkShards(queue string, n int) error {
	if n < 1 || n > MaxShards {
		return fmt.Errorf("%w: queue %s: its meta says that it has %d shards: somebody has changed it", ErrState, queue, n)
	}
	return nil
}

// growShards gives a queue of has shards want ones, which begin with the settings of the others. Others may do the
// same at once, for another number: who finds one that he did not write for begins again.
func (q *Queue) growShards(ctx context.Context, has, want int) (int, error) {
	for {
		if err := q.respread(ctx, has, want); err != nil {
			return 0, err
		}
		n, err := q.q.SetShards(ctx, has, want)
		if err != nil {
			return 0, err
		}
		if n == want {
			return n, nil
		}
		has, want = n, max(n, want)
	}
}

// first are handles of the first n shards, which there may not be yet.
func (q *Queue) first(n int) []*Queue {
	shards := make([]*clientQueue, n)
	for i := range shards {
		shards[i] = q.client.shard(q.name, i)
	}
	return q.handles(shards)
}

// respread gives the shards of a queue that is to have n the settings and the controls of lanes that it has now.
func (q *Queue) respread(ctx context.Context, has, n int) error {
	parts := q.first(n)
	set, err := settingsOf(ctx, parts[:has])
	if err == nil {
		err = q.checkSplit(set, n, ErrState)
	}
	if err != nil {
		return err
	}
	for i, part := range parts {
		if i == has { // what a growth that broke off has left in the new ones does not count
			set = withDefaults(set)
		}
		if err := part.setPart(ctx, set, i, n); err != nil {
			return err
		}
	}
	return spreadControls(ctx, parts[:has], parts)
}

// spreadControls gives what was set for lanes and cron entries to the shards in which they are among others.
func spreadControls(ctx context.Context, from, to []*Queue) error {
	for _, part := range from {
		if err := part.spreadLanes(ctx, to); err != nil {
			return err
		}
		if err := part.spreadPauses(ctx, to); err != nil {
			return err
		}
	}
	return nil
}

// shrinkShards deletes the last shards of a queue, if they are empty.
func (q *Queue) shrinkShards(ctx context.Context, has, n int) error {
	parts := q.first(has)
	left, leave := parts[:n], parts[n:]
	for _, part := range leave {
		if err := part.checkEmpty(ctx); err != nil {
			return err
		}
	}
	// a call that broke off has paused, or deleted, some that leave; the first one knows what all have together
	set, err := settingsOf(ctx, left)
	if err != nil {
		return err
	}
	if err := spreadControls(ctx, parts, left); err != nil {
		return err
	}
	for _, part := range slices.Backward(leave) {
		if err := part.q.Set(ctx, scripts.FieldPaused, "1"); err != nil {
			return err
		}
		gone, err := part.sweep(ctx, scripts.Paused)
		if err == nil && !gone {
			err = fmt.Errorf("%w: queue %s: a job has come to shard %s while it was deleted: stop the producers first, and then Resume", ErrState, q.name, part.q.Tag())
		}
		if err != nil {
			return err
		}
	}
	if err := q.setAll(ctx, left, set, ErrState); err != nil {
		return err
	}
	stand, err := q.q.SetShards(ctx, has, n)
	if err == nil && stand != n {
		err = fmt.Errorf("%w: queue %s: somebody else has given it %d shards meanwhile: stop the processes that declare more, and call it again", ErrState, q.name, stand)
	}
	if err != nil {
		return err
	}
	return moveCrons(ctx, left)
}

func (q *Queue) checkEmpty(ctx context.Context) error {
	c, err := q.q.Counts(ctx)
	if err != nil {
		return err
	}
	if jobs := c.Pending + c.Active + c.Scheduled + c.Dead + c.Completed; jobs > 0 {
		return fmt.Errorf("%w: queue %s: shard %s has %d jobs, of which %d wait, %d are dead letters and %d are kept: let them end, Drain those that wait, Remove or await the end of the others",
			ErrState, q.name, q.q.Tag(), jobs, c.Pending+c.Scheduled, c.Dead, c.Completed)
	}
	for cursor, more := "0", true; more; {
		entries, next, err := q.q.Crons(ctx, cursor, maxCronPage)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Refreshed == 0 {
				return fmt.Errorf("%w: queue %s: shard %s has the cron entry %s: remove it, and add it again afterwards", ErrState, q.name, q.q.Tag(), e.Name)
			}
		}
		cursor, more = next, next != "0"
	}
	return nil
}
