package emq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/echomq/emq/internal/wire"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/scripts"
)

// baseOfSpread is what the keys of a shard of the queue begin with.
func baseOfSpread(shard int) string { return wire.NewKeys("", wire.Tag("spread", shard)).Base() }

// grown gives the queue four shards with jobs, of which those clients know one that have asked before.
func grown(t *testing.T, s *store, ignorant ...*emq.Client) *emq.Client {
	t.Helper()
	for _, c := range append(ignorant, s.Client) {
		if _, err := c.Queue("spread").Counts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	other := openClient(t, s.url)
	putMany(t, other, 20, func(i int) piece { return piece{N: i} })
	return other
}

func TestShardsThatTheCallerDoesNotKnowAreNotTakenAway(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		for n := 1; n < 4; n++ {
			s.flush(t)
			grown(t, s)
			if err := s.Queue("spread").SetShards(t.Context(), n); !errors.Is(err, emq.ErrState) {
				t.Errorf("%d shards, and there are jobs in each of four: %v", n, err)
			}
			late := openClient(t, s.url).Queue("spread")
			c, err := late.Counts(t.Context())
			if err != nil || c.Pending != 20 {
				t.Errorf("%+v, %v", c, err)
			}
		}
	})
}

func TestWhatIsDoneToAQueueReachesShardsThatTheCallerDoesNotKnow(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		deleter, pager := openClient(t, s.url), openClient(t, s.url)
		other := grown(t, s, deleter, pager)
		if err := s.Queue("spread").Pause(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			if n, err := s.do(t, "HEXISTS", baseOfSpread(i)+"meta", "paused").AsInt64(); err != nil || n != 1 {
				t.Errorf("shard %d is not paused: %v", i, err)
			}
			put(t, other, piece{i, laneOf(i)})
		}
		var lanes []string
		for cursor, reader := "", other; ; {
			page, err := reader.Queue("spread").Lanes(ctx, cursor, 10)
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range page.Lanes {
				lanes = append(lanes, l.Name)
			}
			if cursor = page.Next; cursor == "" {
				break
			}
			if strings.Contains(cursor, "/1#") { // the second shard begins
				reader = pager
			}
		}
		if len(lanes) != 4 {
			t.Errorf("two processes turn the pages, and see the lanes %v", lanes)
		}
		if _, err := deleter.Queue("spread").Obliterate(ctx, emq.ObliterateOptions{}); err != nil {
			t.Error(err)
		}
		if keys := s.keysLike(t, "emq:{spread*"); len(keys) > 0 {
			t.Errorf("left: %v", keys)
		}
	})
}

// limitSpread sets every limit that is split, and answers what Settings says of it.
func limitSpread(t *testing.T, c *emq.Client) emq.Settings {
	t.Helper()
	ctx, q := t.Context(), c.Queue("spread")
	for _, set := range []error{q.SetConcurrency(ctx, 41), q.SetRate(ctx, 4003, time.Second), q.SetMaxLength(ctx, 400), q.SetDeadCaps(ctx, 83, time.Hour)} {
		if set != nil {
			t.Fatal(set)
		}
	}
	set, err := q.Settings(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// holds compares what is set, and what the shards have of it.
func holds(t *testing.T, s *store, shards int, want emq.Settings) {
	t.Helper()
	q := openClient(t, s.url).Queue("spread")
	if n, err := q.Shards(t.Context()); err != nil || n != shards {
		t.Errorf("%d shards, %v: want %d", n, err, shards)
	}
	if got, err := q.Settings(t.Context()); err != nil || got != want {
		t.Errorf("over %d shards %+v, %v: want %+v", shards, got, err, want)
	}
	for field, whole := range map[string]int{
		scripts.FieldConcurrency: want.Concurrency, scripts.FieldRateMax: want.Rate, scripts.FieldMaxLen: want.MaxLength, scripts.FieldDeadMax: want.DeadJobs,
	} {
		sum := 0
		for i := range shards {
			n, err := s.do(t, "HGET", baseOfSpread(i)+"meta", field).AsInt64()
			if err != nil {
				t.Errorf("%s of shard %d: %v", field, i, err)
			}
			sum += int(n)
		}
		if sum != whole {
			t.Errorf("%s: the parts of %d shards are %d together, not %d", field, shards, sum, whole)
		}
	}
}

func TestAChangeOfTheShardsThatBreaksOffLosesNoLimit(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("spread")
		want := limitSpread(t, s.Client)
		s.do(t, "SET", baseOfSpread(2)+"meta", "no settings") // the third shard takes none
		for range 2 {
			if err := q.SetShards(ctx, 4); err == nil {
				t.Error("there are four shards, of which one has no settings")
			}
		}
		s.do(t, "DEL", baseOfSpread(2)+"meta")
		if err := q.SetShards(ctx, 4); err != nil {
			t.Fatal(err)
		}
		holds(t, s, 4, want)
		// what a SetShards of 2 leaves that breaks off: the last shard is gone, the one before is paused
		s.do(t, "DEL", baseOfSpread(3)+"meta")
		s.do(t, "HSET", baseOfSpread(2)+"meta", "paused", "1")
		if err := q.SetShards(ctx, 2); err != nil {
			t.Fatal(err)
		}
		holds(t, s, 2, want)
		// what a shard keeps of a growth that broke off is not what was set since
		s.do(t, "HSET", baseOfSpread(2)+"meta", "paused", "1", "crash_budget", "1")
		if err := q.SetShards(ctx, 3); err != nil {
			t.Fatal(err)
		}
		holds(t, s, 3, want)
		if n, err := s.do(t, "HEXISTS", baseOfSpread(2)+"meta", "paused").AsInt64(); err != nil || n != 0 {
			t.Errorf("the new shard is paused: %v", err)
		}
		if err := q.SetShards(ctx, 1); err != nil {
			t.Fatal(err)
		}
		holds(t, s, 1, want)
	})
}

