package emq_test

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Experiment 22: a lane's limit of 3 and the queue's of 7 under a kill -9 storm. What ran at once is counted
// from the journal alone.
func TestExperimentLimitsUnderAKillStorm(t *testing.T) {
	t.Parallel()
	const rounds, batch, lane, whole = 12, 60, 3, 7
	e := newExperiment(t)
	q := e.client.Queue("errands")
	if err := errors.Join(q.SetConcurrency(t.Context(), whole), q.SetLaneLimit(t.Context(), "a", lane)); err != nil {
		t.Fatal(err)
	}
	settings := part{Lease: time.Second, Concurrency: 10, CrashBudget: -1}
	workers := make([]*process, 4)
	for i := range workers {
		workers[i] = e.start(settings)
	}
	limited := func(s stint) bool { return s.n%2 == 0 } // every second job is the lane's
	enqueued := 0
	add := func(job func(n int) emq.Job) {
		var jobs []emq.Job
		for range batch {
			jobs = append(jobs, job(enqueued))
			enqueued++
		}
		e.enqueue(jobs...)
	}
	inLane := func(n int) []emq.Option {
		if n%2 == 0 {
			return []emq.Option{emq.InLane("a")}
		}
		return nil
	}
	random := rand.New(rand.NewPCG(22, 22))
	topUp := func() { // there is always work for both limits
		t.Helper()
		l, err := q.Lane(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if l.Waiting < batch/4 || e.counts().Pending-l.Waiting < batch/4 {
			add(func(n int) emq.Job {
				return emq.New(errand{N: n, For: time.Duration(30+random.IntN(60)) * time.Millisecond}, inLane(n)...)
			})
		}
	}
	for range rounds {
		e.reached("as many run as may, in spite of the dead", func() bool {
			topUp()
			return e.full(whole, lane, limited)
		})
		victim := random.IntN(len(workers))
		workers[victim].kill()
		workers[victim] = e.start(settings)
	}
	e.reached("all complete", func() bool { return e.counts().Totals["completed"] == int64(enqueued) })
	cut := len(with(e.stints(), ""))

	// and what is left when half of the workers have died takes all slots again
	g := e.gate("gate")
	add(func(n int) emq.Job { return emq.New(errand{N: n, Do: untilGate, Gate: g.file}, inLane(n)...) })
	e.reached("all slots are taken", func() bool { return e.full(whole, lane, limited) })
	workers[0].kill()
	workers[1].kill()
	e.reached("all slots are taken again", func() bool { return e.full(whole, lane, limited) })
	g.open()
	e.reached("all complete", func() bool { return e.counts().Totals["completed"] == int64(enqueued) })

	stints := e.stints()
	all, ofLane := atOnce(stints, func(stint) bool { return true }), atOnce(stints, limited)
	t.Logf("experiment 22: %d kills over %d jobs, %d runs cut off; at most %d at once (limit %d), %d of the lane (limit %d)",
		rounds+2, enqueued, cut, all, whole, ofLane, lane)
	if all != whole || ofLane != lane {
		t.Errorf("%d ran at once, limit %d; %d of the lane, limit %d", all, whole, ofLane, lane)
	}
	if cut == 0 {
		t.Error("no run was cut off: nothing was tried")
	}
	e.neverTwiceAtOnce()
}

// full tells whether as many jobs run in living processes as the limits allow.
func (e *experiment) full(whole, lane int, limited func(stint) bool) bool {
	e.t.Helper()
	all, some := 0, 0
	for _, s := range e.stints() {
		if s.end.IsZero() {
			all++
			if limited(s) {
				some++
			}
		}
	}
	return all == whole && some == lane
}

// atOnce is how many of the runs that are picked were under way at once, at most.
func atOnce(stints []stint, pick func(stint) bool) (most int) {
	type edge struct {
		at time.Time
		by int
	}
	var edges []edge
	for _, s := range stints {
		if pick(s) {
			edges = append(edges, edge{s.start, 1}, edge{s.end, -1})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), a.by-b.by) })
	now := 0
	for _, e := range edges {
		now += e.by
		most = max(most, now)
	}
	return most
}

