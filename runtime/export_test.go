package emq

import (
	"context"

	"github.com/echomq/emq/runtime/scripts"
)

// WaitsForASlot tells whether a queue has work, as far as the worker knows, and no slot for it.
func (w *Worker) WaitsForASlot(queue string) bool {
	for _, c := range w.consumers {
		if c.q.Name() == queue {
			w.slots.mu.Lock()
			defer w.slots.mu.Unlock()
			return c.share.waits
		}
	}
	return false
}

// CursorAt is the cursor of a place in what is browsed.
func CursorAt(q *Queue, o BrowseOptions, score, id string) string {
	return q.cursor(listOf(o), score+"/"+id)
}

// BeforeSettles has each call by which a worker settles wait for hold.
func BeforeSettles(w *Worker, hold func()) {
	for _, c := range w.consumers {
		call := c.settles.call
		c.settles.call = func(ctx context.Context, settles []scripts.Settle) []scripts.Settled {
			hold()
			return call(ctx, settles)
		}
	}
}

// Slots answers how many slots the runs of a worker hold, and how many are lent.
func Slots(w *Worker) (used, lent int) {
	w.slots.mu.Lock()
	defer w.slots.mu.Unlock()
	for _, sh := range w.slots.shares {
		used += sh.used
	}
	return used, w.slots.lent
}
