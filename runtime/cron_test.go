package emq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// sweep is a job that run-time entries enqueue.
type sweep struct {
	Name string `json:"name,omitempty"`
}

func (sweep) EmqSpec() emq.Spec[sweep] {
	return emq.Spec[sweep]{Queue: "work", Kind: "sweep", Attempts: 1, Timeout: time.Minute}
}

// rewind lets time pass for an entry: its next tick was due that much earlier.
func rewind(t *testing.T, s *store, entry string, to time.Time) {
	t.Helper()
	ms := strconv.FormatInt(to.UnixMilli(), 10)
	s.do(t, "HSET", "emq:{work}:repeat:"+entry, "next", ms)
	s.do(t, "ZADD", "emq:{work}:repeat", ms, entry)
	s.do(t, "LPUSH", "emq:{work}:wake:pump", "1")
}

func cronOf(t *testing.T, s *store, name string) (found emq.CronEntry) {
	t.Helper()
	for _, e := range allCrons(t, s) {
		if e.Name == name {
			return e
		}
	}
	return emq.CronEntry{}
}

func allCrons(t *testing.T, s *store) (all []emq.CronEntry) {
	t.Helper()
	for cursor := ""; ; {
		page, err := s.Queue("work").Crons(t.Context(), cursor, 2)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Entries...)
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// notes remembers the runs of chores.
type notes struct {
	mu   sync.Mutex
	runs []emq.Info
}

func (n *notes) handle(ctx context.Context, _ sweep) error {
	info, _ := emq.InfoFrom(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.runs = append(n.runs, info)
	return nil
}

func (n *notes) all() []emq.Info {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]emq.Info(nil), n.runs...)
}

// sightings counts what an observer is told, by Event.Count.
type sightings struct {
	mu   sync.Mutex
	seen map[emq.EventName]int
}

func (s *sightings) Observe(_ context.Context, e emq.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[emq.EventName]int{}
	}
	s.seen[e.Name] += e.Count
}

func (s *sightings) of(name emq.EventName) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[name]
}

func TestMissedTicksAfterAnOutage(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q := s.Queue("work")
		hour := s.now(t).Truncate(time.Hour)
		past := hour.Add(-3 * time.Hour)
		for name, missed := range map[string]emq.Missed{"skip": emq.SkipMissed, "once": emq.RunOnce, "all": emq.RunAll} {
			err := q.AddCron(t.Context(), name, emq.Cron{Spec: "0 * * * *", Missed: missed}, emq.New(sweep{name}, emq.WithHeader("entry", name)))
			if err != nil {
				t.Fatal(err)
			}
			if e := cronOf(t, s, name); e.Kind != "sweep" || e.Spec != "0 * * * *" || e.Missed != missed || e.Declared || !e.Next.Equal(hour.Add(time.Hour)) && s.now(t).Before(hour.Add(time.Hour)) {
				t.Errorf("the new entry is %+v", e)
			}
			rewind(t, s, name, past)
		}
		n, seen := new(notes), new(sightings)
		run(t, s.Client, emq.WorkerConfig{Observer: seen}, emq.Handle(n.handle))
		eventually(t, "every tick was seen to", func() bool {
			for _, e := range allCrons(t, s) {
				if !e.Next.After(hour) {
					return false
				}
			}
			return len(n.all()) >= 5
		})
		got := map[string][]time.Time{}
		for _, info := range n.all() {
			got[info.Headers["entry"]] = append(got[info.Headers["entry"]], info.Tick)
		}
		if late := s.now(t).Sub(hour); late > time.Minute && len(got["skip"]) != 0 {
			t.Errorf("skip ran %v", got["skip"])
		}
		if len(got["once"]) != 1 || !got["once"][0].Equal(hour) {
			t.Errorf("once ran %v, want the newest, %v", got["once"], hour)
		}
		if len(got["all"]) != 4 {
			t.Fatalf("all ran %v, want four from %v on", got["all"], past)
		}
		ticks := map[time.Time]bool{}
		for _, tick := range got["all"] {
			ticks[tick.UTC()] = true
		}
		for i := range 4 {
			if at := past.Add(time.Duration(i) * time.Hour).UTC(); !ticks[at] {
				t.Errorf("all did not run for %v", at)
			}
		}
		if e := cronOf(t, s, "once"); e.TicksFired != 1 || e.TicksMissed != 3 || !e.Last.Equal(hour) {
			t.Errorf("once: %+v", e)
		}
		if e := cronOf(t, s, "all"); e.TicksFired != 4 || e.TicksMissed != 0 {
			t.Errorf("all: %+v", e)
		}
		if f, m := seen.of(emq.EventTickFired), seen.of(emq.EventTickMissed); f < 5 || m < 6 {
			t.Errorf("the observer was told of %d fired, %d missed", f, m)
		}
	})
}

