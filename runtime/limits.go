package emq

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// Settings is how a whole queue is served, in all processes together. Over shards the numbers of jobs are split
// into equal parts, each of which holds in one shard: docs/shards.md. Zero is "not set", but for the caps
// of the dead letters and the weight, which then have their defaults.
type Settings struct {
	Paused      bool          // its jobs wait until it is resumed
	Concurrency int           // jobs that run at once; 0: no limit
	Rate        int           // jobs that begin in RatePer, at most; 0: no limit
	RatePer     time.Duration // 0 without a rate
	MaxLength   int           // jobs that wait or are scheduled before an enqueue is ErrFull; 0: no limit
	DeadJobs    int           // dead letters that are kept; 10 000 by default
	DeadAge     time.Duration // how long they are kept; 90 days by default
	CrashBudget int           // leases that a job may lose; 0: what each worker says
	Events      bool          // what becomes of its jobs is published
	FlatWeight  int           // the share of its jobs without a lane beside each lane, set by SetLaneWeight of ""; 1 by default
}

const (
	defaultDeadJobs = 10_000
	defaultDeadAge  = 90 * 24 * time.Hour
)

const (
	// MaxLimit is the largest number that a limit of a queue or a lane may have: the scripts reckon exactly
	// far beyond it.
	MaxLimit = 1_000_000_000
	// MaxSpan is the longest span of a rate and of dead letters: a hundred years.
	MaxSpan = 36_500 * 24 * time.Hour
	// maxRate is how many jobs a rate lets begin in a millisecond: times are kept to a microsecond.
	maxRate = 1000
)

// Settings reads what was set for the queue. Safe to repeat.
func (q *Queue) Settings(ctx context.Context) (Settings, error) {
	parts, err := q.parts(ctx)
	if err != nil {
		return Settings{}, err
	}
	set, err := settingsOf(ctx, parts)
	if err != nil {
		return Settings{}, err
	}
	number := func(field string, preset int64) int64 {
		if n, err := strconv.ParseInt(set[field], 10, 64); err == nil {
			return n
		}
		return preset // not set, or spoilt by somebody
	}
	ms := func(field string, preset time.Duration) time.Duration {
		return time.Duration(number(field, preset.Milliseconds())) * time.Millisecond
	}
	return Settings{
		Paused:      set[scripts.FieldPaused] != "",
		Concurrency: int(number(scripts.FieldConcurrency, 0)),
		Rate:        int(number(scripts.FieldRateMax, 0)),
		RatePer:     ms(scripts.FieldRateMs, 0),
		MaxLength:   int(number(scripts.FieldMaxLen, 0)),
		DeadJobs:    int(number(scripts.FieldDeadMax, int64(defaultDeadJobs*len(parts)))),
		DeadAge:     ms(scripts.FieldDeadMs, defaultDeadAge),
		CrashBudget: int(number(scripts.FieldCrashBudget, 0)),
		Events:      set[scripts.FieldEvents] != "",
		FlatWeight:  int(number(scripts.FlatWeight, 1)),
	}, nil
}

// Pause keeps all jobs of the queue from being claimed, in every process; what runs goes on, and enqueues
// are taken. Safe to repeat.
func (q *Queue) Pause(ctx context.Context) error { return q.set(ctx, scripts.FieldPaused, "1") }

// Resume ends a pause. Lanes that were paused by themselves stay so. Safe to repeat.
func (q *Queue) Resume(ctx context.Context) error { return q.set(ctx, scripts.FieldPaused, "") }

// SetConcurrency sets how many jobs of the queue run at once, in all processes together, beside the slots
// of each worker. What runs above a lower limit goes on. A limit outside 1 to
// MaxLimit is ErrInvalid: ClearConcurrency takes it away, Pause lets nothing run. Safe to repeat.
func (q *Queue) SetConcurrency(ctx context.Context, n int) error {
	if n < 1 || n > MaxLimit {
		return q.refuse("a concurrency of %d: 1 to 1000000000; ClearConcurrency takes the limit away, Pause lets nothing run", n)
	}
	return q.set(ctx, scripts.FieldConcurrency, strconv.Itoa(n))
}

// ClearConcurrency takes the limit away. Safe to repeat.
func (q *Queue) ClearConcurrency(ctx context.Context) error {
	return q.set(ctx, scripts.FieldConcurrency, "")
}

