package emqtest

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/echomq/emq/internal/inprocess"
	emq "github.com/echomq/emq/runtime"
)

// Env is emq for one test: a server in memory, a client of it, and a clock that only the test moves.
// Envs share nothing, so tests that have one each may run in parallel.
type Env struct {
	// Client is a client like any other, for the code under test and for the test.
	Client *emq.Client

	// Worker says how Work runs jobs. A Concurrency of 0 is 1 here: one job after the other, in the order of
	// their queue.
	Worker emq.WorkerConfig

	// Patience bounds, in real time, one call of Work, which fails the test when it is over; 30 s by default.
	Patience time.Duration

	t     testing.TB
	redis *miniredis.Miniredis
	log   eventLog
	work  sync.Mutex // held by Work

	clock    sync.Mutex    // held while the clock moves
	advanced time.Duration // by Advance, in sum

	mu      sync.Mutex
	now     time.Time // changes only while clock is held too
	jobs    []emq.Job
	workers map[*inprocess.Worker]bool
}

const defaultPatience = 30 * time.Second

// New starts an Env that ends with the test. Options are those of emq.Open; what is logged goes to the
// test's log unless they say otherwise.
func New(t testing.TB, opts ...emq.ClientOption) *Env {
	t.Helper()
	e := &Env{t: t, redis: miniredis.NewMiniRedis(), Patience: defaultPatience, workers: make(map[*inprocess.Worker]bool)}
	e.redis.ClockTTL(true) // keys expire by the clock that SetTime sets
	e.now = ceil(time.Now())
	e.redis.SetTime(e.now)
	if err := e.redis.Start(); err != nil {
		t.Fatalf("emqtest: the server does not start: %v", err)
	}
	out := &testLog{t: t}
	own := []emq.ClientOption{
		emq.InProcess(&inprocess.Server{Stop: e.redis.Close, Attach: e.attach}),
		emq.WithLogger(slog.New(slog.NewTextHandler(out, nil))),
	}
	opts = append(own, opts...)
	opts = append(opts, emq.WithObserver(&e.log), emq.WithEnqueueMiddleware(e.record))
	client, err := emq.Open(context.WithoutCancel(t.Context()), "redis://"+e.redis.Addr(), opts...)
	if err != nil {
		e.redis.Close()
		t.Fatalf("emqtest: %v", err)
	}
	e.Client = client
	t.Cleanup(func() {
		out.close()
		client.Close()
	})
	return e
}

// Jobs are the jobs that Client has enqueued, in their order. What the server refused, or knew already, is
// not among them, nor is what a schedule enqueued by itself.
func (e *Env) Jobs() []emq.Job {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.jobs)
}

// record stands right before the client, behind the middleware of the test.
func (e *Env) record(next emq.Enqueuer) emq.Enqueuer { return recording{e, next} }

type recording struct {
	env  *Env
	next emq.Enqueuer
}

func (r recording) Enqueue(ctx context.Context, jobs ...emq.Job) ([]emq.Receipt, error) {
	if slices.ContainsFunc(jobs, func(j emq.Job) bool { return isReal(j.DueAt()) }) {
		r.env.catchUp()
	}
	receipts, err := r.next.Enqueue(ctx, jobs...)
	r.env.mu.Lock()
	defer r.env.mu.Unlock()
	for i, receipt := range receipts {
		if receipt.Status == emq.Enqueued {
			r.env.jobs = append(r.env.jobs, jobs[i])
		}
	}
	return receipts, err
}

// Now is what the clock of this Env shows. It begins at the time of New and stands still but for Advance;
// see there. It has whole milliseconds.
func (e *Env) Now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now
}

// Advance moves the clock on by d, as if that time had passed while other workers were there and did
// nothing. So what is due, in a backoff, unique or kept for a time becomes what it is then, and the next
// Work acts on it. A worker that runs meanwhile, because a handler calls Advance or because the test has
// started one of its own, keeps its leases and looks for what is due; a lease that nobody renews lapses.
//
// It is the clock of the server alone. A handler's timeout, and time.Now in the code under test, follow the
// real one. So that emq.At(time.Now().Add(d)) is due after Advance(d), the clock first catches up with the
// real one, by the milliseconds that the test has run, when a job with such a time is enqueued. After an
// Advance the code under test should take the time from Now.
func (e *Env) Advance(d time.Duration) {
	e.t.Helper()
	if d < 0 {
		e.t.Fatalf("emqtest: Advance(%v): the clock goes forward only", d)
	}
	e.clock.Lock()
	defer e.clock.Unlock()
	e.advanced += d
	e.set(e.now.Add(d))
}

func (e *Env) catchUp() {
	e.clock.Lock()
	defer e.clock.Unlock()
	if t := ceil(time.Now().Add(e.advanced)); t.After(e.now) {
		e.set(t)
	}
}

// set moves the clock. Workers that run renew their leases before anybody reaps; and the queues have been
// seen alive, or a reaper would take the jump for an outage and wait.
func (e *Env) set(t time.Time) {
	e.redis.SetTime(t)
	e.mu.Lock()
	e.now = t
	var workers []*inprocess.Worker
	for w := range e.workers {
		workers = append(workers, w)
	}
	e.mu.Unlock()
	for _, w := range workers {
		w.Beat()
	}
	e.sawEverybody()
	for _, w := range workers {
		w.Look()
	}
}

// attach is told of each worker of Client.
func (e *Env) attach(w inprocess.Worker) (detach func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.workers[&w] = true
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.workers, &w)
	}
}

// isReal tells a time that comes from the real clock: it has a monotonic reading, or is finer than what
// Now gives.
func isReal(t time.Time) bool { return t != t.Truncate(time.Millisecond) }

// ceil rounds up to the server's milliseconds.
func ceil(t time.Time) time.Time { return t.Add(time.Millisecond - 1).Truncate(time.Millisecond) }

// testLog writes to the test's log until the test is over.
type testLog struct {
	mu     sync.Mutex
	t      testing.TB
	closed bool
}

func (l *testLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return len(line), nil
	}
	return l.t.Output().Write(line)
}

func (l *testLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}
