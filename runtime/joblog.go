package emq

import (
	"context"
	"fmt"
	"strings"

	"github.com/echomq/emq/runtime/scripts"
)

const (
	maxLogLine      = 4 << 10
	defaultLogLines = 100
	maxLogLines     = 1000
)

// AppendLog writes a line about the run whose context this is. The last lines are kept with the job,
// over all its runs, and are deleted with it: what an operator wants to see beside a job, not a
// replacement for logs. WorkerConfig.LogLines says how many are kept; a longer line than 4 KiB is cut. Outside a
// handler it does nothing.
//
// Each call is one round trip. ErrStale and ErrGone when the run no longer holds the job. An error is no
// reason to fail the job. After a lost answer a repeated line may stand there twice.
func AppendLog(ctx context.Context, line string) error {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return nil
	}
	line = strings.ToValidUTF8(line, "\uFFFD")
	if len(line) > maxLogLine {
		const end = "…"
		line = strings.ToValidUTF8(line[:maxLogLine-len(end)], "") + end
	}
	return r.c.q.Log(ctx, r.job.Fence, r.c.w.cfg.LogLines, line)
}

// LogPage is a part of the lines that a job's handlers wrote.
type LogPage struct {
	Lines []string
	First int64 // the number of the first line, counted from 0 over all that were ever written
	Total int64 // how many were ever written; the oldest may be kept no longer
}

// Logs reads up to n lines (1 to 500) of a job, oldest first, from the line with the number from on, or from the oldest
// that is kept. A negative from counts from the end: -20 begins at the last 20. Go on at First + len(Lines).
// ErrGone. Safe to repeat.
func (q *Queue) Logs(ctx context.Context, id ID, from int64, n int) (LogPage, error) {
	if err := q.checkID(id); err != nil {
		return LogPage{}, err
	}
	if n < 1 || n > maxPage {
		return LogPage{}, fmt.Errorf("%w: a page of %d log lines: 1 to %d", ErrInvalid, n, maxPage)
	}
	var l scripts.Lines
	err := q.find(ctx, id, func(q *scripts.Queue) (err error) {
		l, err = q.Logs(ctx, string(id), from, n)
		return err
	})
	return LogPage{l.Lines, l.First, l.Total}, err
}