func TestCronsArePausedResumedRunAndRemoved(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q, ctx := s.Queue("work"), t.Context()
		n := new(notes)
		run(t, s.Client, emq.WorkerConfig{}, emq.Handle(n.handle))
		if err := q.AddCron(ctx, "yearly", emq.Cron{Spec: "@yearly", TZ: "Europe/Berlin", Missed: emq.RunAll}, emq.New(sweep{"y"})); err != nil {
			t.Fatal(err)
		}
		added := cronOf(t, s, "yearly")
		if err := q.AddCron(ctx, "yearly", emq.Cron{Spec: "@yearly", TZ: "Europe/Berlin", Missed: emq.RunAll}, emq.New(sweep{"y"})); err != nil {
			t.Fatal(err)
		}
		if again := cronOf(t, s, "yearly"); again != added || added.Next.In(time.UTC).Hour() != 23 {
			t.Errorf("%+v became %+v", added, again)
		}
		if err := q.PauseCron(ctx, "yearly"); err != nil {
			t.Fatal(err)
		}
		rewind(t, s, "yearly", s.now(t).Add(-time.Hour)) // also a paused one that is met does not tick
		r, err := q.RunCronNow(ctx, "yearly")
		if err != nil || r.Status != emq.Enqueued || r.Queue != "work" {
			t.Fatalf("%+v, %v", r, err)
		}
		eventually(t, "it runs now", func() bool { return len(n.all()) == 1 })
		if info := n.all()[0]; !info.Tick.IsZero() || info.ID != r.ID {
			t.Errorf("it ran as %+v", info)
		}
		if e := cronOf(t, s, "yearly"); !e.Paused || e.TicksFired != 0 {
			t.Errorf("paused: %+v", e)
		}
		if err := q.ResumeCron(ctx, "yearly"); err != nil {
			t.Fatal(err)
		}
		if e := cronOf(t, s, "yearly"); e.Paused || !e.Next.Equal(added.Next) {
			t.Errorf("resumed: %+v, want the next tick %v", e, added.Next)
		}
		rewind(t, s, "yearly", s.now(t).Add(-time.Second))
		eventually(t, "it ticks again", func() bool { return len(n.all()) == 2 })
		if err := q.RemoveCron(ctx, "yearly"); err != nil {
			t.Fatal(err)
		}
		if all := allCrons(t, s); len(all) != 0 {
			t.Errorf("left: %+v", all)
		}
		_, nowErr := q.RunCronNow(ctx, "yearly")
		for _, err := range []error{q.RemoveCron(ctx, "yearly"), q.PauseCron(ctx, "yearly"), q.ResumeCron(ctx, "yearly"), nowErr} {
			if !errors.Is(err, emq.ErrGone) || !strings.Contains(err.Error(), "queue work has none of the name yearly") {
				t.Errorf("of a removed entry: %v", err)
			}
		}
	})
}

func TestOverlapAndUniqueKeysSkipTicks(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q, ctx := s.Queue("work"), t.Context()
		minute := s.now(t).Truncate(time.Minute)
		for name, overlap := range map[string]emq.Overlap{"skips": emq.SkipOverlap, "allows": emq.AllowOverlap} {
			if err := q.AddCron(ctx, name, emq.Cron{Spec: "* * * * *", Missed: emq.RunAll, Overlap: overlap}, emq.New(sweep{name})); err != nil {
				t.Fatal(err)
			}
			rewind(t, s, name, minute.Add(-4*time.Minute))
		}
		// nobody serves the kind, so the first job waits
		type other = job
		log, seen := new(logbook), new(sightings)
		run(t, s.Client, emq.WorkerConfig{AllowPartial: true, Logger: log.logger(), Observer: seen}, emq.Handle(func(context.Context, other) error { return nil }))
		eventually(t, "both were seen to", func() bool {
			a, b := cronOf(t, s, "skips"), cronOf(t, s, "allows")
			return a.Next.After(minute) && b.Next.After(minute)
		})
		if e := cronOf(t, s, "skips"); e.TicksFired != 1 || e.TicksSkipped < 4 {
			t.Errorf("skips: %+v", e)
		}
		// the entry has moved on a moment before the observer is told
		eventually(t, "the observer was told", func() bool { return seen.of(emq.EventTickSkipped) >= 4 })
		if lines := log.with("cron ticks were skipped", "entry=skips"); len(lines) != 1 {
			t.Errorf("%d lines of one entry's skipped ticks: %v", len(lines), lines)
		}
		if e := cronOf(t, s, "allows"); e.TicksFired < 5 || e.TicksSkipped != 0 {
			t.Errorf("allows: %+v", e)
		}
	})
}

