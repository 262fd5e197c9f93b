package emq

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/echomq/emq/runtime/scripts"
)

// ObliterateOptions say how far Obliterate goes.
type ObliterateOptions struct {
	Force    bool // also jobs that run: their settles are then refused as ErrGone
	Progress func(BulkProgress)
}

// A queue into which producers go on enqueueing does not become empty: after so many rounds it is given up.
const obliterateRounds = 20

// Obliterate deletes a paused queue with everything that it has: jobs in all states, lanes, unique keys,
// settings, totals, the registry of kinds and of cron entries. Stop its producers and workers first: an
// enqueue makes a new queue of the name, and a worker that goes on writes some keys anew. It goes through all
// keys of the server, which takes a while on a large one. A call that was interrupted can be made again; the
// queue stays paused until the end. ErrState: the queue is not paused, or has jobs that run and Force is not
// set, or jobs keep coming. Progress, if there is one, is called after each part, in this goroutine.
func (q *Queue) Obliterate(ctx context.Context, o ObliterateOptions) (BulkProgress, error) {
	var p BulkProgress
	if err := q.usable(); err != nil {
		return p, err
	}
	guard := scripts.Paused
	if o.Force {
		guard = scripts.PausedOnly
	}
	parts, err := q.askedParts(ctx)
	if err != nil {
		return p, err
	}
	for range obliterateRounds {
		gone, err := q.obliterate(ctx, parts, guard, o, &p)
		if err != nil {
			return p, err
		}
		if gone {
			q.client.forget(q.name)
			return p, nil
		}
	}
	return p, fmt.Errorf("%w: queue %s: jobs keep coming while it is deleted: stop its producers", ErrState, q.name)
}

// obliterate deletes what the shards of a queue have, and then their settings, those of the first at last: it knows
// how many there are, and that they are paused. False if there were jobs again.
func (q *Queue) obliterate(ctx context.Context, parts []*Queue, guard scripts.Guard, o ObliterateOptions, p *BulkProgress) (bool, error) {
	if err := checkGuard(ctx, parts, guard); err != nil {
		return false, q.broken(ctx, "obliterate", p.Done, err)
	}
	for _, part := range parts {
		for _, list := range []string{"active", "schedule", "pending", "lanes", "dead", "completed"} {
			if list == "active" && !o.Force {
				continue
			}
			if err := part.drain(ctx, "obliterate", scripts.Drain{List: list, Guard: guard}, p, o.Progress); err != nil {
				return false, err
			}
		}
		gone, err := part.sweepKeys(ctx, guard)
		if err != nil {
			return false, q.broken(ctx, "obliterate", p.Done, err)
		}
		if !gone {
			return false, nil
		}
	}
	for _, part := range slices.Backward(parts) {
		gone, err := part.q.Obliterate(ctx, guard, []string{part.q.MetaKey()})
		if err != nil {
			return false, q.broken(ctx, "obliterate", p.Done, err)
		}
		if !gone {
			return false, nil
		}
	}
	return true, nil
}

// checkGuard refuses what the scripts would refuse of any shard, before one of them has lost anything. The pause of
// the first is that of all: others may have lost theirs when an earlier call broke off.
func checkGuard(ctx context.Context, parts []*Queue, guard scripts.Guard) error {
	if len(parts) == 1 {
		return nil
	}
	for i, part := range parts {
		if i > 0 {
			if err := part.q.Set(ctx, scripts.FieldPaused, "1"); err != nil {
				return err
			}
		}
		if _, err := part.q.Drain(ctx, scripts.Drain{List: "pending", Limit: 0, Guard: guard, Verb: "obliterate"}); err != nil {
			return err
		}
	}
	return nil
}

// sweep is sweepKeys, and then the settings.
func (q *Queue) sweep(ctx context.Context, guard scripts.Guard) (bool, error) {
	gone, err := q.sweepKeys(ctx, guard)
	if err != nil || !gone {
		return false, err
	}
	return q.q.Obliterate(ctx, guard, []string{q.q.MetaKey()})
}

// sweepKeys deletes what is left when no list has a job, but for the settings; false if there were jobs again.
func (q *Queue) sweepKeys(ctx context.Context, guard scripts.Guard) (bool, error) {
	meta := q.q.MetaKey()
	for left := true; left; {
		left = false
		empty := true
		err := q.q.Scan(ctx, func(keys []string) error {
			keys = slices.DeleteFunc(keys, func(key string) bool { return key == meta })
			for part := range slices.Chunk(keys, scripts.MaxBulk) {
				left = true
				ok, err := q.q.Obliterate(ctx, guard, part)
				if err != nil {
					return err
				}
				empty = empty && ok
			}
			return nil
		})
		if err != nil || !empty {
			return false, err
		}
	}
	return true, nil
}

// forget lets the kinds of a queue be entered into its registry again.
func (c *Client) forget(queue string) {
	c.forgetShards(queue)
	c.announced.Range(func(key, _ any) bool {
		if name, ok := key.(string); ok && strings.HasPrefix(name, queue+"/") {
			c.announced.Delete(key)
		}
		return true
	})
}
