package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// audit compares what the processes wrote down with what the server holds. It knows nothing of the
// runtime; what a fault excuses it is told by the drill.
type audit struct {
	st    *stage
	url   string
	look  rueidis.Client
	lease time.Duration

	// away are spans in which no worker could reach the server. A run that fell into one that was half a
	// lease long may have lost its lease.
	away []window
	// forgot are spans whose writes the store may have lost: acknowledged jobs, claims and settles.
	forgot []window
	// resends: replies of enqueues were lost. A task that had ended by the time of the resend was
	// admitted, and ran, once more; the other queues remember what has completed.
	resends bool
	// mayDie tells jobs that may be dead letters.
	mayDie func(n int) bool
	// lostByHand are ids whose keys the drill deleted.
	lostByHand map[string]bool

	stints map[string][]*stint // runs by job, in the order of their beginnings
	acked  map[string]line
	fates  map[string]string // of the other enqueues, by queue and number
	spaces map[string]*keyspace
	lost   int // acknowledged jobs that the store forgot
}

// stint is one run of a handler.
type stint struct {
	line
	end    int64 // monotonic ns; 0: it has no end
	result string
}

func (s *stint) String() string {
	return fmt.Sprintf("job %d (%s/%s) attempt %d in process %d, %.3f to %.3f s: %s", s.N, s.Queue, s.ID, s.Try, s.PID,
		float64(s.T)/1e9, float64(s.end)/1e9, s.result)
}

func (st *stage) audit(url string, lease time.Duration) *audit {
	return &audit{st: st, url: url, look: st.look(url), lease: lease}
}

func allQueues() []string { return []string{tasks, keeps, parcels} }

// census counts the jobs of all queues.
func (a *audit) census() (c census, err error) {
	ctx, cancel := context.WithTimeout(a.st.ctx, 5*time.Second)
	defer cancel()
	for _, q := range allQueues() {
		base := "emq:{" + q + "}:"
		var n [5]int64
		for i, set := range []string{"pending", "active", "schedule", "dead", "completed"} {
			if n[i], err = a.look.Do(ctx, a.look.B().Zcard().Key(base+set).Build()).AsInt64(); err != nil {
				return c, err
			}
		}
		laned, err := a.look.Do(ctx, a.look.B().Hget().Key(base+"meta").Field("laned").Build()).AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			return c, err
		}
		c.waiting += int(n[0] + laned)
		c.active += int(n[1])
		c.scheduled += int(n[2])
		c.dead += int(n[3])
		c.completed += int(n[4])
	}
	return c, nil
}

// drained waits until nothing is left to run.
func (a *audit) drained(within time.Duration) bool {
	var last census
	var err error
	ok := a.st.reached("everything has ended", within, func() bool {
		last, err = a.census()
		return err == nil && last.unfinished() == 0
	})
	if !ok {
		a.st.failf("left: %+v %v", last, err)
	}
	return ok
}

// judge is the whole audit, when all processes have ended or are idle.
func (a *audit) judge() {
	lines, err := (&reader{name: a.st.log}).read()
	a.st.must("read the log", err)
	a.spaces = make(map[string]*keyspace)
	for _, q := range allQueues() {
		ks, err := readKeyspace(a.st.ctx, a.look, q)
		a.st.must("read the key space", err)
		a.spaces[q] = ks
	}
	a.weigh(lines)
}

// weigh compares a log with the key spaces.
func (a *audit) weigh(lines []line) {
	for _, q := range allQueues() {
		for _, f := range a.spaces[q].faults() {
			a.st.failf("%s", f)
		}
	}
	a.sort(lines)
	runs, again := 0, 0
	for key, stints := range a.stints {
		a.checkRuns(key, stints)
		runs += len(stints)
		for _, s := range stints[:len(stints)-1] {
			if s.result != "failed" {
				again++
			}
		}
	}
	for key, ack := range a.acked {
		a.checkEnd(key, ack)
	}
	a.checkTotals()
	a.st.figure("%d acknowledged, %d runs (%d of them again without a failure)", len(a.acked), runs, again)
	if a.lost > 0 {
		a.st.figure("%d forgotten by the store", a.lost)
	}
}

func place(l line) string { return l.Queue + "/" + fmt.Sprint(l.N) }

func (a *audit) sort(lines []line) {
	sort.SliceStable(lines, func(i, j int) bool { return lines[i].T < lines[j].T })
	a.stints, a.acked, a.fates = make(map[string][]*stint), make(map[string]line), make(map[string]string)
	byRun := make(map[[2]int64]*stint)
	ids := make(map[string]string)
	for _, l := range lines {
		switch l.What {
		case wasAcked:
			if other, twice := ids[l.Queue+l.ID]; twice {
				a.st.failf("the id %s was acknowledged for %s and for %s", l.ID, other, place(l))
			}
			ids[l.Queue+l.ID] = place(l)
			a.acked[place(l)] = l
		case wasRefused, isUnknown:
			a.fates[place(l)] = l.What
		case begins:
			s := &stint{line: l, result: "no end"}
			byRun[[2]int64{int64(l.PID), l.Run}] = s
			a.stints[place(l)] = append(a.stints[place(l)], s)
		case ends:
			s := byRun[[2]int64{int64(l.PID), l.Run}]
			if s == nil || s.end != 0 {
				a.st.failf("run %d in process %d of %s ended (%s) and had not begun", l.Run, l.PID, place(l), l.Text)
				continue
			}
			s.end, s.result = l.T, l.Text
		}
	}
}

