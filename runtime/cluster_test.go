package emq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// The queues of these three are on three masters of a cluster.
type north struct{ N int }
type east struct{ N int }
type south struct{ N int }

func (north) EmqSpec() emq.Spec[north] {
	return emq.Spec[north]{Queue: "kept", Kind: "north", Attempts: 3, Timeout: time.Minute, Backoff: emq.Fixed(20 * time.Millisecond)}
}

func (east) EmqSpec() emq.Spec[east] {
	return emq.Spec[east]{Queue: "tasks", Kind: "east", Attempts: 1, Timeout: time.Minute, Retain: time.Hour}
}

func (south) EmqSpec() emq.Spec[south] {
	return emq.Spec[south]{Queue: "parcels", Kind: "south", Attempts: 3, Timeout: time.Minute,
		UniqueKey: func(s south) string { return emq.UniqueKey("south", fmt.Sprint(s.N)) }}
}

// onEachTopology runs a test behind sentinels and on a cluster; nothing but the URL says what it is.
// degrade kills a server that no queue is on.
func onEachTopology(t *testing.T, test func(t *testing.T, url string, degrade func())) {
	t.Parallel()
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c, err := redistest.NewCluster(t.TempDir(), 3, true)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Stop)
		test(t, c.URL(), func() { c.Nodes[len(c.Nodes)-1].Kill() })
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		s, err := redistest.NewSentinels(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		test(t, s.URL(), func() { s.Nodes[2].Kill() })
	})
}