// SetRate lets at most n jobs of the queue begin in any span of per, in all processes together. They are
// spread over it: about one every per/n; and about 95 % of the rate is what a busy queue gets. A rate
// outside 1 to MaxLimit, a span outside a millisecond to MaxSpan, and more than 1000 jobs in a millisecond
// are ErrInvalid: ClearRate takes the rate away. A part of a millisecond in per counts as a whole one, so the
// rate is never more than was asked for. Safe to repeat: the same rate again gives no job earlier.
func (q *Queue) SetRate(ctx context.Context, n int, per time.Duration) error {
	if n < 1 || n > MaxLimit || per < time.Millisecond || per > MaxSpan || int64(n) > maxRate*per.Milliseconds() {
		return q.refuse("a rate of %d in %v: 1 to 1000000000 in at least 1ms and at most %v, and no more than %d in a millisecond; ClearRate takes it away, Pause lets nothing run",
			n, per, MaxSpan, maxRate)
	}
	return q.set(ctx, scripts.FieldRateMax, strconv.Itoa(n), scripts.FieldRateMs, milliseconds(per))
}

// ClearRate takes the rate away. Safe to repeat.
func (q *Queue) ClearRate(ctx context.Context) error {
	return q.set(ctx, scripts.FieldRateMax, "", scripts.FieldRateMs, "")
}

// SetMaxLength sets how many jobs may wait or be scheduled, those in lanes included. While there are so
// many, an enqueue is ErrFull and its receipt Refused; what comes back by itself (a retry, a snooze, a job
// whose worker died) is never refused. A length outside 1 to MaxLimit is ErrInvalid: ClearMaxLength takes it away.
// Safe to repeat.
func (q *Queue) SetMaxLength(ctx context.Context, n int) error {
	if n < 1 || n > MaxLimit {
		return q.refuse("a maximum length of %d: 1 to 1000000000; ClearMaxLength takes it away", n)
	}
	return q.set(ctx, scripts.FieldMaxLen, strconv.Itoa(n))
}

// ClearMaxLength takes the maximum length away. Safe to repeat.
func (q *Queue) ClearMaxLength(ctx context.Context) error { return q.set(ctx, scripts.FieldMaxLen, "") }

// SetDeadCaps sets how many dead letters are kept, and for how long; the oldest deaths go first, and for
// good, within seconds while a worker serves the queue. Jobs outside 1 to MaxLimit, and an age outside a
// millisecond to MaxSpan, are ErrInvalid; a part of a millisecond counts as a whole one. ClearDeadCaps goes back to 10 000 jobs and 90 days. Safe to repeat.
func (q *Queue) SetDeadCaps(ctx context.Context, jobs int, age time.Duration) error {
	if jobs < 1 || jobs > MaxLimit || age < time.Millisecond || age > MaxSpan {
		return q.refuse("caps of %d dead letters for %v: 1 to 1000000000 for at least 1ms and at most %v; ClearDeadCaps goes back to the defaults", jobs, age, MaxSpan)
	}
	return q.set(ctx, scripts.FieldDeadMax, strconv.Itoa(jobs), scripts.FieldDeadMs, milliseconds(age))
}

// ClearDeadCaps goes back to the default caps: 10 000 dead letters, 90 days. Safe to repeat.
func (q *Queue) ClearDeadCaps(ctx context.Context) error {
	return q.set(ctx, scripts.FieldDeadMax, "", scripts.FieldDeadMs, "")
}

// SetCrashBudget sets how many leases a job of the queue may lose before it is a dead letter, in place of
// WorkerConfig.CrashBudget. Outside 1 to MaxLimit it is ErrInvalid: ClearCrashBudget leaves it to the
// workers again. Safe to repeat.
func (q *Queue) SetCrashBudget(ctx context.Context, n int) error {
	if n < 1 || n > MaxLimit {
		return q.refuse("a crash budget of %d: 1 to 1000000000; ClearCrashBudget leaves it to the workers", n)
	}
	return q.set(ctx, scripts.FieldCrashBudget, strconv.Itoa(n))
}

// ClearCrashBudget leaves the crash budget to the workers again. Safe to repeat.
func (q *Queue) ClearCrashBudget(ctx context.Context) error {
	return q.set(ctx, scripts.FieldCrashBudget, "")
}

