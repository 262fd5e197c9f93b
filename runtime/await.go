package emq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// ResultSource is where results come from: a Client, or a recorder in a test.
type ResultSource interface {
	AwaitResult(ctx context.Context, ref Ref) (json.RawMessage, error)
}

// Await waits until the job at ref has ended, and gives what its handler returned. J is the job's type,
// declared with result=R and retain=; R follows from it: emq.Await[billing.Charge](ctx, client, receipt.Ref).
// A job that has ended already is answered at once.
//
// A job that did not complete is a *JobError: ErrDead for a dead letter, ErrGone for one that does not
// exist, or no longer does, because it was cancelled, discarded or removed, or its retention is over. The
// end of ctx is its cause. ErrInvalid is a type that keeps no result, or a ref that is not J's: of another
// queue, before anything is sent, or of another kind, which a Client finds in the row. Safe to repeat, and from many places at once.
func Await[J Returner[J, R], R any](ctx context.Context, from ResultSource, ref Ref) (R, error) {
	var job J
	var result R
	spec := job.EmqSpec()
	switch {
	case from == nil:
		return result, fmt.Errorf("%w: await %s: the source of results is nil", ErrInvalid, ref)
	case spec.Retain <= 0:
		return result, fmt.Errorf("%w: await %s: the kind %s keeps no result: declare its retain=", ErrInvalid, ref, spec.Kind)
	case ref.Queue != spec.Queue:
		return result, fmt.Errorf("%w: await %s: the kind %s is in the queue %s (for one that has moved use AwaitResult)", ErrInvalid, ref, spec.Kind, spec.Queue)
	}
	await := from.AwaitResult
	if c, ok := from.(*Client); ok {
		await = func(ctx context.Context, ref Ref) (json.RawMessage, error) {
			return c.awaitKind(ctx, ref, append([]string{spec.Kind}, spec.Aliases...))
		}
	}
	text, err := await(ctx, ref)
	if err != nil {
		return result, err
	}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &result); err != nil {
			return result, fmt.Errorf("emq: await %s: the result is no %T: %w", ref, result, err)
		}
	}
	return result, nil
}

// JobError is the end of a job that did not complete. It is ErrDead or ErrGone.
type JobError struct {
	Ref
	// End is EventDead, or how the job went: EventCancelled, EventDiscarded, EventRemoved, EventCompleted
	// (its kind keeps no result). It is empty when the job was gone before anybody looked.
	End       EventName
	LastError string // of a dead letter
}

func (e *JobError) Error() string {
	switch e.End {
	case EventDead:
		line, _, _ := strings.Cut(e.LastError, "\n")
		return fmt.Sprintf("%v: %s: %s", ErrDead, e.Ref, line)
	case "":
		return fmt.Sprintf("%v: %s: it never was, or has ended and is kept no longer", ErrGone, e.Ref)
	case EventCompleted:
		return fmt.Sprintf("%v: %s: it has completed, and its kind keeps no result: declare its retain=", ErrGone, e.Ref)
	}
	return fmt.Sprintf("%v: %s: it was %s", ErrGone, e.Ref, e.End)
}

func (e *JobError) Unwrap() error {
	if e.End == EventDead {
		return ErrDead
	}
	return ErrGone
}

const (
	// A subscription that stands within firstLook answers in time; else the row is looked at all the same.
	firstLook = time.Second
	// laterLook is the net below the subscription, for a notice that was lost on a connection that seemed whole.
	laterLook = 30 * time.Second
)

// AwaitResult waits until a job has ended and gives its result as JSON; nil if its handler returned none.
// Errors as of Await. It does not poll: it subscribes to the ends of the queue's jobs, on one connection
// for all that the client listens to, then reads the row, and again when the end is told or the
// connection was cut; and every 30 s, should a notice be lost. An unreachable server is waited out.
func (c *Client) AwaitResult(ctx context.Context, ref Ref) (json.RawMessage, error) {
	return c.awaitKind(ctx, ref, nil)
}

// awaitKind is AwaitResult of a job that must be of one of the kinds, if any are given.
func (c *Client) awaitKind(ctx context.Context, ref Ref, kinds []string) (json.RawMessage, error) {
	if err := c.check(ref); err != nil {
		return nil, err
	}
	var end, refused atomic.Value
	look := make(chan struct{}, 1)
	listen := func(shard *clientQueue) (stop func()) {
		return c.listener.listen(&hearer{
			channel: shard.Channel("ended"), first: string(ref.ID),
			heard: func(message string) {
				_, word, _ := strings.Cut(message, " ")
				end.Store(EventName(word))
				signalOne(look)
			},
			renewed: func() { signalOne(look) },
			refused: func(err error) {
				if errors.Is(err, ErrClosed) {
					refused.Store(err)
					signalOne(look)
				} // else the looks below must do
			},
		})
	}
	shards := []*clientQueue{c.shard(ref.Queue, 0)}
	if s := c.known(ref.Queue); s != nil {
		shards = s.shards
	}
	for _, shard := range shards {
		defer listen(shard)()
	}
	timer := time.NewTimer(firstLook)
	defer timer.Stop()
	var failure error
	for pause := firstPause; ; {
		select {
		case <-look:
		case <-timer.C:
		case <-ctx.Done():
			if failure != nil {
				return nil, fmt.Errorf("emq: await %s: %w; the server: %w", ref, context.Cause(ctx), failure)
			}
			return nil, fmt.Errorf("emq: await %s: %w", ref, context.Cause(ctx))
		}
		if err, _ := refused.Load().(error); err != nil {
			return nil, fmt.Errorf("emq: await %s: %w", ref, err)
		}
		var row scripts.Awaited
		err := c.find(ctx, ref, func(q *scripts.Queue) (err error) {
			row, err = q.Await(ctx, string(ref.ID))
			return err
		})
		if s := c.known(ref.Queue); s != nil && len(s.shards) > len(shards) {
			for _, shard := range s.shards[len(shards):] { // each is heard of before the next look
				defer listen(shard)()
			}
			shards = s.shards
		}
		if err == nil && len(kinds) > 0 && !slices.Contains(kinds, row.Kind) {
			return nil, fmt.Errorf("%w: await %s: the job is of the kind %s, not %s", ErrInvalid, ref, wire.Quote(row.Kind), kinds[0])
		}
		switch word, _ := scripts.Word(err); { // the library's own test does not look into an error that was wrapped
		case errors.Is(err, ErrGone):
			how, _ := end.Load().(EventName)
			return nil, &JobError{Ref: ref, End: how}
		case err == nil && row.State == "completed":
			return row.Result, nil
		case err == nil && row.State == "dead":
			return nil, &JobError{Ref: ref, End: EventDead, LastError: row.LastError}
		case err == nil:
			failure, pause = nil, firstPause
			timer.Reset(laterLook)
		case word != "" && !scripts.IsPassing(err) && !scripts.IsUntouched(err):
			return nil, err
		default: // a server that is away says nothing of the job
			failure = err
			timer.Reset(jitter(pause))
			pause = min(2*pause, longestPause)
		}
	}
}
