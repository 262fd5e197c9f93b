package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// crowd is a queue with very many jobs in each state.
type crowd struct {
	st  *stage
	m   *meter
	c   *emq.Client
	q   *emq.Queue
	url string
	n   int // in each state; a tenth of it runs

	most int // keys that there have been at once, at the beginning of a verb
}

const crowdLanes = 1000

func crowded(st *stage) {
	s := st.redis()
	cr := &crowd{st: st, m: st.meter(s), c: st.client(s.URL()), url: s.URL(), n: st.size(20_000, 1_000_000)}
	cr.q = cr.c.Queue(parcels)
	st.must("raise the caps", cr.q.SetDeadCaps(st.ctx, 100_000_000, 90*24*time.Hour))
	few := cr.costOfCounts(1000)
	many := cr.costOfCounts(cr.n)
	st.figure("%d jobs in each state; Counts costs the server %.1f µs among 1000 of each and %.1f µs among these", cr.n, few, many)
	if few == 0 || many > 3*few {
		st.doubtf("the cost of Counts grows with the queue")
	}
	cr.readings()
	cr.settings()
	cr.single()
	cr.working()
	cr.bulk()
	cr.control()
}

// listing says in which list the jobs of a state are, and with which ids.
func (cr *crowd) listing(state string, n int, score time.Time) batch {
	b := batch{state: state, list: state, n: n, lanes: min(crowdLanes, n/20), score: score, step: 1}
	switch state {
	case "pending": // in lanes
		b.list, b.ids, b.score = "", "0SX1b", time.Time{}
	case "scheduled":
		b.list, b.ids = "schedule", "0SX1c"
	case "dead": // they have died before
		b.ids, b.score = "0SX1d", score.Add(-2*time.Hour)
	case "completed":
		b.ids = "0SX1e"
	case "active":
		b.ids, b.n = "0SX1f", n/10
	}
	return b
}

// people fills every state; nothing is due for an hour. It answers the bytes that a job takes, by state.
func (cr *crowd) people(n int) map[string]int {
	hour := time.Now().Add(time.Hour)
	bytes := make(map[string]int)
	cr.st.must("forget the fewer jobs", cr.m.raw.do("FLUSHALL", "SYNC").Error())
	cr.st.fill(cr.m.raw, parcels, batch{state: "pending", list: "pending", ids: "0SX1a", n: n})
	for _, state := range []string{"pending", "scheduled", "dead", "completed", "active"} {
		b := cr.listing(state, n, hour)
		before := cr.st.memory(cr.m.s)
		cr.st.fill(cr.m.raw, parcels, b)
		bytes[state] = (cr.st.memory(cr.m.s) - before) / b.n
	}
	return bytes
}

// costOfCounts is what the server spends on one Counts among n jobs in each state, in µs: the least of some
// rounds, as others want the processor too.
func (cr *crowd) costOfCounts(n int) float64 {
	st := cr.st
	bytes := cr.people(n)
	if n == cr.n {
		st.figure("bytes of a job %v", bytes)
	}
	const times = 200
	least := math.Inf(1)
	for range 5 {
		cr.m.during(fmt.Sprintf("Counts, %d in each state", n), each(times, func(int) error {
			_, err := cr.q.Counts(st.ctx)
			return err
		}))
		stats, err := cr.m.s.Info("commandstats")
		st.must("read the command statistics", err)
		sum := 0
		for name, text := range stats {
			if strings.HasPrefix(name, "cmdstat_info") || strings.HasPrefix(name, "cmdstat_slowlog") || strings.HasPrefix(name, "cmdstat_config") {
				continue // the meter's own
			}
			var calls, usec int
			if _, err := fmt.Sscanf(text, "calls=%d,usec=%d", &calls, &usec); err != nil {
				st.must("read the command statistics", fmt.Errorf("%s: %q: %w", name, text, err))
			}
			sum += usec
		}
		least = min(least, float64(sum)/times)
	}
	return least
}

// each turns a call into one for meter.
func each(times int, call func(i int) error) func() (int, error) {
	return func() (int, error) {
		for i := range times {
			if err := call(i); err != nil {
				return i, err
			}
		}
		return times, nil
	}
}

