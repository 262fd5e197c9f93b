package main

import (
	"slices"
	"sync/atomic"
	"time"

	emq "github.com/echomq/emq/runtime"
)

func keyDrills() []drill {
	return []drill{
		{"rows", "rows of waiting and of running jobs are deleted by hand under load", deletedRows, together},
		{"active-set", "the set of running jobs is deleted by hand under load, and Audit is run", deletedSet, together},
		{"tokens", "a dozen thieves take the wake tokens: workers must look by themselves", lostTokens, together},
	}
}

func deletedRows(st *stage) {
	const lease = 2 * time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	a.lostByHand = make(map[string]bool)
	workers := st.workers(2, s.URL(), workRole{Lease: lease, Concurrency: 5})
	// each batch is of more jobs than there are slots, so that some wait, however slow the machine is
	producer := st.producer(s.URL(), produceRole{Count: plenty, Batch: 60, Pause: 600 * time.Millisecond, Longest: 150 * time.Millisecond})
	raw := st.direct(s)
	deleted := map[string]int{}
	began, length := time.Now(), time.Duration(st.size(5, 120))*time.Second
	met := func() bool { return deleted["pending"] > 0 && deleted["active"] > 0 }
	for time.Since(began) < length || !met() && time.Since(began) < length+30*time.Second {
		st.sleep(20 * time.Millisecond)
		queue := allQueues()[st.rng.IntN(3)]
		base := "emq:{" + queue + "}:"
		set := []string{"pending", "active", "schedule", "completed"}[st.rng.IntN(4)]
		id, err := raw.do("ZRANDMEMBER", base+set).ToString()
		if err != nil {
			continue // it is empty now
		}
		if n, err := raw.do("DEL", base+"job:"+id).AsInt64(); err == nil && n == 1 {
			a.lostByHand[id] = true
			deleted[set]++
		}
	}
	producer.terminate()
	st.produced(time.Minute, producer)
	a.drained(time.Minute)
	st.finish(workers...)
	report := st.mend(s.URL())
	a.judge()
	for _, q := range allQueues() {
		for id := range a.spaces[q].rows {
			if a.lostByHand[id] {
				st.failf("the deleted job %s has a row again: %v", id, a.spaces[q].rows[id])
			}
		}
	}
	st.figure("deleted %v; %d orphans met, %d left for Audit", deleted, a.total("orphan"), report.Dropped)
	if !met() {
		st.doubtf("no row of a waiting or running job was met: the drill proves nothing")
	}
}

// mend runs the operator's Audit over every queue and sums what it reports.
func (st *stage) mend(url string) (sum emq.AuditReport) {
	c := st.client(url)
	for _, q := range allQueues() {
		r, err := c.Queue(q).Audit(st.ctx, emq.AuditOptions{})
		st.must("Audit", err)
		sum.Dropped += r.Dropped
		sum.Active += r.Active
		sum.Slots += r.Slots
	}
	return sum
}

func deletedSet(st *stage) {
	const lease = time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	workers := st.workers(2, s.URL(), workRole{Lease: lease, Concurrency: 30})
	raw := st.direct(s)
	rounds, stranded := st.size(3, 50), 0
	producer := st.producer(s.URL(), produceRole{Count: plenty, Batch: 5, Pause: 150 * time.Millisecond, Longest: 2 * lease})
	for range rounds {
		st.sleep(st.between(500*time.Millisecond, time.Second))
		for _, q := range allQueues() {
			st.must("delete a set", raw.do("DEL", "emq:{"+q+"}:active").Error())
		}
		st.sleep(2 * lease) // by then each handler has been told that its lease is lost
		r := st.mend(s.URL())
		stranded += r.Active
	}
	producer.terminate()
	st.produced(time.Minute, producer)
	a.drained(time.Minute)
	st.finish(workers...)
	a.judge()
	st.figure("%d times, %d jobs stranded and put back by Audit", rounds, stranded)
	if stranded == 0 {
		st.doubtf("no job was stranded: the drill proves nothing")
	}
}

func lostTokens(st *stage) {
	const lease = 2 * time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	workers := st.workers(2, s.URL(), workRole{Lease: lease, Concurrency: 20})
	for _, w := range workers {
		st.need("the workers are up", 20*time.Second, func() bool { return st.count(w, isUp) == 1 })
	}
	var stolen atomic.Int64
	stops := make([]func(), 12)
	for i := range stops {
		thief := st.direct(s)
		stops[i] = st.every(time.Millisecond, func() {
			words := []string{"BLPOP"}
			for _, q := range allQueues() {
				words = append(words, "emq:{"+q+"}:wake")
			}
			if thief.do(append(words, "1")...).Error() == nil {
				stolen.Add(1)
			}
		})
	}
	var waits []time.Duration
	for n := 0; n < st.size(8, 200) || stolen.Load() == 0 && n < 200; n++ { // whom the server serves first is chance
		sent := monotonic()
		st.put(s.URL(), keeps, n, emq.New(kept{N: n}))
		waits = append(waits, st.resumed(keeps, sent, 10*time.Second))
	}
	for _, stop := range stops {
		stop()
	}
	a.drained(20 * time.Second)
	st.finish(workers...)
	a.judge()
	st.figure("%d jobs, %d tokens stolen, the longest wait %.2f s (lease 2 s)", len(waits), stolen.Load(), slices.Max(waits).Seconds())
	if stolen.Load() == 0 {
		st.doubtf("no token was stolen: the drill proves nothing")
	}
	if slices.Max(waits) > lease+time.Second {
		st.doubtf("a job waited for longer than a worker needs to look by itself")
	}
}
