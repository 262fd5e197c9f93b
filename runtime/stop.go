package emq

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// within waits for an end, but not longer than d.
func within(end <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-end:
		return true
	case <-t.C:
		return false
	}
}

// await waits for an end, but not longer than d nor after Abort; it answers whether the end came.
func (w *Worker) await(end <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-end:
		return true
	default:
	}
	select {
	case <-end:
		return true
	case <-t.C:
	case <-w.abort:
	}
	return false
}

func done(wg *sync.WaitGroup) <-chan struct{} {
	ch := make(chan struct{})
	go func() {
		wg.Wait()
		close(ch)
	}()
	return ch
}

// farewell bounds the last calls of a worker, so that a server that is away delays no stop for long.
const farewell = time.Second

// handOver leaves the pump and the tokens to others.
func (w *Worker) handOver() {
	ctx, cancel := context.WithTimeout(w.life, farewell)
	defer cancel()
	for _, c := range w.all() {
		if err := c.q.Handover(ctx, w.tag); err != nil {
			w.log.Warn("emq: the pump was not handed over; another process takes it in 3 s", "queue", c.q.Name(), "error", err)
		}
	}
}

// abandon hands back what still runs. Handlers that ignore their context may run on beside the next
// run; their settles are refused.
func (w *Worker) abandon() {
	ctx, cancel := context.WithTimeout(w.life, farewell)
	defer cancel()
	var wg sync.WaitGroup
	for _, c := range w.all() {
		for _, r := range c.registered() {
			wg.Go(func() { r.abandon(ctx) })
		}
	}
	wg.Wait()
}

// Abort is the second step of a stop: it cancels the handlers' contexts, hands back at once what runs,
// and lets Run return. Safe to repeat, before Run and from inside a handler.
func (w *Worker) Abort() { w.aborted.Do(func() { close(w.abort) }) }

// RunUntilSignal runs a worker until ctx ends or the process gets SIGINT or SIGTERM; a second signal
// aborts.
func RunUntilSignal(ctx context.Context, w *Worker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ended := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(ended)
	wg.Go(func() {
		for stop := cancel; ; stop = w.Abort {
			select {
			case <-signals:
				stop()
			case <-ended:
				return
			}
		}
	})
	return w.Run(ctx)
}
