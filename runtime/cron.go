package emq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// CronEntry is how one cron entry of a queue stands.
type CronEntry struct {
	Name, Kind string
	Cron       // its schedule and its policies

	Next     time.Time // the next tick; zero if none comes
	Last     time.Time // the tick that was fired last; zero before the first
	LastID   ID        // its job
	Paused   bool
	Declared bool // by a job's //emq:cron; its workers keep it alive

	TicksFired   int64 // those whose job was enqueued
	TicksSkipped int64 // those that were due, but whose job was not enqueued: overlap, a unique key, a full queue
	TicksMissed  int64 // those at which nobody was there, and which the policy, Missed, dropped
}

// CronPage is a part of a queue's cron entries.
type CronPage struct {
	Entries []CronEntry
	Next    string // the cursor of the next page; empty at the end
}

const (
	maxCronPage = 500
	cronList    = "cron entries"
)

// AddCron makes a job enqueue itself by a schedule, or gives the entry of that name another schedule or job.
// Name has the characters of a kind. The job is of this queue and has no In, At or WithID. Whoever serves the
// queue fires it; the entry stays until RemoveCron. The same call again changes nothing; one with the same
// Spec and TZ keeps the next tick. ErrInvalid, ErrTooLarge; ErrLocked for the name of a declared entry. Safe
// to repeat.
func (q *Queue) AddCron(ctx context.Context, name string, c Cron, job Job) error {
	if err := q.checkCron(name); err != nil {
		return err
	}
	plan, err := q.client.parse(c)
	if err != nil {
		return fmt.Errorf("queue %s, cron entry %s: %w", q.name, name, err)
	}
	if err := checkJob(&job, q.client.maxPayload); err != nil {
		return err
	}
	switch {
	case job.queue != q.name:
		return fmt.Errorf("%w: cron entry %s: its job is of queue %s, not of %s", ErrInvalid, name, job.queue, q.name)
	case job.delayed || !job.at.IsZero() || job.id != "":
		return fmt.Errorf("%w: cron entry %s: In, At and WithID make no sense: each tick has a job of its own", ErrInvalid, name)
	}
	def, err := cronDef(c, job)
	if err != nil {
		return err
	}
	q.client.announce(ctx, []Job{job})
	parts, err := q.parts(ctx)
	if err == nil {
		err = checkHome(&job, len(parts))
	}
	if err != nil {
		return err
	}
	at := cronShard(name, job.lane, job.unique, len(parts))
	var left []*Queue // where it was with another lane or unique key, or with fewer shards
	paused := false
	for i, part := range parts {
		if i == at {
			continue
		}
		e, _, err := part.q.Cron(ctx, name)
		if err == nil && e.Refreshed > 0 {
			err = part.dropCron(ctx, name) // it says who has the name
		}
		switch {
		case errors.Is(err, ErrGone):
		case err != nil:
			return err
		default:
			left, paused = append(left, part), paused || e.Paused
		}
	}
	_, err = putCron(ctx, parts[at].q, name, false, def, plan)
	if err == nil && paused {
		_, err = parts[at].q.CronTune(ctx, name, "pause", "", 0)
	}
	for i := 0; err == nil && i < len(left); i++ {
		err = left[i].dropCron(ctx, name)
	}
	return err
}

// findCron calls f on the shards of the queue until one has the entry.
func (q *Queue) findCron(ctx context.Context, name string, f func(*scripts.Queue) error) error {
	if err := q.checkCron(name); err != nil {
		return err
	}
	parts, err := q.parts(ctx)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err = f(part.q); !errors.Is(err, ErrGone) {
			return err
		}
	}
	return q.noCron(name, err)
}

// mostMoves is how often a change is tried again that met another one.
const mostMoves = 10

