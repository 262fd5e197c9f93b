package emq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// nightlyA, nightlyB and nightlyC are three versions of one declared job.
type nightlyA struct{}

func (nightlyA) EmqSpec() emq.Spec[nightlyA] { return nightlySpec[nightlyA]("0 2 * * *", 1) }

type nightlyB struct{}

func (nightlyB) EmqSpec() emq.Spec[nightlyB] { return nightlySpec[nightlyB]("0 3 * * *", 1) }

type nightlyC struct{}

func (nightlyC) EmqSpec() emq.Spec[nightlyC] { return nightlySpec[nightlyC]("0 4 * * *", 2) }

func nightlySpec[J any](spec string, version int) emq.Spec[J] {
	return emq.Spec[J]{Queue: "work", Kind: "nightly", Version: version, Attempts: 1, Timeout: time.Minute,
		Cron: []emq.Cron{{Spec: spec, TZ: "Europe/Berlin", Missed: emq.RunOnce}}}
}

func nightly[J emq.Payload[J]](infos chan<- emq.Info) emq.Binding {
	return emq.Handle(func(ctx context.Context, _ J) error {
		info, _ := emq.InfoFrom(ctx)
		infos <- info
		return nil
	})
}

// serve runs a worker that refreshes what it declares every few milliseconds, and answers when its first
// refresh has passed.
func serve(t *testing.T, s *store, hold time.Duration, log *logbook, bindings ...emq.Binding) (stop func()) {
	t.Helper()
	w, err := emq.NewWorker(s.Client, emq.WorkerConfig{Lease: time.Second, AllowPartial: true, Logger: log.logger()}, bindings...)
	if err != nil {
		t.Fatal(err)
	}
	emq.CronTimes(w, 10*time.Millisecond, hold)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if !stopped {
			stopped = true
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	}
	t.Cleanup(stop)
	eventually(t, "the worker serves", func() bool { _, ok := w.Health()["pump work"]; return ok })
	return stop
}

// forget lets time pass since the last refresh of an entry.
func forget(t *testing.T, s *store, ago time.Duration) {
	t.Helper()
	at := s.now(t).Add(-ago).UnixMilli()
	s.do(t, "HSET", "emq:{work}:repeat:nightly", "refreshed", strconv.FormatInt(at, 10))
	s.do(t, "ZADD", "emq:{work}:repeat", strconv.FormatInt(at+time.Hour.Milliseconds(), 10), "nightly")
	s.do(t, "LPUSH", "emq:{work}:wake:pump", "1")
}

func refreshedAt(t *testing.T, s *store) string {
	t.Helper()
	text, err := s.do(t, "HGET", "emq:{work}:repeat:nightly", "refreshed").ToString()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// refreshes waits until a worker has refreshed the entry again.
func refreshes(t *testing.T, s *store) {
	t.Helper()
	before := refreshedAt(t, s)
	eventually(t, "the entry is refreshed", func() bool { return refreshedAt(t, s) != before })
}

func other(t *testing.T) emq.Binding {
	t.Helper()
	return emq.Handle(func(context.Context, job) error { return nil })
}

func TestADeclaredEntryLivesWhileAWorkerBindsItsJob(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		infos, log := make(chan emq.Info, 10), new(logbook)
		stop := serve(t, s, time.Hour, log, nightly[nightlyA](infos))
		eventually(t, "the entry is there", func() bool { return cronOf(t, s, "nightly").Declared })
		if e := cronOf(t, s, "nightly"); e.Kind != "nightly" || e.Spec != "0 2 * * *" || e.TZ != "Europe/Berlin" || e.Missed != emq.RunOnce || e.Next.IsZero() {
			t.Errorf("the entry is %+v", e)
		}
		refreshes(t, s)
		q := s.Queue("work")
		if err := q.RemoveCron(t.Context(), "nightly"); !errors.Is(err, emq.ErrLocked) {
			t.Errorf("a declared entry is removed by hand: %v", err)
		}
		if err := q.AddCron(t.Context(), "nightly", emq.Cron{Spec: "@daily"}, emq.New(job{})); !errors.Is(err, emq.ErrLocked) {
			t.Errorf("a declared entry is overwritten: %v", err)
		}
		stop()

		// an outage of two hours, in which the last tick was due: it runs, once somebody has refreshed it
		tick := s.now(t).Add(-90 * time.Minute).Truncate(time.Second)
		forget(t, s, 2*time.Hour)
		s.do(t, "HSET", "emq:{work}:repeat:nightly", "next", strconv.FormatInt(tick.UnixMilli(), 10))
		stop = serve(t, s, time.Hour, log, nightly[nightlyA](infos))
		select {
		case info := <-infos:
			if info.Tick.Before(tick) || info.Kind != "nightly" {
				t.Errorf("it ran as %+v", info)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("the tick of the outage has not run")
		}
		stop()

		// nobody binds it any more: a pump that has not waited leaves it, and fires nothing
		forget(t, s, 2*time.Hour)
		s.do(t, "HSET", "emq:{work}:repeat:nightly", "next", strconv.FormatInt(tick.UnixMilli(), 10))
		stop = serve(t, s, time.Hour, log, other(t))
		put(t, s.Client, job{1}, emq.In(time.Millisecond))
		eventually(t, "the pump has pumped", func() bool { return s.counts(t, "work").Totals["completed"] == 2 })
		if e := cronOf(t, s, "nightly"); !e.Declared || e.TicksFired != 1 {
			t.Errorf("after two hours beside a new pump: %+v", e)
		}
		stop()
		serve(t, s, 0, log, other(t))
		eventually(t, "the entry is removed", func() bool { return len(allCrons(t, s)) == 0 })
		if len(log.with("a declared cron entry was removed", "entry=nightly")) != 1 {
			t.Error("nobody was told that the entry was removed")
		}
	})
}

