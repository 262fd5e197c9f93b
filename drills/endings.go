package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/scripts"
)

// mortal is a job that ends in the way that How says; lasting ones are kept for a while, the unique ones differ in
// how long they hold their keys.
type mortal struct {
	How string
	N   int
}

type (
	brief   mortal
	lasting mortal
	once    mortal // unique until it has ended
	begun   mortal // unique until it starts
	rare    mortal // unique for a second
	fragile mortal // of a queue in which one lapsed lease is the end
)

const (
	endings = "endings"
	cracks  = "cracks"
)

func spec[J any](queue, kind string) emq.Spec[J] {
	return emq.Spec[J]{Queue: queue, Kind: kind, Attempts: 2, Timeout: time.Minute, Backoff: emq.Fixed(20 * time.Millisecond)}
}

func (brief) EmqSpec() emq.Spec[brief]     { return spec[brief](endings, "brief") }
func (fragile) EmqSpec() emq.Spec[fragile] { return spec[fragile](cracks, "fragile") }

func (lasting) EmqSpec() emq.Spec[lasting] {
	s := spec[lasting](endings, "lasting")
	s.Retain = time.Second
	return s
}

func (lasting) EmqResult() (n int) { return }

func (once) EmqSpec() emq.Spec[once] {
	s := spec[once](endings, "once")
	s.UniqueKey = func(o once) string { return emq.UniqueKey("once", o.How, strconv.Itoa(o.N)) }
	return s
}

func (begun) EmqSpec() emq.Spec[begun] {
	s := spec[begun](endings, "begun")
	s.UniqueFor, s.UniqueKey = emq.UntilStart().Debounced(), func(b begun) string { return emq.UniqueKey("begun", strconv.Itoa(b.N/2)) }
	return s
}

func (rare) EmqSpec() emq.Spec[rare] {
	s := spec[rare](endings, "rare")
	s.UniqueFor, s.UniqueKey = emq.ForWindow(time.Second), func(r rare) string { return emq.UniqueKey("rare", strconv.Itoa(r.N)) }
	return s
}

// die ends a run as it is told.
func (m mortal) die(ctx context.Context) error {
	info, _ := emq.InfoFrom(ctx)
	switch m.How {
	case "fail":
		return errors.New("it fails each time")
	case "dead":
		return emq.Dead(errors.New("it is beyond help"))
	case "discard":
		return emq.Discard(nil)
	case "snooze":
		if time.Since(info.ID.Time()) < time.Second {
			return emq.Snooze(time.Second)
		}
	case "linger": // it is released when its worker stops, or cancelled
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Second):
		}
	case "talk":
		if err := emq.SetProgress(ctx, m.N); err != nil {
			return err
		}
		return emq.AppendLog(ctx, "it was here")
	case "rant": // logs, and a dead letter
		return errors.Join(emq.AppendLog(ctx, "it fails"), emq.Dead(errors.New("it has said why")))
	}
	return nil
}

func mortals() emq.Binding {
	return emq.Bind(
		emq.Handle(func(ctx context.Context, m brief) error { return mortal(m).die(ctx) }),
		emq.HandleResult(func(ctx context.Context, m lasting) (int, error) { return m.N, mortal(m).die(ctx) }),
		emq.Handle(func(ctx context.Context, m once) error { return mortal(m).die(ctx) }),
		emq.Handle(func(ctx context.Context, m begun) error { return mortal(m).die(ctx) }),
		emq.Handle(func(ctx context.Context, m rare) error { return mortal(m).die(ctx) }),
		emq.Handle(func(ctx context.Context, m fragile) error { return mortal(m).die(ctx) }),
	)
}

// funeral is one go through every ending.
type funeral struct {
	st     *stage
	s      *redistest.Server
	c      *emq.Client
	q, odd *emq.Queue
	n      int
}

func allEndings(st *stage) {
	s := st.redis()
	f := &funeral{st: st, s: s, c: st.client(s.URL())}
	f.q, f.odd = f.c.Queue(endings), f.c.Queue(cracks)
	for _, q := range []*emq.Queue{f.q, f.odd} {
		st.must("SetDeadCaps", q.SetDeadCaps(st.ctx, 20, 90*24*time.Hour))
	}
	st.must("SetCrashBudget", f.odd.SetCrashBudget(st.ctx, 1))
	st.must("SetEvents", f.q.SetEvents(st.ctx, true))
	f.n = 200
	f.pass()
	few, fewBytes := f.idle()
	f.n = st.size(20_000, 1_000_000)
	began := time.Now()
	f.pass()
	took := time.Since(began)
	many, manyBytes := f.idle()
	st.figure("%d jobs in %.1f s; keys %d before and %d after, memory %d kB before and %d kB after", f.n, took.Seconds(), len(few), len(many), fewBytes>>10, manyBytes>>10)
	for _, key := range slices.Sorted(maps.Keys(many)) {
		// a number more digits long is all that may have grown
		if before, known := few[key]; !known || many[key] > before+64 {
			st.failf("the key %s takes %d bytes, and took %d among few jobs", key, many[key], before)
		}
	}
	if slack := 512 << 10; manyBytes > fewBytes+slack {
		st.failf("the memory has not come back: %d bytes more", manyBytes-fewBytes)
	}
	for _, name := range []string{"completed", "retried", "failed", "snoozed", "released", "reaped", "cancelled", "discarded", "removed"} {
		if st.counts(f.c, endings).Totals[name] == 0 {
			st.doubtf("no job was %s: the drill proves nothing", name)
		}
	}
	if st.counts(f.c, cracks).Totals["reaped"] == 0 || st.counts(f.c, cracks).Totals["failed"] == 0 {
		st.doubtf("no job died of lapsed leases: the drill proves nothing")
	}
}