// putCron writes a definition unless the entry has it already, or a newer one; it answers which.
func putCron(ctx context.Context, q *scripts.Queue, name string, declared bool, def scripts.CronDef, plan schedule) (string, error) {
	for range mostMoves {
		seen, err := q.CronRefresh(ctx, name, declared, def)
		if err != nil || seen.Status != "wanted" {
			return seen.Status, err
		}
		put, err := q.CronPut(ctx, name, seen.Rev, newMark(), tickAfter(plan, seen.Now), declared, def)
		if err != nil || put {
			return seen.Status, err
		}
	}
	return "", fmt.Errorf("%w: cron entry %s of queue %s: others keep changing it", ErrState, name, q.Name())
}

// tickAfter is the first tick after t as the wire has it.
func tickAfter(plan schedule, t time.Time) int64 {
	next := plan.after(t)
	if next.IsZero() {
		return scripts.Never
	}
	return next.UnixMilli()
}

// Crons lists the cron entries, declared ones too, in no order, about n in a page (1 to 500; a page may have
// more than n, up to all entries of a queue with few, or none and not be the last). The first cursor is empty;
// one of another queue, or that was changed, is ErrInvalid. An entry that changes meanwhile may come twice or
// not at all. Safe to repeat.
func (q *Queue) Crons(ctx context.Context, cursor string, n int) (CronPage, error) {
	if err := q.usable(); err != nil {
		return CronPage{}, err
	}
	if n < 1 || n > maxCronPage {
		return CronPage{}, fmt.Errorf("%w: a page of %d cron entries: 1 to %d", ErrInvalid, n, maxCronPage)
	}
	var page CronPage
	next, err := q.page(ctx, cronList, cursor, func(part *Queue, _ int, at string) (string, error) {
		if at == "" {
			at = "0"
		}
		if !isScanCursor(at) {
			return "", q.noCursor(cronList, cursor)
		}
		entries, next, err := part.q.Crons(ctx, at, n)
		if err != nil {
			return "", err
		}
		page.Entries = make([]CronEntry, len(entries))
		for i, e := range entries {
			page.Entries[i] = cronEntry(e)
		}
		if next == "0" {
			next = ""
		}
		return next, nil
	})
	page.Next = next
	return page, err
}

// RemoveCron removes an entry; the jobs that it has enqueued stay. ErrGone; ErrLocked for a declared one: take
// its directive away, or pause it. Safe to repeat: the second call is ErrGone.
func (q *Queue) RemoveCron(ctx context.Context, name string) error {
	return q.tuneCron(ctx, name, "remove")
}

// PauseCron keeps an entry from ticking, also over deploys. Its ticks meanwhile are lost, whatever its policy.
// ErrGone. Safe to repeat.
func (q *Queue) PauseCron(ctx context.Context, name string) error {
	return q.tuneCron(ctx, name, "pause")
}

func (q *Queue) tuneCron(ctx context.Context, name, verb string) error {
	return q.findCron(ctx, name, func(q *scripts.Queue) error {
		_, err := q.CronTune(ctx, name, verb, "", 0)
		return err
	})
}

// ResumeCron ends a pause: the entry ticks from now on. ErrGone. Safe to repeat.
func (q *Queue) ResumeCron(ctx context.Context, name string) error {
	return q.findCron(ctx, name, func(shard *scripts.Queue) error {
		for range mostMoves {
			e, now, err := shard.Cron(ctx, name)
			if err != nil {
				return err
			}
			plan, err := q.client.parse(cronOf(e))
			if err != nil {
				return err
			}
			word, err := shard.CronTune(ctx, name, "resume", e.Rev, tickAfter(plan, now))
			if err != nil || word == "done" {
				return err
			}
		}
		return fmt.Errorf("%w: cron entry %s of queue %s: others keep changing it", ErrState, name, q.name)
	})
}

