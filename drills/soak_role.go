package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// soakRole is a process of the soak: a worker, and with Until, a file, also a producer, a listener and an
// operator, until the file is there.
type soakRole struct{ Until string }

const (
	soaks    = "soak"
	soakDead = 10      // dead letters that are kept
	gauged   = "gauge" // Count is the value of the gauge Text
	tick     = 100 * time.Millisecond
)

// chore is a job of the soak; errand is one with a unique key.
type chore struct {
	N  int    `json:"n"`
	Do string `json:"do,omitempty"`
}

func (chore) EmqSpec() emq.Spec[chore] {
	return emq.Spec[chore]{Queue: soaks, Kind: "chore", Attempts: 3, Timeout: time.Minute, Retain: 2 * time.Second, Backoff: emq.Fixed(50 * time.Millisecond)}
}

func (chore) EmqResult() (n int) { return }

type errand struct {
	N int `json:"n"`
}

func (errand) EmqSpec() emq.Spec[errand] {
	return emq.Spec[errand]{Queue: soaks, Kind: "errand", Attempts: 3, Timeout: time.Minute,
		UniqueKey: func(e errand) string { return emq.UniqueKey("errand", fmt.Sprint(e.N)) }}
}

func soakBindings() emq.Binding {
	return emq.Bind(emq.HandleResult(doChore), emq.Handle(func(context.Context, errand) error { return nil }))
}

func doChore(ctx context.Context, c chore) (int, error) {
	info, _ := emq.InfoFrom(ctx)
	switch c.Do {
	case "fail":
		if info.Attempt == 1 {
			return 0, errFirst
		}
	case "snooze":
		if rand.IntN(2) == 0 {
			return 0, emq.Snooze(100 * time.Millisecond)
		}
	case "discard":
		return 0, emq.Discard(nil)
	case "dead":
		return 0, emq.Dead(nil)
	case "tell":
		return c.N, errors.Join(emq.SetProgress(ctx, c.N), emq.AppendLog(ctx, "a line of a log"))
	case "long": // until it is cancelled
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(3 * time.Second):
		}
	}
	return c.N, nil
}

func (r role) soak(book logbook) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	client, err := r.open(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	w, err := emq.NewWorker(client, emq.WorkerConfig{Concurrency: 20, Lease: 2 * time.Second, SoftStop: time.Second, HardStop: 3 * time.Second}, soakBindings())
	if err != nil {
		return err
	}
	book.write(line{What: isUp})
	if r.Soak.Until == "" {
		return w.Run(ctx)
	}
	p := &soaker{client: client, queue: client.Queue(soaks), book: book}
	if err := errors.Join(p.queue.SetEvents(ctx, true), p.queue.SetDeadCaps(ctx, soakDead, time.Hour)); err != nil {
		return err
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	defer cancel()
	var produced, listened error
	parts.Go(func() { p.sample(ctx) })
	parts.Go(func() { listened = p.queue.Subscribe(ctx, func(emq.JobEvent) { p.heard++ }) })
	parts.Go(func() {
		if produced = p.produce(ctx, r.Soak.Until); produced != nil {
			cancel() // the process ends with it
		}
	})
	err = w.Run(ctx)
	parts.Wait()
	if p.heard == 0 {
		err = errors.Join(err, errors.New("no event was heard"))
	}
	return errors.Join(err, produced, listened)
}

type soaker struct {
	client *emq.Client
	queue  *emq.Queue
	book   logbook
	heard  int // in one goroutine
}

func (p *soaker) sample(ctx context.Context) {
	t := time.NewTicker(250 * time.Millisecond)
	defer t.Stop()
	var m runtime.MemStats
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		runtime.GC() // so that the heap is what is held, not what waits to be collected
		runtime.ReadMemStats(&m)
		p.book.write(line{What: gauged, Text: "heap", Count: int(m.HeapAlloc)})
		p.book.write(line{What: gauged, Text: "goroutines", Count: runtime.NumGoroutine()})
	}
}

