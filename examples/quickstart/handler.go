package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/echomq/emq/examples/quickstart/orders"
	emq "github.com/echomq/emq/runtime"
)

// The orders to which something happens.
const (
	flakyEvery    = 10 // each tenth receipt fails once
	poisonedOrder = 123
	heldOrder     = 1000
	laterOrder    = 1001
)

// handler implements orders.Handler, which is generated.
type handler struct {
	attempt  atomic.Int64              // at which the first flaky receipt succeeded
	laterRan atomic.Pointer[time.Time] // when the scheduled job ran
	mended   atomic.Bool               // the warehouse knows the street now
	heldRuns atomic.Bool               // the frozen worker's job runs elsewhere
	refused  chan struct{}             // closed when the frozen worker has had its answer
}

func newHandler() *handler { return &handler{refused: make(chan struct{})} }

// HandleSendReceipt fails once for some orders. An error means: again, after the declared backoff.
func (h *handler) HandleSendReceipt(ctx context.Context, job orders.SendReceipt) error {
	info, _ := emq.InfoFrom(ctx)
	switch {
	case job.Order == laterOrder:
		now := time.Now()
		h.laterRan.Store(&now)
	case job.Order%flakyEvery == 0 && info.Attempt == 1:
		return errors.New("the mail server is busy")
	case job.Order == flakyEvery:
		h.attempt.Store(int64(info.Attempt))
	}
	return nil
}

// HandlePackParcel fails for one order until its cause is mended.
func (h *handler) HandlePackParcel(ctx context.Context, job orders.PackParcel) error {
	switch {
	case job.Order == poisonedOrder && !h.mended.Load():
		return fmt.Errorf("order %d: the warehouse does not know %q", job.Order, job.Address)
	case job.Order == heldOrder:
		h.heldRuns.Store(true)
		select {
		case <-h.refused:
		case <-ctx.Done(): // every handler should end soon when its context does
			return context.Cause(ctx)
		}
	}
	return nil
}
