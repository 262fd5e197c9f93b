package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

func stopDrills() []drill {
	return []drill{
		{"sigterm", "SIGTERM again and again to workers under load, whose handlers are slow to end", stopStorm, together},
		{"ids", "producers with more clients than there are node numbers, all at once", collidingIDs, together},
		{"clocks", "producers whose clocks are hours and a year wrong", wrongClocks, together},
	}
}

func stopStorm(st *stage) {
	const lease = time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	part := workRole{Lease: lease, Concurrency: 10, SoftStop: 300 * time.Millisecond, HardStop: 4 * time.Second}
	workers := st.workers(3, s.URL(), part)
	producer := st.producer(s.URL(), produceRole{Count: plenty, Batch: 10, Pause: 50 * time.Millisecond, Longest: 100 * time.Millisecond})
	winders := make([]emq.Job, st.size(40, 2000))
	for i := range winders {
		// more than the soft limit, and after the end of its context as long again: more than a lease
		winders[i] = emq.New(kept{N: plenty + i, Do: windDown, For: st.between(100*time.Millisecond, 1500*time.Millisecond)})
	}
	next := plenty
	var slowest time.Duration
	stops := 0
	for batch := range slices.Chunk(winders, 5) {
		st.put(s.URL(), keeps, next, batch...)
		next += len(batch)
		st.sleep(st.between(100*time.Millisecond, 500*time.Millisecond))
		i := st.rng.IntN(len(workers))
		told := monotonic()
		workers[i].terminate()
		old := workers[i]
		workers[i] = st.worker(s.URL(), part)
		if err := old.exits(20 * time.Second); err != nil {
			st.failf("process %d after SIGTERM: %v: %s", old.pid(), err, tail(old.output()))
		}
		slowest = max(slowest, time.Duration(old.died-told))
		stops++
	}
	producer.terminate()
	st.produced(time.Minute, producer)
	a.drained(time.Minute)
	told := monotonic()
	st.finish(workers...)
	idle := time.Duration(monotonic() - told)
	a.judge()
	handed, spent := 0, 0
	for _, stints := range a.stints {
		for _, run := range stints {
			if run.result == "handed" {
				handed++
			}
			if run.N >= plenty {
				spent += run.Try - 1
			}
		}
	}
	st.figure("%d stops, the slowest %.1f s, an idle one %d ms; %d runs handed back, %d leases reaped", stops, slowest.Seconds(), idle.Milliseconds(), handed, a.total("reaped"))
	if a.total("reaped") != 0 || handed == 0 || spent != 0 {
		st.failf("want runs handed back, no lease reaped and no attempt spent: %d spent", spent)
	}
	if slowest > part.SoftStop+part.HardStop+2*time.Second || idle > 2*time.Second {
		st.doubtf("a stop took too long")
	}
}

func collidingIDs(st *stage) {
	const lease = 2 * time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	const clients = 400
	processes, each := st.size(8, 60), st.size(400, 500)
	gate := filepath.Join(st.dir, "gate")
	producers := make([]*process, processes)
	for i := range producers {
		producers[i] = st.producer(s.URL(), produceRole{First: i * each, Count: each, Clients: clients, Gate: gate, Only: keeps})
	}
	st.need("all producers are ready", 5*time.Minute, func() bool { return st.count(nil, isUp) == processes })
	before := st.scriptCalls(s)
	st.open(gate)
	st.produced(2*time.Minute, producers...)
	calls := st.scriptCalls(s) - before
	workers := st.workers(2, s.URL(), workRole{Lease: lease, Concurrency: 50})
	a.drained(time.Minute)
	st.finish(workers...)
	a.judge()
	st.figure("%d clients in %d processes, %d jobs minted again", processes*clients, processes, calls-processes*each)
	if len(a.acked) != processes*each {
		st.failf("%d of %d jobs were acknowledged", len(a.acked), processes*each)
	}
	if calls <= processes*each {
		st.doubtf("no two ids collided: the drill proves nothing")
	}
}

func wrongClocks(st *stage) {
	const lease = 2 * time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	each := st.size(100, 5000)
	workers := st.workers(2, s.URL(), workRole{Lease: lease, Concurrency: 20})
	skews := []time.Duration{-365 * 24 * time.Hour, -3 * time.Hour, -2 * time.Second, 2 * time.Second, 3 * time.Hour, 365 * 24 * time.Hour}
	producers := make([]*process, len(skews))
	for i, skew := range skews {
		producers[i] = st.producer(s.URL(), produceRole{First: i * each, Count: each, Batch: 10, Skew: skew, Longest: 20 * time.Millisecond})
	}
	st.produced(time.Minute, producers...)
	a.drained(time.Minute)
	st.finish(workers...)
	a.judge()
	st.figure("skews %s", fmt.Sprint(skews))
	if len(a.acked) != len(skews)*each {
		st.failf("%d of %d jobs were acknowledged", len(a.acked), len(skews)*each)
	}
}

// scriptCalls is how many calls of scripts a server has run.
func (st *stage) scriptCalls(s *redistest.Server) (calls int) {
	stats, err := s.Info("commandstats")
	st.must("read the command statistics", err)
	for _, name := range []string{"cmdstat_evalsha", "cmdstat_eval"} {
		n := 0
		_, _ = fmt.Sscanf(stats[name], "calls=%d", &n) // absent: 0
		calls += n
	}
	return calls
}
