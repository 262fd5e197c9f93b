package emq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/inprocess"
	"github.com/echomq/emq/internal/wire"
)

// WorkerConfig says how a worker runs. The zero value is a worker of 10 slots with the defaults below.
type WorkerConfig struct {
	// Concurrency is how many handlers run at once in this process, over all queues; 10 by default. The next job may
	// begin when a handler has returned and its settle is on its way; a settle without a verdict holds it back.
	Concurrency int
	Queues      map[string]QueueConfig // limits and weights of single queues
	// Only serves these of the bound queues, each named once; none: all. What Queues says of the others has no
	// effect, so that one configuration does for all deployments of a program.
	Only []string
	// Strict gives free slots to the queue of the highest weight that has work, and to others only what it
	// leaves; queues of equal weight take turns. It needs two weights that differ.
	Strict bool

	SoftStop time.Duration // how long a stopping worker lets its jobs run on; 20 s by default
	HardStop time.Duration // how long it then waits for handlers whose context was cancelled; 5 s by default
	Lease    time.Duration // how long a job is safe without a heartbeat; 15 s by default, 100 ms at least
	// CrashBudget is how many leases a job may lose before it is a dead letter; 5 by default, negative
	// for no limit. It is apart from the attempts: a lost lease costs none.
	CrashBudget int

	// LogLines is how many lines of AppendLog are kept with a job: 100 by default, 1000 at most.
	LogLines int

	// AllowPartial serves queues of which other packages than the bound ones are known to have jobs there;
	// otherwise Run fails with ErrPartialQueue.
	AllowPartial bool

	Middleware []Middleware // around every handler; the first is the outermost
	Logger     *slog.Logger // the client's by default
	Observer   Observer     // the client's by default
}

// QueueConfig says how a worker serves one queue.
type QueueConfig struct {
	Concurrency int // handlers of this queue that run at once in this process; the worker's by default
	// Weight is the queue's share of the slots while they are short: of two queues that have work, one of
	// weight 3 begins three jobs for one of the other of weight 1, the default; 1000000 at most. See
	// WorkerConfig.Strict. It means nothing in a worker of one queue.
	Weight int
}

// Worker claims jobs and runs their handlers. NewWorker makes one; it runs once.
type Worker struct {
	client   *Client
	cfg      WorkerConfig
	log      *slog.Logger
	observer Observer
	tag      string // names this process where it pumps and waits

	mu        sync.Mutex
	consumers []*consumer // of all shards of all queues; they only become more
	stage     *stage      // nil before Run and once it stops

	cron    cronTimes
	slots   *slots
	running tally
	left    chan struct{} // a job has left its slot; nil but for RunUntilIdle
	suspect atomic.Bool   // a job that has lost leases before runs alone
	started atomic.Bool
	abort   chan struct{}
	aborted sync.Once
	fatal   chan error // the first error that ends Run

	// set by Run, before anything uses them
	life     context.Context // of heartbeats and settles: the last thing to end
	handlers context.Context // parent of the handlers' contexts

	loops loops
}

// NewWorker checks a configuration and bindings and reports every fault at once, as ErrInvalid: nothing
// bound, a kind bound twice, a nil handler, a name in Queues or Only that is not bound, or twice in Only, a
// negative number, a weight over 1000000, Strict without two weights that differ. It does no I/O.
func NewWorker(c *Client, cfg WorkerConfig, bindings ...Binding) (*Worker, error) {
	if c == nil {
		return nil, fmt.Errorf("%w: NewWorker: the client is nil", ErrInvalid)
	}
	errs := cfg.complete(c)
	byQueue, bindErrs := byQueue(Bind(bindings...).kinds)
	errs = append(errs, bindErrs...)
	errs = append(errs, cfg.checkQueues(byQueue)...)
	if len(errs) > 0 {
		return nil, fmt.Errorf("%w: worker: %w", ErrInvalid, errors.Join(errs...))
	}
	w := &Worker{
		client: c, cfg: cfg, log: cfg.Logger, observer: cfg.Observer, tag: newMark(),
		slots: &slots{limit: cfg.Concurrency, strict: cfg.Strict, lends: true}, abort: make(chan struct{}),
		fatal: make(chan error, 1), cron: defaultCronTimes(),
	}
	for _, name := range slices.Sorted(maps.Keys(byQueue)) {
		if len(cfg.Only) == 0 || slices.Contains(cfg.Only, name) {
			w.consumers = append(w.consumers, newConsumer(w, newServed(w, name, byQueue[name]), 0))
		}
	}
	return w, nil
}

const (
	defaultConcurrency = 10
	defaultSoftStop    = 20 * time.Second
	defaultHardStop    = 5 * time.Second
	defaultLease       = 15 * time.Second
	defaultCrashBudget = 5
	shortestLease      = 100 * time.Millisecond
	// largestWeight keeps a turn, which is 1/weight, far above what is lost when it is added to the virtual
	// time of billions of jobs: else the queue's turn would never end.
	largestWeight = 1_000_000
)

