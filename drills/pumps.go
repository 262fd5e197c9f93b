package main

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
	"github.com/echomq/emq/runtime/scripts"
)

// manyPumps lets several pumps work on the same queues at once, whoever holds them, and calls of others come
// late: as if their processes had been parked after they had decided to pump.
func manyPumps(st *stage) {
	const lease = 2 * time.Second
	s := st.redis()
	proxy := st.proxy(s)
	a := st.audit(s.URL(), lease)
	late := &lateCalls{rng: rand.New(rand.NewPCG(st.seed, 2)), longest: 2 * lease} // the proxy's own chance
	proxy.Judge(late.judge)
	// one job may be unlucky in worker after worker: the budget is poison's matter
	for _, q := range allQueues() {
		st.must("lift the crash budget", st.client(s.URL()).Queue(q).SetCrashBudget(st.ctx, plenty))
	}
	part := workRole{Lease: lease, Concurrency: 15}
	workers := st.workers(3, proxy.URL(), part)
	m := &meeting{}
	strangers := []*stranger{st.stranger(s, m, "stranger-a", lease), st.stranger(s, m, "stranger-b", lease)}
	raw := st.direct(s)
	stopLate := st.every(2*time.Millisecond, func() { late.send(raw) })
	producers := []*process{
		st.producer(s.URL(), produceRole{Count: plenty, Batch: 20, Pause: 50 * time.Millisecond, Longest: 60 * time.Millisecond}),
		st.producer(s.URL(), produceRole{First: plenty, Count: plenty, Batch: 2, Pause: 300 * time.Millisecond, Longest: 3 * lease / 2}),
	}
	for range st.size(8, 100) {
		st.sleep(st.between(500*time.Millisecond, 1200*time.Millisecond))
		i := st.rng.IntN(len(workers))
		workers[i].kill()
		workers[i] = st.worker(proxy.URL(), part)
	}
	for _, p := range producers {
		p.terminate()
	}
	st.produced(time.Minute, producers...)
	a.drained(time.Duration(st.size(1, 10)) * time.Minute) // many kills make many suspects, which run one at a time
	stopLate()
	beats, moved := 0, 0
	for _, x := range strangers {
		x.stop()
		beats, moved = beats+x.beats, moved+x.moved
	}
	st.finish(workers...)
	a.judge()
	st.figure("%d beats of strangers that moved %d jobs, %d of them while the other one was beating, %d calls of workers came late, %d leases reaped",
		beats, moved, m.crossed.Load(), late.sent, a.total("reaped"))
	if moved == 0 || m.crossed.Load() == 0 || late.sent == 0 || a.total("reaped") == 0 {
		st.doubtf("the pumps did not meet, or had nothing to do: the drill proves nothing")
	}
}

// lateCalls keeps every other call of a pump from the server, and sends it some time later.
type lateCalls struct {
	mu      sync.Mutex
	rng     *rand.Rand
	longest time.Duration
	calls   []lateCall
	sent    int
}

type lateCall struct {
	words []string
	due   time.Time
}

// isPump tells a beat of a pump: its first key is the pump, and it has five arguments.
func isPump(words []string) bool {
	keys, args := scriptParts(words)
	return len(keys) > 1 && strings.HasSuffix(keys[0], ":pump") && len(args) == 5
}

func (l *lateCalls) judge(words []string) redistest.Fate {
	if !isScript(words) || !isPump(words) {
		return redistest.Pass
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rng.IntN(2) == 0 {
		return redistest.Pass
	}
	l.calls = append(l.calls, lateCall{slices.Clone(words), time.Now().Add(time.Duration(l.rng.Int64N(int64(l.longest))))})
	return redistest.Refuse
}

// send sends what is due, in any order. It takes the pump first: what was decided as its holder is done as such.
func (l *lateCalls) send(raw node) {
	l.mu.Lock()
	i := slices.IndexFunc(l.calls, func(c lateCall) bool { return time.Now().After(c.due) })
	if i < 0 {
		l.mu.Unlock()
		return
	}
	call := l.calls[i]
	l.calls = slices.Delete(l.calls, i, i+1)
	l.mu.Unlock()
	if raw.do("DEL", call.words[3]).Error() == nil && raw.do(call.words...).Error() == nil {
		l.sent++
	}
}

// meeting counts the strangers that are in a beat of each queue, and the beats that began while another was on.
type meeting struct {
	in      [3]atomic.Int64
	crossed atomic.Int64
}

// stranger is a pump that belongs to no worker.
type stranger struct {
	st           *stage
	raw          node
	m            *meeting
	tag          string
	lease        time.Duration
	rng          *rand.Rand
	queues       []*scripts.Queue
	beats, moved int
	stop         func()
}

// stranger pumps all queues all the time, whoever holds them.
func (st *stage) stranger(s *redistest.Server, m *meeting, tag string, lease time.Duration) *stranger {
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()}, ForceSingleClient: true, DisableCache: true})
	st.must("connect", err)
	st.cleanup(raw.Close)
	server, err := scripts.NewServer(raw, "")
	st.must("load the scripts", err)
	x := &stranger{st: st, raw: node{raw}, m: m, tag: tag, lease: lease, rng: rand.New(rand.NewPCG(st.seed, st.rng.Uint64()))}
	for _, q := range allQueues() {
		x.queues = append(x.queues, server.Queue(q))
	}
	x.stop = st.every(time.Millisecond, x.beat)
	return x
}

// beat pumps once: whole, after it has taken the pump from its holder, or in parts with pauses, so that others
// come between.
func (x *stranger) beat() {
	i := x.rng.IntN(len(x.queues))
	q, ctx, limit := x.queues[i], x.st.ctx, 1+x.rng.IntN(200)
	if x.m.in[i].Add(1) > 1 {
		x.m.crossed.Add(1)
	}
	defer x.m.in[i].Add(-1)
	x.beats++
	if x.rng.IntN(2) == 0 {
		if err := x.raw.do("DEL", "emq:{"+q.Name()+"}:pump").Error(); err != nil {
			x.st.failf("take the pump of %s: %v", q.Name(), err)
		}
		p, err := q.Pump(ctx, scripts.Pump{Tag: x.tag, Budget: 5, Limit: limit, Lease: x.lease})
		x.did(p.Promoted+p.Reaped+p.Expired, err)
		return
	}
	parts := []func() (int, time.Duration, error){
		func() (int, time.Duration, error) { return q.Promote(ctx, limit) },
		func() (int, time.Duration, error) { return q.Reap(ctx, 5, limit, x.lease) },
		func() (int, time.Duration, error) { return q.Expire(ctx, limit) },
	}
	for _, k := range x.rng.Perm(len(parts)) {
		n, _, err := parts[k]()
		x.did(n, err)
		time.Sleep(time.Duration(x.rng.Int64N(int64(10 * time.Millisecond)))) // others come between
	}
}

func (x *stranger) did(n int, err error) {
	if err != nil {
		x.st.failf("%s: %v", x.tag, err)
	}
	x.moved += n
}