// RunCronNow enqueues the job of an entry at once, also of a paused one. It stands for no tick: Info.Tick is
// zero, and the entry's ticks, overlap and counts do not change. The receipt and the errors are those of an
// enqueue; ErrGone without such an entry. Each call enqueues another job.
func (q *Queue) RunCronNow(ctx context.Context, name string) (Receipt, error) {
	receipt := Receipt{Ref: Ref{Queue: q.name}, Status: Refused}
	var e scripts.CronEntry
	err := q.findCron(ctx, name, func(q *scripts.Queue) (err error) {
		e, _, err = q.Cron(ctx, name)
		return err
	})
	if err != nil {
		return receipt, err
	}
	receipts := []Receipt{{Ref: receipt.Ref}}
	errs := q.client.send(ctx, newMark(), []Job{cronJob(q.name, e)}, receipts)
	return receipts[0], joinSome(errs)
}

func (q *Queue) checkCron(name string) error {
	if err := q.usable(); err != nil {
		return err
	}
	if err := wire.CheckKind(name); err != nil {
		return fmt.Errorf("%w: queue %s: the name of a cron entry %s: it has 1 to 128 of the characters a-z 0-9 . _ : / -, like close:berlin",
			ErrInvalid, q.name, wire.Quote(name))
	}
	return nil
}

// noEntry is ErrGone of a cron entry.
type noEntry struct{ queue, name string }

func (e *noEntry) Error() string {
	return fmt.Sprintf("emq: no such cron entry: queue %s has none of the name %s: Crons lists them", e.queue, e.name)
}

func (e *noEntry) Unwrap() error { return ErrGone }

// noCron says which entry is gone.
func (q *Queue) noCron(name string, err error) error {
	if errors.Is(err, ErrGone) {
		return &noEntry{q.name, name}
	}
	return err
}

// cronDef writes a schedule and a job as an entry has them.
func cronDef(c Cron, job Job) (scripts.CronDef, error) {
	d := scripts.CronDef{
		Spec: c.Spec, TZ: c.TZ, Missed: missedWords()[c.Missed], Overlap: overlapWords()[c.Overlap],
		Kind: job.kind, Version: job.version, Lane: job.lane, Unique: job.unique, Window: job.mode.window, UntilStart: job.mode.start,
		Payload: job.payload,
	}
	if len(job.headers) > 0 {
		headers, err := json.Marshal(job.headers)
		if err != nil {
			return d, fmt.Errorf("%w: headers: %w", ErrInvalid, err)
		}
		d.Headers = string(headers)
	}
	return d, nil
}

// cronJob is the job of an entry.
func cronJob(queue string, e scripts.CronEntry) Job {
	job := Job{
		kind: e.Kind, queue: queue, version: e.Version, payload: e.Payload, lane: e.Lane, unique: e.Unique,
		mode: UniqueMode{start: e.UntilStart, window: e.Window}, uniqueInLane: true, // or it had been refused
	}
	if e.Headers != "" {
		// headers that somebody has spoilt are no reason not to run the job
		_ = json.Unmarshal([]byte(e.Headers), &job.headers)
	}
	return job
}

// cronOf is the schedule of an entry. A policy that this version does not know is the default one.
func cronOf(e scripts.CronEntry) Cron {
	c := Cron{Spec: e.Spec, TZ: e.TZ}
	for i, word := range missedWords() {
		if word == e.CronDef.Missed {
			c.Missed = Missed(i)
		}
	}
	for i, word := range overlapWords() {
		if word == e.Overlap {
			c.Overlap = Overlap(i)
		}
	}
	return c
}

func cronEntry(e scripts.CronEntry) CronEntry {
	entry := CronEntry{
		Name: e.Name, Kind: e.Kind, Cron: cronOf(e), LastID: ID(e.LastID), Paused: e.Paused, Declared: e.Refreshed > 0,
		TicksFired: e.Fired, TicksSkipped: e.Skipped, TicksMissed: e.Misses,
	}
	if e.Next > 0 && e.Next < scripts.Never {
		entry.Next = time.UnixMilli(e.Next)
	}
	if e.Last > 0 {
		entry.Last = time.UnixMilli(e.Last)
	}
	return entry
}
