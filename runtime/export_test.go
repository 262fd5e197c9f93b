package emq

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
