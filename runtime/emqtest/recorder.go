package emqtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/echomq/emq/internal/wire"
	emq "github.com/echomq/emq/runtime"
)

// Recorder is an emq.Enqueuer without a server: what the code under test enqueues stays here. It checks
// jobs as a client does, and answers receipts with ids and the status Stored. A job with an id (WithID)
// that it has seen is a Duplicate. It knows of no other job, so a unique field never conflicts, and what
// is due later is only noted: an Env does both. Safe for concurrent use.
type Recorder struct {
	minter *wire.Minter

	mu      sync.Mutex
	jobs    []emq.Job
	refs    map[emq.Ref]emq.Job
	err     error
	results map[emq.Ref]result
	answers map[string]func(emq.Job) (json.RawMessage, error) // by queue/kind
	changed chan struct{}                                     // closed and made anew with each result
}

type result struct {
	text json.RawMessage
	err  error
}

var _ emq.Enqueuer = (*Recorder)(nil)

// NewRecorder makes an empty recorder for one test.
func NewRecorder(t testing.TB) *Recorder {
	t.Helper()
	return &Recorder{
		minter: newMinter(t), refs: make(map[emq.Ref]emq.Job), results: make(map[emq.Ref]result),
		answers: make(map[string]func(emq.Job) (json.RawMessage, error)), changed: make(chan struct{}),
	}
}

func newMinter(t testing.TB) *wire.Minter {
	t.Helper()
	minter, err := wire.NewMinter(0, time.Now)
	if err != nil {
		t.Fatalf("emqtest: %v", err)
	}
	return minter
}

// Enqueue keeps jobs. A batch with an invalid job is refused whole, by a *emq.BatchError.
func (r *Recorder) Enqueue(ctx context.Context, jobs ...emq.Job) ([]emq.Receipt, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	receipts := make([]emq.Receipt, len(jobs))
	for i, job := range jobs {
		receipts[i].Ref = emq.Ref{Queue: job.Queue(), ID: job.ID()}
	}
	fail := func(status emq.Status, err error) ([]emq.Receipt, error) {
		for i := range receipts {
			receipts[i].Status = status
		}
		return receipts, err
	}
	if err := emq.Check(jobs...); err != nil {
		return fail(emq.Refused, err)
	}
	if ctx.Err() != nil {
		return fail(emq.Refused, fmt.Errorf("emqtest: enqueue: %w", context.Cause(ctx)))
	}
	if r.err != nil {
		status := emq.Unknown
		if errors.Is(r.err, emq.ErrFull) || errors.Is(r.err, emq.ErrInvalid) || errors.Is(r.err, emq.ErrTooLarge) {
			status = emq.Refused
		}
		return fail(status, r.err)
	}
	for i, job := range jobs {
		if receipts[i].ID == "" {
			id, err := r.minter.Mint()
			if err != nil {
				return receipts, fmt.Errorf("emqtest: %w", err)
			}
			receipts[i].ID = emq.ID(id)
		}
		if _, seen := r.refs[receipts[i].Ref]; seen {
			receipts[i].Status = emq.Duplicate
			continue
		}
		receipts[i].Status = emq.Stored
		r.refs[receipts[i].Ref] = job
		r.jobs = append(r.jobs, job)
	}
	return receipts, nil
}

// SetErr makes every further Enqueue fail with err and keep nothing; nil ends that. Receipts say Refused
// where err is, or wraps, ErrFull, ErrTooLarge or ErrInvalid, and Unknown otherwise, as after a network
// error.
func (r *Recorder) SetErr(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

// Jobs are the jobs that were enqueued, in their order.
func (r *Recorder) Jobs() []emq.Job {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.jobs)
}

// SetResult is what a wait for the result of this job gets, now or later. It must be what the job's
// declaration says; Answer, which does not need to know the job, checks that at compile time.
func (r *Recorder) SetResult(ref emq.Ref, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		err = fmt.Errorf("emqtest: the result of %v cannot be encoded: %w", ref, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results[ref] = result{text, err}
	close(r.changed)
	r.changed = make(chan struct{})
}

// Answer gives every job of type J the result, or the error, that fn makes of it: a handler in short.
//
//	emqtest.Answer(rec, func(job billing.ChargeCard) (billing.Charge, error) { … })
func Answer[J emq.Returner[J, R], R any](r *Recorder, fn func(J) (R, error)) {
	var zero J
	spec := zero.EmqSpec()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[spec.Queue+"/"+spec.Kind] = func(job emq.Job) (json.RawMessage, error) {
		value, err := fn(job.Value().(J)) // the kind is J's
		if err != nil {
			return nil, err
		}
		return json.Marshal(value)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// patience bounds, in real time, what a test waits for.
const patience = 10 * time.Second

// AwaitResult answers what SetResult or Answer has said of a job; emq.Await calls it. It waits for them
// until ctx ends, but no longer than 10 s. ErrGone: no such job was enqueued here.
func (r *Recorder) AwaitResult(ctx context.Context, ref emq.Ref) (json.RawMessage, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		r.mu.Lock()
		job, known := r.refs[ref]
		set, ready := r.results[ref]
		answer := r.answers[job.Queue()+"/"+job.Kind()]
		changed := r.changed
		r.mu.Unlock()
		switch {
		case !known:
			return nil, fmt.Errorf("%w: %v was not enqueued here", emq.ErrGone, ref)
		case ready:
			return set.text, set.err
		case answer != nil:
			return answer(job)
		}
		missing := fmt.Errorf("emqtest: nobody has set a result for %v (kind %s): call Answer or SetResult", ref, job.Kind())
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", missing, context.Cause(ctx))
		case <-late.C:
			return nil, missing
		}
	}
}
