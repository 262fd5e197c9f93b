package emq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/echomq/emq/internal/wire"
)

// Deliver runs the handler of info.Kind, or of the kind whose alias it is, as a worker would: it decodes
// and upgrades the payload, and calls the middleware of the binding and the handler under the kind's
// timeout. There is no server and nothing is settled: what the handler returned is returned, and a panic
// is the caller's. It is for tests, and for tools that run one job by hand. An Attempt and MaxAttempts
// of 0 are the first and the declared ones; an empty Queue is the first one that has the kind.
//
// A payload that cannot be decoded is a Dead error, as it is a dead letter; a job of a retired kind is
// Discard. ErrInvalid: nothing here serves that kind, or it serves only older versions.
func (b Binding) Deliver(ctx context.Context, info Info, version int, payload []byte) error {
	k, err := b.find(info.Queue, info.Kind)
	switch {
	case err != nil:
		return err
	case k.retired:
		return Discard(nil)
	case version > k.version:
		return fmt.Errorf("%w: queue %s, kind %s: version %d is newer than version %d, which is bound", ErrInvalid, info.Queue, info.Kind, version, k.version)
	}
	value, err := k.decode(version, payload)
	if err != nil {
		return Dead(fmt.Errorf("undecodable: %w", err))
	}
	info.Queue = k.queue
	if info.Attempt == 0 {
		info.Attempt = 1
	}
	if info.MaxAttempts == 0 {
		info.MaxAttempts = k.attempts
	}
	ctx, cancel := context.WithDeadlineCause(ContextWithInfo(ctx, info), time.Now().Add(k.timeout), ErrTimeout)
	defer cancel()
	d := &Delivery{Info: info, Payload: value}
	if err := k.run(ctx, d); err != nil {
		return err
	}
	if k.retain > 0 && d.Result != nil {
		if _, err := encodeResult(d.Result, defaultMaxPayload); err != nil {
			return Dead(err)
		}
	}
	return nil
}

// find looks for a kind, or an alias, in a queue.
func (b Binding) find(queue, kind string) (*boundKind, error) {
	for _, k := range b.kinds {
		if queue != "" && k.queue != queue || k.kind != kind && !slices.Contains(k.aliases, kind) {
			continue
		}
		if k.err != nil {
			return nil, fmt.Errorf("%w: %s/%s: %w", ErrInvalid, queue, kind, k.err)
		}
		return k, nil
	}
	err := errors.New("nothing is bound")
	if len(b.kinds) > 0 {
		err = fmt.Errorf("bound are %s", strings.Join(b.Kinds(), ", "))
	}
	return nil, fmt.Errorf("%w: nothing serves kind %s of queue %s: %w", ErrInvalid, wire.Quote(kind), wire.Quote(queue), err)
}
