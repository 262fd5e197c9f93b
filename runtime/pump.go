package emq

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// pump promotes, reaps and expires for one queue, in one process of all that serve it. It sleeps until
// the next due time on a timer of its own.
type pump struct {
	c      *consumer
	holder atomic.Bool
	since  time.Time     // when it began to pump; only the loop looks at it
	now    chan struct{} // pump, or try to
	held   chan struct{} // somebody else pumps
}

func newPump(c *consumer) *pump {
	return &pump{c: c, now: make(chan struct{}, 1), held: make(chan struct{}, 1)}
}

const (
	pumpBeat  = time.Second // within the 3 s that a holder has
	pumpLimit = 200         // jobs that a beat promotes, or reaps and expires: a few ms of the server's time
)

// kick makes the pump beat now.
func (p *pump) kick() { signalOne(p.now) }

// seen is what an empty claim tells: whether nobody pumps the queue.
func (p *pump) seen(idle bool) {
	if idle {
		signalOne(p.now)
	} else {
		signalOne(p.held)
	}
}

func signalOne(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func (p *pump) loop(ctx context.Context, ok func()) error {
	defer p.setHolder(false)
	timer := time.NewTimer(0)
	defer timer.Stop()
	begun := false // the first beat comes first: after an outage the holder may be this process itself
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.held:
			if begun && !p.holder.Load() {
				// beyond the next claim, which tells the same: so an idle process sends no beats
				timer.Reset(p.patience() * 5 / 4)
				ok() // somebody pumps: that is all this loop is for
			}
			continue
		case <-timer.C:
		case <-p.now:
		}
		next, err := p.beat()
		if err != nil {
			return err
		}
		ok()
		begun = true
		timer.Reset(next)
	}
}

// patience is how long a process that does not pump, and has not heard that somebody does, waits before
// it tries.
func (p *pump) patience() time.Duration { return p.c.w.cfg.Lease / 2 }

// beat pumps once and answers when to do it again.
func (p *pump) beat() (time.Duration, error) {
	cfg := p.c.w.cfg
	ctx, cancel := context.WithTimeout(p.c.w.life, callTimeout)
	defer cancel()
	res, err := p.c.q.Pump(ctx, scripts.Pump{Tag: p.c.w.tag, Budget: cfg.CrashBudget, Limit: pumpLimit, Lease: cfg.Lease})
	if err != nil {
		return 0, err
	}
	if res.Holder && !p.holder.Load() {
		p.since = time.Now()
	}
	p.setHolder(res.Holder)
	if !res.Holder {
		return p.patience(), nil
	}
	if res.Reaped > 0 {
		p.c.w.log.Warn("emq: leases have lapsed and their jobs wait again", "queue", p.c.q.Name(), "jobs", res.Reaped)
		p.c.w.observer.Observe(ctx, Event{Name: EventReaped, Queue: p.c.q.Name(), Count: res.Reaped})
	}
	next := min(pumpBeat, cfg.Lease/3)
	if res.Due >= 0 {
		next = min(next, res.Due)
	}
	if res.Cron > 0 {
		next = min(next, res.Cron)
	}
	if res.Cron == 0 {
		again, err := p.ticks(ctx)
		if err != nil {
			return 0, err
		}
		if again {
			next = 0
		}
	}
	return next, nil
}

func (p *pump) setHolder(holder bool) {
	if p.holder.Swap(holder) != holder {
		p.c.parker.change()
	}
}
