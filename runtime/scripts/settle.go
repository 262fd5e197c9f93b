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

// Settle is one settle, to be sent alone or with others.
type Settle struct {
	Fence
	verb string
	args []string // of the verb, without the fence
}

// Completion settles a job that succeeded and keeps it and its result for the retention, 0 for none.
func Completion(f Fence, retain time.Duration, result []byte) Settle {
	return Settle{f, "complete", []string{ms(retain), rueidis.BinaryString(result)}}
}

// Failure settles a job that failed: it waits for delay, or is dead after its last attempt; limit holds
// where the row has no max of its own.
func Failure(f Fence, delay time.Duration, limit int, reason string) Settle {
	return Settle{f, "retry", []string{ms(delay), strconv.Itoa(limit), capped(reason)}}
}

// Pause parks a job for delay and forgives the attempt.
func Pause(f Fence, delay time.Duration) Settle { return Settle{f, "snooze", []string{ms(delay)}} }

// HandBack releases a job, at once or after delay, and forgives the attempt.
func HandBack(f Fence, delay time.Duration) Settle { return Settle{f, "release", []string{ms(delay)}} }

// Burial kills a job with a reason.
func Burial(f Fence, reason string) Settle { return Settle{f, "kill", []string{capped(reason)}} }

// Disposal ends a job and keeps nothing of it.
func Disposal(f Fence) Settle { return Settle{f, "discard", nil} }

// Bytes is about what a settle adds to a call.
func (s Settle) Bytes() int {
	n := 64
	for _, a := range s.args {
		n += len(a)
	}
	return n
}

// Settle sends one settle by its own script. Safe to repeat; ErrGone or Again after a lost answer means that
// the first call landed, where the verb deletes the job.
func (q *Queue) Settle(ctx context.Context, s Settle) (Verdict, error) {
	args := []string{s.ID, s.token()}
	if s.verb == "complete" { // the published order
		args = append(args, q.keys.Base(), s.By)
		args = append(args, s.args...)
	} else {
		args = append(args, s.args...)
		args = append(args, q.keys.Base(), s.By)
	}
	res := q.runDirect(ctx, q.prepare(s.verb, s.ID, "", args...))
	if s.verb == "complete" {
		return q.readCompletion(s, res)
	}
	word, err := res.ToString()
	if err != nil {
		return Verdict{}, q.wrap(s.verb, s.ID, err)
	}
	return q.verdict(s, word)
}

func (q *Queue) readCompletion(s Settle, res rueidis.RedisResult) (Verdict, error) {
	n, err := res.AsInt64()
	switch {
	case err != nil:
		return Verdict{}, q.wrap("complete", s.ID, err)
	case n == 1:
		return Verdict{Status: "completed"}, nil
	case n == 2:
		return Verdict{Again: true}, nil
	}
	return q.verdict(s, "gone")
}

// verdict reads a status of take, or a verb's own word.
func (q *Queue) verdict(s Settle, word string) (Verdict, error) {
	switch word {
	case "gone":
		return Verdict{}, &Refusal{ErrGone, q.name, s.ID, "no job " + s.ID}
	case "stale":
		return Verdict{}, &Refusal{ErrStale, q.name, s.ID, "job " + s.ID + " is under another claim"}
	}
	if state, again := strings.CutPrefix(word, "again "); again {
		return Verdict{Status: state, Again: true}, nil
	}
	return Verdict{Status: word}, nil
}

// Settled is the answer for one member of SettleAll.
type Settled struct {
	Verdict
	Err error
}

// SettleAll sends settles in one call, at most MaxGathered; one answer each, in order. Safe to repeat, as
// each of them is.
func (q *Queue) SettleAll(ctx context.Context, settles []Settle) []Settled {
	args := make([]string, 1, 1+7*len(settles))
	args[0] = q.keys.Base()
	for _, s := range settles {
		args = append(args, s.verb, s.ID, s.token(), s.By, strconv.Itoa(len(s.args)))
		args = append(args, s.args...)
	}
	answers := make([]Settled, len(settles))
	parts, err := q.runDirect(ctx, q.prepare("settle", "", "", args...)).ToArray()
	if err == nil && len(parts) != len(settles) {
		err = fmt.Errorf("%d answers for %d settles", len(parts), len(settles))
	}
	for i, s := range settles {
		a := &answers[i]
		switch {
		case err != nil:
			a.Err = q.wrap(s.verb, s.ID, err)
		case parts[i].IsInt64():
			a.Status = "completed"
		case parts[i].IsArray():
			words, arrayErr := parts[i].AsStrSlice()
			a.Err = q.wrap(s.verb, s.ID, fmt.Errorf("the server could not settle it now: %q: %w", words, arrayErr))
		default:
			a.Verdict, a.Err = q.verdict(s, text(parts[i]))
		}
	}
	return answers
}

// Complete settles a job that succeeded: Completion, alone.
func (q *Queue) Complete(ctx context.Context, f Fence, retain time.Duration, result []byte) (Verdict, error) {
	return q.Settle(ctx, Completion(f, retain, result))
}

// Retry settles a job that failed: Failure, alone.
func (q *Queue) Retry(ctx context.Context, f Fence, delay time.Duration, limit int, reason string) (Verdict, error) {
	return q.Settle(ctx, Failure(f, delay, limit, reason))
}

// Snooze parks a job: Pause, alone.
func (q *Queue) Snooze(ctx context.Context, f Fence, delay time.Duration) (Verdict, error) {
	return q.Settle(ctx, Pause(f, delay))
}

// Release hands a job back: HandBack, alone.
func (q *Queue) Release(ctx context.Context, f Fence, delay time.Duration) (Verdict, error) {
	return q.Settle(ctx, HandBack(f, delay))
}

// Kill buries a job: Burial, alone.
func (q *Queue) Kill(ctx context.Context, f Fence, reason string) (Verdict, error) {
	return q.Settle(ctx, Burial(f, reason))
}

// Discard ends a job: Disposal, alone.
func (q *Queue) Discard(ctx context.Context, f Fence) (Verdict, error) {
	return q.Settle(ctx, Disposal(f))
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
		return nil, q.wrap("heartbeat", "", err)
	}
	if len(ns) != len(jobs) {
		return nil, q.wrap("heartbeat", "", fmt.Errorf("%d answers for %d jobs", len(ns), len(jobs)))
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
