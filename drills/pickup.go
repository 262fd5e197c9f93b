package main

import (
	"slices"
	"time"

	emq "github.com/echomq/emq/runtime"
)

func pickupDrills() []drill {
	return []drill{
		{"pickup", "one enqueue every 20 ms to an idle queue", pickup, alone},
		{"delays", "random delays, many at once", delays, alone},
	}
}

// startOf is when each job of a queue began first, by its number.
func (st *stage) startOf(queue string) map[int]int64 {
	starts := make(map[int]int64)
	for _, l := range st.lines() {
		if l.What == begins && l.Queue == queue && starts[l.N] == 0 {
			starts[l.N] = l.T
		}
	}
	return starts
}

// late judges how much later than wanted jobs began. What a machine of its own should show is p50 and p99; the
// drill fails at ten times that, as others may have the processors now.
func (st *stage) late(what string, waits []time.Duration, p50, p99 time.Duration) {
	slices.Sort(waits)
	middle, most := waits[len(waits)/2], waits[len(waits)*99/100]
	st.figure("%s p50 %.2f ms, p99 %.2f ms, at most %.2f ms", what, ms(middle), ms(most), ms(waits[len(waits)-1]))
	if middle > p50 || most > p99 {
		st.figure("over the %v and %v of a machine that has nothing else to do", p50, p99)
	}
	if middle > 10*p50 || most > 10*p99 {
		st.doubtf("%s: p50 %v, p99 %v; right are %v and %v", what, middle, most, p50, p99)
	}
}

func pickup(st *stage) {
	s := st.redis()
	a := st.audit(s.URL(), 15*time.Second)
	w := st.worker(s.URL(), workRole{})
	st.put(s.URL(), keeps, 0, emq.New(kept{})) // nothing is connected for the first time later
	st.resumed(keeps, 0, 20*time.Second)
	n := st.size(200, 5000)
	sent := make([]int64, n+1)
	next := time.NewTicker(20 * time.Millisecond)
	defer next.Stop()
	for i := 1; i <= n; i++ {
		<-next.C
		sent[i] = monotonic()
		st.put(s.URL(), keeps, i, emq.New(kept{N: i}))
	}
	a.drained(20 * time.Second)
	st.finish(w)
	a.judge()
	starts, waits := st.startOf(keeps), make([]time.Duration, n)
	for i := range waits {
		waits[i] = time.Duration(starts[i+1] - sent[i+1])
	}
	st.figure("%d jobs", n)
	st.late("from before the enqueue to the handler", waits, 2*time.Millisecond, 10*time.Millisecond)
}

func delays(st *stage) {
	s := st.redis()
	a := st.audit(s.URL(), 15*time.Second)
	n, span := st.size(1000, 10_000), time.Duration(st.size(4, 40))*time.Second
	w := st.worker(s.URL(), workRole{Concurrency: 50})
	st.need("the worker is up", 20*time.Second, func() bool { return st.count(w, isUp) == 1 })
	jobs, wanted := make([]emq.Job, n), make([]time.Duration, n)
	for i := range jobs {
		wanted[i] = st.between(time.Second, span)
		jobs[i] = emq.New(kept{N: i}, emq.In(wanted[i]))
	}
	sent := make([]int64, n)
	for i := 0; i < n; i += 50 {
		now := monotonic()
		for j := range 50 {
			sent[i+j] = now
		}
		st.put(s.URL(), keeps, i, jobs[i:i+50]...)
	}
	a.drained(span + 30*time.Second)
	st.finish(w)
	a.judge()
	starts, lates := st.startOf(keeps), make([]time.Duration, n)
	early := 0
	for i := range lates {
		// each delay counts from some moment of the call
		if starts[i]-sent[i] < int64(wanted[i].Truncate(time.Millisecond)) {
			early++
		}
		lates[i] = time.Duration(starts[i]-sent[i]) - wanted[i] // with the call in it
	}
	st.figure("%d delays of up to %v, %d early", n, span, early)
	st.late("late by", lates, 10*time.Millisecond, 50*time.Millisecond)
	if early > 0 {
		st.failf("%d jobs began before their delay was over", early)
	}
}
