package emq_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/rueidis"

	emq "github.com/echomq/emq/runtime"
)

// dump is what the keys of a queue hold.
func (s *store) dump(t *testing.T, queue string) map[string]string {
	t.Helper()
	held := make(map[string]string)
	for _, key := range s.keysOf(t, queue) {
		kind, err := s.do(t, "TYPE", key).ToString()
		if err != nil {
			t.Fatal(err)
		}
		words := map[string][]string{
			"string": {"GET", key}, "hash": {"HGETALL", key}, "set": {"SMEMBERS", key},
			"zset": {"ZRANGE", key, "0", "-1", "WITHSCORES"}, "list": {"LRANGE", key, "0", "-1"},
		}[kind]
		res := s.do(t, words...)
		var items []string
		switch kind {
		case "string":
			var item string
			item, err = res.ToString()
			items = []string{item}
		case "hash":
			var m map[string]string
			m, err = res.AsStrMap()
			for _, f := range slices.Sorted(maps.Keys(m)) {
				items = append(items, f+"="+m[f])
			}
		case "zset":
			var members []rueidis.ZScore
			members, err = res.AsZScores()
			for _, m := range members {
				items = append(items, fmt.Sprintf("%s=%.3f", m.Member, m.Score))
			}
		default:
			items, err = res.AsStrSlice()
			if kind == "set" {
				slices.Sort(items)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		held[strings.TrimPrefix(key, "emq:{"+queue+"}:")] = strings.Join(items, " ")
	}
	return held
}

// stock fills the queue chores: in lane a one job runs, at its limit, and two wait; two wait in lane b and
// one in c, which is paused.
func stock(t *testing.T, s *store) (active, scheduled, completed []emq.Ref) {
	t.Helper()
	hands, q := s.hands(t), s.Queue("chores")
	for i := range 3 {
		put(t, s, sole{i, fmt.Sprint("dead", i)})
		bury(t, hands)
	}
	completed = append(completed, put(t, s, chore{10}))
	if _, err := hands.Complete(t.Context(), claims(t, hands, 1)[0], time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	active = append(active, put(t, s, chore{20}), put(t, s, chore{21}, emq.InLane("a")))
	claims(t, hands, 2)
	if err := errors.Join(q.SetLaneLimit(t.Context(), "a", 1), q.PauseLane(t.Context(), "c")); err != nil {
		t.Fatal(err)
	}
	for i, lane := range []string{"a", "a", "b", "b", "c", "", "", ""} {
		put(t, s, sole{30 + i, fmt.Sprint("waits", i)}, emq.InLane(lane))
	}
	scheduled = append(scheduled, put(t, s, chore{40}, emq.In(time.Hour)), put(t, s, chore{41}, emq.In(2*time.Hour)))
	return active, scheduled, completed
}

// damages are what an audit mends so that nothing is missing afterwards. KEY is the base of the queue, GHOST
// an id without a job.
var damages = []struct {
	name  string
	words []string // one command each
	want  emq.AuditReport
}{
	{"none", nil, emq.AuditReport{}},
	{"the jobs that wait without a lane", []string{"DEL KEYpending"}, emq.AuditReport{Pending: 3}},
	{"the jobs that wait in a lane", []string{"DEL KEYg:b:pending"}, emq.AuditReport{Pending: 2, Lanes: 1, Laned: true}},
	{"a lane and its place", []string{"DEL KEYg:b:pending", "ZREM KEYring b"}, emq.AuditReport{Pending: 2, Laned: true}},
	{"the ring", []string{"DEL KEYring"}, emq.AuditReport{Lanes: 3, Laned: true}},
	{"a lane of the ring in which nothing waits", []string{"ZADD KEYring 1 empty"}, emq.AuditReport{Lanes: 1}},
	{"a lane that is served too late", []string{"ZADD KEYring 5000000 b"}, emq.AuditReport{Lanes: 1}},
	{"a lane that is parked and may be served", []string{"ZADD KEYring 9007199254740991 b"}, emq.AuditReport{Lanes: 1}},
	{"lanes that may not be served", []string{"ZADD KEYring 2 a 2 c"}, emq.AuditReport{Lanes: 2}},
	{"the morgue", []string{"DEL KEYdead"}, emq.AuditReport{Dead: 3}},
	{"the times of death", []string{"DEL KEYdead:at"}, emq.AuditReport{Dead: 3}},
	{"the slots of a lane", []string{"DEL KEYg:a:active"}, emq.AuditReport{Slots: 1, Lanes: 1}},
	{"the number of those in lanes, too many", []string{"HSET KEYmeta laned 77"}, emq.AuditReport{Laned: true}},
	{"the number of those in lanes, no number", []string{"HSET KEYmeta laned many"}, emq.AuditReport{Laned: true}},
	{"the number of those in lanes, none", []string{"HDEL KEYmeta laned"}, emq.AuditReport{Laned: true}},
	{"a stray slot", []string{"SADD KEYg:a:active GHOST"}, emq.AuditReport{Dropped: 1}},
	{"a stray slot at the limit of a lane", []string{"SADD KEYg:b:active GHOST", "SADD KEYg:gone:active GHOST"}, emq.AuditReport{Dropped: 2}},
	{"stray ids", []string{
		"ZADD KEYpending 0 GHOST", "ZADD KEYactive 1 GHOST", "ZADD KEYschedule 9999999999999 GHOST", "ZADD KEYdead 0 GHOST",
		"ZADD KEYdead:at 1 GHOST", "ZADD KEYcompleted 9999999999999 GHOST",
	}, emq.AuditReport{Dropped: 6}},
	{"a stray id in a lane", []string{"ZADD KEYg:b:pending 0 GHOST"}, emq.AuditReport{Dropped: 1, Laned: true}},
	{"a stray unique key", []string{"SET KEYde:stray GHOST"}, emq.AuditReport{Unique: 1}},
	{"logs of a job that is gone", []string{"RPUSH KEYjob:GHOST:logs line", "HSET KEYjob:GHOST:processed a 1"}, emq.AuditReport{Subkeys: 2}},
	{"a lane that stray slots keep at its limit", []string{
		"HSET KEYglimit b 2", "SADD KEYg:b:active GHOST JOB00000000098", "ZADD KEYring 9007199254740991 b", "HDEL KEYglimit b",
	}, emq.AuditReport{Dropped: 2, Lanes: 1}},
	{"everything at once", []string{
		"DEL KEYpending KEYg:b:pending KEYg:a:pending KEYring KEYdead KEYg:a:active", "SET KEYde:stray GHOST", "HSET KEYmeta laned 9", "ZADD KEYdead:at 1 GHOST",
	}, emq.AuditReport{Pending: 7, Dead: 3, Slots: 1, Dropped: 1, Lanes: 1, Unique: 1, Laned: true}},
}

func (s *store) damage(t *testing.T, words []string) {
	t.Helper()
	for _, w := range words {
		s.do(t, strings.Fields(strings.NewReplacer("KEY", "emq:{chores}:", "GHOST", "JOB00000000099").Replace(w))...)
	}
}

func TestAnAuditMendsWhatAHandHasDamaged(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		for _, d := range damages {
			t.Run(d.name, func(t *testing.T) {
				s.flush(t)
				stock(t, s)
				whole := s.dump(t, "chores")
				s.damage(t, d.words)
				before := s.dump(t, "chores")
				q := s.Queue("chores")
				dry, err := q.Audit(t.Context(), emq.AuditOptions{DryRun: true})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, s.dump(t, "chores")); diff != "" {
					t.Errorf("a dry run has changed something (-before +after):\n%s", diff)
				}
				calls := 0
				got, err := q.Audit(t.Context(), emq.AuditOptions{Progress: func(emq.AuditReport) { calls++ }})
				if got.Rows != 16 || got.Members == 0 || calls == 0 {
					t.Errorf("looked at %d rows, %d members, %d calls of Progress", got.Rows, got.Members, calls)
				}
				if got != dry {
					t.Errorf("%+v, and the dry run before it: %+v", got, dry)
				}
				got.Rows, got.Members = 0, 0
				if err != nil || got != d.want {
					t.Errorf("%+v, want %+v; %v", got, d.want, err)
				}
				mended := s.dump(t, "chores")
				for _, m := range []map[string]string{whole, mended} {
					delete(m, "metrics:orphan")
					delete(m, "wake")
				}
				if diff := cmp.Diff(whole, mended); diff != "" {
					t.Errorf("not as it was (-whole +mended):\n%s", diff)
				}
				if again, err := q.Audit(t.Context(), emq.AuditOptions{}); err != nil || again != (emq.AuditReport{Rows: again.Rows, Members: again.Members}) {
					t.Errorf("a second audit: %+v, %v", again, err)
				}
			})
		}
	})
}

