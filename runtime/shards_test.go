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
)

// piece is a job of a queue that is declared over four shards.
type piece struct {
	N      int    `json:"n"`
	Tenant string `json:"tenant,omitempty"`
}

func (piece) EmqSpec() emq.Spec[piece] {
	return emq.Spec[piece]{Queue: "spread", Shards: 4, Kind: "part", Attempts: 1, Timeout: time.Minute, Retain: time.Hour,
		Lane: func(p piece) string { return p.Tenant }}
}

func (piece) EmqResult() (n int) { return n }

// only is a unique job of that queue; its key has no lane.
type only struct {
	Key string `json:"key"`
}

func (only) EmqSpec() emq.Spec[only] {
	return emq.Spec[only]{Queue: "spread", Shards: 4, Kind: "only", Attempts: 1, Timeout: time.Minute,
		UniqueKey: func(o only) string { return emq.UniqueKey("only", o.Key) }}
}

// visitorOfSpread is a job of the same queue, of a program that knows nothing of shards.
type visitorOfSpread struct{ N int }

func (visitorOfSpread) EmqSpec() emq.Spec[visitorOfSpread] {
	return emq.Spec[visitorOfSpread]{Queue: "spread", Kind: "visitor", Attempts: 1, Timeout: time.Minute}
}

// rowsOf are the ids in one shard.
func (s *store) rowsOf(t *testing.T, queue string, shard int) (ids []string) {
	t.Helper()
	base := wire.NewKeys("", wire.Tag(queue, shard)).Base() + "job:"
	for _, key := range s.keysLike(t, base+"*") {
		ids = append(ids, strings.TrimPrefix(key, base))
	}
	return ids
}

func serveSpread(got func(ctx context.Context, n int)) emq.Binding {
	return emq.Bind(
		emq.HandleResult(func(ctx context.Context, p piece) (int, error) {
			if got(ctx, p.N); p.N < 0 {
				return 0, errors.New("below zero")
			}
			return 2 * p.N, nil
		}),
		emq.Handle(func(ctx context.Context, _ only) error { got(ctx, 0); return nil }),
		emq.Handle(func(ctx context.Context, v visitorOfSpread) error { got(ctx, v.N); return nil }))
}

func TestJobsAreSpreadOverShardsAndAllAreServed(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const n = 200
		refs := putMany(t, s, n, func(i int) piece { return piece{N: i} })
		for i := range 20 { // one at a time, and for later
			refs = append(refs, put(t, s, piece{N: n + i}), put(t, s, piece{N: n + i}, emq.In(time.Millisecond)))
		}
		seen := 0
		for shard := range 4 {
			ids := s.rowsOf(t, "spread", shard)
			seen += len(ids)
			if len(ids) < 20 {
				t.Errorf("shard %d has %d of %d jobs", shard, len(ids), len(refs))
			}
			for _, id := range ids {
				if wire.Shard(id, 4) != shard {
					t.Errorf("%s is in shard %d, and its id says %d", id, shard, wire.Shard(id, 4))
				}
			}
		}
		if c := s.counts(t, "spread"); seen != len(refs) || c.Pending+c.Scheduled != int64(len(refs)) {
			t.Errorf("%d rows, and %+v, of %d jobs", seen, c, len(refs))
		}
		var mu sync.Mutex
		ran := 0
		run(t, s.Client, emq.WorkerConfig{Concurrency: 8}, serveSpread(func(context.Context, int) { mu.Lock(); ran++; mu.Unlock() }))
		eventually(t, "all run", func() bool { return s.counts(t, "spread").Completed == int64(len(refs)) })
		mu.Lock()
		if ran != len(refs) {
			t.Errorf("%d runs of %d jobs", ran, len(refs))
		}
		mu.Unlock()
		// an idle worker is woken wherever the job is; the net below is the look at half a lease
		for i := range 8 {
			began := time.Now()
			if got, err := emq.Await[piece](t.Context(), s.Client, put(t, s, piece{N: i})); err != nil || got != 2*i {
				t.Errorf("the result is %d, %v", got, err)
			}
			if waited := time.Since(began); waited > 5*time.Second {
				t.Errorf("a job waited for %v", waited)
			}
		}
		if !s.embedded && len(s.masters) == 0 {
			eventually(t, "one connection waits for work", func() bool { return s.blocked(t) == 1 })
		}
	})
}