func TestAWholeWorkerOnAClusterAndBehindSentinels(t *testing.T) {
	onEachTopology(t, func(t *testing.T, url string, degrade func()) {
		client := openClient(t, url)
		var ran atomic.Int32
		errOnce := errors.New("once")
		handlers := []emq.Binding{
			emq.Handle(func(ctx context.Context, j north) error {
				info, _ := emq.InfoFrom(ctx)
				if ran.Add(1); j.N%5 == 0 && info.Attempt == 1 {
					return errOnce
				}
				return nil
			}),
			emq.Handle(func(_ context.Context, j east) error {
				if ran.Add(1); j.N == 0 {
					return errOnce // a dead letter
				}
				return nil
			}),
			emq.Handle(func(context.Context, south) error { ran.Add(1); return nil }),
		}
		stop := run(t, client, emq.WorkerConfig{Concurrency: 20}, handlers...)

		// one batch for all masters, with delays and lanes
		var jobs []emq.Job
		for n := range 40 {
			jobs = append(jobs, emq.New(north{n}, emq.InLane(fmt.Sprint("lane", n%3))), emq.New(east{n}), emq.New(south{n}, emq.In(50*time.Millisecond)))
		}
		receipts, err := client.Enqueue(t.Context(), jobs...)
		if err != nil {
			t.Fatal(err)
		}
		counts := func(queue string) emq.Counts {
			c, err := client.Queue(queue).Counts(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		eventually(t, "all end", func() bool {
			return counts("kept").Totals["completed"] == 40 && counts("tasks").Completed == 39 && counts("tasks").Dead == 1 && counts("parcels").Totals["completed"] == 40
		})
		if n := counts("kept").Totals["retried"]; n != 8 {
			t.Errorf("%d retried, want 8", n)
		}

		// idle workers wait on the right servers: a wake, not the look at half a lease of 15 s, finds these
		for n := range 3 {
			for _, j := range []emq.Job{emq.New(north{N: 101 + 5*n}), emq.New(east{N: 101 + n}), emq.New(south{N: 101 + n})} {
				before := ran.Load()
				began := time.Now()
				if _, err := client.Enqueue(t.Context(), j); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the job runs", func() bool { return ran.Load() == before+1 })
				if waited := time.Since(began); waited > 5*time.Second {
					t.Errorf("%s waited for %v", j.Queue(), waited)
				}
			}
		}

		// the operator's verbs, also while a server is dead that the queue is not on
		dead := client.Queue("tasks")
		if err := dead.Reprocess(t.Context(), receipts[1].ID); err != nil {
			t.Error(err)
		}
		eventually(t, "the dead letter runs and is dead again", func() bool { return counts("tasks").Totals["failed"] == 2 })
		parked, err := emq.Enqueue(t.Context(), client, south{500}, emq.In(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		second, err := emq.Enqueue(t.Context(), client, south{500})
		if err != nil || second.Status != emq.Conflict || second.Holder != parked.ID {
			t.Errorf("the key is held by %v: %+v, %v", parked.ID, second, err)
		}
		if err := client.Cancel(t.Context(), parked.Ref); err != nil {
			t.Error(err)
		}
		stop()
		degrade()
		for _, queue := range []string{"kept", "tasks", "parcels"} {
			report, err := client.Queue(queue).Audit(t.Context(), emq.AuditOptions{})
			if err != nil {
				t.Errorf("Audit of %s: %v", queue, err)
			}
			if want := map[string]int{"tasks": 43}[queue]; report.Rows != want || report.Dropped+report.Active+report.Pending+report.Lanes != 0 {
				t.Errorf("Audit of %s: %+v, want %d rows and nothing to mend", queue, report, want)
			}
		}
	})
}

func TestAWorkerFollowsASlotAndAMaster(t *testing.T) {
	t.Parallel()
	c, err := redistest.NewCluster(t.TempDir(), 3, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	client := openClient(t, c.URL())
	var ran atomic.Int32
	run(t, client, emq.WorkerConfig{Concurrency: 5}, emq.Handle(func(context.Context, east) error { ran.Add(1); return nil }))
	enqueued := int32(0)
	works := func(where string) {
		t.Helper()
		for range 20 {
			put(t, client, east{int(enqueued)})
			enqueued++
		}
		eventually(t, "jobs run "+where, func() bool { return ran.Load() == enqueued })
	}
	works("at first")
	key := "emq:{tasks}:meta"
	from := c.Master(key)
	to := c.Nodes[0]
	if from == to {
		to = c.Nodes[1]
	}
	if _, err := c.Move(key, to); err != nil {
		t.Fatal(err)
	}
	works("where the slot has gone")
	to.Kill()
	eventually(t, "a replica takes over", func() bool { return c.Master(key) != nil })
	works("on the replica")
}

// What the server refuses before a script has written anything is certainly not in the queue.
func TestAServerThatTakesNoWritesRefusesJobsAndGoesOnLater(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]struct {
		word       string
		begin, end func(t *testing.T, s *store)
	}{
		"without replicas": {"NOREPLICAS",
			func(t *testing.T, s *store) { s.do(t, "CONFIG", "SET", "min-replicas-to-write", "1") },
			func(t *testing.T, s *store) { s.do(t, "CONFIG", "SET", "min-replicas-to-write", "0") }},
		"with a broken disk": {"MISCONF",
			func(t *testing.T, s *store) {
				// a directory stands where the file should be
				if err := os.MkdirAll(filepath.Join(s.server.Dir, "dump.rdb", "x"), 0o700); err != nil {
					t.Fatal(err)
				}
				s.do(t, "CONFIG", "SET", "save", "3600 1")
				s.do(t, "BGSAVE")
				eventually(t, "the server has failed to save", func() bool {
					info, err := s.server.Info("persistence")
					return err == nil && info["rdb_last_bgsave_status"] == "err"
				})
			},
			func(t *testing.T, s *store) { s.do(t, "CONFIG", "SET", "stop-writes-on-bgsave-error", "no") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := realStore(t)
			var runs atomic.Int32
			release := make(chan struct{})
			run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(_ context.Context, j job) error {
				if runs.Add(1); j.N == 0 {
					<-release
				}
				return nil
			}))
			put(t, s, job{0})
			eventually(t, "a job runs", func() bool { return runs.Load() == 1 })
			refusal.begin(t, s)
			for _, jobs := range [][]emq.Job{{emq.New(job{1})}, {emq.New(job{1}), emq.New(job{1})}, {emq.New(job{1}, emq.In(time.Minute))}} {
				receipts, err := s.Enqueue(t.Context(), jobs...)
				if err == nil {
					t.Fatal("the job was taken")
				}
				for _, r := range receipts {
					if r.Status != emq.Refused {
						t.Errorf("the receipt says %v, want %v: %v", r.Status, emq.Refused, err)
					}
				}
			}
			close(release) // its settle waits
			refusal.end(t, s)
			eventually(t, "the settle has its verdict", func() bool { return s.counts(t, "work").Totals["completed"] == 1 })
			put(t, s, job{2})
			eventually(t, "the worker works again", func() bool { return s.counts(t, "work").Totals["completed"] == 2 })
			if c := s.counts(t, "work"); c.Pending+c.Scheduled+c.Active != 0 || runs.Load() != 2 {
				t.Errorf("%d runs, %+v", runs.Load(), c)
			}
		})
	}
}
