package scripts

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// Progress notes how far a running job is, as JSON. ErrGone, ErrStale. Safe to repeat.
func (q *Queue) Progress(ctx context.Context, f Fence, progress []byte) error {
	c := q.prepare("progress", f.ID, "", f.ID, f.token(), f.By, rueidis.BinaryString(progress), q.keys.Base())
	return q.wrap("set progress", f.ID, q.run(ctx, c).Error())
}

// Log writes a line about a running job and keeps the last ones. ErrGone, ErrStale. Do not repeat it after
// a lost answer, unless a line may stand there twice.
func (q *Queue) Log(ctx context.Context, f Fence, keep int, line string) error {
	c := q.prepare("log", f.ID, "", f.ID, f.token(), f.By, strconv.Itoa(keep), line)
	return q.wrap("append log", f.ID, q.run(ctx, c).Error())
}

// Lines are log lines of a job.
type Lines struct {
	First int64 // the number of the first one
	Total int64 // how many were ever written
	Lines []string
}

// Logs reads up to n lines from a number on; a negative one counts from the end. ErrGone. Safe to repeat.
func (q *Queue) Logs(ctx context.Context, id string, from int64, n int) (Lines, error) {
	c := q.prepare("logs", id, "", id, strconv.FormatInt(from, 10), strconv.Itoa(n))
	reply, err := q.run(ctx, c).ToArray()
	if err == nil && len(reply) < 2 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return Lines{}, q.wrap("logs", id, err)
	}
	l := Lines{First: number(reply[0]), Total: number(reply[1]), Lines: make([]string, 0, len(reply)-2)}
	for _, line := range reply[2:] {
		l.Lines = append(l.Lines, text(line))
	}
	return l, nil
}
