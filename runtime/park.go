package emq

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// parker is the one blocked connection on which a process waits for tokens, for all its queues.
type parker struct {
	w       *Worker
	changed chan struct{} // what it waits for has changed

	mu        sync.Mutex
	consumers []*consumer // they only become more
}

func newParker(w *Worker) *parker { return &parker{w: w, changed: make(chan struct{}, 1)} }

// add makes it wait for one consumer more.
func (p *parker) add(c *consumer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.parker = p
	p.consumers = append(p.consumers, c)
	p.change()
}

// served are its consumers now.
func (p *parker) served() []*consumer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.consumers[:len(p.consumers):len(p.consumers)]
}

// change makes the parker look again at what it should wait for.
func (p *parker) change() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *parker) loop(ctx context.Context, ok func()) error {
	for ctx.Err() == nil {
		wakes := p.wakes()
		if len(wakes) == 0 {
			select {
			case <-p.changed:
			case <-ctx.Done():
			}
			continue
		}
		key, err := p.pop(ctx, wakes)
		if err != nil {
			// whatever comes meanwhile has no token here: everybody looks by himself
			for _, wake := range wakes {
				wake()
			}
			return err
		}
		ok()
		if wake := wakes[key]; wake != nil {
			wake()
		}
	}
	return nil
}

// wakes says whom each key wakes. Only the pump's holder listens for earlier due times, and only a queue
// with free slots for jobs.
func (p *parker) wakes() map[string]func() {
	wakes := make(map[string]func())
	for _, c := range p.served() {
		if c.pump.holder.Load() {
			wakes[c.q.PumpKey()] = c.pump.kick
		}
		c.waitMu.Lock()
		if !c.muted {
			wakes[c.q.WakeKey()] = c.deliver
		}
		c.waitMu.Unlock()
	}
	return wakes
}

// pop waits for one token and answers its key, or an empty one when its time is over or it was nudged.
// It is ended through a list of its own, never by cutting it off: so no token is lost with it.
func (p *parker) pop(ctx context.Context, wakes map[string]func()) (string, error) {
	q := p.served()[0].q
	keys := []string{q.PrivateKey(p.w.tag)}
	for key := range wakes {
		keys = append(keys, key)
	}
	// never under a second, and never 0, which is for ever; the beat is longer than a claim's
	timeout := max(p.w.cfg.Lease, time.Second)
	// No deadline on the context: with one, the client library reads on the bare connection and does not
	// see that it is cut off.
	popCtx, cut := context.WithCancel(p.w.life)
	defer cut()
	silence := time.AfterFunc(timeout+callTimeout, cut)
	defer silence.Stop()
	over := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(over)
	wg.Go(func() {
		select {
		case <-over:
			return
		case <-p.changed:
		case <-ctx.Done():
		}
		nudgeCtx, cancel := context.WithTimeout(p.w.life, farewell)
		defer cancel()
		if err := q.Nudge(nudgeCtx, p.w.tag); err != nil {
			cut()
		}
	})
	cmd := p.w.client.rueidis.B().Blpop().Key(keys...).Timeout(timeout.Seconds()).Build()
	reply, err := p.w.client.rueidis.Do(popCtx, cmd).AsStrSlice()
	switch {
	case rueidis.IsRedisNil(err), err != nil && ctx.Err() != nil:
		return "", nil
	case err != nil:
		return "", err
	case len(reply) != 2:
		return "", errors.New("emq: BLPOP answered neither a token nor nothing")
	}
	return reply[0], nil
}
