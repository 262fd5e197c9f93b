package emq

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// served is what the consumers of one queue have in common.
type served struct {
	name    string
	shards  int                   // as many as are declared
	kinds   map[string]*boundKind // by kind and alias
	crons   []declaredCron
	moved   []string // entries that their jobs declare on another queue now
	portion *portion // of the process's slots
}

// consumer serves one queue, or one shard of it.
type consumer struct {
	*served
	w     *Worker
	shard int
	q     *scripts.Queue
	share *share
	pump  *pump
	warn  sparse

	settles gather[scripts.Settle, scripts.Settled] // of what handlers return at once

	mu   sync.Mutex
	runs map[scripts.Fence]*run

	noticed map[string]bool // ids of jobs that were cancelled, until the heartbeat has seen to them
	unheard bool            // a notice may have been missed
	hurry   chan struct{}   // the heartbeat is to see to them now

	// Waiting for work. A token that comes while every slot is taken belongs to another process.
	waitMu sync.Mutex
	full   bool // no slot is free, so tokens are of no use
	muted  bool // the parker leaves this queue's tokens alone
	token  chan struct{}
	parker *parker
}

func newServed(w *Worker, name string, kinds []*boundKind) *served {
	own := w.cfg.Queues[name]
	limit := own.Concurrency
	if limit == 0 {
		limit = w.cfg.Concurrency
	}
	s := &served{name: name, kinds: make(map[string]*boundKind), portion: w.slots.portion(limit, own.Weight)}
	for _, k := range kinds {
		bound := *k
		s.shards = max(s.shards, k.shards)
		if !k.moved {
			s.crons = append(s.crons, k.crons...)
		} else {
			for _, d := range k.crons {
				s.moved = append(s.moved, d.name)
			}
		}
		bound.run = wrap(k.run, w.cfg.Middleware)
		for _, name := range append([]string{k.kind}, k.aliases...) {
			s.kinds[name] = &bound
		}
	}
	return s
}

func newConsumer(w *Worker, s *served, shard int) *consumer {
	c := &consumer{
		served: s, w: w, shard: shard, q: w.client.shard(s.name, shard).Queue, share: w.slots.join(s.portion),
		runs: make(map[scripts.Fence]*run), token: make(chan struct{}, 1),
		noticed: make(map[string]bool), hurry: make(chan struct{}, 1),
	}
	c.pump = newPump(c)
	c.settles = gather[scripts.Settle, scripts.Settled]{
		life: func() context.Context { return w.life }, call: c.settleAll,
		bytes: scripts.Settle.Bytes, limit: scripts.MaxGatheredBytes, most: scripts.MaxGathered, crowd: settleCrowd,
	}
	return c
}

// settleAll sends one settle by its own script, and several by the one for many.
func (c *consumer) settleAll(ctx context.Context, settles []scripts.Settle) []scripts.Settled {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if len(settles) > 1 {
		return c.q.SettleAll(ctx, settles)
	}
	v, err := c.q.Settle(ctx, settles[0])
	return []scripts.Settled{{Verdict: v, Err: err}}
}

const (
	// settleCrowd: a settle whose slot is lent keeps nobody waiting, so a second call of few is not worth it.
	settleCrowd = 16
	// fewSlots make small claims, where the call costs more than its jobs. With many the server would stand idle.
	fewSlots = 50
	// largestClaim bounds one claim: more gains little and makes others wait.
	largestClaim = 128
	// callTimeout is also when a connection whose server is silent is given up: a master that froze has been
	// replaced by then.
	callTimeout = 5 * time.Second
	// neighbourly is how long a queue with work waits before it tells another process: a neighbour's claim
	// holds all free slots until it is answered.
	neighbourly = 20 * time.Millisecond
)