func TestUniquenessAndLanesHoldOverShards(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		for i := range 12 {
			first := put(t, s, only{fmt.Sprint(i)})
			again, err := emq.Enqueue(t.Context(), s.Client, only{fmt.Sprint(i)})
			if err != nil || again.Status != emq.Conflict || again.Holder != first.ID {
				t.Errorf("the second is %v, %v", again, err)
			}
		}
		receipts, err := s.Enqueue(t.Context(), emq.New(only{"x"}), emq.New(only{"x"}))
		if err != nil || receipts[0].Status != emq.Enqueued || receipts[1].Status != emq.Conflict {
			t.Errorf("in one batch: %v, %v", receipts, err)
		}
		receipts, err = s.Enqueue(t.Context(), emq.New(piece{N: 1}), emq.New(only{"y"}, emq.InLane("a")))
		var batch *emq.BatchError
		if !errors.Is(err, emq.ErrInvalid) || !errors.As(err, &batch) || receipts[0].Status != emq.Refused {
			t.Errorf("a unique job in a lane: %v, %v", receipts, err)
		}
		for _, lane := range []string{"a", "b", "c"} {
			home := wire.Shard(lane, 4)
			before := len(s.rowsOf(t, "spread", home))
			for i := range 10 {
				put(t, s, piece{i, lane})
			}
			if n := len(s.rowsOf(t, "spread", home)) - before; n != 10 {
				t.Errorf("%d of 10 jobs of lane %s are in its shard", n, lane)
			}
			l, err := s.Queue("spread").Lane(t.Context(), lane)
			if err != nil || l.Waiting != 10 {
				t.Errorf("lane %s: %+v, %v", lane, l, err)
			}
		}
		var mu sync.Mutex
		order := map[string][]int{}
		w, err := emq.NewWorker(s.Client, emq.WorkerConfig{Concurrency: 1}, serveSpread(func(ctx context.Context, n int) {
			info, _ := emq.InfoFrom(ctx)
			mu.Lock()
			order[info.Lane] = append(order[info.Lane], n)
			mu.Unlock()
		}))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.RunUntilIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, lane := range []string{"a", "b", "c"} {
			if got := order[lane]; len(got) != 10 || !slices.IsSorted(got) {
				t.Errorf("lane %s ran in the order %v", lane, got)
			}
		}
		if c := s.counts(t, "spread"); c.Pending+c.Active != 0 {
			t.Errorf("idle, and %+v", c)
		}
	})
}