// checkRuns: no run without an enqueue, no two at once, none after a success, no attempt from nowhere.
func (a *audit) checkRuns(key string, stints []*stint) {
	ack, acked := a.acked[key]
	if !acked && a.fates[key] != isUnknown {
		a.st.failf("%v: it was never enqueued (%q)", stints[0], a.fates[key])
	}
	failures := 0
	for i, s := range stints {
		if acked && s.ID != ack.ID {
			a.st.failf("%v: it was acknowledged as %s", s, ack.ID)
		}
		for _, before := range stints[:i] {
			overlaps := before.end == 0 || before.end > s.T
			succeeded := before.result == "ok"
			if !overlaps && a.resends && s.Queue == tasks {
				continue
			}
			if (overlaps || succeeded) && !a.excused(before, s.T) {
				what := "began while another run had the job"
				if !overlaps {
					what = "ran again after a success"
				}
				a.st.failf("%s: %v, after %v", what, s, before)
			}
		}
		if s.Try > failures+1 {
			a.st.failf("%v: only %d runs had failed", s, failures)
		}
		if s.result == "failed" {
			failures++
		}
	}
}

// excused tells whether a run may have lost its job before a later one began: its process was dead or
// frozen, or the server out of reach, and for so long that its lease can have ended; or the store lost
// its claim.
func (a *audit) excused(before *stint, at int64) bool {
	half := int64(a.lease / 2)
	for _, p := range a.st.procs {
		if p.pid() != before.PID {
			continue
		}
		p.mu.Lock()
		died, frozen := p.died, slices.Clone(p.frozen)
		p.mu.Unlock()
		// a worker that stopped in order has settled or handed back: its end is no excuse
		if died != 0 && died <= at-half && p.err != nil {
			return true
		}
		if long(frozen, before.T, at, half) {
			return true
		}
	}
	if long(a.away, before.T, at, half) {
		return true
	}
	for _, w := range a.forgot {
		if before.T < w.endAt(at) && w.start < at {
			return true
		}
	}
	return false
}

// long tells whether one of the spans lasted so long between two times.
func long(spans []window, from, to, least int64) bool {
	return slices.ContainsFunc(spans, func(w window) bool {
		return w.endAt(to) > from && min(w.endAt(to), to)-w.start >= least
	})
}

// checkEnd: an acknowledged job has ended once, or waits.
func (a *audit) checkEnd(key string, ack line) {
	if a.lostByHand[ack.ID] {
		return
	}
	row, there := a.spaces[ack.Queue].rows[ack.ID]
	ok := slices.ContainsFunc(a.stints[key], func(s *stint) bool { return s.result == "ok" })
	switch {
	case !there && ok && ack.Queue == tasks:
	case !there && slices.ContainsFunc(a.forgot, func(w window) bool { return ack.T >= w.start && ack.Sent <= w.endAt(ack.T) }):
		a.lost++
	case !there:
		a.st.failf("job %s (%s) is gone; its runs: %v", key, ack.ID, a.stints[key])
	case row["state"] == "completed" && ok:
		a.checkResult(key, row)
	case row["state"] == "completed":
		a.st.failf("job %s (%s) is completed, but no run of it ended well: %v", key, ack.ID, a.stints[key])
	case row["state"] == "dead" && (a.mayDie == nil || !a.mayDie(ack.N)):
		a.st.failf("job %s (%s) is dead: %s; its runs: %v", key, ack.ID, row["last_error"], a.stints[key])
	}
}

// checkResult: what is kept was made by a run that ended well.
func (a *audit) checkResult(key string, row map[string]string) {
	if row["result"] == "" {
		return
	}
	var w which
	if err := json.Unmarshal([]byte(row["result"]), &w); err != nil {
		a.st.failf("job %s: its result %q: %v", key, row["result"], err)
		return
	}
	if !slices.ContainsFunc(a.stints[key], func(s *stint) bool { return s.PID == w.PID && s.Run == w.Run && s.result == "ok" }) {
		a.st.failf("job %s: its result is of run %d in process %d, which did not end well", key, w.Run, w.PID)
	}
}

// checkTotals: the server has counted each completion once. Tasks leave nothing behind but the count.
func (a *audit) checkTotals() {
	if len(a.forgot) > 0 {
		return // the count was forgotten too
	}
	for _, q := range allQueues() {
		ks := a.spaces[q]
		want := len(ks.sets["completed"])
		surplus := 0
		if q == tasks {
			want = 0
			for key, stints := range a.stints {
				if _, there := ks.rows[stints[0].ID]; !strings.HasPrefix(key, tasks+"/") || there || a.lostByHand[stints[0].ID] {
					continue
				}
				want++
				if a.resends {
					surplus += len(stints) - 1
				}
			}
		} else {
			for id := range a.lostByHand {
				if a.queueOf(id) == q {
					surplus++
				}
			}
		}
		if n := ks.total("completed"); n < want || n > want+surplus {
			a.st.failf("queue %s: metrics:completed is %d, and %d jobs have completed", q, n, want)
		}
	}
}

func (a *audit) queueOf(id string) string {
	for _, ack := range a.acked {
		if ack.ID == id {
			return ack.Queue
		}
	}
	return ""
}

// totals sums a counter over the queues.
func (a *audit) total(name string) (n int) {
	for _, ks := range a.spaces {
		n += ks.total(name)
	}
	return n
}