// wide and narrow are jobs of the same queue, of programs that declare other numbers.
type wide struct{}

func (wide) EmqSpec() emq.Spec[wide] {
	return emq.Spec[wide]{Queue: "spread", Shards: 8, Kind: "wide", Attempts: 1, Timeout: time.Minute}
}

type narrow struct{}

func (narrow) EmqSpec() emq.Spec[narrow] {
	return emq.Spec[narrow]{Queue: "spread", Shards: 2, Kind: "narrow", Attempts: 1, Timeout: time.Minute}
}

// A deploy starts many processes at once, and each finds fewer shards than it declares.
func TestManyWhoSpreadAQueueAtOnceKeepItsLimits(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		for range 5 {
			s.flush(t)
			want := limitSpread(t, openClient(t, s.url))
			var all sync.WaitGroup
			begin := make(chan struct{})
			for i := range 6 {
				c := openClient(t, s.url)
				jobs := []emq.Job{emq.New(wide{}), emq.New(piece{N: i}), emq.New(narrow{})}
				all.Go(func() {
					<-begin
					if _, err := c.Enqueue(t.Context(), jobs[i%3]); err != nil {
						t.Error(err)
					}
				})
			}
			close(begin)
			all.Wait()
			holds(t, s, 8, want)
		}
	})
}

func TestAnObliterateOverShardsIsWholeOrCanBeMadeAgain(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("spread")
		putMany(t, s, 400, func(i int) piece { return piece{N: i} })
		put(t, s, piece{1, laneOf(1)})
		server, err := scripts.NewServer(s.raw, "")
		if err != nil {
			t.Fatal(err)
		}
		claims(t, server.Shard("spread", 1), 1)
		if err := q.Pause(ctx); err != nil {
			t.Fatal(err)
		}
		before := s.keysLike(t, "emq:{spread*")
		if _, err := q.Obliterate(ctx, emq.ObliterateOptions{}); !errors.Is(err, emq.ErrState) {
			t.Errorf("while a job runs: %v", err)
		}
		if after := s.keysLike(t, "emq:{spread*"); !slices.Equal(after, before) {
			t.Errorf("it was refused, and of %d keys %d are left", len(before), len(after))
		}
		rounds := 0
		for ; ; rounds++ {
			stopped, stop := context.WithCancel(ctx)
			_, err := q.Obliterate(stopped, emq.ObliterateOptions{Force: true, Progress: func(p emq.BulkProgress) {
				if p.Done > 0 {
					stop()
				}
			}})
			stop()
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted: %v", err)
			}
			for i := range 4 {
				if n, err := s.do(t, "HEXISTS", baseOfSpread(i)+"meta", "paused").AsInt64(); err != nil || n != 1 {
					t.Errorf("shard %d is not paused any more: %v", i, err)
				}
			}
			if rounds == 2 {
				s.do(t, "DEL", baseOfSpread(3)+"meta") // as if it had ended later
				s.do(t, "HSET", baseOfSpread(3)+"meta", "vt", "1")
			}
		}
		if rounds < 4 {
			t.Errorf("interrupted only %d times", rounds)
		}
		if keys := s.keysLike(t, "emq:{spread*"); len(keys) > 0 {
			t.Errorf("left: %v", keys)
		}
	})
}

// lanesOfSpread are all lanes of the list, page by page.
func lanesOfSpread(t *testing.T, q *emq.Queue) (lanes []emq.Lane) {
	t.Helper()
	for cursor := ""; ; {
		page, err := q.Lanes(t.Context(), cursor, 10)
		if err != nil {
			t.Fatal(err)
		}
		lanes = append(lanes, page.Lanes...)
		if cursor = page.Next; cursor == "" {
			return lanes
		}
	}
}

func TestALaneIsListedOnceAfterItsShardHasChanged(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("spread")
		want := map[string]int{}
		for i := range 8 {
			lane := fmt.Sprint("tenant", i)
			want[lane] = 1
			if err := q.SetLaneLimit(ctx, lane, 3); err != nil {
				t.Fatal(err)
			}
		}
		for _, n := range []int{4, 2, 3} {
			if err := q.SetShards(ctx, n); err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, l := range lanesOfSpread(t, q) {
				if got[l.Name]++; l.Limit != 3 {
					t.Errorf("over %d shards %+v", n, l)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("over %d shards the lanes are %v", n, got)
			}
		}
	})
}

