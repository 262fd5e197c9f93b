package emq

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/echomq/emq/runtime/scripts"
)

// What can go wrong. Each works with errors.Is; the errors that wrap it name the queue, the kind and
// the id, and carry the server's words where it gave any.
var (
	// ErrInvalid is a name, an option, a payload or a URL that breaks a rule. Nothing was sent.
	ErrInvalid = errors.New("emq: invalid")
	// ErrTooLarge is a payload over the limit (WithMaxPayload). Nothing was sent.
	ErrTooLarge = errors.New("emq: payload too large")
	// ErrPermission is a command that the server's user may not run. Open names it.
	ErrPermission = errors.New("emq: permission denied")
	// ErrVersion is a server that is too old, or whose emq keys belong to another major version.
	ErrVersion = scripts.ErrVersion
	// ErrStale is a call under a claim that no longer holds the job.
	ErrStale = scripts.ErrStale
	// ErrGone is a job, or a cron entry, that does not exist, or no longer does.
	ErrGone = scripts.ErrGone
	// ErrDead is a job that has become a dead letter, for somebody who waits for its result.
	ErrDead = errors.New("emq: the job is dead")
	// ErrState is a job in the wrong state for the verb.
	ErrState = scripts.ErrState
	// ErrLocked is a job or a key that another holder has.
	ErrLocked = scripts.ErrLocked
	// ErrFull is a queue at its maximum length, or a server at its maxmemory. Nothing was written.
	ErrFull = scripts.ErrFull
	// ErrClosed is a call on a client that was closed. An enqueue after Close sends nothing.
	ErrClosed = scripts.ErrClosed
)

// Causes of a handler's cancelled context, found by context.Cause.
var (
	// ErrTimeout: the run took longer than the kind's timeout. It counts as a failed attempt.
	ErrTimeout = errors.New("emq: the handler's timeout has passed")
	// ErrLeaseLost: the job may run elsewhere. For a plain error nothing is sent; a completion and what
	// the handler asks for (RetryIn, Snooze, Discard, Dead) is, and the server refuses it if somebody
	// else has claimed the job.
	ErrLeaseLost = errors.New("emq: the lease was lost")
	// ErrCancelled: somebody cancelled the job. It ends as cancelled unless it completes first.
	ErrCancelled = errors.New("emq: the job was cancelled")
	// ErrShutdown: the worker is stopping and SoftStop has passed. A job that fails now is handed back
	// and costs no attempt.
	ErrShutdown = errors.New("emq: the worker is shutting down")
)

// BatchError says which jobs of a batch were refused, by their index. Nothing of the batch was sent.
type BatchError struct{ Errs map[int]error }

func (e *BatchError) Error() string {
	const most = 3
	var b strings.Builder
	fmt.Fprintf(&b, "emq: %d jobs of the batch are invalid and nothing was sent", len(e.Errs))
	for n, i := range slices.Sorted(maps.Keys(e.Errs)) {
		if n == most {
			b.WriteString("; …")
			break
		}
		fmt.Fprintf(&b, "; job %d: %v", i, e.Errs[i])
	}
	return b.String()
}

// Unwrap gives the errors in the order of their jobs.
func (e *BatchError) Unwrap() []error {
	errs := make([]error, 0, len(e.Errs))
	for _, i := range slices.Sorted(maps.Keys(e.Errs)) {
		errs = append(errs, e.Errs[i])
	}
	return errs
}
