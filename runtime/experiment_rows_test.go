package emq_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	emq "github.com/echomq/emq/runtime"
)

// Experiment 29: under load somebody deletes rows of jobs that wait and that run, and the whole active
// set. Audits look on meanwhile, and one puts back what is stranded in the end.
func TestExperimentRowsDeletedByHand(t *testing.T) {
	t.Parallel()
	const jobs, others, failing = 1500, 100, 20
	e := newExperiment(t)
	settings := part{Lease: time.Second, Concurrency: 15}
	e.start(settings)
	e.start(settings)
	var batch []emq.Job
	for i := range jobs {
		do := ""
		if i%5 == 0 {
			do = failOnce
		}
		batch = append(batch, emq.New(errand{N: i, Do: do, For: 40 * time.Millisecond}))
	}
	e.enqueue(batch...)
	e.reached("jobs run", func() bool { return len(e.stints()) > 50 })
	deleted, cleared, looks := 0, 0, 0
	for e.counts().Pending > 300 {
		for _, set := range []string{"pending", "active", "schedule"} {
			ids, err := e.do("ZRANDMEMBER", "emq:{errands}:"+set, "2").AsStrSlice()
			if err != nil && !rueidis.IsRedisNil(err) {
				t.Fatal(err)
			}
			for _, id := range ids {
				n, err := e.do("DEL", "emq:{errands}:job:"+id).AsInt64()
				if err != nil {
					t.Fatal(err)
				}
				deleted += int(n)
			}
		}
		n, err := e.do("DEL", "emq:{errands}:active").AsInt64()
		if err != nil {
			t.Fatal(err)
		}
		cleared += int(n)
		if _, err := e.client.Queue("errands").Audit(t.Context(), emq.AuditOptions{DryRun: true}); err != nil {
			t.Fatal(err)
		}
		looks++
		time.Sleep(20 * time.Millisecond) // the hand's rate
	}
	e.reached("nothing waits or runs", func() bool {
		c := e.counts()
		return c.Pending+c.Active+c.Scheduled == 0
	})

	// the worker goes on
	batch = batch[:0]
	for i := range others {
		batch = append(batch, emq.New(errand{N: jobs + i}))
	}
	e.enqueue(batch...)
	e.reached("jobs that come afterwards complete", func() bool {
		ran := byJob(with(e.stints(), "ok"))
		for i := range others {
			if len(ran[jobs+i]) == 0 {
				return false
			}
		}
		return e.counts().Active == 0
	})

	// rows are deleted just before the failures of their jobs are settled
	g := e.gate("gate")
	before := len(e.stints())
	batch = batch[:0]
	for i := range failing {
		batch = append(batch, emq.New(errand{N: jobs + others + i, Do: failAtGate, Gate: g.file}))
	}
	receipts := e.enqueue(batch...)
	e.reached("they run", func() bool { return len(e.stints()) == before+failing })
	for _, r := range receipts {
		if err := e.do("DEL", "emq:{errands}:job:"+string(r.ID)).Error(); err != nil {
			t.Fatal(err)
		}
	}
	g.open()
	stopped := e.all()
	for _, p := range stopped {
		p.signal(syscall.SIGTERM)
	}
	for _, p := range stopped {
		if err := p.exit(30 * time.Second); err != nil {
			t.Errorf("exit after SIGTERM: %v", err)
		}
	}

	// a row is whole or not there; what is left was running when the active set went
	left, ghosts := e.rows()
	c := e.counts()
	t.Logf("experiment 29: %d rows and %d active sets deleted under %d dry audits; %d completed, %d orphans dropped, %d stranded rows, %d ghost rows",
		deleted, cleared, looks, c.Totals["completed"], c.Totals["orphan"], len(left), len(ghosts))
	if len(ghosts) > 0 {
		t.Errorf("ghosts: %v", ghosts)
	}
	for id, state := range left {
		if state != "active" {
			t.Errorf("job %s is %s and in no set", id, state)
		}
	}
	if gone := int64(jobs+others) - c.Totals["completed"] - int64(len(left)) - c.Dead; gone > int64(deleted) || gone < 0 || deleted < 50 || cleared < 5 {
		t.Errorf("%d jobs are gone, %d rows were deleted", gone, deleted)
	}

	// an audit puts back what is stranded, and workers finish it
	report, err := e.client.Queue("errands").Audit(t.Context(), emq.AuditOptions{Lease: settings.Lease})
	t.Logf("experiment 29: the audit: %+v", report)
	if err != nil || report.Active != len(left) || report.Pending+report.Scheduled+report.Dead+report.Unique+report.Foreign != 0 {
		t.Errorf("the audit: %+v, %v; %d rows were stranded", report, err, len(left))
	}
	gone := int64(jobs+others) - c.Totals["completed"] - int64(len(left)) - c.Dead
	e.start(settings)
	e.reached("what was stranded ends", func() bool {
		c := e.counts()
		return c.Pending+c.Active+c.Scheduled == 0 && c.Totals["completed"]+c.Dead+gone == jobs+others
	})
	if left, ghosts = e.rows(); len(left) != int(e.counts().Dead) || len(ghosts) > 0 {
		t.Errorf("%d rows are left, %d of them ghosts", len(left), len(ghosts))
	}
	e.neverTwiceAtOnce()
}

// do runs any command.
func (e *experiment) do(words ...string) rueidis.RedisResult {
	return e.raw.Do(e.t.Context(), e.raw.B().Arbitrary(words...).Build())
}

// rows lists the state of every row, and the rows that lack what admission writes.
func (e *experiment) rows() (states map[string]string, ghosts []string) {
	e.t.Helper()
	keys, err := e.do("KEYS", "emq:{errands}:job:*").AsStrSlice()
	if err != nil {
		e.t.Fatal(err)
	}
	states = make(map[string]string)
	for _, key := range keys {
		row, err := e.do("HGETALL", key).AsStrMap()
		if err != nil {
			e.t.Fatal(err)
		}
		if row["payload"] == "" || row["kind"] == "" || row["src"] == "" || row["state"] == "" {
			ghosts = append(ghosts, key)
		}
		states[strings.TrimPrefix(key, "emq:{errands}:job:")] = row["state"]
	}
	return states, ghosts
}
