package emq

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// cronTimes are how declared entries live and when a tick is missed. Only tests have others.
type cronTimes struct {
	refresh time.Duration // how often a worker refreshes what it declares
	hold    time.Duration // for how long a process pumps before it removes an entry that nobody refreshes
	grace   time.Duration // how late a tick may be under SkipMissed
}

func defaultCronTimes() cronTimes { return cronTimes{time.Minute, 2 * time.Minute, time.Minute} }

// declaredCron is an entry that a bound kind declares.
type declaredCron struct {
	name string
	plan schedule
	def  scripts.CronDef
}

// declareCrons are the entries of a job, by its zero payload. The first has the kind's name.
func declareCrons(crons []Cron, job Job) (declared []declaredCron, err error) {
	if len(crons) > 0 && job.Err() != nil {
		return nil, fmt.Errorf("cron enqueues the zero payload: %w", job.Err())
	}
	for i, c := range crons {
		d := declaredCron{name: job.kind}
		if i > 0 {
			d.name = fmt.Sprintf("%s:%d", job.kind, i+1)
		}
		var parseErr, defErr error
		if d.plan, parseErr = parseCron(c); parseErr == nil {
			d.def, defErr = cronDef(c, job)
		}
		if fault := errors.Join(parseErr, defErr); fault != nil {
			err = errors.Join(err, fault)
			continue
		}
		declared = append(declared, d)
	}
	return declared, err
}

// keepCrons refreshes the entries that the bound kinds declare, and removes those that have moved to another
// queue.
func (c *consumer) keepCrons(ctx context.Context, ok func()) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if err := c.refreshCrons(); err != nil {
			return err
		}
		ok()
		timer.Reset(c.w.cron.refresh)
	}
}