func TestJobsAreFoundInWhicheverShardTheyAre(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q := s.Queue("spread")
		var refs []emq.Ref
		for i := range 12 { // the caller's ids say nothing of the lane's shard
			id, err := s.NewID()
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, put(t, s, piece{i, fmt.Sprint("lane", i)}, emq.WithID(id)))
		}
		for _, ref := range refs {
			if st, err := q.State(t.Context(), ref.ID); err != nil || st != emq.StatePending {
				t.Errorf("the state of %v is %v, %v", ref, st, err)
			}
			if d, err := q.Job(t.Context(), ref.ID); err != nil || d.Kind != "part" {
				t.Errorf("job %v: %+v, %v", ref, d, err)
			}
			if err := emq.UpdatePayload(t.Context(), s.Client, ref, piece{N: 50, Tenant: "elsewhere"}); !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("an update of the lane: %v", err)
			}
			if _, err := q.Logs(t.Context(), ref.ID, 0, 10); err != nil {
				t.Error(err)
			}
		}
		// pages go over all shards, in one order
		for _, oldest := range []bool{true, false} {
			flat := putMany(t, s, 30, func(i int) piece { return piece{N: i} })
			var ids []emq.ID
			for o := (emq.BrowseOptions{State: emq.StatePending, Oldest: oldest, N: 7}); ; {
				page, err := q.Browse(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				for _, j := range page.Jobs {
					ids = append(ids, j.ID)
				}
				if o.Cursor = page.Next; page.Next == "" {
					break
				}
			}
			want := make([]emq.ID, len(flat))
			for i, ref := range flat {
				want[i] = ref.ID
			}
			if !oldest {
				slices.Reverse(want)
			}
			if !slices.Equal(ids, want) {
				t.Errorf("oldest %t: %v, want %v", oldest, ids, want)
			}
			if p, err := q.Drain(t.Context(), emq.DrainOptions{}); err != nil || p.Done < len(flat) {
				t.Errorf("the drain removed %d, %v", p.Done, err)
			}
			if !oldest {
				continue
			}
			for i := range 12 {
				refs[i] = put(t, s, piece{i, fmt.Sprint("lane", i)})
			}
		}
		for i := range 12 {
			refs[i] = put(t, s, piece{N: i}, emq.In(time.Hour))
			verb := q.Remove
			if i%2 == 0 {
				verb = func(ctx context.Context, id emq.ID) error { return s.Cancel(ctx, refs[i]) }
			}
			if err := verb(t.Context(), refs[i].ID); err != nil {
				t.Error(err)
			}
			if err := verb(t.Context(), refs[i].ID); !errors.Is(err, emq.ErrGone) {
				t.Errorf("again: %v", err)
			}
			if st, err := q.State(t.Context(), refs[i].ID); err != nil || st != emq.StateAbsent {
				t.Errorf("the state is %v, %v", st, err)
			}
		}
		// dead letters of all shards
		putMany(t, s, 20, func(i int) piece { return piece{N: -1 - i} })
		stop := run(t, s.Client, emq.WorkerConfig{}, serveSpread(func(context.Context, int) {}))
		eventually(t, "they are dead", func() bool { return s.counts(t, "spread").Dead == 20 })
		stop()
		if p, err := q.ReprocessAll(t.Context(), emq.ReprocessOptions{Limit: 13}); err != nil || p.Done != 13 {
			t.Errorf("reprocessed %+v, %v", p, err)
		}
		if report, err := q.Audit(t.Context(), emq.AuditOptions{}); err != nil || report.Rows < 20 || report.Dropped+report.Pending+report.Dead != 0 {
			t.Errorf("the audit: %+v, %v", report, err)
		}
		if err := q.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Obliterate(t.Context(), emq.ObliterateOptions{}); err != nil {
			t.Fatal(err)
		}
		if keys := s.keysLike(t, "emq:{spread*"); len(keys) > 0 {
			t.Errorf("left: %v", keys)
		}
	})
}

// A queue of one shard is as it always was; one that gets more is served whole by whoever served it before.
func TestShardsAreLearnedAndNeverLessThanDeclared(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		q := s.Queue("spread")
		run(t, s.Client, emq.WorkerConfig{}, serveOnly(func(int) {}))
		put(t, s, visitorOfSpread{1})
		eventually(t, "it ran", func() bool { return s.counts(t, "spread").Totals["completed"] == 1 })
		if keys := s.keysLike(t, "emq:{spread#*"); len(keys) > 0 {
			t.Errorf("keys of further shards: %v", keys)
		}
		if n, err := q.Shards(ctx); err != nil || n != 1 {
			t.Errorf("%d shards, %v", n, err)
		}
		for _, set := range []error{q.SetConcurrency(ctx, 9), q.SetLaneLimit(ctx, "a", 3), q.PauseLane(ctx, "b"), q.SetRate(ctx, 1000, time.Second)} {
			if set != nil {
				t.Fatal(set)
			}
		}
		// another process declares four
		other := openClient(t, s.url)
		put(t, other, piece{N: 1}, emq.In(time.Hour))
		if n, err := q.Shards(ctx); err != nil || n != 4 {
			t.Errorf("%d shards, %v", n, err)
		}
		third := openClient(t, s.url) // and one that declares none learns it before it sends anything
		for i := range 40 {
			put(t, third, visitorOfSpread{i})
		}
		for shard := 1; shard < 4; shard++ {
			eventually(t, "the old worker serves the new shards", func() bool {
				n, err := s.do(t, "HGET", wire.NewKeys("", wire.Tag("spread", shard)).Base()+"metrics:completed", "count").AsInt64()
				return err == nil && n > 0
			})
		}
		set, err := third.Queue("spread").Settings(ctx)
		if err != nil || set.Concurrency != 9 || set.Rate != 1000 || set.RatePer != time.Second {
			t.Errorf("the settings are %+v, %v", set, err)
		}
		for name, want := range map[string]emq.Lane{"a": {Name: "a", Weight: 1, Limit: 3}, "b": {Name: "b", Weight: 1, Paused: true}} {
			if l, err := third.Queue("spread").Lane(ctx, name); err != nil || l != want {
				t.Errorf("lane %s is %+v, %v", name, l, err)
			}
		}
		// what cannot be split is refused, and changes nothing
		for says, err := range map[string]error{
			"concurrency of 3":    third.Queue("spread").SetConcurrency(ctx, 3),
			"rate of 2":           third.Queue("spread").SetRate(ctx, 2, time.Second),
			"maximum length of 1": third.Queue("spread").SetMaxLength(ctx, 1),
			"dead caps of 3":      third.Queue("spread").SetDeadCaps(ctx, 3, time.Hour),
		} {
			if !errors.Is(err, emq.ErrInvalid) || !strings.Contains(err.Error(), says+": the queue has 4 shards") {
				t.Errorf("%s over 4 shards: %v", says, err)
			}
		}
		if set, err := third.Queue("spread").Settings(ctx); err != nil || set.Concurrency != 9 {
			t.Errorf("the concurrency is %d, %v", set.Concurrency, err)
		}
		if err := third.Queue("spread").SetShards(ctx, 0); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("0 shards: %v", err)
		}
		if _, err := third.Queue("spread").ReassignLane(ctx, laneOf(0), laneOf(1)); !errors.Is(err, emq.ErrShards) {
			t.Errorf("from shard to shard: %v", err)
		}
		put(t, third, piece{1, laneOf(2)}, emq.In(time.Hour))
		if _, err := third.Queue("spread").ReassignLane(ctx, laneOf(2), laneOf(2, 1)); err != nil && !errors.Is(err, emq.ErrNoLane) {
			t.Errorf("within a shard: %v", err)
		}
	})
}