func (cr *crowd) readings() {
	st, q, m := cr.st, cr.q, cr.m
	for _, state := range []emq.State{emq.StatePending, emq.StateScheduled, emq.StateDead, emq.StateCompleted, emq.StateActive} {
		for _, oldest := range []bool{true, false} {
			o := emq.BrowseOptions{State: state, Oldest: oldest, N: 500}
			var last emq.ID
			m.during(fmt.Sprintf("Browse, 500 %s, oldest %v", state, oldest), each(20, func(int) error {
				page, err := q.Browse(st.ctx, o)
				if err == nil && len(page.Jobs) == 0 {
					err = fmt.Errorf("a page without jobs")
				}
				if err == nil {
					o.Cursor, last = page.Next, page.Jobs[0].ID
				}
				return err
			}))
			m.during(fmt.Sprintf("State and Job, %s", state), each(20, func(int) error {
				got, err := q.State(st.ctx, last)
				if err == nil && got != state {
					err = fmt.Errorf("%s is %s instead of %s", last, got, state)
				}
				if err == nil {
					_, err = q.Job(st.ctx, last)
				}
				return err
			}))
		}
	}
	m.during("Browse, of a lane", each(20, func(i int) error {
		_, err := q.Browse(st.ctx, emq.BrowseOptions{State: emq.StatePending, Lane: fmt.Sprint("lane ", i), N: 500})
		return err
	}))
	m.during("Latency", each(50, func(int) error { _, err := q.Latency(st.ctx); return err }))
	m.during("Lanes", func() (n int, err error) {
		for cursor, more := "", true; more; {
			page, err := q.Lanes(st.ctx, cursor, 500)
			if err != nil {
				return n, err
			}
			n += len(page.Lanes)
			cursor, more = page.Next, page.Next != ""
		}
		return n, nil
	})
	m.during("Settings", each(20, func(int) error { _, err := q.Settings(st.ctx); return err }))
}

func (cr *crowd) settings() {
	st, q := cr.st, cr.q
	for _, verb := range []struct {
		name string
		call func() error
	}{
		{"SetConcurrency", func() error { return q.SetConcurrency(st.ctx, 1_000_000) }},
		{"ClearConcurrency", func() error { return q.ClearConcurrency(st.ctx) }},
		{"SetRate", func() error { return q.SetRate(st.ctx, 1000, time.Second) }},
		{"ClearRate", func() error { return q.ClearRate(st.ctx) }},
		{"SetMaxLength", func() error { return q.SetMaxLength(st.ctx, 1_000_000_000) }},
		{"ClearMaxLength", func() error { return q.ClearMaxLength(st.ctx) }},
		{"SetCrashBudget", func() error { return q.SetCrashBudget(st.ctx, 5) }},
		{"ClearCrashBudget", func() error { return q.ClearCrashBudget(st.ctx) }},
		{"Resume", func() error { return q.Resume(st.ctx) }},
		{"PauseLane", func() error { return q.PauseLane(st.ctx, "lane 7") }},
		{"ResumeLane", func() error { return q.ResumeLane(st.ctx, "lane 7") }},
		{"SetLaneLimit", func() error { return q.SetLaneLimit(st.ctx, "lane 7", 10_000) }},
		{"ClearLaneLimit", func() error { return q.ClearLaneLimit(st.ctx, "lane 7") }},
		{"SetLaneWeight", func() error { return q.SetLaneWeight(st.ctx, "lane 7", 3) }},
	} {
		cr.m.during(verb.name, each(5, func(int) error { return verb.call() }))
	}
	cr.m.during("AddCron", each(500, func(i int) error {
		return q.AddCron(st.ctx, fmt.Sprint("entry-", i), emq.Cron{Spec: "0 0 1 1 *"}, emq.New(parcel{N: i}))
	}))
	cr.m.during("Crons", each(5, func(int) error { _, err := q.Crons(st.ctx, "", 500); return err }))
	cr.m.during("Pause", each(5, func(int) error { return q.Pause(st.ctx) }))
}

// single are the verbs of one job, and enqueues; the queue is paused.
func (cr *crowd) single() {
	st, q, m := cr.st, cr.q, cr.m
	ids := func(state emq.State, n int) []emq.ID {
		page, err := q.Browse(st.ctx, emq.BrowseOptions{State: state, N: n})
		st.must("Browse", err)
		all := make([]emq.ID, len(page.Jobs))
		for i, j := range page.Jobs {
			all[i] = j.ID
		}
		return all
	}
	var later []emq.ID
	for _, how := range []struct {
		name string
		opts []emq.Option
	}{
		{"Enqueue, 500 at once", nil}, {"Enqueue, 500 in lanes", []emq.Option{emq.InLane("lane 9")}}, {"Enqueue, 500 for later", []emq.Option{emq.In(time.Hour)}},
	} {
		m.during(how.name, each(10, func(i int) error {
			jobs := make([]emq.Job, 500)
			for k := range jobs {
				jobs[k] = emq.New(parcel{N: 500*i + k}, how.opts...)
			}
			receipts, err := cr.c.Enqueue(st.ctx, jobs...)
			if jobs[0].Delay() > 0 && err == nil {
				later = append(later, receipts[0].ID)
			}
			return err
		}))
	}
	for _, state := range []emq.State{emq.StatePending, emq.StateScheduled, emq.StateDead, emq.StateCompleted} {
		some := ids(state, 50)
		m.during(fmt.Sprintf("Remove, %s", state), each(len(some), func(i int) error { return q.Remove(st.ctx, some[i]) }))
	}
	for _, state := range []emq.State{emq.StatePending, emq.StateScheduled, emq.StateActive} {
		some := ids(state, 50)
		m.during(fmt.Sprintf("Cancel, %s", state), each(len(some), func(i int) error { return cr.c.Cancel(st.ctx, emq.Ref{Queue: parcels, ID: some[i]}) }))
	}
	m.during("UpdatePayload", each(len(later), func(i int) error {
		return emq.UpdatePayload(st.ctx, cr.c, emq.Ref{Queue: parcels, ID: later[i]}, parcel{N: 1})
	}))
	dead := ids(emq.StateDead, 50)
	m.during("Reprocess", each(len(dead), func(i int) error { return q.Reprocess(st.ctx, dead[i]) }))
}