func (c *consumer) refreshCrons() error {
	ctx, cancel := context.WithTimeout(c.w.life, callTimeout)
	defer cancel()
	// the queue gets the shards that are declared first: an entry that was written before would tick twice
	shards, err := c.w.client.shards(ctx, c.q.Name(), c.served.shards)
	if err != nil {
		return err
	}
	var errs []error
	moved := c.moved
	for _, d := range c.crons {
		if cronShard(d.name, d.def.Lane, d.def.Unique, len(shards)) != c.shard {
			moved = append(moved[:len(moved):len(moved)], d.name) // it is where it was when there were fewer
			continue
		}
		status, err := putCron(ctx, c.q, d.name, true, d.def, d.plan)
		switch {
		case errors.Is(err, ErrLocked):
			if c.warn.allow("cron " + d.name) {
				c.w.log.Error("emq: a declared cron entry does not tick: its name is taken by an entry that was added at run time; remove that one", "queue", c.q.Name(), "entry", d.name, "error", err)
			}
		case err != nil:
			errs = append(errs, err)
		case status == "wanted":
			c.w.log.Info("emq: a declared cron entry was written", "queue", c.q.Name(), "entry", d.name, "spec", d.def.Spec, "zone", d.def.TZ)
		}
	}
	for _, name := range moved {
		if _, err := c.q.CronTune(ctx, name, "retire", "", 0); err != nil && !errors.Is(err, ErrGone) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// What one beat does at most.
const (
	mostFires = 100
	mostLooks = 512 // entries
)

// ticks fires what is due. It answers whether it is worth beating again at once.
func (p *pump) ticks(ctx context.Context) (bool, error) {
	fires, again := mostFires, false
	for left, looked := 0, 0; looked < mostLooks; {
		entries, now, err := p.c.q.CronDue(ctx, left)
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			if fires <= 0 {
				return true, nil
			}
			gone, err := p.tick(ctx, e, now, &fires)
			if err != nil {
				// the others tick all the same
				p.trouble(ctx, e, err)
			}
			if gone {
				again = true
			} else {
				left++
			}
		}
		looked += len(entries)
		if len(entries) < scripts.MaxCronDue {
			return again, nil
		}
	}
	return again, nil
}

func (p *pump) trouble(ctx context.Context, e scripts.CronEntry, err error) {
	p.c.w.observer.Observe(ctx, Event{Name: EventRefused, Queue: p.c.q.Name(), Kind: e.Kind, Err: err})
	if p.c.warn.allow("cron " + e.Name) {
		p.c.w.log.Error("emq: a cron entry that is due was not fired; it is tried again", "queue", p.c.q.Name(), "entry", e.Name, "error", err)
	}
}

// tick sees to one entry; true: it no longer is due.
func (p *pump) tick(ctx context.Context, e scripts.CronEntry, now time.Time, fires *int) (bool, error) {
	if e.Rev == "" || e.Refreshed > 0 && (e.Paused || e.Next > now.UnixMilli() || lapsed(e, now)) {
		return p.lapse(ctx, e, now)
	}
	c := cronOf(e)
	plan, err := p.c.w.client.parse(c)
	if err != nil {
		return false, err
	}
	if e.Next > now.UnixMilli() {
		_, err := p.c.q.CronFire(ctx, scripts.CronFire{Name: e.Name, Rev: e.Rev, Seen: e.Next}) // mends its place
		return err == nil, err
	}
	for e.Next <= now.UnixMilli() {
		if *fires <= 0 {
			return true, nil
		}
		*fires--
		tick := choose(c.Missed, plan, time.UnixMilli(e.Next), now, p.c.w.cron.grace)
		if moved, err := p.fire(ctx, e, tick); err != nil || moved {
			return moved, err
		}
		e.Next = tick.next
	}
	return true, nil
}

// cronLease is how long a declared entry lives without a refresh. The scripts have the same.
const cronLease = time.Hour

func lapsed(e scripts.CronEntry, now time.Time) bool {
	return time.UnixMilli(e.Refreshed).Add(cronLease).Compare(now) <= 0
}

// lapse removes an entry that no worker declares any more. After an outage everybody has time to refresh
// first.
func (p *pump) lapse(ctx context.Context, e scripts.CronEntry, now time.Time) (bool, error) {
	if time.Since(p.since) < p.c.w.cron.hold && e.Rev != "" {
		return false, nil
	}
	word, err := p.c.q.CronTune(ctx, e.Name, "lapse", "", 0)
	if errors.Is(err, ErrGone) {
		return true, nil
	}
	if err == nil && word == "done" {
		p.c.w.log.Warn("emq: a declared cron entry was removed: no worker has refreshed it for an hour", "queue", p.c.q.Name(), "entry", e.Name,
			"spec", e.Spec, "refreshed", time.UnixMilli(e.Refreshed), "now", now)
	}
	return err == nil, err
}

// dueTick is what becomes of an entry that is due: fire is the zero time for nothing.
type dueTick struct {
	fire   time.Time
	next   int64
	missed int
}

// mostMissed bounds how many ticks are counted one by one.
const mostMissed = 10_000

// choose decides by the policy which tick is fired, which come to nothing, and which is next.
func choose(policy Missed, plan schedule, seen, now time.Time, grace time.Duration) dueTick {
	if policy == RunAll {
		return dueTick{seen, tickAfter(plan, seen), 0}
	}
	newest, missed := seen, 0
	next := plan.after(newest)
	for !next.IsZero() && !next.After(now) {
		newest = next
		if missed++; missed == mostMissed {
			newest = newestBefore(plan, newest, now)
		}
		next = plan.after(newest)
	}
	if policy == SkipMissed && now.Sub(newest) > grace {
		return dueTick{time.Time{}, tickAfter(plan, newest), missed + 1}
	}
	return dueTick{newest, tickAfter(plan, newest), missed}
}

// newestBefore is the last tick up to now after one that is long past.
func newestBefore(plan schedule, past, now time.Time) time.Time {
	for span := time.Minute; span < now.Sub(past); span *= 16 {
		if t := plan.after(now.Add(-span)); !t.IsZero() && !t.After(now) {
			return t
		}
	}
	return past
}

// fire fires one tick; true: somebody else has, or the entry has changed.
func (p *pump) fire(ctx context.Context, e scripts.CronEntry, tick dueTick) (bool, error) {
	job := cronJob(p.c.q.Name(), e)
	f := scripts.CronFire{Name: e.Name, Rev: e.Rev, Seen: e.Next, Next: tick.next, Missed: tick.missed}
	if !tick.fire.IsZero() {
		f.Tick = tick.fire.UnixMilli()
	}
	for range mostMoves {
		id, err := p.mint()
		if err != nil {
			return false, err
		}
		if f.NewJob, err = p.c.w.client.admission(newMark(), job, id); err != nil {
			return false, err
		}
		outcome, err := p.c.q.CronFire(ctx, f)
		if err != nil || outcome == "moved" || outcome == "early" {
			return err == nil, err
		}
		if outcome != "duplicate" { // an id that another client minted too
			p.tell(ctx, e, f, outcome)
			return false, nil
		}
	}
	return false, fmt.Errorf("%w: cron entry %s: every id that was minted is taken", ErrState, e.Name)
}

// mint mints an id for a job of this shard.
func (p *pump) mint() (ID, error) {
	shards := 1
	if s := p.c.w.client.known(p.c.q.Name()); s != nil {
		shards = len(s.shards)
	}
	if p.c.shard >= shards { // the knowledge is being renewed
		shards = 1
	}
	return p.c.w.client.mintFor(p.c.shard, shards)
}

// tell logs and observes what became of a tick.
func (p *pump) tell(ctx context.Context, e scripts.CronEntry, f scripts.CronFire, outcome string) {
	event := Event{Name: EventTickFired, Queue: p.c.q.Name(), Kind: e.Kind}
	log := p.c.w.log.With("queue", event.Queue, "entry", e.Name, "kind", e.Kind)
	if f.Missed > 0 {
		event.Name, event.Count = EventTickMissed, f.Missed
		p.c.w.observer.Observe(ctx, event)
		event.Count = 0
		if n := p.c.warn.count("missed "+e.Name, f.Missed); n > 0 {
			log.Warn("emq: cron ticks were missed and are dropped", "ticks", n, "policy", e.CronDef.Missed, "since", time.UnixMilli(e.Next))
		}
	}
	switch outcome {
	case "fired":
		event.Name, event.ID = EventTickFired, ID(f.ID)
		p.c.w.observer.Observe(ctx, event)
		log.Debug("emq: a cron tick was fired", "tick", time.UnixMilli(f.Tick), "id", f.ID)
	case "overlap", "conflict", "full":
		event.Name = EventTickSkipped
		p.c.w.observer.Observe(ctx, event)
		if n := p.c.warn.count("skipped "+e.Name, 1); n > 0 {
			log.Info("emq: cron ticks were skipped", "ticks", n, "tick", time.UnixMilli(f.Tick), "reason", outcome)
		}
	}
}