// Experiment 34: 8 worker processes at a limit, with 98 jobs waiting. They wait and do not ask, and a slot
// that is freed is taken at once.
func TestExperimentWorkersAtALimitWaitAndDoNotAsk(t *testing.T) {
	t.Parallel()
	const workers, jobs, limit, span = 8, 100, 2, 20 * time.Second
	for _, c := range []struct {
		name string
		set  func(q *emq.Queue) error
		runs int // at the limit
	}{
		{"a concurrency", func(q *emq.Queue) error { return q.SetConcurrency(t.Context(), limit) }, limit},
		{"a lane's limit", func(q *emq.Queue) error { return q.SetLaneLimit(t.Context(), "a", limit) }, limit},
		{"a rate", func(q *emq.Queue) error { return q.SetRate(t.Context(), 1, 24*time.Hour) }, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newExperiment(t)
			q := e.client.Queue("errands")
			if err := c.set(q); err != nil {
				t.Fatal(err)
			}
			g := e.gate("gate")
			var batch []emq.Job
			for n := range jobs {
				batch = append(batch, emq.New(errand{N: n, Do: untilGate, Gate: g.file}, emq.InLane("a")))
			}
			for range workers {
				e.start(part{Concurrency: 5})
			}
			e.reached("all workers wait", func() bool { return e.blocked() == workers })
			e.enqueue(batch...)
			e.reached("the limit is reached", func() bool { return len(e.running()) == c.runs })
			claims := e.countClaims()
			before, until := claims(), time.Now().Add(span)
			for time.Now().Before(until) {
				time.Sleep(20 * time.Millisecond) // the span that is measured
			}
			asked := claims() - before
			aMinute := asked * int64(time.Minute/span)
			if n := len(e.running()); n != c.runs {
				t.Errorf("%d run, want %d", n, c.runs)
			}
			if aMinute > 300 {
				t.Errorf("%d claims a minute at %s: they spin", aMinute, c.name)
			}
			g.open()
			if c.runs < limit {
				if err := q.ClearRate(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			e.reached("all complete", func() bool { return e.counts().Totals["completed"] == jobs })
			t.Logf("experiment 34, %s: %d workers asked %d times in %v: %d claims a minute", c.name, workers, asked, span, aMinute)
			if c.runs < limit {
				return
			}
			stints := e.stints()
			if most := atOnce(stints, func(stint) bool { return true }); most != limit {
				t.Errorf("%d ran at once, limit %d", most, limit)
			}
			p50, p99, longest := quantiles(handovers(stints, limit))
			t.Logf("a freed slot was taken after p50 %v, p99 %v, at most %v", p50, p99, longest)
			if p50 > 100*time.Millisecond || longest > 3*time.Second { // a beat would be 7.5 s
				t.Errorf("a freed slot was taken after p50 %v, at most %v", p50, longest)
			}
		})
	}
}

// handovers are the times from the end of a run to the start of the one that got its slot, with so many at
// once.
func handovers(stints []stint, limit int) (gaps []time.Duration) {
	ends := make([]time.Time, len(stints))
	for i, s := range stints {
		ends[i] = s.end
	}
	slices.SortFunc(ends, time.Time.Compare)
	for i := limit; i < len(stints); i++ { // in the order of their starts
		gaps = append(gaps, stints[i].start.Sub(ends[i-limit]))
	}
	return gaps
}

// blocked is how many workers wait for a token.
func (e *experiment) blocked() (n int) {
	e.t.Helper()
	text, err := e.do("INFO", "clients").ToString()
	if err != nil {
		e.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(text, "blocked_clients:")
	if _, err := fmt.Sscan(rest, &n); err != nil {
		e.t.Fatal(err)
	}
	return n
}

// countClaims watches the server; each claim begins by reading these settings, and nothing else does.
func (e *experiment) countClaims() func() int64 {
	e.t.Helper()
	conn, err := net.Dial("tcp", e.server.Addr())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		e.t.Fatal(err)
	}
	var claims atomic.Int64
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	lines.Scan() // OK
	go func() {  // until the connection is closed
		for lines.Scan() {
			if strings.Contains(lines.Text(), `:meta" "paused" "concurrency" "rate_max" "rate_ms" "rate_tat"`) {
				claims.Add(1)
			}
		}
	}()
	return claims.Load
}