// complete fills in the defaults and reports what makes no sense.
func (cfg *WorkerConfig) complete(c *Client) (errs []error) {
	for _, d := range []struct {
		name   string
		value  *time.Duration
		preset time.Duration
	}{{"SoftStop", &cfg.SoftStop, defaultSoftStop}, {"HardStop", &cfg.HardStop, defaultHardStop}, {"Lease", &cfg.Lease, defaultLease}} {
		if *d.value < 0 {
			errs = append(errs, fmt.Errorf("%s is negative: %v", d.name, *d.value))
		}
		if *d.value == 0 {
			*d.value = d.preset
		}
	}
	if cfg.Lease > 0 && cfg.Lease < shortestLease {
		errs = append(errs, fmt.Errorf("Lease is %v, at least %v", cfg.Lease, shortestLease))
	}
	if cfg.Concurrency < 0 {
		errs = append(errs, fmt.Errorf("Concurrency is negative: %d", cfg.Concurrency))
	}
	if cfg.Concurrency == 0 {
		cfg.Concurrency = defaultConcurrency
	}
	if cfg.LogLines < 0 || cfg.LogLines > maxLogLines {
		errs = append(errs, fmt.Errorf("LogLines is %d: 1 to %d, or 0 for %d", cfg.LogLines, maxLogLines, defaultLogLines))
	}
	if cfg.LogLines == 0 {
		cfg.LogLines = defaultLogLines
	}
	switch {
	case cfg.CrashBudget == 0:
		cfg.CrashBudget = defaultCrashBudget
	case cfg.CrashBudget < 0:
		cfg.CrashBudget = 0 // the wire's word for no limit
	}
	if cfg.Logger == nil {
		cfg.Logger = c.log
	}
	if cfg.Observer == nil {
		cfg.Observer = c.observer
	} else {
		cfg.Observer = careful{cfg.Observer, cfg.Logger}
	}
	for i, m := range cfg.Middleware {
		if m == nil {
			errs = append(errs, fmt.Errorf("Middleware %d is nil", i))
		}
	}
	return errs
}

func (cfg *WorkerConfig) checkQueues(bound map[string][]*boundKind) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(cfg.Queues)) {
		if bound[name] == nil {
			errs = append(errs, fmt.Errorf("Queues names %s, which is not bound", wire.Quote(name)))
		}
		if n := cfg.Queues[name].Concurrency; n < 0 {
			errs = append(errs, fmt.Errorf("the Concurrency of queue %s is negative: %d", wire.Quote(name), n))
		}
		if n := cfg.Queues[name].Weight; n < 0 {
			errs = append(errs, fmt.Errorf("the Weight of queue %s is negative: %d", wire.Quote(name), n))
		} else if n > largestWeight {
			errs = append(errs, fmt.Errorf("the Weight of queue %s is %d, at most %d: Strict lets one queue go first always", wire.Quote(name), n, largestWeight))
		}
	}
	if weights := cfg.weights(bound); cfg.Strict && len(weights) < 2 {
		errs = append(errs, errors.New("Strict, but all queues have the same weight: set Queues[name].Weight"))
	}
	for i, name := range cfg.Only {
		if bound[name] == nil {
			errs = append(errs, fmt.Errorf("Only names %s, which is not bound", wire.Quote(name)))
		}
		if slices.Index(cfg.Only, name) < i {
			errs = append(errs, fmt.Errorf("Only names %s twice", wire.Quote(name)))
		}
	}
	return errs
}

// weights gives the weights of the bound queues, each once.
func (cfg *WorkerConfig) weights(bound map[string][]*boundKind) map[int]bool {
	weights := make(map[int]bool)
	for name := range bound {
		weights[max(cfg.Queues[name].Weight, 1)] = true
	}
	return weights
}

// byQueue sorts kinds by their queue and reports what is wrong with them.
func byQueue(kinds []*boundKind) (map[string][]*boundKind, []error) {
	queues := make(map[string][]*boundKind)
	var errs []error
	if len(kinds) == 0 {
		errs = append(errs, errors.New("nothing is bound: pass the Bind of a generated package"))
	}
	taken := make(map[string]string)
	for _, k := range kinds {
		place := k.queue + "/" + k.kind
		for _, err := range []error{k.err, wire.CheckQueue(k.queue), wire.CheckKind(k.kind)} {
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", place, err))
			}
		}
		for _, name := range append([]string{k.kind}, k.aliases...) {
			if other := taken[k.queue+"/"+name]; other == place {
				errs = append(errs, fmt.Errorf("kind %s of queue %s is bound twice", name, k.queue))
			} else if other != "" {
				errs = append(errs, fmt.Errorf("kind %s of queue %s is bound twice: as %s and as %s", name, k.queue, other, place))
			}
			taken[k.queue+"/"+name] = place
		}
		queues[k.queue] = append(queues[k.queue], k)
	}
	return queues, errs
}

