package scripts

import (
	"context"
	"fmt"
	"strings"
)

// Channel names a channel of the queue: "events", "ended" or "cancel".
func (q *Queue) Channel(name string) string { return q.keys.Fixed(name) }

// Awaited is what a row says of a job's end.
type Awaited struct {
	State     string
	Result    []byte // of a completed job; nil if it has none
	LastError string // of a dead letter
	Kind      string
}

// Await reads how a job has ended; the end of one that has not will be published on the channel ended.
// ErrGone. Safe to repeat.
func (q *Queue) Await(ctx context.Context, id string) (Awaited, error) {
	reply, err := q.run(ctx, q.prepare("await", id, "", id)).ToArray()
	if err == nil && len(reply) != 4 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return Awaited{}, q.wrap("await", id, err)
	}
	a := Awaited{State: text(reply[0]), LastError: text(reply[2]), Kind: text(reply[3])}
	if !reply[1].IsNil() {
		a.Result = []byte(strings.Clone(text(reply[1])))
	}
	return a, nil
}
