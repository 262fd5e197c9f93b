package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	emq "github.com/echomq/emq/runtime"
)

func clusterDrills() []drill {
	return []drill{
		{"cluster-moves", "3 masters and 3 replicas, nothing set but the URL: slots migrate and masters change under load", clusterMoves, together},
		{"cluster-kill", "kill -9 of a cluster's master under load, once for each queue", clusterKill, together},
		{"cluster-freeze", "SIGSTOP of a cluster's master under load until its replica has taken over, SIGCONT", clusterFreeze, together},
		{"sentinel-kill", "three sentinels, nothing set but the URL: kill -9 of the master under load", sentinelKill, together},
		{"sentinel-deaf", "kill -9 of the master while the sentinel that the clients listen to is frozen", sentinelDeaf, together},
		{"sentinel-move", "SENTINEL FAILOVER under load", func(st *stage) { sentinelMove(st, "0") }, together},
		{"sentinel-strict", "SENTINEL FAILOVER under load, with min-replicas-to-write 2", func(st *stage) { sentinelMove(st, "2") }, together},
		{"sentinel-freeze", "SIGSTOP of the master under load until a replica has taken over, SIGCONT", sentinelFreeze, together},
	}
}

// resumed waits until a queue is consumed again, and answers how long that took from a moment on. It may take no
// longer than within, also when that is found out later.
func (st *stage) resumed(queue string, since int64, within time.Duration) time.Duration {
	var at int64
	st.reached(fmt.Sprintf("%s is consumed again", queue), within, func() bool {
		for _, l := range st.lines() {
			if l.What == begins && l.Queue == queue && l.T > since {
				at = l.T
				return true
			}
		}
		return false
	})
	took := time.Duration(at - since)
	if since > 0 && took > within {
		st.doubtf("%s was consumed again only after %v; at most %v is right", queue, took, within)
	}
	return took
}

// moved waits until each process has run or enqueued something since a moment, at the master of that time.
func (st *stage) moved(since int64, all ...*process) {
	st.need("every process has found the new master", 40*time.Second, func() bool {
		found := make(map[int]bool)
		for _, l := range st.lines() {
			if (l.What == begins || l.What == wasAcked) && l.T > since {
				found[l.PID] = true
			}
		}
		return !slices.ContainsFunc(all, func(p *process) bool { return !found[p.pid()] })
	})
}

// load starts two workers and producers for all queues that will outlast the faults.
func (st *stage) load(url string, lease time.Duration, jobs int) (workers, producers []*process) {
	workers = st.workers(2, url, workRole{Lease: lease, Concurrency: 20})
	for i, q := range append(allQueues(), "") { // "": batches of all three
		producers = append(producers, st.producer(url, produceRole{
			First: i * jobs, Count: jobs, Batch: 5, Pause: 25 * time.Millisecond, Longest: 60 * time.Millisecond, Only: q,
		}))
	}
	for _, q := range allQueues() {
		st.resumed(q, 0, 20*time.Second)
	}
	return workers, producers
}

// endLoad stops the producers, lets the workers end what there is, stops them, and judges.
func (st *stage) endLoad(a *audit, workers, producers []*process) {
	for _, p := range producers {
		p.terminate()
	}
	st.produced(time.Minute, producers...)
	a.drained(time.Minute)
	st.wakes(a)
	st.finish(workers...)
	a.judge()
	refused, unknown := 0, 0
	for _, fate := range a.fates {
		if fate == wasRefused {
			refused++
		} else {
			unknown++
		}
	}
	st.figure("%d enqueues refused, %d unknown", refused, unknown)
}

