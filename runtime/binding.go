package emq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Delivery is one run of a job as middleware sees it.
type Delivery struct {
	Info
	Payload any // the typed payload, by value: a type switch on it is typed middleware
	Result  any // what a handler with a result returned; set once next has returned nil
}

// HandleFunc runs one delivery.
type HandleFunc func(ctx context.Context, d *Delivery) error

// Middleware wraps every run of a binding or of a worker.
type Middleware func(next HandleFunc) HandleFunc

// Binding is a set of kinds with their handlers, ready for NewWorker. It is a value: With and Bind
// make new ones. Faults in it are reported by NewWorker.
type Binding struct{ kinds []*boundKind }

// boundKind is one kind with its handler and its settings, free of type parameters.
type boundKind struct {
	queue, kind string
	shards      int // as many as are declared
	aliases     []string
	version     int
	attempts    int
	timeout     time.Duration
	backoff     Backoff
	retain      time.Duration
	decode      func(version int, payload []byte) (any, error)
	run         HandleFunc
	entry       kindEntry
	crons       []declaredCron
	moved       bool  // bound on a queue that its jobs have left
	retired     bool  // what is left of it is discarded
	err         error // a fault that NewWorker reports
}

// Bind joins bindings into one.
func Bind(parts ...Binding) Binding {
	var b Binding
	for _, p := range parts {
		b.kinds = append(b.kinds, p.kinds...)
	}
	return b
}

// With wraps the handlers of the binding; the first middleware is the outermost.
func (b Binding) With(m ...Middleware) Binding {
	kinds := make([]*boundKind, len(b.kinds))
	for i, k := range b.kinds {
		wrapped := *k
		if slices.ContainsFunc(m, func(mw Middleware) bool { return mw == nil }) {
			wrapped.err = errors.Join(k.err, errors.New("With: a middleware is nil"))
			kinds[i] = &wrapped
			continue
		}
		wrapped.run = wrap(k.run, m)
		kinds[i] = &wrapped
	}
	return Binding{kinds}
}

// AlsoOn binds the same kinds on further queues too. Generated code uses it for a job that has moved
// (from=): what still waits in its old queue is served.
func (b Binding) AlsoOn(queues ...string) Binding {
	kinds := slices.Clone(b.kinds)
	for _, q := range queues {
		for _, k := range b.kinds {
			moved := *k
			moved.queue, moved.moved, moved.shards = q, true, 0
			kinds = append(kinds, &moved)
		}
	}
	return Binding{kinds}
}

// Kinds lists the bound kinds as "queue/kind", in the order in which they were bound.
func (b Binding) Kinds() []string {
	names := make([]string, len(b.kinds))
	for i, k := range b.kinds {
		names[i] = k.queue + "/" + k.kind
	}
	return names
}

func wrap(run HandleFunc, m []Middleware) HandleFunc {
	if run == nil {
		return nil
	}
	for _, mw := range slices.Backward(m) {
		run = mw(run)
	}
	return run
}

// Old decodes one older version of J; Upgrade makes one.
type Old[J any] struct {
	version int
	decode  func(payload []byte) (J, error)
}

// Upgrade binds the struct of an old version of J: a payload of that version is decoded into it and
// upgraded before the handler sees it.
func Upgrade[O Upgrader[J], J any](version int) Old[J] {
	return Old[J]{version, func(payload []byte) (J, error) {
		var old O
		if err := json.Unmarshal(payload, &old); err != nil {
			var none J
			return none, err
		}
		return old.Upgrade()
	}}
}

// Handle binds a handler of J. Generated code calls it.
func Handle[J Payload[J]](fn func(context.Context, J) error, old ...Old[J]) Binding {
	k := newBoundKind(old)
	if fn == nil {
		k.err = errors.Join(k.err, errors.New("the handler is nil"))
		return Binding{[]*boundKind{k}}
	}
	k.run = func(ctx context.Context, d *Delivery) error {
		job, err := payloadOf[J](d)
		if err != nil {
			return err
		}
		return fn(ctx, job)
	}
	return Binding{[]*boundKind{k}}
}

// HandleResult binds a handler of J whose result is kept for as long as the job's retain= says.
func HandleResult[J Returner[J, R], R any](fn func(context.Context, J) (R, error), old ...Old[J]) Binding {
	k := newBoundKind(old)
	if fn == nil {
		k.err = errors.Join(k.err, errors.New("the handler is nil"))
		return Binding{[]*boundKind{k}}
	}
	k.run = func(ctx context.Context, d *Delivery) error {
		job, err := payloadOf[J](d)
		if err != nil {
			return err
		}
		result, err := fn(ctx, job)
		if err == nil {
			d.Result = result
		}
		return err
	}
	return Binding{[]*boundKind{k}}
}

// payloadOf is the typed payload of a delivery, which middleware may have replaced.
func payloadOf[J any](d *Delivery) (J, error) {
	job, ok := d.Payload.(J)
	if !ok {
		return job, Dead(fmt.Errorf("middleware replaced the payload of %s by a %T", d.Kind, d.Payload))
	}
	return job, nil
}

// entryOf is what the registry says of a job.
func entryOf[J any](spec Spec[J]) kindEntry {
	return kindEntry{max(spec.Version, 1), reflect.TypeFor[J]().PkgPath(), spec.Redacted}
}

func newBoundKind[J Payload[J]](old []Old[J]) *boundKind {
	var zero J
	spec := zero.EmqSpec()
	k := &boundKind{
		queue: spec.Queue, shards: spec.Shards, kind: spec.Kind, aliases: spec.Aliases, version: max(spec.Version, 1),
		attempts: spec.Attempts, timeout: spec.Timeout, backoff: spec.Backoff, retain: spec.Retain, entry: entryOf(spec),
	}
	if k.attempts < 1 || k.timeout <= 0 {
		k.err = fmt.Errorf("%s declares attempts=%d and timeout=%v: both must be positive", reflect.TypeFor[J](), k.attempts, k.timeout)
	}
	if len(spec.Cron) > 0 {
		var err error
		k.crons, err = declareCrons(spec.Cron, New(zero))
		k.err = errors.Join(k.err, err)
	}
	olds := make(map[int]func([]byte) (J, error), len(old))
	for _, o := range old {
		if o.decode == nil || o.version < 1 || o.version >= k.version || olds[o.version] != nil {
			k.err = errors.Join(k.err, fmt.Errorf("an upgrade from version %d to %d, or two of them", o.version, k.version))
			continue
		}
		olds[o.version] = o.decode
	}
	current := k.version
	k.decode = func(version int, payload []byte) (any, error) {
		if version != current {
			decode := olds[version]
			if decode == nil {
				return nil, fmt.Errorf("payload of version %d: no upgrade to version %d is bound", version, current)
			}
			return decode(payload)
		}
		var job J
		err := json.Unmarshal(payload, &job)
		return job, err
	}
	return k
}