// produce does the same at each tick, with names, keys and lanes that never come again.
func (p *soaker) produce(ctx context.Context, until string) error {
	t := time.NewTicker(tick)
	defer t.Stop()
	var waiters sync.WaitGroup
	defer waiters.Wait()
	acked := 0
	for n := 1; !exists(until); n++ {
		select {
		case <-ctx.Done():
			return nil // told to end
		case <-t.C:
		}
		sent, err := p.batch(ctx, n, &waiters)
		if err == nil && n%5 == 0 {
			err = p.operate(ctx, n)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("tick %d: %w", n, err)
		}
		acked += sent
	}
	waiters.Wait()
	p.book.write(line{What: isDone, Count: acked})
	return nil
}

func (p *soaker) batch(ctx context.Context, n int, waiters *sync.WaitGroup) (int, error) {
	lane := emq.InLane(fmt.Sprintf("lane %d", n/7))
	jobs := []emq.Job{
		emq.New(chore{n, "long"}), emq.New(chore{n, ""}, emq.In(time.Hour)), // both are cancelled
		emq.New(chore{n, ""}), emq.New(chore{n, ""}, lane), emq.New(chore{n, ""}, emq.In(300*time.Millisecond), lane), emq.New(chore{n, "fail"}),
		emq.New(chore{n, "snooze"}), emq.New(chore{n, "discard"}), emq.New(chore{n, "tell"}), emq.New(errand{n}), emq.New(errand{n}, lane),
	}
	if n%5 == 0 {
		jobs = append(jobs, emq.New(chore{n, "dead"}))
	}
	receipts, err := p.client.Enqueue(ctx, jobs...)
	if err != nil {
		return 0, err
	}
	acked := 0
	for _, r := range receipts {
		if r.Status == emq.Enqueued {
			acked++
		}
	}
	waiters.Go(func() {
		answer, stop := context.WithTimeout(ctx, 20*time.Second)
		defer stop()
		_, _ = p.client.AwaitResult(answer, receipts[2+n%6].Ref) // one of them is discarded, whatever comes is an answer
	})
	if err := emq.UpdatePayload(ctx, p.client, receipts[1].Ref, chore{n, "tell"}); err != nil {
		return acked, err
	}
	for _, r := range receipts[:2] {
		if err := p.client.Cancel(ctx, r.Ref); err != nil && !errors.Is(err, emq.ErrGone) {
			return acked, err
		}
	}
	return acked, nil
}

// operate is what somebody at a console, and a scraper of metrics, do.
func (p *soaker) operate(ctx context.Context, n int) error {
	q, name, lane := p.queue, fmt.Sprintf("entry-%d", n), fmt.Sprintf("lane %d", n/7)
	steps := []func() error{
		func() error { return q.AddCron(ctx, name, emq.Cron{Spec: "* * * * *"}, emq.New(chore{n, ""})) },
		func() error { _, err := q.RunCronNow(ctx, name); return err },
		func() error { return q.PauseCron(ctx, name) },
		func() error { _, err := q.Crons(ctx, "", 10); return err },
		func() error { return q.RemoveCron(ctx, name) },
		func() error { return q.SetLaneLimit(ctx, lane, 3) },
		func() error { return q.PauseLane(ctx, lane) },
		func() error { return q.ResumeLane(ctx, lane) },
		func() error { return q.ClearLaneLimit(ctx, lane) },
		func() error { _, err := q.Lanes(ctx, "", 10); return err },
		func() error { _, err := q.Counts(ctx); return err },
		func() error { _, err := q.Latency(ctx); return err },
		func() error { _, err := q.Browse(ctx, emq.BrowseOptions{State: emq.StateDead}); return err },
		func() error { _, err := q.ReprocessAll(ctx, emq.ReprocessOptions{Limit: 3}); return err },
	}
	if n%100 == 0 {
		steps = append(steps, func() error { _, err := q.Audit(ctx, emq.AuditOptions{}); return err })
	}
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}
