package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	emq "github.com/echomq/emq/runtime"
)

func crashDrills() []drill {
	return []drill{
		{"kill-storm", "kill -9 again and again over 4 workers and a producer under load", killStorm, together},
		{"kill-idle", "kill -9 in mid-job with default settings, a second worker idle", killIdle, together},
		{"kill-batch", "kill -9 after 3 of a claim of 50", killBatch, together},
		{"freeze", "SIGSTOP past the lease, a second run elsewhere, SIGCONT", freeze, together},
		{"poison", "a job that kills its process each time, 49 innocent ones beside it", poison, together},
	}
}

// lines is the log so far.
func (st *stage) lines() []line {
	lines, err := st.reader.read()
	st.must("read the log", err)
	return lines
}

// count is how many lines of a process (nil: of all) tell something.
func (st *stage) count(p *process, what string) int {
	n := 0
	for _, l := range st.lines() {
		if l.What == what && (p == nil || l.PID == p.pid()) {
			n++
		}
	}
	return n
}

// events is how often an observer saw something.
func (st *stage) events(name emq.EventName) int {
	n := 0
	for _, l := range st.lines() {
		if l.What == observed && l.Text == string(name) {
			n++
		}
	}
	return n
}

// client is opened once for each URL.
func (st *stage) client(url string) *emq.Client {
	if c := st.clients[url]; c != nil {
		return c
	}
	c, err := emq.Open(st.ctx, url, emq.WithLogger(slog.New(slog.DiscardHandler)))
	st.must("open a client", err)
	st.cleanup(c.Close)
	st.clients[url] = c
	return c
}

// put enqueues jobs from this process, and notes them as a producer does.
func (st *stage) put(url string, queue string, first int, jobs ...emq.Job) []emq.Receipt {
	c := st.client(url)
	sent := monotonic()
	receipts, err := c.Enqueue(st.ctx, jobs...)
	st.must("enqueue", err)
	book, err := openLogbook(st.log)
	st.must("open the log", err)
	defer book.file.Close()
	for i, r := range receipts {
		book.write(line{What: wasAcked, ID: string(r.ID), Queue: queue, N: first + i, Sent: sent})
	}
	return receipts
}

func killStorm(st *stage) {
	const lease = time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	part := workRole{Lease: lease, Concurrency: 10}
	workers := st.workers(4, s.URL(), part)
	jobs, rounds := st.size(3000, 20000), 20
	producer := st.producer(s.URL(), produceRole{Count: jobs, Batch: 50, Pause: time.Duration(rounds) * 400 * time.Millisecond / time.Duration(jobs/50), Longest: 60 * time.Millisecond})
	for range rounds {
		st.sleep(st.between(200*time.Millisecond, 600*time.Millisecond))
		i := st.rng.IntN(len(workers))
		workers[i].kill()
		workers[i] = st.worker(s.URL(), part)
	}
	st.produced(time.Minute, producer)
	a.drained(time.Minute)
	st.finish(workers...)
	a.judge()
	cut := 0
	for _, stints := range a.stints {
		for _, run := range stints {
			if run.end == 0 {
				cut++
			}
		}
	}
	st.figure("%d kills cut off %d runs, %d leases reaped", rounds, cut, a.total("reaped"))
	if cut == 0 || a.total("reaped") < cut {
		st.doubtf("the storm cut off %d runs and %d leases were reaped: it proves nothing", cut, a.total("reaped"))
	}
}

func killIdle(st *stage) {
	const lease = 15 * time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	first := st.worker(s.URL(), workRole{})
	gate := filepath.Join(st.dir, "gate")
	st.put(s.URL(), keeps, 0, emq.New(kept{N: 0, Do: atGate, Gate: gate}))
	st.need("the job runs", 20*time.Second, func() bool { return st.count(first, begins) == 1 })
	second := st.worker(s.URL(), workRole{})
	st.need("the second worker is up", 10*time.Second, func() bool { return st.count(second, isUp) == 1 })
	first.kill()
	st.need("the second worker has the job", lease+5*time.Second, func() bool { return st.count(second, begins) == 1 })
	took := time.Duration(monotonic() - first.died)
	st.open(gate)
	a.drained(10 * time.Second)
	st.finish(second)
	a.judge()
	st.figure("next run %.1f s after the kill (lease 15 s)", took.Seconds())
}

// open lets the jobs at a gate go on.
func (st *stage) open(gate string) {
	st.must("open a gate", os.WriteFile(gate, nil, 0o600))
}

func killBatch(st *stage) {
	const lease = time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	gate := filepath.Join(st.dir, "gate")
	jobs := make([]emq.Job, 50)
	for i := range jobs {
		j := kept{N: i, Do: atGate, Gate: gate}
		if i%20 == 7 {
			j = kept{N: i}
		}
		jobs[i] = emq.New(j)
	}
	st.put(s.URL(), keeps, 0, jobs...)
	first := st.worker(s.URL(), workRole{Lease: lease, Concurrency: 50})
	st.need("50 run and 3 have ended", 20*time.Second, func() bool {
		c, err := a.census()
		return err == nil && st.count(first, begins) == 50 && c.completed == 3
	})
	first.kill()
	st.open(gate)
	second := st.worker(s.URL(), workRole{Lease: lease, Concurrency: 50})
	a.drained(20 * time.Second)
	st.finish(second)
	a.judge()
	spent := 0
	for _, stints := range a.stints {
		for _, run := range stints {
			spent += run.Try - 1
		}
	}
	back := st.count(second, begins)
	st.figure("%d came back, %d attempts spent", back, spent)
	if back != 47 || spent != 0 || a.total("reaped") != 47 {
		st.failf("want 47 back and none spent; %d reaped", a.total("reaped"))
	}
}