func TestAnAuditOfJobsWhoseTimesAreLost(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q := s.Queue("chores")
		active, scheduled, completed := stock(t, s)
		due := put(t, s, chore{50}, emq.In(3*time.Hour))
		s.damage(t, []string{"DEL KEYactive KEYschedule KEYcompleted", "HSET KEYjob:JOB00000000099 foreign row", "SET KEYjob:JOB00000000098 foreign"})
		got, err := q.Audit(t.Context(), emq.AuditOptions{})
		got.Rows, got.Members = 0, 0
		if want := (emq.AuditReport{Scheduled: 3, Active: 2, Completed: 1, Foreign: 2}); err != nil || got != want {
			t.Errorf("%+v, want %+v; %v", got, want, err)
		}
		soon := s.now(t).Add(16 * time.Second).UnixMilli()
		leases, err := s.do(t, "ZRANGE", "emq:{chores}:active", "0", fmt.Sprint(soon), "BYSCORE").AsStrSlice()
		if err != nil || len(leases) != len(active) {
			t.Errorf("leases of %v within 16 s, %v", leases, err)
		}
		for _, ref := range append(scheduled, due) {
			if state := s.row(t, ref)["state"]; state != "scheduled" {
				t.Errorf("a scheduled job is %s", state)
			}
		}
		if state := s.row(t, completed[0])["state"]; state != "completed" {
			t.Errorf("a completed job is %s", state)
		}
		if lane, err := q.Lane(t.Context(), "a"); err != nil || lane.Active != 1 || lane.Waiting != 2 {
			t.Errorf("the lane: %+v, %v", lane, err)
		}
		// their holders are gone
		s.do(t, "ZADD", "emq:{chores}:active", "1", string(active[0].ID), "1", string(active[1].ID))
		run(t, s.Client, emq.WorkerConfig{Lease: time.Second, Logger: new(logbook).logger()}, emq.Bind(
			emq.Handle(func(context.Context, chore) error { return nil }), emq.Handle(func(context.Context, sole) error { return nil })))
		if err := q.ResumeLane(t.Context(), "c"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all jobs run", func() bool {
			c := s.counts(t, "chores")
			return c.Pending+c.Active+c.Scheduled == 0 && c.Totals["completed"] == 1+2+8+3 && c.Completed == 1
		})
	})
}