// wakes looks whether idle workers still wait where the tokens come: one that does not would find a job
// at its next look, half a lease later.
func (st *stage) wakes(a *audit) {
	var slowest time.Duration
	st.client(a.url)
	for i, q := range allQueues() {
		best := time.Hour
		for try := range 3 {
			n := 4*plenty + 10*i + try
			sent := monotonic()
			job := emq.New(task{N: n})
			switch q {
			case keeps:
				job = emq.New(kept{N: n})
			case parcels:
				job = emq.New(parcel{N: n})
			}
			st.put(a.url, q, n, job)
			best = min(best, st.resumed(q, sent, 20*time.Second))
		}
		slowest = max(slowest, best)
	}
	a.drained(20 * time.Second)
	st.figure("idle workers wake in %d ms", slowest.Milliseconds())
	if slowest > min(a.lease/2, time.Second)*9/10 {
		st.doubtf("an idle worker was not woken: it took %v to find a job", slowest)
	}
}

const plenty = 1 << 20 // more jobs than a drill lasts

func clusterMoves(st *stage) {
	const lease = 2 * time.Second
	c := st.cluster()
	a := st.audit(c.URL(), lease)
	workers, producers := st.load(c.URL(), lease, plenty)
	var slowest time.Duration
	keys := 0
	for range st.size(1, 20) {
		for _, q := range allQueues() {
			keys += c.move(q)
			slowest = max(slowest, st.resumed(q, monotonic(), 5*time.Second))
			st.sleep(st.between(100*time.Millisecond, 400*time.Millisecond))
			c.failover(q)
			slowest = max(slowest, st.resumed(q, monotonic(), 5*time.Second))
			st.sleep(st.between(100*time.Millisecond, 400*time.Millisecond))
		}
	}
	st.endLoad(a, workers, producers)
	st.figure("%d keys moved, consuming again within %.2f s", keys, slowest.Seconds())
	if n := a.total("reaped"); n > 0 {
		st.figure("%d leases reaped", n)
	}
}

// asynchronous is how much a master may have acknowledged and not yet handed to its replica. A master that is
// killed goes on until it is dead, and what it gave last is begun and written down later still: what it took with
// it is forgotten until there is another master.
const asynchronous = time.Second

func clusterKill(st *stage) {
	const lease = 15 * time.Second // the default
	c := st.cluster()
	a := st.audit(c.URL(), lease)
	workers, producers := st.load(c.URL(), lease, plenty)
	var slowest time.Duration
	for range st.size(1, 10) {
		for _, q := range allQueues() {
			old := c.master(q)
			killed := monotonic()
			old.Kill()
			st.need("the replica has taken over", 20*time.Second, func() bool { return c.master(q) != nil })
			back := monotonic()
			a.forgot = append(a.forgot, window{killed - int64(asynchronous), back})
			a.away = append(a.away, window{killed, back})
			slowest = max(slowest, st.resumed(q, back, 5*time.Second))
			st.must("start the node again", old.Run())
			c.healthy()
		}
	}
	st.endLoad(a, workers, producers)
	st.figure("consuming again within %.2f s of each new master", slowest.Seconds())
}

func clusterFreeze(st *stage) {
	const lease = 2 * time.Second
	c := st.cluster()
	a := st.audit(c.URL(), lease)
	workers, producers := st.load(c.URL(), lease, plenty)
	var slowest time.Duration
	for range st.size(1, 10) {
		q := allQueues()[st.rng.IntN(3)]
		old := c.master(q)
		next := c.replicaOf(old)
		frozen := monotonic()
		st.must("freeze the master", old.Signal(syscall.SIGSTOP))
		st.need("the replica has taken over", 20*time.Second, func() bool {
			info, err := next.Info("replication")
			return err == nil && info["role"] == "master"
		})
		back := monotonic()
		slowest = max(slowest, st.resumed(q, back, 15*time.Second))
		st.must("thaw the master", old.Signal(syscall.SIGCONT))
		c.healthy()
		thawed := monotonic()
		a.forgot = append(a.forgot, window{frozen - int64(asynchronous), thawed})
		a.away = append(a.away, window{frozen, back})
		st.resumed(q, thawed, 5*time.Second)
	}
	st.endLoad(a, workers, producers)
	st.figure("consuming again within %.2f s of each new master", slowest.Seconds())
}

func sentinelKill(st *stage) { killMaster(st, false) }

// sentinelDeaf: a frozen sentinel tells nobody that there is a new master, and its connection does not end.
func sentinelDeaf(st *stage) { killMaster(st, true) }

