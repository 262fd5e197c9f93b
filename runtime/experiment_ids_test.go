package emq_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// nodes is how many node numbers the producers share: on each, every process mints the same ids.
const nodes = 8

// produce enqueues with one client for each node number, all at once: each job alone first, and then in
// batches. It writes to the journal which id each job was told to have.
func (p part) produce(ctx context.Context) error {
	j, err := openJournal(p.Journal)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, nodes)
	for node := range nodes {
		wg.Go(func() { errs[node] = p.produceAs(ctx, j, node) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (p part) produceAs(ctx context.Context, j *journal, node int) error {
	client, err := emq.Open(ctx, p.URL, emq.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))))
	if err != nil {
		return err
	}
	defer client.Close()
	if err := emq.Collide(client, node, 200*time.Millisecond); err != nil {
		return err
	}
	first := p.First + node*p.Produce
	for n := 0; n < p.Produce; {
		size := 1
		if n >= p.Produce/3 {
			size = min(20, p.Produce-n)
		}
		jobs := make([]emq.Job, size)
		for i := range jobs {
			jobs[i] = emq.New(errand{N: first + n + i})
		}
		receipts, err := client.Enqueue(ctx, jobs...)
		if err != nil {
			return err
		}
		for i, r := range receipts {
			if r.Status != emq.Enqueued {
				return errors.New(r.Ref.String() + " is " + r.Status.String())
			}
			j.write(0, "start", r.ID, first+n+i, 1)
		}
		n += size
	}
	return nil
}

// Experiment 30: 8 processes of 8 clients enqueue at once; the eight clients of a node number mint the
// same ids.
func TestExperimentCollidingIDs(t *testing.T) {
	t.Parallel()
	const processes, each = 8, 40
	const total = processes * nodes * each
	e := newExperiment(t)
	before := e.seenTwice()
	for i := range processes {
		e.start(part{Produce: each, First: i * nodes * each})
	}
	for _, p := range e.all() {
		if err := p.exit(60 * time.Second); err != nil {
			t.Errorf("a producer: %v\n%s", err, p.output())
		}
	}
	collisions := e.seenTwice() - before

	told := make(map[string]int) // the number of each id's job, by its receipt
	for _, s := range e.stints() {
		if other, twice := told[s.id]; twice {
			t.Errorf("jobs %d and %d were both told the id %s", other, s.n, s.id)
		}
		told[s.id] = s.n
	}
	numbers := make(map[int]bool)
	states, _ := e.rows()
	for id := range states {
		var payload errand
		if err := json.Unmarshal([]byte(e.field(emq.ID(id), "payload")), &payload); err != nil {
			t.Fatal(err)
		}
		if n, known := told[id]; !known || n != payload.N {
			t.Errorf("row %s holds job %d; its id was told to job %d (%v)", id, payload.N, n, known)
		}
		numbers[payload.N] = true
	}
	t.Logf("experiment 30: %d processes with %d clients: %d jobs, %d ids, %d rows of %d different jobs; %d collisions on the way",
		processes, processes*nodes, total, len(told), len(states), len(numbers), collisions)
	if len(told) != total || len(states) != total || len(numbers) != total || e.counts().Pending != total {
		t.Errorf("want %d of each; %+v", total, e.counts())
	}
	if collisions < 1000 {
		t.Errorf("%d collisions: the experiment shows little", collisions)
	}
}

// seenTwice is for how many jobs the server has found that their id is there already. Each call of the script
// reads the settings once, and then a field of each row that is there; calls carry one job or many.
func (e *experiment) seenTwice() int {
	e.t.Helper()
	stats, err := e.do("INFO", "commandstats").ToString()
	if err != nil {
		e.t.Fatal(err)
	}
	scripts, _ := callsOf(stats, "eval", "evalsha")
	reads, _ := callsOf(stats, "hmget")
	return int(reads - scripts)
}