// made enqueues n jobs and gives the first few's ids.
func (f *funeral) made(n int, job func(i int) emq.Job) []emq.ID {
	var ids []emq.ID
	for from := 0; from < n; from += 2000 {
		jobs := make([]emq.Job, min(2000, n-from))
		for i := range jobs {
			jobs[i] = job(from + i)
		}
		receipts, err := f.c.Enqueue(f.st.ctx, jobs...)
		f.st.must("enqueue", err)
		for _, r := range receipts {
			if len(ids) < 500 {
				ids = append(ids, r.ID)
			}
		}
	}
	return ids
}

func (f *funeral) pass() {
	f.unrun()
	f.claimedByNobody()
	part := f.n / 12
	const lanes = 500
	lane := func(i int) emq.Option { return emq.InLane(fmt.Sprint("lane ", i%lanes)) }
	st, ctx := f.st, f.st.ctx
	st.must("SetLaneLimit", f.q.SetLaneLimit(ctx, "lane 1", 2))
	st.must("SetLaneWeight", f.q.SetLaneWeight(ctx, "lane 2", 3))
	st.must("AddCron", f.q.AddCron(ctx, "tick", emq.Cron{Spec: "* * * * *"}, emq.New(brief{How: "tick"})))
	cfg := emq.WorkerConfig{Concurrency: 50, Lease: 2 * time.Second, SoftStop: 50 * time.Millisecond}
	stopOne := st.serve(f.s.URL(), 1, cfg, mortals())
	lingering := f.made(20, func(i int) emq.Job { return emq.New(brief{"linger", i}) })
	st.need("a job lingers", 20*time.Second, func() bool {
		state, err := f.q.State(ctx, lingering[0])
		return err == nil && state == emq.StateActive
	})
	stopOne() // they are released
	stop := st.serve(f.s.URL(), 4, cfg, mortals())
	f.made(part, func(i int) emq.Job { return emq.New(brief{"", i}, lane(i)) })
	f.made(part, func(i int) emq.Job { return emq.New(lasting{"talk", i}, lane(i)) })
	f.made(part, func(i int) emq.Job { return emq.New(lasting{"", i}) })
	f.made(part, func(i int) emq.Job { return emq.New(brief{"fail", i}, lane(i)) })
	f.made(part, func(i int) emq.Job { return emq.New(once{[]string{"", "fail", "dead", "discard"}[i%4], i}) })
	f.made(part, func(i int) emq.Job { return emq.New(begun{"", i}, lane(i)) })
	f.made(part, func(i int) emq.Job { return emq.New(rare{"", i}) })
	f.made(part, func(i int) emq.Job { return emq.New(brief{"discard", i}) })
	f.made(part, func(i int) emq.Job { return emq.New(brief{"rant", i}) })
	f.made(part, func(i int) emq.Job { return emq.New(once{"snooze", i}) })
	for _, id := range lingering {
		if err := f.c.Cancel(ctx, emq.Ref{Queue: endings, ID: id}); err != nil && !errors.Is(err, emq.ErrGone) {
			st.must("Cancel", err)
		}
	}
	done := emq.New(lasting{"", 1})
	receipts, err := f.c.Enqueue(ctx, done)
	st.must("enqueue", err)
	_, err = f.c.AwaitResult(ctx, receipts[0].Ref)
	st.must("AwaitResult", err)
	_, err = f.q.RunCronNow(ctx, "tick")
	st.must("RunCronNow", err)
	st.must("RemoveCron", f.q.RemoveCron(ctx, "tick"))
	f.ended(15 * time.Minute)
	stop()
	st.must("ClearLaneLimit", f.q.ClearLaneLimit(ctx, "lane 1"))
	st.must("SetLaneWeight", f.q.SetLaneWeight(ctx, "lane 2", 1))
}

