package emq

import (
	"context"
	"runtime"
	"sync"
)

// gather joins calls that many goroutines make at once: whatever waits when an earlier call returns goes
// in the next one. A call that finds nobody before it is sent at once, so nothing is ever delayed to make
// a batch.
type gather[M, V any] struct {
	life  func() context.Context                     // that calls with several members live in
	call  func(ctx context.Context, members []M) []V // one verdict for each, in order
	bytes func(M) int                                // what a member adds to a call
	limit int                                        // bytes of one call, and
	most  int                                        // members of it
	// crowd is how many have to wait for a second call to be under way beside the first; 0: it never waits. A second
	// one sooner saves its callers a round trip at most, and costs all a smaller batch. With a crowd the first call
	// also takes along who is about to make one.
	crowd int

	mu      sync.Mutex
	flying  int
	waiting []*passenger[M, V]
	flights sync.WaitGroup
}

type passenger[M, V any] struct {
	member  M
	verdict V
	landed  chan struct{}
}

// flightsAtOnce is how many calls are under way: while the server works on one, the next is filled.
const flightsAtOnce = 2

// do answers the verdict of one member. It fails only with ctx, and then the member's fate is not known; a
// member that has not been sent by then is not sent.
func (g *gather[M, V]) do(ctx context.Context, m M) (V, error) {
	g.mu.Lock()
	if g.flying == 0 || g.flying < flightsAtOnce && g.crowd == 0 {
		g.flying++
		g.mu.Unlock()
		defer g.land()
		return g.lead(ctx, m), nil
	}
	p := &passenger[M, V]{member: m, landed: make(chan struct{})}
	g.waiting = append(g.waiting, p)
	if g.flying < flightsAtOnce && len(g.waiting) >= g.crowd {
		g.flying++
		g.flights.Go(g.fly)
	}
	g.mu.Unlock()
	select {
	case <-p.landed:
		return p.verdict, nil
	case <-ctx.Done():
		g.leave(p)
		var none V
		return none, context.Cause(ctx)
	}
}

// lead makes the first call, which is the caller's own.
func (g *gather[M, V]) lead(ctx context.Context, m M) V {
	if g.crowd == 0 {
		return g.call(ctx, []M{m})[0]
	}
	runtime.Gosched() // what can run now, and comes here, goes along; it is at once where nothing can
	p := &passenger[M, V]{member: m, landed: make(chan struct{})}
	g.mu.Lock()
	crew := append([]*passenger[M, V]{p}, g.board(1, g.bytes(m))...)
	g.mu.Unlock()
	g.carry(crew)
	return p.verdict
}

// leave takes a passenger back who is not on board yet.
func (g *gather[M, V]) leave(p *passenger[M, V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, w := range g.waiting {
		if w == p {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return
		}
	}
}

// land ends a flight: what has come meanwhile takes off in a goroutine of its own, since the caller has its
// verdict and goes.
func (g *gather[M, V]) land() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.flying--
		return
	}
	g.flights.Go(g.fly)
}

// fly sends what waits until nothing does.
func (g *gather[M, V]) fly() {
	for {
		g.mu.Lock()
		crew := g.board(0, 0)
		if len(crew) == 0 {
			g.flying--
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		g.carry(crew)
	}
}

// carry makes one call for several. It is bounded by the timeout of a call and outlives the contexts of its passengers,
// of whom one must not fail the others.
func (g *gather[M, V]) carry(crew []*passenger[M, V]) {
	members := make([]M, len(crew))
	for i, p := range crew {
		members[i] = p.member
	}
	ctx, cancel := context.WithTimeout(g.life(), callTimeout)
	verdicts := g.call(ctx, members)
	cancel()
	for i, p := range crew {
		p.verdict = verdicts[i]
		close(p.landed)
	}
}

// board takes from the head of those who wait as many as one call carries that has some members already.
func (g *gather[M, V]) board(aboard, size int) []*passenger[M, V] {
	n := 0
	for _, p := range g.waiting {
		size += g.bytes(p.member)
		if aboard+n == g.most || aboard+n > 0 && size > g.limit {
			break
		}
		n++
	}
	crew := append([]*passenger[M, V](nil), g.waiting[:n]...)
	clear(g.waiting[:n])
	g.waiting = append(g.waiting[:0], g.waiting[n:]...)
	return crew
}