// fetch claims as many jobs as there are free slots and starts each in a goroutine of its own.
func (c *consumer) fetch(ctx context.Context, ok func()) error {
	defer c.w.slots.leave(c.share)
	if err := c.join(ctx); errors.Is(err, ErrPartialQueue) {
		c.w.fail(err)
		return nil
	} else if err != nil {
		return err
	}
	work := time.Duration(-1) // until there is work, as far as this process alone knows
	for {
		n := c.acquire(ctx, work)
		if n == 0 {
			return nil
		}
		claimed, err := c.claim(n)
		if err != nil {
			c.w.slots.unused(c.share, n)
			return err
		}
		ok()
		c.w.slots.unused(c.share, n-len(claimed.Jobs))
		if ctx.Err() != nil {
			c.handBackAll(claimed.Jobs)
			return nil
		}
		c.startAll(claimed.Jobs)
		if c.portion.limit <= fewSlots {
			runtime.Gosched() // handlers that return at once free their slots for the next claim
		}
		work = claimed.Wait
		if len(claimed.Jobs) < n {
			c.w.slots.leave(c.share)
			if !c.park(ctx, claimed) {
				return nil
			}
			work = neighbourly
		}
	}
}

// claim runs on the worker's life, not on the claims' context: an answer that nobody waits for would
// leave jobs in flight that nobody runs.
func (c *consumer) claim(n int) (scripts.Claimed, error) {
	ctx, cancel := context.WithTimeout(c.w.life, callTimeout)
	defer cancel()
	claimed, err := c.q.Claim(ctx, scripts.Claim{Lease: c.w.cfg.Lease, N: n, By: newMark()})
	if err == nil && claimed.Shards > 1 && claimed.Shards <= MaxShards {
		c.w.widen(c.served, claimed.Shards)
	}
	return claimed, err
}

// handBackAll returns jobs that a claim brought after the stop had begun.
func (c *consumer) handBackAll(jobs []scripts.ClaimedJob) {
	for _, job := range jobs {
		r := c.register(job)
		r.abandon(c.w.life)
		r.leave()
	}
}

// acquire waits for a free slot and takes all that are this queue's, largestClaim at most; 0 when ctx ended.
// If there is none when there is work, which takes another while, or never if that is negative, another
// process is told: this one alone may have taken the token, or know when the rate allows the next job.
func (c *consumer) acquire(ctx context.Context, work time.Duration) int {
	n := c.w.slots.take(c.share, largestClaim)
	if n == 0 {
		c.setFull(true)
		var told <-chan time.Time
		if work >= 0 {
			t := time.NewTimer(work)
			defer t.Stop()
			told = t.C
		}
		for ; n == 0; n = c.w.slots.take(c.share, largestClaim) {
			select {
			case <-c.share.turn:
			case <-told:
				c.passOn()
			case <-ctx.Done():
				return 0
			}
		}
	}
	c.setFull(false)
	return n
}

// setFull notes whether a token can be used. One that came just before goes to somebody else.
func (c *consumer) setFull(full bool) {
	c.waitMu.Lock()
	c.full = full
	forward := false
	if full {
		select {
		case <-c.token:
			forward = true
		default:
		}
	}
	c.waitMu.Unlock()
	if forward {
		c.passOn()
	}
}

// passOn gives another process the token that this one has no slot for, and stops listening for more.
func (c *consumer) passOn() {
	c.waitMu.Lock()
	c.muted = true
	c.waitMu.Unlock()
	c.forward()
}

// deliver is called with a token that was popped for this queue.
func (c *consumer) deliver() {
	c.waitMu.Lock()
	full := c.full
	if !full {
		signalOne(c.token)
	}
	c.waitMu.Unlock()
	if full {
		c.passOn()
	}
}

// forward puts a token back for another process; this one does not listen until it parks again.
func (c *consumer) forward() {
	ctx, cancel := context.WithTimeout(c.w.life, callTimeout)
	defer cancel()
	if err := c.q.Wake(ctx); err != nil && c.w.life.Err() == nil && c.warn.allow("wake") {
		c.w.log.Warn("emq: a wake token was lost; parked workers claim at their next beat", "queue", c.q.Name(), "error", err)
	}
}

// park waits until it is worth claiming again: a token, the time that the server named, or the beat.
// It answers false when ctx ended.
func (c *consumer) park(ctx context.Context, claimed scripts.Claimed) bool {
	if len(claimed.Jobs) == 0 {
		c.pump.seen(claimed.Idle)
	}
	c.waitMu.Lock()
	muted := c.muted
	c.muted = false
	c.waitMu.Unlock()
	if muted {
		c.parker.change()
		return true // a job may have come while nobody listened: claim once more
	}
	wait := c.w.cfg.Lease / 2
	if claimed.Wait >= 0 {
		wait = min(wait, claimed.Wait)
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-c.token:
	case <-t.C:
	case <-ctx.Done():
		return false
	}
	return true
}