// unrun are the endings of jobs that never run: cancelled, removed one by one and by the list.
func (f *funeral) unrun() {
	st, ctx, part := f.st, f.st.ctx, f.n/24
	st.must("Pause", f.q.Pause(ctx))
	for i, opts := range [][]emq.Option{nil, {emq.In(time.Hour)}, {emq.InLane("alone")}} {
		cancelled := f.made(min(part, 500), func(k int) emq.Job { return emq.New(once{"cancelled" + strconv.Itoa(i), k}, opts...) })
		removed := f.made(min(part, 500), func(k int) emq.Job { return emq.New(once{"removed" + strconv.Itoa(i), k}, opts...) })
		for k, id := range cancelled {
			st.must("Cancel", f.c.Cancel(ctx, emq.Ref{Queue: endings, ID: id}))
			st.must("Remove", f.q.Remove(ctx, removed[k]))
		}
		f.made(part, func(k int) emq.Job { return emq.New(once{"drained" + strconv.Itoa(i), k}, opts...) })
	}
	f.made(part, func(k int) emq.Job { return emq.New(begun{"drained", k}, emq.InLane("from")) })
	_, err := f.q.ReassignLane(ctx, "from", "to")
	st.must("ReassignLane", err)
	_, err = f.q.DrainLane(ctx, "to")
	st.must("DrainLane", err)
	_, err = f.q.Drain(ctx, emq.DrainOptions{Scheduled: true})
	st.must("Drain", err)
	st.must("Resume", f.q.Resume(ctx))
}

// claimedByNobody are jobs whose process has died just after their claim.
func (f *funeral) claimedByNobody() {
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{f.s.Addr()}, ForceSingleClient: true, DisableCache: true})
	f.st.must("connect", err)
	defer raw.Close()
	server, err := scripts.NewServer(raw, "")
	f.st.must("load the scripts", err)
	part := f.n / 24
	f.made(part, func(i int) emq.Job { return emq.New(once{"reaped", i}, emq.InLane(fmt.Sprint("lane ", i%50))) })
	f.made(part, func(i int) emq.Job { return emq.New(fragile{"", i}, emq.InLane(fmt.Sprint("lane ", i%50))) })
	for _, queue := range []string{endings, cracks} {
		for claimed := 0; claimed < part; {
			got, err := server.Queue(queue).Claim(f.st.ctx, scripts.Claim{Lease: 100 * time.Millisecond, N: 200, By: fmt.Sprintf("nobody%02d", claimed/200%100)})
			f.st.must("claim", err)
			if len(got.Jobs) == 0 {
				f.st.must("claim", errors.New("nothing to claim"))
			}
			claimed += len(got.Jobs)
		}
	}
}

// ended waits until every job has ended, and removes the last dead letters.
func (f *funeral) ended(within time.Duration) {
	st := f.st
	for _, q := range []*emq.Queue{f.q, f.odd} {
		st.need("every job ends", within, func() bool {
			n, err := q.Counts(st.ctx)
			return err == nil && n.Pending+n.Active+n.Scheduled+n.Completed == 0 && n.Dead <= 20
		})
		page, err := q.Browse(st.ctx, emq.BrowseOptions{State: emq.StateDead, N: 100})
		st.must("Browse", err)
		if len(page.Jobs) == 0 {
			st.failf("no dead letter is left under the cap")
		}
		for _, j := range page.Jobs {
			st.must("Remove", q.Remove(st.ctx, j.ID))
		}
	}
}

// idle gives the keys that are left and the bytes of each, and the memory that is used, once nobody works and what
// expires has expired. In the short form what names a process, and expires within a minute, is left out instead.
func (f *funeral) idle() (map[string]int, int) {
	st := f.st
	raw := st.direct(f.s)
	var keys []string
	st.need("what expires has expired", 2*time.Minute, func() bool {
		all, err := scan(st.ctx, raw.raw, "*")
		st.must("list the keys", err)
		keys = keys[:0]
		for _, key := range all {
			left, err := raw.do("PTTL", key).AsInt64()
			st.must("read a time to live", err)
			switch {
			case left == -2: // it has just expired
			case left >= 0 && left <= 60_000 && !st.long && strings.Contains(key, ":wake:"):
			case left >= 0:
				return false
			default:
				keys = append(keys, key)
			}
		}
		return true
	})
	bytes := make(map[string]int)
	for _, key := range keys {
		n, err := raw.do("MEMORY", "USAGE", key, "SAMPLES", "0").AsInt64()
		st.must("measure a key", err)
		bytes[key] = int(n)
	}
	used := 0
	st.need("the server has given back its memory", 30*time.Second, func() bool {
		before := used
		used = st.memory(f.s)
		st.sleep(300 * time.Millisecond)
		return before == used || before > 0 && max(before, used)-min(before, used) < 16<<10
	})
	return bytes, used
}