func (q *Queue) set(ctx context.Context, pairs ...string) error {
	parts, err := q.askedParts(ctx)
	if err != nil {
		return err
	}
	set := make(map[string]string, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		set[pairs[i]] = pairs[i+1]
	}
	return q.setAll(ctx, parts, set, ErrInvalid)
}

// isSplit tells the settings that are numbers of jobs: of a queue with shards each has its part.
func isSplit(field string) bool { return slices.Contains(scripts.SplitFields(), field) }

// setAll changes settings on each shard of a queue. A number that leaves a shard without a part is fault.
func (q *Queue) setAll(ctx context.Context, parts []*Queue, set map[string]string, fault error) error {
	if err := q.checkSplit(set, len(parts), fault); err != nil {
		return err
	}
	for i, part := range parts {
		if err := part.setPart(ctx, set, i, len(parts)); err != nil {
			return err
		}
	}
	return nil
}

// checkSplit refuses numbers that would leave one of n shards without a part.
func (q *Queue) checkSplit(set map[string]string, n int, fault error) error {
	for _, field := range slices.Sorted(maps.Keys(set)) {
		if most, err := strconv.Atoi(set[field]); isSplit(field) && err == nil && most < n {
			return fmt.Errorf("%w: queue %s: %s of %d: the queue has %d shards, and each needs a part of at least 1", fault, q.name, scripts.SettingName(field), most, n)
		}
	}
	return nil
}

// setPart changes settings on the i-th of n shards. The first one also keeps what is split whole: the parts alone
// would not tell when some are of another number of shards, while it changes or after a change that broke off.
func (q *Queue) setPart(ctx context.Context, set map[string]string, i, n int) error {
	var pairs []string
	for _, field := range slices.Sorted(maps.Keys(set)) {
		value := set[field]
		switch {
		case field == scripts.FlatWeight:
			weight, err := strconv.Atoi(value)
			if err == nil {
				err = q.q.Tune(ctx, "", "weight", weight)
			}
			if err != nil {
				return err
			}
		case !isSplit(field):
			pairs = append(pairs, field, value)
		default:
			pairs = append(pairs, field, partOf(value, i, n))
			if i == 0 && n == 1 {
				pairs = append(pairs, scripts.Whole(field), "")
			} else if i == 0 {
				pairs = append(pairs, scripts.Whole(field), value)
			}
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return q.q.Set(ctx, pairs...)
}

// partOf is what the i-th of n shards has of a number; what is none stays as it is.
func partOf(value string, i, n int) string {
	whole, err := strconv.Atoi(value)
	if err != nil {
		return value
	}
	part := whole / n
	if i < whole%n {
		part++
	}
	return strconv.Itoa(part)
}

// withDefaults also takes away what is not set.
func withDefaults(set map[string]string) map[string]string {
	all := map[string]string{scripts.FlatWeight: "1"}
	for _, field := range scripts.SettingFields() {
		all[field] = ""
	}
	maps.Copy(all, set)
	return all
}

// settingsOf reads what is set on the first shards of a queue: what is split as the first one has it whole, or else
// as a sum; of the rest what the first shard says that has it.
func settingsOf(ctx context.Context, parts []*Queue) (map[string]string, error) {
	sum := make(map[string]string)
	for _, part := range parts {
		set, err := part.q.Settings(ctx)
		if err != nil {
			return nil, err
		}
		for field, value := range set {
			was, more := sum[field]
			switch {
			case !more:
				sum[field] = value
			case isSplit(field):
				a, _ := strconv.ParseInt(was, 10, 64) // what somebody has spoilt counts nothing
				b, _ := strconv.ParseInt(value, 10, 64)
				sum[field] = strconv.FormatInt(a+b, 10)
			}
		}
	}
	for _, field := range scripts.SplitFields() {
		whole, split := sum[scripts.Whole(field)]
		if delete(sum, scripts.Whole(field)); split {
			sum[field] = whole
		}
	}
	return sum, nil
}

// refuse is the error of a bad value; a bad name of the queue comes first.
func (q *Queue) refuse(format string, args ...any) error {
	if err := q.usable(); err != nil {
		return err
	}
	return fmt.Errorf("%w: queue %s: %s", ErrInvalid, wire.Quote(q.name), fmt.Sprintf(format, args...))
}

// milliseconds rounds up: no limit is ever looser than it was set.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt((d + time.Millisecond - 1).Milliseconds(), 10)
}