func freeze(st *stage) {
	const lease = time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	part := workRole{Lease: lease, Concurrency: 20}
	jobs := make([]emq.Job, st.size(10, 200))
	const each = 10
	gate := func(round int) string { return filepath.Join(st.dir, fmt.Sprint("gate", round)) }
	for i := range jobs {
		// its handler may end as soon as its process is frozen, and does when that thaws
		jobs[i] = emq.New(kept{N: i, Do: atGate, Gate: gate(i / each)})
	}
	workers := []*process{st.worker(s.URL(), part)}
	rounds := 0
	next := 0
	for batch := range slices.Chunk(jobs, each) {
		want := st.count(nil, begins) + len(batch)
		began := make([]int, len(workers))
		for i, w := range workers {
			began[i] = st.count(w, begins)
		}
		st.put(s.URL(), keeps, next, batch...)
		next += len(batch)
		st.need("the jobs run", 20*time.Second, func() bool { return st.count(nil, begins) >= want })
		frozen, most := workers[0], 0 // of two, the one that has most of them
		for i, w := range workers {
			if n := st.count(w, begins) - began[i]; n > most {
				frozen, most = w, n
			}
		}
		frozen.freeze()
		st.open(gate(rounds))
		rounds++
		if len(workers) == 1 {
			workers = append(workers, st.worker(s.URL(), part))
		}
		st.reached("everything completes elsewhere", 20*time.Second, func() bool {
			c, err := a.census()
			return err == nil && c.completed == next
		})
		before, err := readKeyspace(st.ctx, a.look, keeps)
		st.must("read the key space", err)
		stale := st.events(emq.EventStale) + st.events(emq.EventLost)
		frozen.thaw()
		st.reached("the thawed worker is told that it has lost its jobs", 10*time.Second, func() bool {
			return st.events(emq.EventStale)+st.events(emq.EventLost) > stale
		})
		ran := st.count(frozen, begins)
		st.reached("its handlers have returned", 10*time.Second, func() bool { return st.count(frozen, ends) == ran })
		st.sleep(200 * time.Millisecond) // for settles that would do harm
		after, err := readKeyspace(st.ctx, a.look, keeps)
		st.must("read the key space", err)
		for _, harm := range before.harmTo(after) {
			st.failf("%s", harm)
		}
	}
	st.finish(workers...)
	a.judge()
	refused := a.total("stale")
	st.figure("%d rounds, %d settles refused as stale, %d leases found lost", rounds, refused, st.events(emq.EventLost))
	if st.events(emq.EventStale)+st.events(emq.EventLost) == 0 {
		st.doubtf("nothing was refused: the drill proves nothing")
	}
}

// harmTo is what settles that came too late have changed.
func (ks *keyspace) harmTo(after *keyspace) (harm []string) {
	for id, row := range ks.rows {
		if !maps.Equal(row, after.rows[id]) {
			harm = append(harm, fmt.Sprintf("a late settle changed %s: %v became %v", id, row, after.rows[id]))
		}
	}
	if b, c := ks.total("completed"), after.total("completed"); b != c {
		harm = append(harm, fmt.Sprintf("a late settle was counted: metrics:completed %d became %d", b, c))
	}
	return harm
}

func poison(st *stage) {
	const lease, budget, innocents = 600 * time.Millisecond, 5, 49
	s := st.redis()
	a := st.audit(s.URL(), lease)
	a.mayDie = func(n int) bool { return n == innocents }
	jobs := make([]emq.Job, innocents+1)
	for i := range jobs {
		jobs[i] = emq.New(kept{N: i, For: 150 * time.Millisecond})
	}
	jobs[innocents] = emq.New(kept{N: innocents, Do: kills, For: 100 * time.Millisecond})
	receipts := st.put(s.URL(), keeps, 0, jobs...)
	starts := 0
	var w *process
	st.reached("the innocent have completed and the poison is dead", 90*time.Second, func() bool {
		if w == nil || !w.alive() {
			w = st.worker(s.URL(), workRole{Lease: lease, Concurrency: innocents + 1, CrashBudget: budget})
			starts++
		}
		c, err := a.census()
		return err == nil && c.completed == innocents && c.dead == 1
	})
	st.finish(w)
	a.judge()
	row := a.spaces[keeps].rows[string(receipts[innocents].ID)]
	spent := 0
	for _, stints := range a.stints {
		for _, run := range stints {
			spent += run.Try - 1
		}
	}
	st.figure("%d processes died, the poison is %s after %s leases, %d attempts spent", starts-1, row["state"], cmp.Or(row["lapses"], "no"), spent)
	if row["state"] != "dead" || row["lapses"] != fmt.Sprint(budget) || spent != 0 {
		st.failf("the poison: %v", row)
	}
}
