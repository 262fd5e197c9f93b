package emq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// furnish puts jobs into every state, and everything else that a queue can have.
func furnish(t *testing.T, s *store) {
	t.Helper()
	hands := s.hands(t)
	putMany(t, s, 600, func(i int) sole { return sole{i, fmt.Sprint("dead", i)} })
	bury(t, hands)
	put(t, s, chore{N: 1})
	if _, err := hands.Complete(t.Context(), claims(t, hands, 1)[0], time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	put(t, s, sole{2, "active"}, emq.InLane("a"))
	claims(t, hands, 1)
	for i := range 20 {
		put(t, s, sole{i, fmt.Sprint("lane", i)}, emq.InLane(fmt.Sprint(i%3)))
	}
	putMany(t, s, 700, func(i int) sole { return sole{i, fmt.Sprint("waits", i)} })
	put(t, s, sole{3, "later"}, emq.In(time.Hour))
	q := s.Queue("chores")
	if err := errors.Join(q.SetLaneLimit(t.Context(), "a", 1), q.SetLaneWeight(t.Context(), "b", 2), q.PauseLane(t.Context(), "c")); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"ZADD repeat 1 nightly", "HSET repeat:nightly spec daily", "RPUSH job:JOB00000000001:logs line", "HSET job:JOB00000000001:processed a 1",
		"HSET job:JOB00000000002 state pending", "SET de:stray JOB00000000003", "SADD g:stray:active JOB00000000004", "ZADD g:stray:pending 0 JOB00000000004",
		"RPUSH flow:outbox message", "SET pump tag", "LPUSH wake:tag 1",
	} {
		w := strings.Fields(words)
		w[1] = "emq:{chores}:" + w[1]
		s.do(t, w...)
	}
}

func TestAnObliteratedQueueLeavesNoKey(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("chores")
		put(t, s, job{1})
		elsewhere := s.keysOf(t, "work")
		furnish(t, s)
		before := len(s.keysOf(t, "chores"))
		for _, force := range []bool{false, true} {
			if _, err := q.Obliterate(ctx, emq.ObliterateOptions{Force: force}); !errors.Is(err, emq.ErrState) || !strings.Contains(err.Error(), "pause it first") {
				t.Errorf("not paused: %v", err)
			}
		}
		if err := s.Queue("chores").Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := q.Obliterate(ctx, emq.ObliterateOptions{}); !errors.Is(err, emq.ErrState) || !strings.Contains(err.Error(), "1 of its jobs run") {
			t.Errorf("with a running job: %v", err)
		}
		if n := len(s.keysOf(t, "chores")); n != before {
			t.Errorf("%d keys of %d are left", n, before)
		}

		// interrupted after each part
		rounds := 0
		for ; ; rounds++ {
			stopped, stop := context.WithCancel(ctx)
			parts := 0
			_, err := q.Obliterate(stopped, emq.ObliterateOptions{Force: true, Progress: func(p emq.BulkProgress) {
				if parts++; p.Done > 0 {
					stop()
				}
			}})
			stop()
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) || parts == 0 {
				t.Fatalf("interrupted: %v", err)
			}
			if paused, err := s.do(t, "HGET", "emq:{chores}:meta", "paused").ToString(); err != nil || paused != "1" {
				t.Fatalf("the queue is not paused any more: %q, %v", paused, err)
			}
		}
		if rounds < 5 {
			t.Errorf("interrupted only %d times", rounds)
		}
		if left := s.keysOf(t, "chores"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if got := s.keysOf(t, "work"); len(got) != len(elsewhere) {
			t.Errorf("another queue has lost keys: %v, %v", got, elsewhere)
		}

		// a new queue of the name is as any other
		put(t, s, sole{1, "active"})
		kinds, err := s.do(t, "HKEYS", "emq:{chores}:kinds").AsStrSlice()
		if err != nil || len(kinds) != 1 {
			t.Errorf("the registry of the new queue: %v, %v", kinds, err)
		}
	})
}

func TestAQueueIntoWhichJobsKeepComingIsNotObliterated(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		put(t, s, chore{N: 1})
		if err := s.Queue("chores").Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		calls := 0
		p, err := s.Queue("chores").Obliterate(t.Context(), emq.ObliterateOptions{Progress: func(emq.BulkProgress) {
			put(t, s, chore{N: calls}, emq.In(time.Hour))
			calls++
		}})
		if !errors.Is(err, emq.ErrState) || !strings.Contains(err.Error(), "stop its producers") || p.Done == 0 {
			t.Errorf("%+v, %v", p, err)
		}
		if paused, err := s.do(t, "HGET", "emq:{chores}:meta", "paused").ToString(); err != nil || paused != "1" {
			t.Errorf("the queue is not paused any more: %q, %v", paused, err)
		}
		if n := len(s.keysOf(t, "chores")); n < 3 {
			t.Errorf("the last jobs are gone: %d keys", n)
		}
		if _, err := s.Queue("chores").Obliterate(t.Context(), emq.ObliterateOptions{}); err != nil || len(s.keysOf(t, "chores")) > 0 {
			t.Errorf("when no job comes: %v, %v", err, s.keysOf(t, "chores"))
		}
	})
}

// On a cluster the keys of a queue are on one node, and only there can they be found.
func TestAClusterIsAuditedAndObliterated(t *testing.T) {
	t.Parallel()
	nodes := cluster(t)
	client := openClient(t, nodes[0].URL())
	on := make(map[string]int)
	for i := range 8 {
		queue := fmt.Sprint("queue", i)
		s := &store{Client: client, raw: outside(t, nodes[0].URL())}
		put(t, s, elsewhere{Queue: queue})
		put(t, s, elsewhere{Queue: queue}, emq.InLane("a"))
		s.do(t, "DEL", "emq:{"+queue+"}:pending")
		q := client.Queue(queue)
		if report, err := q.Audit(t.Context(), emq.AuditOptions{}); err != nil || report.Pending != 1 || report.Rows != 2 {
			t.Errorf("%s: %+v, %v", queue, report, err)
		}
		if err := q.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		if p, err := q.Obliterate(t.Context(), emq.ObliterateOptions{}); err != nil || p.Done != 2 {
			t.Errorf("%s: %+v, %v", queue, p, err)
		}
		if n, err := s.do(t, "CLUSTER", "KEYSLOT", "emq:{"+queue+"}:").AsInt64(); err == nil {
			on[fmt.Sprint(n > 8191)]++
		}
	}
	for _, n := range nodes {
		left, err := n.Command("DBSIZE")
		if err != nil || left != ":0" && left != ":1" { // the version of the protocol
			t.Errorf("%s keys are left, %v", left, err)
		}
	}
	if len(on) != 2 {
		t.Errorf("all queues are on one node: %v", on)
	}
}

// elsewhere is a job of any queue.
type elsewhere struct{ Queue string }

func (e elsewhere) EmqSpec() emq.Spec[elsewhere] {
	return emq.Spec[elsewhere]{Queue: e.Queue, Kind: "elsewhere", Attempts: 1, Timeout: time.Minute}
}

// cluster starts a cluster of two nodes, which a stall of the machine does not take apart.
func cluster(t *testing.T) []*redistest.Node {
	t.Helper()
	c, err := redistest.NewCluster(t.TempDir(), 2, false, "--cluster-node-timeout", "60000")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	return c.Nodes
}
