package scripts

import (
	"context"
)

// Reprocess gives a dead letter a new life: no attempt and no lapse counts. ErrGone, ErrState (not
// dead), ErrLocked (its unique key has another holder). Safe to repeat: the second call is ErrState.
func (q *Queue) Reprocess(ctx context.Context, id string) error {
	n, err := q.run(ctx, q.prepare("reprocess", id, "", id, q.keys.Base())).AsInt64()
	if err != nil {
		return q.wrap("reprocess", id, err)
	}
	if n < 0 {
		return &Refusal{ErrGone, q.name, id, "no job " + id}
	}
	return nil
}

// Cancel deletes a job that waits and marks one that runs; it answers "cancelled" or "cancelling".
// ErrGone, ErrState (ended already). Safe to repeat.
func (q *Queue) Cancel(ctx context.Context, id string) (string, error) {
	word, err := q.run(ctx, q.prepare("cancel", id, "", id, q.keys.Base())).ToString()
	return word, q.wrap("cancel", id, err)
}
