package emq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// run is one claimed job in this process, from its claim until its settle has a verdict.
type run struct {
	c      *consumer
	job    scripts.ClaimedJob
	kind   *boundKind
	info   Info
	cancel context.CancelCauseFunc

	ctx      context.Context
	delivery *Delivery
	began    time.Time
	wait     time.Duration // from when it was due to the claim
	overdue  atomic.Int64  // Unix ns at which a handler that has not returned is stuck; 0: none runs
	err      error         // what the handler returned

	lent bool // its slot, while its settle is under way

	returned  atomic.Bool // the handler is no longer running
	lost      atomic.Bool
	stuck     atomic.Bool
	abandoned atomic.Bool // handed back by a stop: nothing more is sent
}

func (c *consumer) register(job scripts.ClaimedJob) *run {
	r := &run{c: c, job: job, cancel: func(error) {}, began: time.Now()}
	r.info = Info{
		Ref: Ref{c.q.Name(), ID(job.ID)}, Kind: job.Kind, Lane: job.Lane,
		Attempt: int(job.Attempts - job.Forgiven), MaxAttempts: job.Max,
		Due: job.Due, Tick: job.Tick, Headers: job.Headers,
	}
	r.info.EnqueuedAt = r.info.ID.Time()
	if r.info.Due.IsZero() {
		r.info.Due = r.info.EnqueuedAt
	}
	r.wait = max(job.At.Sub(r.info.Due), 0) // a producer's clock may be ahead of the server's
	r.kind = c.kinds[job.Kind]
	r.ctx = c.w.handlers
	if r.kind != nil {
		if r.info.MaxAttempts == 0 {
			r.info.MaxAttempts = r.kind.attempts
		}
		// one context for the causes, one for the deadline
		r.ctx, r.cancel = context.WithCancelCause(context.WithValue(c.w.handlers, runKey{}, r))
	}
	c.w.running.add(1)
	c.mu.Lock()
	c.runs[job.Fence] = r
	c.mu.Unlock()
	return r
}

func (c *consumer) registered() []*run {
	c.mu.Lock()
	defer c.mu.Unlock()
	runs := make([]*run, 0, len(c.runs))
	for _, r := range c.runs {
		runs = append(runs, r)
	}
	return runs
}

// startAll starts the jobs of one claim, each in a goroutine of its own.
func (c *consumer) startAll(jobs []scripts.ClaimedJob) {
	var suspects sync.WaitGroup
	for _, job := range jobs {
		if job.Lapses >= suspectLapses {
			suspects.Add(1)
		}
	}
	for _, job := range jobs {
		go c.register(job).main(&suspects)
	}
}

// leave ends a run: its handler has returned and its settle has a verdict. Its slot may be another one's already.
func (r *run) leave() {
	r.cancel(nil)
	r.c.mu.Lock()
	delete(r.c.runs, r.job.Fence)
	r.c.mu.Unlock()
	if r.lent {
		r.c.w.slots.settled(r.c.share)
	} else {
		r.c.w.slots.free(r.c.share, 1)
	}
	r.c.w.running.add(-1)
	signalOne(r.c.w.left)
}

// growStack gives a new goroutine the stack that decoding, handling and settling a job take, while there is next to
// nothing on the old one to be copied. Growing step by step on the way took an eighth of a worker's CPU time.
//
//go:noinline
func growStack() {
	var frame [6 << 10]byte
	runtime.KeepAlive(&frame)
}

// errGoexit stands until the handler has returned.
var errGoexit = errors.New("the handler called runtime.Goexit")

func (r *run) main(suspects *sync.WaitGroup) {
	growStack()
	defer r.leave()
	if r.job.Lapses >= suspectLapses {
		if !r.c.w.suspect.CompareAndSwap(false, true) {
			defer suspects.Done()
			r.returned.Store(true)
			r.settle(r.handBack(jitter(r.c.w.cfg.Lease)))
			return
		}
		defer r.c.w.suspect.Store(false)
		suspects.Done()
		suspects.Wait()
		if r.ctx.Err() != nil { // a stop, or the lease was lost meanwhile
			r.returned.Store(true)
			r.settle(r.handBack(0))
			return
		}
	}
	payload, refusal := r.decode()
	if refusal != nil {
		r.returned.Store(true)
		r.settle(refusal)
		return
	}
	deadline := time.Now().Add(r.kind.timeout)
	r.overdue.Store(deadline.Add(r.c.w.cfg.HardStop).UnixNano())
	ctx, release := context.WithDeadlineCause(r.ctx, deadline, ErrTimeout)
	r.delivery = &Delivery{Info: r.info, Payload: payload}
	r.err = errGoexit
	defer func() { // also after runtime.Goexit
		r.returned.Store(true)
		cause := context.Cause(ctx)
		release()
		r.settle(r.judge(cause))
	}()
	r.err = r.handle(ctx)
}

