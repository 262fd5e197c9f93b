package emq

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// UpdatePayload gives a job that does not run another payload, of the current version of its kind: one that
// waits or is scheduled, or a dead letter before it is reprocessed. The kind, or an alias of it, must be the
// job's, and the fields that make its unique key and its lane must not change, as the job is where they put it;
// otherwise it is ErrInvalid. So are the faults that New finds.
//
// ErrTooLarge; ErrGone; ErrLocked (it runs); ErrState (it has completed). Safe to repeat.
func UpdatePayload[J Payload[J]](ctx context.Context, c *Client, ref Ref, payload J) error {
	if err := c.check(ref); err != nil {
		return err
	}
	job := New(payload)
	if err := checkJob(&job, c.maxPayload); err != nil {
		return err
	}
	spec := payload.EmqSpec()
	if spec.UniqueKey != nil {
		// the row does not name a key that is held for a time, or was freed at the start
		old, err := c.Queue(ref.Queue).Job(ctx, ref.ID)
		if err != nil {
			return err
		}
		if was, ok := uniqueOf[J](old, job.version); ok && was != job.unique {
			return differs(ref, "unique", was)
		}
	}
	u := scripts.Update{
		ID: string(ref.ID), Payload: job.payload, Version: job.version, Unique: job.unique, Kinds: append([]string{spec.Kind}, spec.Aliases...),
	}
	if spec.Lane != nil {
		u.Lane = &job.lane
	}
	var word, own string
	err := c.find(ctx, ref, func(q *scripts.Queue) (err error) {
		word, own, err = q.Update(ctx, u)
		return err
	})
	if err != nil || word == "updated" {
		return err
	}
	return differs(ref, word, own)
}

// uniqueOf is the unique key that the payload of a job has, if it can be read as a J.
func uniqueOf[J Payload[J]](d JobDetail, version int) (key string, ok bool) {
	var old J
	if d.Version != version || json.Unmarshal(d.Payload, &old) != nil {
		return "", false
	}
	spec := old.EmqSpec()
	if d.Kind != spec.Kind {
		return "", false
	}
	return spec.UniqueKey(old), true
}

func differs(ref Ref, what, own string) error {
	switch what {
	case "unique":
		what = "unique key"
	case "kind":
		return fmt.Errorf("%w: update of %s: the job is of the kind %s", ErrInvalid, ref, wire.Quote(own))
	}
	return fmt.Errorf("%w: update of %s: the payload would change its %s, which is %s: enqueue another job instead", ErrInvalid, ref, what, wire.Quote(own))
}
