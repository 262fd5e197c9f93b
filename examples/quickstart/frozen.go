package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/echomq/emq/examples/quickstart/orders"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/scripts"
)

// frozenWorker stands for a process that claimed a job and then stopped: a long pause of its collector,
// a laptop that was closed, a network that was cut. A real worker would have sent heartbeats. It calls
// the scripts directly, which programs do not do.
type frozenWorker struct {
	queue *scripts.Queue
	job   scripts.ClaimedJob
}

func freeze(ctx context.Context, s *session, id emq.ID) (*frozenWorker, error) {
	server, err := scripts.NewServer(s.raw, s.prefix)
	if err != nil {
		return nil, err
	}
	f := &frozenWorker{queue: server.Queue(orders.QueueOrders)}
	claimed, err := f.queue.Claim(ctx, scripts.Claim{Lease: 100 * time.Millisecond, N: 1, By: "frozen"})
	if err != nil {
		return nil, err
	}
	if len(claimed.Jobs) != 1 || claimed.Jobs[0].ID != string(id) {
		return nil, fmt.Errorf("claimed %d jobs instead of %s", len(claimed.Jobs), id)
	}
	f.job = claimed.Jobs[0]
	return f, nil
}

// complete is what the worker sends when it wakes up and finds its handler done.
func (f *frozenWorker) complete(ctx context.Context) error {
	_, err := f.queue.Complete(ctx, f.job.Fence, 0, nil)
	return err
}

// reportRefusal prints why the late completion was refused, and fails if it was not.
func reportRefusal(out io.Writer, err error) error {
	if !errors.Is(err, emq.ErrStale) {
		return fmt.Errorf("the frozen worker's completion was not refused as stale: %w", err)
	}
	fmt.Fprintf(out, "stale      the frozen worker's completion was refused: %v\n", err)
	return nil
}
