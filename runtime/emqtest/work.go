package emqtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Work runs a worker, with the bindings and with the settings of Worker, until it is idle: nothing that is
// there can run now. Jobs that are due later stay; Advance makes them due. It says how each run has ended.
//
// The test fails if Work is not idle within Patience: a handler hangs, or a job comes back again and
// again. A worker that cannot start fails it too. A handler's panic is a failed run, as it is in a worker.
func (e *Env) Work(bindings ...emq.Binding) Report {
	e.t.Helper()
	if !e.work.TryLock() {
		e.t.Fatal("emqtest: Work was called while it runs")
	}
	defer e.work.Unlock()
	cfg := e.Worker
	if cfg.Concurrency == 0 {
		cfg.Concurrency = 1
	}
	if cfg.Observer != nil {
		cfg.Observer = both{&e.log, cfg.Observer} // the log first: the user's may panic
	}
	began := e.log.begin()
	cfg.Middleware = append([]emq.Middleware{began.middleware}, cfg.Middleware...)
	worker, err := emq.NewWorker(e.Client, cfg, bindings...)
	if err != nil {
		e.t.Fatalf("emqtest: Work: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- worker.RunUntilIdle(context.WithoutCancel(e.t.Context())) }()
	late := time.NewTimer(e.Patience)
	defer late.Stop()
	select {
	case err = <-ended:
	case <-late.C:
		hanging := began.hanging()
		worker.Abort()
		<-ended
		e.t.Fatalf("emqtest: Work was not idle after %v. Running then: %s. Last runs: %s", e.Patience, hanging, e.log.report())
	}
	if err != nil {
		e.t.Fatalf("emqtest: Work: %v", err)
	}
	return e.log.report()
}

// Report says what a Work did: each run, and how many of them ended in which way.
type Report struct {
	Runs []Outcome // in the order in which they ended

	Completed int
	Retried   int // failed, and wait for their backoff
	Dead      int // dead letters: no attempt is left, Dead, or a payload that cannot be decoded
	Snoozed   int
	Discarded int
	Cancelled int
	Released  int // handed back: a kind or a version that nobody bound knows
}

// Outcome is one run and how it ended.
type Outcome struct {
	Ref     emq.Ref
	Kind    string
	Attempt int
	Payload any           // as the handler got it; nil if none was called
	Event   emq.EventName // EventCompleted, EventRetried, EventDead, …
	Err     error         // what the handler returned
}

// Err joins the errors of the runs that failed, which are those that will be retried or are dead letters;
// nil if there are none.
func (r Report) Err() error {
	var errs []error
	for _, o := range r.Runs {
		if o.Event == emq.EventRetried || o.Event == emq.EventDead {
			errs = append(errs, fmt.Errorf("%v (%s), attempt %d, %s: %w", o.Ref, o.Kind, o.Attempt, o.Event, o.Err))
		}
	}
	return errors.Join(errs...)
}

// String is a line for each run.
func (r Report) String() string {
	const most = 20
	if len(r.Runs) == 0 {
		return "nothing ran"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs", len(r.Runs))
	runs := r.Runs
	if len(runs) > most {
		runs = runs[len(runs)-most:]
		fmt.Fprintf(&b, ", the last %d", most)
	}
	for _, o := range runs {
		fmt.Fprintf(&b, "\n\t%v %s, attempt %d: %s", o.Ref, o.Kind, o.Attempt, o.Event)
		if o.Err != nil {
			fmt.Fprintf(&b, ": %v", o.Err)
		}
	}
	return b.String()
}

// eventLog is an observer that keeps how runs end while a Work lasts.
type eventLog struct {
	mu   sync.Mutex
	work *working
}

// working is one Work.
type working struct {
	mu      sync.Mutex
	runs    []Outcome
	running map[string]emq.Info // by ref and attempt
	payload map[string]any
}

func keyOf(ref emq.Ref, attempt int) string { return fmt.Sprint(ref, " ", attempt) }

func (l *eventLog) begin() *working {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.work = &working{running: make(map[string]emq.Info), payload: make(map[string]any)}
	return l.work
}

func (l *eventLog) current() *working {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.work
}

// Observe implements emq.Observer.
func (l *eventLog) Observe(_ context.Context, e emq.Event) {
	w := l.current()
	if w == nil || e.ID == "" {
		return
	}
	switch e.Name {
	case emq.EventCompleted, emq.EventRetried, emq.EventDead, emq.EventSnoozed, emq.EventDiscarded, emq.EventReleased, emq.EventCancelled, emq.EventStale:
	default: // nothing has ended
		return
	}
	ref := emq.Ref{Queue: e.Queue, ID: e.ID}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := keyOf(ref, e.Attempt)
	w.runs = append(w.runs, Outcome{Ref: ref, Kind: e.Kind, Attempt: e.Attempt, Payload: w.payload[key], Event: e.Name, Err: e.Err})
	delete(w.payload, key)
}

// middleware notes what the handlers get, which no event tells.
func (w *working) middleware(next emq.HandleFunc) emq.HandleFunc {
	return func(ctx context.Context, d *emq.Delivery) error {
		key := keyOf(d.Ref, d.Attempt)
		w.mu.Lock()
		w.running[key], w.payload[key] = d.Info, d.Payload
		w.mu.Unlock()
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.running, key)
		}()
		return next(ctx, d)
	}
}

// hanging lists what runs.
func (w *working) hanging() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.running) == 0 {
		return "nothing"
	}
	var names []string
	for _, key := range slices.Sorted(maps.Keys(w.running)) {
		i := w.running[key]
		names = append(names, fmt.Sprintf("%v (%s, attempt %d)", i.Ref, i.Kind, i.Attempt))
	}
	return strings.Join(names, ", ")
}

func (l *eventLog) report() Report {
	w := l.current()
	w.mu.Lock()
	defer w.mu.Unlock()
	r := Report{Runs: slices.Clone(w.runs)}
	for _, o := range r.Runs {
		switch o.Event {
		case emq.EventCompleted:
			r.Completed++
		case emq.EventRetried:
			r.Retried++
		case emq.EventDead:
			r.Dead++
		case emq.EventSnoozed:
			r.Snoozed++
		case emq.EventDiscarded:
			r.Discarded++
		case emq.EventCancelled:
			r.Cancelled++
		case emq.EventReleased:
			r.Released++
		}
	}
	return r
}

// both tells two observers.
type both [2]emq.Observer

func (b both) Observe(ctx context.Context, e emq.Event) {
	for _, o := range b {
		o.Observe(ctx, e)
	}
}
