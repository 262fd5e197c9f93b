package scripts

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// NewJob is what admission writes.
type NewJob struct {
	ID      string
	Payload []byte
	Src     string   // marks this call's own resend
	Fields  []string // further fields of the row and their values, in pairs

	Lane string // empty: none

	Unique     string        // the unique key; empty: none
	Window     time.Duration // hold the key for this long, whatever becomes of the job
	UntilStart bool          // free the key at the first claim
	Debounce   bool          // replace what a holder that waits says; not with a Window

	Delay time.Duration // due after this, on the server's clock
	At    time.Time     // due then; the zero time is now
	Later bool          // Delay or At counts
}

// Admission is the answer of the door.
type Admission struct {
	Status string // "enqueued", "duplicate", "conflict", "replaced"
	Src    string // duplicate: the mark of the call that wrote the row
	Holder string // conflict, replaced: the job that holds the unique key
}

func (q *Queue) admission(j *NewJob) call {
	name := "enqueue"
	window := ""
	if j.Window > 0 {
		window = ms(j.Window)
	}
	args := make([]string, 0, 13+len(j.Fields))
	args = append(args, j.ID, rueidis.BinaryString(j.Payload), q.keys.Base(), j.Src, j.Unique, window, j.Lane)
	switch {
	case j.Later && j.At.IsZero():
		name = "schedule"
		args = append(args, "in", ms(j.Delay))
	case j.Later:
		name = "schedule"
		// up to the next whole millisecond: a job is never early
		args = append(args, "at", strconv.FormatInt(j.At.Add(time.Millisecond-1).UnixMilli(), 10))
	case j.Debounce:
		args = append(args, "now", "")
	}
	if j.Debounce {
		name = "debounce"
	}
	args = append(args, j.Fields...)
	if j.Unique != "" && window == "" {
		args = append(args, "unique", j.Unique)
		if j.UntilStart {
			args = append(args, "unique_until", "start")
		}
	}
	last := ""
	if j.Unique != "" {
		last = q.keys.Unique(j.Unique)
	}
	return q.prepare(name, j.ID, last, args...)
}

// Enqueue admits one job: enqueue.lua, schedule.lua or debounce.lua. Safe to repeat with the same Src.
func (q *Queue) Enqueue(ctx context.Context, j NewJob) (Admission, error) {
	return q.readAdmission(j.ID, q.run(ctx, q.admission(&j)))
}

// Admitted is one member of EnqueueAll.
type Admitted struct {
	Admission
	Err error
}

// Admit is a job and the queue that it goes to.
type Admit struct {
	*Queue
	NewJob
}

func (q *Queue) readAdmission(id string, res rueidis.RedisResult) (Admission, error) {
	words, err := res.AsStrSlice()
	switch {
	case err != nil:
		return Admission{}, q.wrap("enqueue", id, err)
	case len(words) == 1 && words[0] == "enqueued":
		return Admission{Status: words[0]}, nil
	case len(words) == 2 && words[0] == "duplicate":
		return Admission{Status: words[0], Src: words[1]}, nil
	case len(words) == 2 && (words[0] == "conflict" || words[0] == "replaced"):
		return Admission{Status: words[0], Holder: words[1]}, nil
	}
	return Admission{}, q.wrap("enqueue", id, fmt.Errorf("unexpected answer %q", words))
}

// ms writes a duration in whole milliseconds, rounded up, so that nothing is ever early.
func ms(d time.Duration) string {
	whole := d / time.Millisecond
	if d%time.Millisecond > 0 {
		whole++
	}
	return strconv.FormatInt(int64(whole), 10)
}