func killMaster(st *stage, deaf bool) {
	const lease = 15 * time.Second // the default
	s := st.sentinels()
	a := st.audit(s.URL(), lease)
	workers, producers := st.load(s.URL(), lease, plenty)
	if deaf {
		a.look = st.look(s.urlFrom(1))
		st.must("freeze a sentinel", s.Watchers[0].Signal(syscall.SIGSTOP))
	}
	var slowest time.Duration
	rounds, patience := st.size(1, 10), 5*time.Second
	if deaf {
		// a client hears of the new master when it has found its sentinel to be silent. The old one must not
		// come back before, as it would come back as a master.
		rounds, patience = 1, 12*time.Second
	}
	for range rounds {
		old := s.master()
		killed := monotonic()
		old.Kill()
		st.need("a replica has taken over", 30*time.Second, func() bool { return s.master() != nil })
		back := monotonic()
		a.forgot = append(a.forgot, window{killed - int64(asynchronous), back})
		a.away = append(a.away, window{killed, back})
		for _, q := range allQueues() {
			slowest = max(slowest, st.resumed(q, back, patience))
		}
		if !deaf {
			// Before that the old one would come back as a master, and be given to clients, or taken for the one that
			// they had.
			s.told(st)
			st.moved(back, slices.Concat(workers, producers)...)
			st.must("start the old master again", old.Run())
			s.whole(st)
		}
	}
	st.endLoad(a, workers, producers)
	st.figure("consuming again within %.2f s of the new master", slowest.Seconds())
}

// sentinelMove: the old master goes on until it is told, and what it took since is lost; replicas that it
// must have make it stop before.
func sentinelMove(st *stage, minReplicas string) {
	const lease = 2 * time.Second
	s := st.sentinels("--min-replicas-to-write", minReplicas)
	a := st.audit(s.URL(), lease)
	workers, producers := st.load(s.URL(), lease, plenty)
	var slowest time.Duration
	for i := range st.size(1, 10) {
		if i > 0 {
			s.settled(st)
		}
		old := s.master()
		ordered := monotonic()
		st.command(s.Watchers[st.rng.IntN(3)], "SENTINEL", "FAILOVER", "main")
		st.need("another node is the master", 30*time.Second, func() bool { m := s.master(); return m != nil && m != old })
		back := monotonic()
		s.whole(st)
		if minReplicas != "0" {
			back = monotonic() // before, the new master took no writes
		}
		a.forgot = append(a.forgot, window{ordered - int64(asynchronous), monotonic()})
		for _, q := range allQueues() {
			slowest = max(slowest, st.resumed(q, back, 5*time.Second))
		}
	}
	st.endLoad(a, workers, producers)
	st.figure("consuming again within %.2f s of the new master", slowest.Seconds())
}

func sentinelFreeze(st *stage) {
	const lease = 2 * time.Second
	s := st.sentinels()
	a := st.audit(s.URL(), lease)
	workers, producers := st.load(s.URL(), lease, plenty)
	var slowest time.Duration
	for range st.size(1, 10) {
		old := s.master()
		frozen := monotonic()
		st.must("freeze the master", old.Signal(syscall.SIGSTOP))
		st.need("a replica has taken over", 40*time.Second, func() bool {
			for _, n := range s.Nodes {
				if n == old {
					continue
				}
				if info, err := n.Info("replication"); err == nil && info["role"] == "master" {
					return true
				}
			}
			return false
		})
		back := monotonic()
		for _, q := range allQueues() {
			slowest = max(slowest, st.resumed(q, back, 15*time.Second))
		}
		st.must("thaw the master", old.Signal(syscall.SIGCONT))
		s.whole(st)
		a.forgot = append(a.forgot, window{frozen - int64(asynchronous), monotonic()})
		a.away = append(a.away, window{frozen, back})
		for _, q := range allQueues() {
			st.resumed(q, monotonic(), 5*time.Second)
		}
	}
	st.endLoad(a, workers, producers)
	st.figure("consuming again within %.2f s of the new master", slowest.Seconds())
}
