package emq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/echomq/emq/internal/wire"
)

// Job is a typed payload with its options, not yet sent. New makes one; everything that takes jobs
// takes this type. What New found wrong is kept in it, and Enqueue reports it before any I/O.
type Job struct {
	kind, queue string
	version     int
	value       any
	payload     []byte
	lane        string
	unique      string
	mode        UniqueMode
	shards      int // as many as are declared
	entry       kindEntry
	options
	uniqueInLane bool
	err          error
}

type options struct {
	id      ID
	headers map[string]string
	in      time.Duration
	at      time.Time
	delayed bool // In was given
	into    string
	laned   bool // InLane was given
	errs    []error
}

// Option says something of one enqueue. What a declaration owns (queue, kind, timeout, attempts,
// backoff, retention, uniqueness, a lane field) is no option.
type Option func(*options)

// In makes the job due after d, on the server's clock. A negative d is an error; so are In and At
// together.
func In(d time.Duration) Option {
	return func(o *options) {
		if d < 0 {
			o.errs = append(o.errs, fmt.Errorf("In(%v): the delay is negative", d))
		}
		o.in, o.delayed = d, true
	}
}

// At makes the job due at t, to the millisecond, never earlier. A t in the past is now.
func At(t time.Time) Option {
	return func(o *options) {
		if t.IsZero() {
			o.errs = append(o.errs, errors.New("At: the time is zero"))
		}
		o.at = t
	}
}

// InLane puts the job into a lane: a tenant, a customer, whoever is to have a fair share of the queue.
// The empty lane is none. It is an error for a job whose declaration has a lane field.
func InLane(lane string) Option {
	return func(o *options) { o.into, o.laned = lane, true }
}

// WithID gives the job an id from NewID, so that the same call can be made again: an id that is there
// already answers Duplicate and changes nothing. Free text is for a unique field.
func WithID(id ID) Option {
	return func(o *options) {
		if _, err := wire.DecodeJob(string(id)); err != nil {
			o.errs = append(o.errs, fmt.Errorf("WithID: %w", err))
		}
		o.id = id
	}
}

// WithHeader attaches metadata that the handler finds in Info.Headers: trace context, a user's name.
func WithHeader(key, value string) Option {
	return func(o *options) {
		if err := wire.CheckHeader(key, value); err != nil {
			o.errs = append(o.errs, err)
		}
		if o.headers == nil {
			o.headers = make(map[string]string)
		}
		o.headers[key] = value
	}
}

// New makes a Job of a payload. It does no I/O and never fails: what is wrong (a payload that cannot
// be encoded, a bad lane, id, header or delay) is found by Job.Err, and Enqueue refuses it.
func New[J Payload[J]](payload J, opts ...Option) Job {
	spec := payload.EmqSpec()
	job := Job{kind: spec.Kind, queue: spec.Queue, version: max(spec.Version, 1), value: payload, mode: spec.UniqueFor,
		shards: spec.Shards, uniqueInLane: spec.UniqueInLane}
	job.entry = entryOf(spec)
	for _, opt := range opts {
		if opt == nil {
			job.errs = append(job.errs, errors.New("an Option is nil"))
			continue
		}
		opt(&job.options)
	}
	errs := job.errs
	check := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	check(wire.CheckQueue(job.queue))
	check(wire.CheckKind(job.kind))
	if spec.Shards < 0 || spec.Shards > MaxShards {
		check(fmt.Errorf("%d shards: a queue has 1 to %d", spec.Shards, MaxShards))
	}
	if job.delayed && !job.at.IsZero() {
		check(errors.New("In and At are given together"))
	}
	if !job.at.IsZero() && job.at.UnixMilli() > math.MaxInt64/int64(time.Millisecond) {
		check(fmt.Errorf("At(%v) is too far away", job.at))
	}
	job.lane = job.into
	if spec.Lane != nil {
		if job.laned {
			check(fmt.Errorf("InLane(%s): the job has a lane field, which alone says its lane", wire.Quote(job.into)))
		}
		job.lane = spec.Lane(payload)
	}
	if job.lane != "" {
		check(wire.CheckLane(job.lane))
	}
	if spec.UniqueKey != nil {
		job.unique = spec.UniqueKey(payload)
		check(wire.CheckUnique(job.unique))
		if job.mode.debounced && job.mode.window > 0 {
			check(errors.New("a unique key that is held for a window cannot be debounced: use UntilDone or UntilStart"))
		}
	}
	var err error
	job.payload, err = encode(payload)
	if err != nil {
		check(fmt.Errorf("the payload cannot be encoded: %w", err))
	}
	if len(errs) > 0 {
		job.err = fmt.Errorf("%w: queue %s, kind %s: %w", ErrInvalid, wire.Quote(job.queue), wire.Quote(job.kind), errors.Join(errs...))
	}
	return job
}

// encode is json.Marshal, where a method of the payload may panic.
func encode(payload any) (b []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return json.Marshal(payload)
}

// Kind is the job's name on the wire.
func (j Job) Kind() string { return j.kind }

// Queue is where the job goes.
func (j Job) Queue() string { return j.queue }

// Lane is the lane that the job goes into; empty is none.
func (j Job) Lane() string { return j.lane }

// ID is the id that WithID gave; empty: one is minted at the enqueue.
func (j Job) ID() ID { return j.id }

// Headers is what WithHeader attached; not to be changed.
func (j Job) Headers() map[string]string { return j.headers }

// Delay is what In gave; 0: none.
func (j Job) Delay() time.Duration { return j.in }

// DueAt is what At gave; the zero time: nothing.
func (j Job) DueAt() time.Time { return j.at }

// Value is the payload that New was given.
func (j Job) Value() any { return j.value }

// Payload is the encoded payload: what a handler will decode.
func (j Job) Payload() []byte { return j.payload }

// Err is what New found wrong.
func (j Job) Err() error {
	if j.kind == "" && j.err == nil {
		return fmt.Errorf("%w: an empty emq.Job: make jobs with emq.New", ErrInvalid)
	}
	return j.err
}

// Enqueuer takes jobs: a Client, a recorder of tests, an outbox, or a decorator of one of these.
//
// Receipts are as many as jobs and in their order, also with an error; a receipt whose Status is
// Unknown belongs to a job whose fate is not known. A batch with an invalid job is refused whole by a
// *BatchError before any I/O.
type Enqueuer interface {
	Enqueue(ctx context.Context, jobs ...Job) ([]Receipt, error)
}

// EnqueueMiddleware decorates an Enqueuer.
type EnqueueMiddleware func(next Enqueuer) Enqueuer

// Enqueue sends one payload. The error of an invalid job is its own, not a *BatchError.
func Enqueue[J Payload[J]](ctx context.Context, e Enqueuer, payload J, opts ...Option) (Receipt, error) {
	job := New(payload, opts...)
	if err := job.Err(); err != nil {
		return Receipt{Ref: Ref{Queue: job.queue}, Status: Refused}, err
	}
	receipts, err := e.Enqueue(ctx, job)
	var batch *BatchError
	if errors.As(err, &batch) && len(batch.Errs) == 1 && batch.Errs[0] != nil {
		err = batch.Errs[0]
	}
	if len(receipts) != 1 {
		if err == nil {
			err = fmt.Errorf("emq: the enqueuer %T answered %d receipts for one job", e, len(receipts))
		}
		return Receipt{Ref: Ref{Queue: job.queue}}, err
	}
	return receipts[0], err
}
