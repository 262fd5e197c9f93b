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
	parts, err := q.parts(ctx)
	if err != nil {
		return p, err
	}
	for _, part := range slices.Backward(parts) { // the first at last: it knows how many there are
		if err := part.obliterate(ctx, guard, o, &p); err != nil {
			return p, err
		}
	}
	q.client.forget(q.name)
	return p, nil
}

func (q *Queue) obliterate(ctx context.Context, guard scripts.Guard, o ObliterateOptions, p *BulkProgress) error {
	for range obliterateRounds {
		for _, list := range []string{"active", "schedule", "pending", "lanes", "dead", "completed"} {
			if list == "active" && !o.Force {
				continue
			}
			if err := q.drain(ctx, "obliterate", scripts.Drain{List: list, Guard: guard}, p, o.Progress); err != nil {
				return err
			}
		}
		gone, err := q.sweep(ctx, guard)
		if err != nil {
			return q.broken(ctx, "obliterate", p.Done, err)
		}
		if gone {
			return nil
		}
	}
	return fmt.Errorf("%w: queue %s: jobs keep coming while it is deleted: stop its producers", ErrState, q.name)
}

// sweep deletes what is left when no list has a job, the settings last; false if there were jobs again.
func (q *Queue) sweep(ctx context.Context, guard scripts.Guard) (bool, error) {
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
	return q.q.Obliterate(ctx, guard, []string{meta})
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