// working lets what is scheduled be due, leases lapse and retentions end, all within n/100 ms around now, and
// lets half of the dead letters be too many; workers and the pump have to see to it.
func (cr *crowd) working() {
	st := cr.st
	for _, state := range []string{"scheduled", "active", "completed"} {
		st.fill(cr.m.raw, parcels, cr.listing(state, cr.n, time.Now())) // the same jobs again, with other times
	}
	st.must("SetDeadCaps", cr.q.SetDeadCaps(st.ctx, cr.n/2, 90*24*time.Hour))
	st.must("Resume", cr.q.Resume(st.ctx))
	before := st.counts(cr.c, parcels)
	lasts := time.Duration(st.size(6, 30)) * time.Second
	cr.m.during("workers and the pump", func() (int, error) {
		workers := st.workers(2, cr.url, workRole{Lease: 2 * time.Second, Concurrency: 200})
		st.sleep(lasts)
		st.finish(workers...)
		return int(st.counts(cr.c, parcels).Totals["completed"] - before.Totals["completed"]), nil
	})
	after := st.counts(cr.c, parcels)
	done, reaped := after.Totals["completed"]-before.Totals["completed"], after.Totals["reaped"]-before.Totals["reaped"]
	st.figure("in %v workers completed %d, the pump promoted about %d, reaped %d, and %d dead letters went", lasts, done, before.Scheduled-after.Scheduled, reaped, before.Dead-after.Dead)
	if done == 0 || reaped == 0 || before.Scheduled <= after.Scheduled || before.Dead <= after.Dead {
		st.doubtf("the workers or the pump did not do all of their work: the drill proves nothing")
	}
}

// bulk are the verbs over many jobs. The workers are gone.
func (cr *crowd) bulk() {
	st, q, m := cr.st, cr.q, cr.m
	over := func(verb string, run func() (emq.BulkProgress, error)) {
		keys, err := m.raw.do("DBSIZE").AsInt64()
		st.must("count the keys", err)
		cr.most = max(cr.most, int(keys))
		m.during(verb, func() (int, error) {
			p, err := run()
			if p.Done == 0 && err == nil {
				err = errors.New("it found no job: the drill proves nothing")
			}
			return p.Done, err
		})
	}
	m.during("Audit, nothing to mend", func() (int, error) {
		r, err := q.Audit(st.ctx, emq.AuditOptions{})
		if mended := (emq.AuditReport{Rows: r.Rows, Members: r.Members}); r != mended {
			st.failf("Audit mended what nobody had broken: %+v", r)
		}
		return r.Rows, err
	})
	m.during("ReprocessAll, of a kind that is not there", func() (int, error) {
		p, err := q.ReprocessAll(st.ctx, emq.ReprocessOptions{Kind: "other"})
		return p.Done, err
	})
	over("ReprocessAll, into lanes", func() (emq.BulkProgress, error) { return q.ReprocessAll(st.ctx, emq.ReprocessOptions{}) })
	st.fill(m.raw, parcels, batch{state: "pending", ids: "0SX1g", n: cr.n, lanes: 1}) // lane 0
	over("ReassignLane, all of one lane", func() (emq.BulkProgress, error) { return q.ReassignLane(st.ctx, "lane 0", "lane 1") })
	over("DrainLane", func() (emq.BulkProgress, error) { return q.DrainLane(st.ctx, "lane 1") })
	lapsed := batch{state: "active", list: "active", ids: "0SX1j", n: cr.n / 2, lanes: 1, score: time.Now().Add(-time.Hour)}
	st.fill(m.raw, parcels, lapsed)
	over("ReapLane, all have lapsed", func() (emq.BulkProgress, error) {
		n, err := q.ReapLane(st.ctx, "lane 0")
		return emq.BulkProgress{Done: n}, err
	})
	over("Drain, of all that waits", func() (emq.BulkProgress, error) { return q.Drain(st.ctx, emq.DrainOptions{Scheduled: true}) })
	cr.remains()
	st.must("Pause", q.Pause(st.ctx))
	over("Obliterate, by force", func() (emq.BulkProgress, error) { return q.Obliterate(st.ctx, emq.ObliterateOptions{Force: true}) })
	left, err := scan(st.ctx, st.look(cr.url), "emq:{"+parcels+"}:*")
	st.must("list the keys", err)
	if len(left) > 0 {
		st.failf("%d keys are left, the first is %s", len(left), left[0])
	}
}

// remains are dead letters and jobs that run.
func (cr *crowd) remains() {
	cr.st.fill(cr.m.raw, parcels, batch{state: "dead", list: "dead", ids: "0SX1h", n: cr.n, score: time.Now()})
	cr.st.fill(cr.m.raw, parcels, batch{state: "active", list: "active", ids: "0SX1i", n: cr.n / 2, lanes: min(crowdLanes, cr.n/20), score: time.Now().Add(time.Hour)})
}
