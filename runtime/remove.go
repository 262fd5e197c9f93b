package emq

import (
	"context"

	"github.com/echomq/emq/runtime/scripts"
)

// Remove deletes a job that does not run, whether it waits, is scheduled, is a dead letter or is kept as
// completed, and frees its unique key. ErrGone; ErrLocked for one that runs: Client.Cancel ends that. Safe
// to repeat: the second call is ErrGone.
func (q *Queue) Remove(ctx context.Context, id ID) error {
	if err := q.usable(); err != nil {
		return err
	}
	if _, err := ParseID(string(id)); err != nil {
		return err
	}
	return q.find(ctx, id, func(q *scripts.Queue) error { return q.Remove(ctx, string(id)) })
}