// cronsOfSpread are the entries by their names, and where their keys are.
func cronsOfSpread(t *testing.T, s *store, q *emq.Queue) (entries map[string]emq.CronEntry, keys []string) {
	t.Helper()
	entries = make(map[string]emq.CronEntry)
	for cursor := ""; ; {
		page, err := q.Crons(t.Context(), cursor, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			entries[e.Name] = e
		}
		if cursor = page.Next; cursor == "" {
			return entries, s.keysLike(t, "emq:{spread*:repeat:*")
		}
	}
}

func TestCronEntriesKeepTheirPauseInAnotherShard(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("spread")
		var names []string
		for i := range 8 {
			name := fmt.Sprint("entry", i)
			names = append(names, name)
			if err := q.AddCron(ctx, name, emq.Cron{Spec: "0 0 1 1 *"}, emq.New(visitorOfSpread{i})); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				if err := q.PauseCron(ctx, name); err != nil {
					t.Fatal(err)
				}
			}
		}
		before, _ := cronsOfSpread(t, s, q)
		for _, n := range []int{2, 4, 7} {
			if err := q.SetShards(ctx, n); err != nil {
				t.Fatal(err)
			}
			entries, keys := cronsOfSpread(t, s, q)
			if len(entries) != len(names) {
				t.Errorf("%d entries", len(entries))
			}
			var want []string
			for i, name := range names {
				e := entries[name]
				if e.Paused != (i%2 == 0) || !e.Paused && !e.Next.Equal(before[name].Next) || e.Kind != "visitor" {
					t.Errorf("over %d shards %+v, before %+v", n, e, before[name])
				}
				want = append(want, baseOfSpread(wire.Shard(name, n))+"repeat:"+name)
			}
			if slices.Sort(want); !slices.Equal(keys, want) {
				t.Errorf("over %d shards they are at %v, want %v", n, keys, want)
			}
		}
		// jobs of another lane take the entry to the shard of that one
		for i := range 4 {
			if err := q.AddCron(ctx, "entry0", emq.Cron{Spec: "0 0 1 1 *"}, emq.New(visitorOfSpread{9}, emq.InLane(laneOf(i)))); err != nil {
				t.Fatal(err)
			}
			entries, keys := cronsOfSpread(t, s, q)
			if !entries["entry0"].Paused || len(keys) != len(names) {
				t.Errorf("%+v, at %v", entries["entry0"], keys)
			}
		}
	})
}

// plainTick ticks on the same queue, and says nothing of shards.
type plainTick struct{}

func (plainTick) EmqSpec() emq.Spec[plainTick] {
	return emq.Spec[plainTick]{Queue: "spread", Kind: "nightly", Attempts: 1, Timeout: time.Minute, Cron: []emq.Cron{{Spec: "0 0 1 1 *"}}}
}

func TestADeclaredCronEntryStaysPausedWhenItsShardChanges(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("spread")
		shards := 2
		for wire.Shard("nightly", shards) == 0 {
			shards++
		}
		work := func() (stop func()) {
			return run(t, s.Client, emq.WorkerConfig{}, emq.Handle(func(context.Context, plainTick) error { return nil }))
		}
		stop := work()
		eventually(t, "it is declared", func() bool { return len(s.keysLike(t, "emq:{spread*:repeat:nightly")) == 1 })
		stop()
		if err := errors.Join(q.PauseCron(ctx, "nightly"), q.SetShards(ctx, shards)); err != nil {
			t.Fatal(err)
		}
		stop = work()
		defer stop()
		home := baseOfSpread(wire.Shard("nightly", shards)) + "repeat:nightly"
		eventually(t, "it has moved", func() bool {
			keys := s.keysLike(t, "emq:{spread*:repeat:nightly")
			return len(keys) == 1 && keys[0] == home
		})
		if entries, _ := cronsOfSpread(t, s, q); !entries["nightly"].Paused || !entries["nightly"].Declared {
			t.Errorf("%+v", entries["nightly"])
		}
	})
}

// Those that die after it began are not taken, also in the shards to which it comes later.
func TestReprocessAllTakesNoLaterDeathsOfAnyShard(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		server, err := scripts.NewServer(s.raw, "")
		if err != nil {
			t.Fatal(err)
		}
		die := func(shard int) {
			put(t, s, piece{1, laneOf(shard)})
			bury(t, server.Shard("spread", shard))
		}
		for shard := range 4 {
			die(shard)
		}
		parts := 0
		p, err := s.Queue("spread").ReprocessAll(t.Context(), emq.ReprocessOptions{Progress: func(emq.BulkProgress) {
			if parts++; parts > 1 {
				return
			}
			began := s.now(t)
			eventually(t, "all clocks have gone on", func() bool { return s.now(t).Sub(began) > 10*time.Millisecond })
			for shard := 1; shard < 4; shard++ {
				die(shard)
			}
		}})
		if err != nil || p.Done != 4 {
			t.Errorf("%+v, %v", p, err)
		}
		if c := s.counts(t, "spread"); c.Dead != 3 || c.Pending != 4 {
			t.Errorf("%+v", c)
		}
	})
}
