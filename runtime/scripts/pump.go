package scripts

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// Pump is one beat of the process that promotes, reaps and expires.
type Pump struct {
	Tag    string // of the process
	Budget int    // leases that a job may lose before it is buried; 0: no limit
	Limit  int    // jobs to promote, at most 500; of what is left half are reaped and half expired, at least an eighth each
	Lease  time.Duration
}

// Pumped is the answer of a pump's beat.
type Pumped struct {
	Holder                    bool // false: another process pumps
	Promoted, Reaped, Expired int
	Due                       time.Duration // until the next job is due; negative: none
	Cron                      time.Duration // until a cron entry is due; negative: none
}

// Pump takes or renews the pump and, as its holder, promotes, reaps and expires. Safe to repeat.
func (q *Queue) Pump(ctx context.Context, p Pump) (Pumped, error) {
	c := q.prepare("pump", "", "", q.keys.Base(), p.Tag, strconv.Itoa(p.Budget), strconv.Itoa(p.Limit), ms(p.Lease))
	ns, err := q.run(ctx, c).AsIntSlice()
	switch {
	case err != nil:
		return Pumped{}, q.wrap("pump", "", err)
	case len(ns) == 1 && ns[0] == 0:
		return Pumped{Due: -1, Cron: -1}, nil
	case len(ns) == 6:
		return Pumped{true, int(ns[1]), int(ns[2]), int(ns[3]), time.Duration(ns[4]) * time.Millisecond, time.Duration(ns[5]) * time.Millisecond}, nil
	}
	return Pumped{}, q.wrap("pump", "", fmt.Errorf("unexpected answer %v", ns))
}

// Promote moves up to limit due jobs to pending; it answers how many, and the time until the next is
// due, negative for none. Safe to repeat.
func (q *Queue) Promote(ctx context.Context, limit int) (int, time.Duration, error) {
	return q.step(ctx, "promote", strconv.Itoa(limit))
}

// Reap takes back up to limit lapsed leases; it answers how many, and the time until the next lapses,
// negative for none. Safe to repeat.
func (q *Queue) Reap(ctx context.Context, budget, limit int, lease time.Duration) (int, time.Duration, error) {
	return q.step(ctx, "reap", strconv.Itoa(budget), strconv.Itoa(limit), ms(lease))
}

// Expire deletes up to limit jobs of each kind that are kept no longer; it answers how many, and the
// time until the next retention ends, negative for none. Safe to repeat.
func (q *Queue) Expire(ctx context.Context, limit int) (int, time.Duration, error) {
	return q.step(ctx, "expire", strconv.Itoa(limit))
}

func (q *Queue) step(ctx context.Context, name string, args ...string) (int, time.Duration, error) {
	ns, err := q.run(ctx, q.prepare(name, "", "", append([]string{q.keys.Base()}, args...)...)).AsIntSlice()
	if err != nil {
		return 0, 0, q.wrap(name, "", err)
	}
	if len(ns) != 2 {
		return 0, 0, q.wrap(name, "", fmt.Errorf("unexpected answer %v", ns))
	}
	return int(ns[0]), time.Duration(ns[1]) * time.Millisecond, nil
}

// Wake leaves a token for a parked worker. Safe to repeat.
func (q *Queue) Wake(ctx context.Context) error {
	return q.wrap("wake", "", q.run(ctx, q.prepare("wake", "", "")).Error())
}

// Handover gives the pump up if tag holds it, and leaves tokens for those who wait. Safe to repeat.
func (q *Queue) Handover(ctx context.Context, tag string) error {
	return q.wrap("handover", "", q.run(ctx, q.prepare("handover", "", q.PrivateKey(tag), tag)).Error())
}

// Nudge ends the blocking pop of the process with this tag, if it waits on PrivateKey. Safe to repeat.
func (q *Queue) Nudge(ctx context.Context, tag string) error {
	return q.wrap("nudge", "", q.run(ctx, q.prepare("nudge", "", q.PrivateKey(tag))).Error())
}
