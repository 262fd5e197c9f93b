package scripts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Fence proves that a call comes from the claim that holds the job: the attempts token and the mark
// that the claim drew. Both must match.
type Fence struct {
	ID       string
	Attempts int64
	By       string
}

func (f Fence) token() string { return strconv.FormatInt(f.Attempts, 10) }

// Verdict is what a settle did: "completed", "scheduled", "pending", "dead", "cancelled",
// "discarded", or, with Again, nothing, because the token has been used; Status is then the job's
// state, or empty where the script does not say.
type Verdict struct {
	Status string
	Again  bool
}

// Complete settles a job that succeeded and keeps it and its result for the retention, 0 for none.
// Safe to repeat; ErrGone or Again after a lost answer means that the first call landed.
func (q *Queue) Complete(ctx context.Context, f Fence, retain time.Duration, result []byte) (Verdict, error) {
	c := q.prepare("complete", f.ID, "", f.ID, f.token(), q.keys.Base(), f.By, ms(retain), rueidis.BinaryString(result))
	n, err := q.run(ctx, c).AsInt64()
	switch {
	case err != nil:
		return Verdict{}, q.wrap("complete", f.ID, err)
	case n == 1:
		return Verdict{Status: "completed"}, nil
	case n == 2:
		return Verdict{Again: true}, nil
	}
	return Verdict{}, &Refusal{ErrGone, q.name, f.ID, "no job " + f.ID}
}

// Retry settles a job that failed: it waits for delay, or is dead after its last attempt; limit holds
// where the row has no max of its own. Safe to repeat.
func (q *Queue) Retry(ctx context.Context, f Fence, delay time.Duration, limit int, reason string) (Verdict, error) {
	return q.settle(ctx, "retry", f, f.ID, f.token(), ms(delay), strconv.Itoa(limit), capped(reason), q.keys.Base(), f.By)
}

// Snooze parks a job for delay and forgives the attempt. Safe to repeat.
func (q *Queue) Snooze(ctx context.Context, f Fence, delay time.Duration) (Verdict, error) {
	return q.settle(ctx, "snooze", f, f.ID, f.token(), ms(delay), q.keys.Base(), f.By)
}

// Release hands a job back, at once or after delay, and forgives the attempt. Safe to repeat.
func (q *Queue) Release(ctx context.Context, f Fence, delay time.Duration) (Verdict, error) {
	return q.settle(ctx, "release", f, f.ID, f.token(), ms(delay), q.keys.Base(), f.By)
}

// Kill buries a job with a reason. Safe to repeat.
func (q *Queue) Kill(ctx context.Context, f Fence, reason string) (Verdict, error) {
	return q.settle(ctx, "kill", f, f.ID, f.token(), capped(reason), q.keys.Base(), f.By)
}

// Discard ends a job and keeps nothing of it. Safe to repeat; ErrGone after a lost answer means that
// the first call landed.
func (q *Queue) Discard(ctx context.Context, f Fence) (Verdict, error) {
	return q.settle(ctx, "discard", f, f.ID, f.token(), q.keys.Base(), f.By)
}

func (q *Queue) settle(ctx context.Context, verb string, f Fence, args ...string) (Verdict, error) {
	word, err := q.run(ctx, q.prepare(verb, f.ID, "", args...)).ToString()
	if err != nil {
		return Verdict{}, q.wrap(verb, f.ID, err)
	}
	if state, again := strings.CutPrefix(word, "again "); again {
		return Verdict{Status: state, Again: true}, nil
	}
	return Verdict{Status: word}, nil
}

// Beat is the answer of a heartbeat for one job.
type Beat int64

// What a heartbeat finds.
const (
	Lost      Beat = 0 // another claim has the job, or nobody
	Extended  Beat = 1
	Cancelled Beat = 2 // extended, and somebody has cancelled the job
)

// MaxBeats is how many jobs one Extend may carry.
const MaxBeats = 160

// Extend gives jobs a new lease from now; one answer each, in order. Safe to repeat.
func (q *Queue) Extend(ctx context.Context, lease time.Duration, jobs []Fence) ([]Beat, error) {
	if len(jobs) > MaxBeats {
		return nil, fmt.Errorf("emq: extend: queue %s: %d jobs in one call, at most %d", q.name, len(jobs), MaxBeats)
	}
	args := make([]string, 0, 2+3*len(jobs))
	args = append(args, q.keys.Base(), ms(lease))
	for _, f := range jobs {
		args = append(args, f.ID, f.token(), f.By)
	}
	ns, err := q.run(ctx, q.prepare("extend", "", "", args...)).AsIntSlice()
	if err != nil {
		return nil, q.wrap("extend", "", err)
	}
	if len(ns) != len(jobs) {
		return nil, q.wrap("extend", "", fmt.Errorf("%d answers for %d jobs", len(ns), len(jobs)))
	}
	beats := make([]Beat, len(ns))
	for i, n := range ns {
		beats[i] = Beat(n)
	}
	return beats, nil
}

// capped cuts a reason to what a row keeps of it.
func capped(reason string) string {
	const most = 8 << 10
	if len(reason) <= most {
		return reason
	}
	return strings.ToValidUTF8(reason[:most], "") + "…"
}