// Run claims and runs jobs until ctx ends or Abort is called. The end of ctx begins a graceful stop: no
// further claims; running jobs have SoftStop to end by themselves, then their contexts are cancelled
// with ErrShutdown and they have HardStop; what is left is handed back, which costs no attempt. The
// server being away is no error: Run goes on when it is back.
//
// It returns nil after a stop; ErrPartialQueue if a queue carries jobs of packages that are not bound;
// and an error if it was called before.
func (w *Worker) Run(ctx context.Context) error {
	return w.run(ctx, nil, func(claims context.Context, front *sync.WaitGroup, c *consumer) {
		w.loops.start(claims, w, front, "fetch "+c.q.Tag(), longestPause, c.fetch)
		w.loops.start(claims, w, front, "pump "+c.q.Tag(), longestPause, c.pump.loop)
		if len(c.crons)+len(c.moved) > 0 {
			w.loops.start(claims, w, front, "cron "+c.q.Tag(), longestPause, c.keepCrons)
		}
	}, func(context.Context, *sync.WaitGroup) <-chan struct{} {
		return nil // there is no end but a stop
	})
}

// stage is what a consumer needs to begin, also one that comes later.
type stage struct {
	claims, life context.Context
	front, back  *sync.WaitGroup
	parker       *parker       // of all consumers, or of the last one where each has one
	token        chan struct{} // of all consumers; nil: each has one
	serve        func(claims context.Context, front *sync.WaitGroup, c *consumer)
}

// widen serves more shards of a queue, if it has more.
func (w *Worker) widen(s *served, shards int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage == nil || shards <= s.portion.shards {
		return
	}
	w.client.learnShards(s.name, shards, 0)
	for i := s.portion.shards; i < shards; i++ {
		c := newConsumer(w, s, i)
		w.consumers = append(w.consumers, c)
		w.begin(c)
	}
}

// all are the consumers there are now.
func (w *Worker) all() []*consumer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.consumers)
}

// begin starts the loops of a consumer: before they do, it has its parker, which they tell of changes. There is one
// blocked connection in all, but one for each shard on a cluster, where the keys of two are on different nodes.
func (w *Worker) begin(c *consumer) {
	s := w.stage
	if s.token != nil {
		c.token = s.token
	}
	first := s.parker == nil
	if first || w.client.rueidis.Mode() == rueidis.ClientModeCluster {
		s.parker, first = newParker(w), true
	}
	s.parker.add(c)
	s.serve(s.claims, s.front, c)
	if first {
		w.loops.start(s.claims, w, s.front, "wait "+c.q.Tag(), longestPause, s.parker.loop)
	}
	// Whoever finds the server back first starts the grace, a third of a lease: by its end all
	// others must have been there too, or they lose their jobs to the reaper.
	w.loops.start(s.life, w, s.back, "heartbeat "+c.q.Tag(), min(longestPause, w.cfg.Lease/6), c.beat)
}

// run is the life of a worker. each starts the loops that claim for a consumer, if it has some of its own; what goesOn
// answers is closed when all have come to their end.
func (w *Worker) run(ctx context.Context, token chan struct{}, each func(claims context.Context, front *sync.WaitGroup, c *consumer),
	goesOn func(claims context.Context, front *sync.WaitGroup) <-chan struct{}) error {
	if !w.started.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: a worker runs once: make another with NewWorker", ErrInvalid)
	}
	select {
	case <-w.abort: // before Run
		return nil
	default:
	}
	life, endLife := context.WithCancel(context.WithoutCancel(ctx))
	defer endLife()
	handlers, cancelHandlers := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelHandlers(ErrShutdown)
	w.life, w.handlers = life, handlers

	claims, stopClaims := context.WithCancel(ctx)
	defer stopClaims()
	var front, back sync.WaitGroup // what ends with the claims, and what ends last
	w.mu.Lock()
	w.stage = &stage{claims: claims, life: life, front: &front, back: &back, token: token, serve: each}
	for _, c := range w.consumers {
		w.begin(c)
	}
	w.mu.Unlock()
	ended := goesOn(claims, &front)

	if attach := w.client.inProcess.Attach; attach != nil {
		defer attach(inprocess.Worker{Beat: w.beatNow, Look: w.lookNow})()
	}

	var fatal error
	select {
	case <-ended:
	case <-ctx.Done():
	case <-w.abort:
	case fatal = <-w.fatal:
	}
	w.mu.Lock()
	w.stage = nil // no further consumer begins
	w.mu.Unlock()
	stopClaims()
	claimed := done(&front)
	if !w.await(claimed, w.cfg.HardStop) {
		within(claimed, farewell) // after Abort too: a claim under way brings jobs that must be handed back
	}
	w.handOver()
	if !w.await(w.running.zero(), w.cfg.SoftStop) {
		cancelHandlers(ErrShutdown)
		if !w.await(w.running.zero(), w.cfg.HardStop) {
			w.abandon()
		}
	}
	endLife()
	// a call to a server that does not answer ends by its own timeout, after Run if it must
	if within(done(&back), farewell) {
		within(claimed, farewell)
	}
	return fatal
}

// fail ends Run with an error after a graceful stop.
func (w *Worker) fail(err error) {
	select {
	case w.fatal <- err:
	default: // another came first
	}
}