// suspectLapses: a job that has lost so many leases may be what kills the processes, so it runs alone
// among its like: a process runs one at a time, and the innocent ones do not go down with it again. It
// begins when the others of its claim are handed back; one that kills its process at once would take
// them along before.
const suspectLapses = 2

// decode gives the typed payload, or the settlement of a job that cannot run here.
func (r *run) decode() (payload any, refusal *settlement) {
	if r.kind == nil {
		return nil, r.unknown("kind")
	}
	if r.kind.retired {
		r.logger().Info("emq: a job of a retired kind is discarded")
		return nil, r.discard(EventDiscarded)
	}
	if r.job.Version > r.kind.version {
		return nil, r.unknown("version")
	}
	exited := true
	defer func() {
		p := recover()
		switch {
		case p != nil:
			payload, refusal = nil, r.undecodable(fmt.Errorf("panic: %v", p))
		case exited: // by runtime.Goexit: nothing but deferred calls will run
			r.returned.Store(true)
			r.settle(r.undecodable(errGoexit))
		}
	}()
	payload, err := r.kind.decode(r.job.Version, r.job.Payload)
	exited = false
	if err != nil {
		return nil, r.undecodable(err)
	}
	return payload, nil
}

func (r *run) undecodable(err error) *settlement {
	err = fmt.Errorf("undecodable: %w", err)
	r.logger().Error("emq: the payload cannot be decoded; the job is a dead letter and its bytes are kept", "error", err)
	return r.kill(err)
}

// unknown hands a job back that a newer worker will know. It waits longer each time.
func (r *run) unknown(what string) *settlement {
	if r.c.warn.allow(what + " " + r.job.Kind) {
		r.logger().Warn("emq: the "+what+" of a job is unknown here, so it is handed back: deploy a worker that knows it",
			"version", r.job.Version, "forgiven", r.job.Forgiven)
	}
	return r.handBack(Exponential(time.Second, 5*time.Minute).delay(int(r.job.Forgiven)+1, rand.Float64))
}

// handle runs the handler under its middleware and turns a panic into an error with its stack.
//
//go:noinline
func (r *run) handle(ctx context.Context) (err error) {
	exited := true
	defer func() {
		p := recover()
		switch {
		case p != nil:
			err = r.panicked(p)
		case exited:
			r.err = fmt.Errorf("%w\n%s", errGoexit, debug.Stack())
			r.logger().Error("emq: "+errGoexit.Error(), "stack", string(debug.Stack()))
		}
	}()
	err = r.kind.run(ctx, r.delivery)
	exited = false
	runtime.KeepAlive(r)
	return err
}

func (r *run) panicked(p any) error {
	stack := debug.Stack()
	r.logger().Error("emq: the handler panicked", "panic", fmt.Sprint(p), "stack", string(stack))
	return fmt.Errorf("panic: %v\n%s", p, stack)
}

// checkStuck tells whether the handler has overrun its timeout by HardStop, and reports it once. Its
// heartbeats end, so the job runs elsewhere; its slot stays taken, since its goroutine does.
func (r *run) checkStuck() bool {
	at := r.overdue.Load()
	if at == 0 || r.returned.Load() || time.Now().UnixNano() < at {
		return false
	}
	if r.stuck.CompareAndSwap(false, true) {
		r.logger().Error("emq: the handler is stuck: it has ignored the end of its context; its slot stays taken and the job will run elsewhere",
			"timeout", r.kind.timeout, "ran", time.Since(r.began), "stack", r.stack())
		r.observe(EventStuck, ErrTimeout)
	}
	return true
}

// stack finds the goroutine of this run by the address of the run in its trace.
func (r *run) stack() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	const most = 8 << 10
	mine := fmt.Sprintf("(*run).handle(%p", r)
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(g, mine) {
			return g[:min(len(g), most)]
		}
	}
	return "not found"
}

func (r *run) logger() *slog.Logger {
	return r.c.w.log.With(append(r.info.attrs(), "wait", r.wait)...)
}

func (r *run) observe(name EventName, err error) {
	e := Event{Name: name, Queue: r.info.Queue, Kind: r.info.Kind, ID: r.info.ID, Attempt: r.info.Attempt, Wait: r.wait, Took: time.Since(r.began), Err: err}
	r.c.w.observer.Observe(r.ctx, e)
}