// laneOf is a lane of a shard of four, the n-th.
func laneOf(shard int, n ...int) string {
	skip := 0
	if len(n) > 0 {
		skip = n[0]
	}
	for i := 0; ; i++ {
		if lane := fmt.Sprint("tenant", i); wire.Shard(lane, 4) == shard {
			if skip--; skip < 0 {
				return lane
			}
		}
	}
}

func serveOnly(got func(n int)) emq.Binding {
	return emq.Handle(func(_ context.Context, v visitorOfSpread) error { got(v.N); return nil })
}

func TestShardsAreTakenAwayOnlyWhenTheyAreEmpty(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		q := s.Queue("spread")
		putMany(t, s, 20, func(i int) piece { return piece{N: i} })
		for _, set := range []error{q.SetConcurrency(ctx, 8), q.PauseLane(ctx, laneOf(3))} {
			if set != nil {
				t.Fatal(set)
			}
		}
		if err := q.SetShards(ctx, 2); !errors.Is(err, emq.ErrState) {
			t.Errorf("with jobs in the last shards: %v", err)
		}
		if n, err := q.Shards(ctx); err != nil || n != 4 {
			t.Errorf("%d shards, %v", n, err)
		}
		if _, err := q.Drain(ctx, emq.DrainOptions{}); err != nil {
			t.Fatal(err)
		}
		for range 2 { // safe to repeat
			if err := q.SetShards(ctx, 2); err != nil {
				t.Fatal(err)
			}
		}
		if keys := append(s.keysLike(t, "emq:{spread#2}*"), s.keysLike(t, "emq:{spread#3}*")...); len(keys) > 0 {
			t.Errorf("left: %v", keys)
		}
		if set, err := q.Settings(ctx); err != nil || set.Concurrency != 8 {
			t.Errorf("%+v, %v", set, err)
		}
		if l, err := q.Lane(ctx, laneOf(3)); err != nil || !l.Paused {
			t.Errorf("the lane is %+v, %v", l, err)
		}
	})
}

func TestEventsOfAllShardsAreHeard(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q := s.Queue("spread")
		put(t, s, piece{N: 0}, emq.In(time.Hour)) // there are four from here on
		if err := q.SetEvents(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		heard := make(chan emq.JobEvent, 200)
		ended := make(chan error, 1)
		go func() { ended <- q.Subscribe(ctx, func(e emq.JobEvent) { heard <- e }) }()
		if e := <-heard; e.Name != emq.EventSubscribed {
			t.Fatalf("first: %+v", e)
		}
		putMany(t, s, 40, func(i int) piece { return piece{N: i} })
		w, err := emq.NewWorker(s.Client, emq.WorkerConfig{}, serveSpread(func(context.Context, int) {}))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.RunUntilIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
		for completed := 0; completed < 40; {
			switch e := <-heard; e.Name {
			case emq.EventCompleted:
				completed++
			case emq.EventSubscribed:
				t.Errorf("subscribed again: %+v", e)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