func TestAnAuditBesideAWorkerThatLives(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const jobs = 600
		var runs, twice atomic.Int32
		seen := make([]atomic.Int32, jobs)
		run(t, s.Client, emq.WorkerConfig{Concurrency: 20, Logger: new(logbook).logger()}, emq.Handle(func(_ context.Context, c chore) error {
			runs.Add(1)
			if seen[c.N].Add(1) > 1 {
				twice.Add(1)
			}
			return nil
		}))
		go func() {
			for i := range jobs {
				_, _ = emq.Enqueue(context.Background(), s.Client, chore{i}, emq.InLane([]string{"", "a", "b"}[i%3])) // counted below
			}
		}()
		audits := 0
		for int(runs.Load()) < jobs {
			got, err := s.Queue("chores").Audit(t.Context(), emq.AuditOptions{})
			if err != nil {
				t.Fatal(err)
			}
			audits++
			if got.Rows, got.Members = 0, 0; got != (emq.AuditReport{}) {
				t.Fatalf("an audit has found something in a healthy queue: %+v", got)
			}
		}
		eventually(t, "all complete", func() bool { return s.counts(t, "chores").Totals["completed"] == jobs })
		if _, err := s.Queue("chores").Audit(t.Context(), emq.AuditOptions{Lease: -1}); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("a negative lease: %v", err)
		}
		if c := s.counts(t, "chores"); twice.Load() > 0 || c.Totals["orphan"]+c.Totals["reaped"]+c.Totals["stale"] > 0 || audits < 2 {
			t.Errorf("%d ran twice; %+v after %d audits", twice.Load(), c, audits)
		}
	})
}
