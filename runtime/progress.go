package emq

import (
	"context"
	"fmt"
)

// maxProgress is the largest encoded progress.
const maxProgress = 16 << 10

// SetProgress notes how far the run is whose context this is, as JSON of any shape that pages and callers
// agree on: a number, {"done":40,"of":100}. Queue.Job shows the last one, also of a job that waits again,
// is dead or is kept. Outside a handler it does nothing.
//
// Each call is one round trip, and waits for it: in a tight loop call it every hundredth time, or once a second.
// ErrInvalid (no JSON), ErrTooLarge (over 16 KiB); ErrStale and ErrGone when the run no longer holds the job.
// An error is no reason to fail the job. Safe to repeat.
func SetProgress(ctx context.Context, v any) error {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return nil
	}
	text, err := encode(v)
	if err != nil {
		return fmt.Errorf("%w: progress of %s: it cannot be encoded: %w", ErrInvalid, r.info.Ref, err)
	}
	if len(text) > maxProgress {
		return fmt.Errorf("%w: progress of %s: %d bytes, at most %d: say less", ErrTooLarge, r.info.Ref, len(text), maxProgress)
	}
	return r.c.q.Progress(ctx, r.job.Fence, text)
}