func TestWhatNoCronEntryCanBe(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q, ctx := s.Queue("work"), t.Context()
		daily := emq.Cron{Spec: "@daily"}
		id, err := s.NewID()
		if err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"name":        q.AddCron(ctx, "Nightly", daily, emq.New(sweep{})),
			"no name":     q.AddCron(ctx, "", daily, emq.New(sweep{})),
			"spec":        q.AddCron(ctx, "a", emq.Cron{Spec: "* * *"}, emq.New(sweep{})),
			"zone":        q.AddCron(ctx, "a", emq.Cron{Spec: "@daily", TZ: "Mars/Olympus"}, emq.New(sweep{})),
			"In":          q.AddCron(ctx, "a", daily, emq.New(sweep{}, emq.In(time.Second))),
			"In of 0":     q.AddCron(ctx, "a", daily, emq.New(sweep{}, emq.In(0))),
			"At":          q.AddCron(ctx, "a", daily, emq.New(sweep{}, emq.At(time.Now()))),
			"WithID":      q.AddCron(ctx, "a", daily, emq.New(sweep{}, emq.WithID(id))),
			"queue":       q.AddCron(ctx, "a", daily, emq.New(errand{})),
			"no job":      q.AddCron(ctx, "a", daily, emq.Job{}),
			"a bad queue": s.Queue("a b").AddCron(ctx, "a", daily, emq.New(sweep{})),
			"bad pause":   q.PauseCron(ctx, "A"),
		} {
			if !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, n := range []int{0, -1, 501} {
			if _, err := q.Crons(ctx, "", n); !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("a page of %d: %v", n, err)
			}
		}
		if _, err := q.Crons(ctx, "x", 1); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("a cursor: %v", err)
		}
		if keys := s.keysLike(t, "*repeat*"); len(keys) != 0 {
			t.Errorf("what was refused has left %v", keys)
		}
	})
}

func TestOneEntryServedByTwoClientsTicksOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const tick, ticks = 50 * time.Millisecond, 40
		var ran notes
		var opts []emq.ClientOption
		if s.embedded {
			opts = append(opts, emq.InProcess(nil))
		}
		second := openClient(t, s.url, opts...)
		for _, c := range []*emq.Client{s.Client, second} {
			emq.FireEvery(c, tick)
			run(t, c, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(ran.handle))
		}
		q := s.Queue("work")
		if err := q.AddCron(t.Context(), "sweep/all", emq.Cron{Spec: "* * * * *", Missed: emq.RunAll}, emq.New(sweep{})); err != nil {
			t.Fatal(err)
		}
		first := cronOf(t, s, "sweep/all").Next
		eventually(t, "it has ticked", func() bool {
			s.do(t, "DEL", "emq:{work}:pump") // so both take themselves for the only one that pumps
			return cronOf(t, s, "sweep/all").TicksFired >= ticks
		})
		if err := q.PauseCron(t.Context(), "sweep/all"); err != nil {
			t.Fatal(err)
		}
		end := cronOf(t, s, "sweep/all")
		eventually(t, "all have run", func() bool { return s.counts(t, "work").Totals["completed"] == end.TicksFired })
		jobs := map[int64]int{}
		for _, info := range ran.all() {
			jobs[info.Tick.UnixMilli()]++
		}
		for at := first; !at.After(end.Last); at = at.Add(tick) {
			if jobs[at.UnixMilli()] != 1 {
				t.Errorf("tick %v has %d jobs", at, jobs[at.UnixMilli()])
			}
		}
		if want := int64(end.Last.Sub(first)/tick) + 1; int64(len(jobs)) != want || end.TicksFired != want || end.TicksMissed != 0 {
			t.Errorf("%d ticks have passed, %d have jobs: %+v", want, len(jobs), end)
		}
	})
}
