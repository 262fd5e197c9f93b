package main

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// drop is a job of the flood, or one beside it; bystander is of another queue.
type (
	drop      struct{ Probe int }
	bystander struct{ Probe int }
)

func (drop) EmqSpec() emq.Spec[drop] {
	return emq.Spec[drop]{Queue: "flood", Kind: "drop", Attempts: 3, Timeout: time.Minute}
}

func (bystander) EmqSpec() emq.Spec[bystander] {
	return emq.Spec[bystander]{Queue: "aside", Kind: "bystander", Attempts: 3, Timeout: time.Minute}
}

// soon is how long a job beside the flood may wait.
const soon = 2 * time.Second

// witness notes how long jobs have waited from the moment they were due.
type witness struct {
	mu    sync.Mutex
	waits map[string][]time.Duration
	drops atomic.Int64
}

func (w *witness) note(what string, wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits[what] = append(w.waits[what], wait)
}

// How a probe was sent.
const (
	atOnce = iota + 1
	inAWhile
)

func (w *witness) bindings() emq.Binding {
	return emq.Bind(
		emq.Handle(func(ctx context.Context, d drop) error {
			info, _ := emq.InfoFrom(ctx)
			wait := time.Since(info.Due)
			switch d.Probe {
			case atOnce:
				w.note("another lane", wait)
			case inAWhile:
				w.note("a later time of the same queue", wait)
			default:
				w.note("the flood", wait)
				w.drops.Add(1)
			}
			return nil
		}),
		emq.Handle(func(ctx context.Context, b bystander) error {
			info, _ := emq.InfoFrom(ctx)
			w.note(map[int]string{atOnce: "another queue", inAWhile: "a later time of another queue"}[b.Probe], time.Since(info.Due))
			return nil
		}),
	)
}

// serve runs workers in this process until stop.
func (st *stage) serve(url string, n int, cfg emq.WorkerConfig, b emq.Binding) (stop func()) {
	ctx, cancel := context.WithCancel(st.ctx)
	var running sync.WaitGroup
	for range n {
		c, err := emq.Open(st.ctx, url, emq.WithLogger(slog.New(slog.DiscardHandler)))
		st.must("open a client", err)
		cfg.Logger = slog.New(slog.DiscardHandler)
		w, err := emq.NewWorker(c, cfg, b)
		st.must("make a worker", err)
		running.Go(func() {
			defer c.Close()
			if err := w.Run(ctx); err != nil {
				st.failf("a worker ended: %v", err)
			}
		})
	}
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	st.cleanup(stop)
	return stop
}

// rehearsed is time enough to enqueue n jobs, in batches of so many, on the machine as it is: one batch is
// enqueued for a day that does not come.
func (st *stage) rehearsed(c *emq.Client, n, batch int) time.Duration {
	jobs := make([]emq.Job, batch)
	for i := range jobs {
		jobs[i] = emq.New(bystander{}, emq.In(24*time.Hour), emq.InLane("rehearsal"))
	}
	began := time.Now()
	_, err := c.Enqueue(st.ctx, jobs...)
	st.must("rehearse the flood", err)
	return time.Second + 3*time.Since(began)*time.Duration(n/batch)
}

func flood(st *stage) {
	s := st.redis()
	m := st.meter(s)
	c := st.client(s.URL())
	n := st.size(50_000, 1_000_000)
	jobs := make([]emq.Job, 5000)
	due := time.Now().Add(st.rehearsed(c, n, len(jobs)))
	for i := range jobs {
		jobs[i] = emq.New(drop{}, emq.At(due), emq.InLane("flood"))
	}
	m.during("enqueueing the flood", func() (int, error) {
		for range n / len(jobs) {
			if _, err := c.Enqueue(st.ctx, jobs...); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	if late := time.Since(due); late > 0 {
		st.doubtf("the flood was due %v before all of it was enqueued", late)
	}
	w := &witness{waits: make(map[string][]time.Duration)}
	stop := st.serve(s.URL(), 8, emq.WorkerConfig{Concurrency: 10}, w.bindings())
	st.sleep(time.Until(due))
	var promoted, ended time.Duration
	probes := 0
	m.during("the flood", func() (int, error) {
		for w.drops.Load() < int64(n) {
			for _, in := range [][]emq.Option{{}, {emq.In(300 * time.Millisecond)}} {
				probe := atOnce
				if len(in) > 0 {
					probe = inAWhile
				}
				if _, err := c.Enqueue(st.ctx, emq.New(drop{Probe: probe}, append(in, emq.InLane("other"))...), emq.New(bystander{Probe: probe}, in...)); err != nil {
					return probes, err
				}
			}
			probes++
			if promoted == 0 && st.counts(c, "flood").Scheduled < int64(n)/1000 {
				promoted = time.Since(due)
			}
			st.sleep(50 * time.Millisecond)
		}
		ended = time.Since(due)
		return n, nil
	})
	st.need("all probes are picked up", time.Minute, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		seen := 0
		for what, waits := range w.waits {
			if what != "the flood" {
				seen += len(waits)
			}
		}
		return seen == 4*probes
	})
	stop()
	st.figure("%d jobs due at once: all promoted after %.1f s, run after %.1f s (%.0f a second)", n, promoted.Seconds(), ended.Seconds(), float64(n)/ended.Seconds())
	for _, what := range []string{"another queue", "a later time of another queue", "another lane", "a later time of the same queue", "the flood"} {
		waits := w.waits[what]
		slices.Sort(waits)
		longest := waits[len(waits)-1]
		st.figure("%s waits p50 %d ms, p99 %d ms, at most %d ms", what, waits[len(waits)/2].Milliseconds(), waits[len(waits)*99/100].Milliseconds(), longest.Milliseconds())
		if longest > soon && what != "the flood" && what != "a later time of the same queue" {
			st.doubtf("a job of %s waited for %v beside the flood", what, longest)
		}
	}
	if probes < 5 {
		st.doubtf("%d probes: the drill proves nothing", probes)
	}
	left := st.counts(c, "flood")
	if want := int64(n + 2*probes); left.Totals["completed"] != want || left.Totals["reaped"]+left.Totals["stale"] != 0 {
		st.failf("want %d completed, none reaped: %+v", want, left)
	}
	m.judge()
}