func TestTheDefinitionThatCameLastStays(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		infos, log := make(chan emq.Info, 10), new(logbook)
		spec := func() string { return cronOf(t, s, "nightly").Spec }
		serve(t, s, time.Hour, log, nightly[nightlyA](infos))
		eventually(t, "the entry is there", func() bool { return spec() == "0 2 * * *" })
		stop := serve(t, s, time.Hour, log, nightly[nightlyB](infos))
		eventually(t, "the new definition is there", func() bool { return spec() == "0 3 * * *" })
		for range 20 {
			refreshes(t, s)
			if got := spec(); got != "0 3 * * *" {
				t.Fatalf("the older definition has won: %s", got)
			}
		}
		if n := len(log.with("a declared cron entry was written")); n != 2 {
			t.Errorf("the entry was written %d times, want 2", n)
		}
		stop() // a rollback: the older one comes back when nobody has refreshed the newer one for a while
		forget(t, s, 6*time.Minute)
		eventually(t, "the older definition is back", func() bool { return spec() == "0 2 * * *" })

		serve(t, s, time.Hour, log, nightly[nightlyC](infos))
		eventually(t, "a newer version of the payload is there", func() bool { return spec() == "0 4 * * *" })
		serve(t, s, time.Hour, log, nightly[nightlyB](infos)) // late, and older
		for range 20 {
			refreshes(t, s)
			if got := spec(); got != "0 4 * * *" {
				t.Fatalf("an older version has won: %s", got)
			}
		}
	})
}

func TestAJobThatHasMovedTicksOnItsNewQueueOnly(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		infos, log := make(chan emq.Info, 10), new(logbook)
		serve(t, s, time.Hour, log, nightly[nightlyA](infos))
		eventually(t, "the entry is there", func() bool { return cronOf(t, s, "nightly").Declared })
		// what an older program has left on the old queue
		entry, err := s.do(t, "HGETALL", "emq:{work}:repeat:nightly").AsStrMap()
		if err != nil {
			t.Fatal(err)
		}
		for field, value := range entry {
			s.do(t, "HSET", "emq:{old}:repeat:nightly", field, value)
		}
		s.do(t, "ZADD", "emq:{old}:repeat", "9007199254740990", "nightly")
		serve(t, s, time.Hour, log, nightly[nightlyA](infos).AlsoOn("old"))
		eventually(t, "the old entry is gone", func() bool {
			page, err := s.Queue("old").Crons(t.Context(), "", 10)
			return err == nil && len(page.Entries) == 0
		})
		if !cronOf(t, s, "nightly").Declared {
			t.Error("the entry of the new queue is gone")
		}
	})
}

func TestAJobWhoseCronCannotBeIsRefusedByNewWorker(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		_, err := emq.NewWorker(s.Client, emq.WorkerConfig{}, emq.Handle(func(context.Context, misplanned) error { return nil }))
		if !errors.Is(err, emq.ErrInvalid) || !strings.Contains(err.Error(), "Mars/Olympus") || !strings.Contains(err.Error(), "61 * * * *") {
			t.Errorf("%v", err)
		}
	})
}

type misplanned struct{}

func (misplanned) EmqSpec() emq.Spec[misplanned] {
	return emq.Spec[misplanned]{Queue: "work", Kind: "misplanned", Attempts: 1, Timeout: time.Minute,
		Cron: []emq.Cron{{Spec: "@daily", TZ: "Mars/Olympus"}, {Spec: "61 * * * *"}}}
}
