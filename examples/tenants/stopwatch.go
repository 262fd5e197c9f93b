package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/echomq/emq/examples/tenants/reports"
)

// waits is how long the first and the last job of each tenant waited since the worker began.
type waits map[string]span

type span struct {
	jobs        int
	first, last time.Duration
	place       int // at which the last one was served, of all jobs
}

// stopwatch handles the jobs and notes when each began.
type stopwatch struct {
	work  time.Duration
	total int
	all   func() // called when the last job has begun

	mu    sync.Mutex
	began time.Time
	seen  int
	waits waits
}

func newStopwatch(work time.Duration, total int, all func()) *stopwatch {
	return &stopwatch{work: work, total: total, all: all, began: time.Now(), waits: make(waits)}
}

// HandleQueued renders a report of the one line.
func (s *stopwatch) HandleQueued(ctx context.Context, job reports.Queued) error {
	return s.render(ctx, job.Tenant)
}

// HandleLaned renders a report of a lane.
func (s *stopwatch) HandleLaned(ctx context.Context, job reports.Laned) error {
	return s.render(ctx, job.Tenant)
}

func (s *stopwatch) render(ctx context.Context, tenant string) error {
	s.note(tenant)
	select {
	case <-time.After(s.work):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *stopwatch) note(tenant string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waits[tenant]
	w.last = time.Since(s.began)
	if w.jobs == 0 {
		w.first = w.last
	}
	w.jobs++
	s.seen++
	w.place = s.seen
	s.waits[tenant] = w
	if s.seen == s.total {
		s.all() // the worker stops when the jobs that run are done
	}
}

// result answers the waits, once every job has run.
func (s *stopwatch) result(want int) (waits, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != want {
		return nil, fmt.Errorf("%d of %d jobs have run", s.seen, want)
	}
	return s.waits, nil
}

// table prints some of the tenants, and of the quiet ones the one that waited longest.
func table(out io.Writer, oneLine, lanes waits) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\t\tin one line\t\tin lanes\t\t")
	fmt.Fprintln(w, "tenant\tjobs\tfirst waits\tlast waits\tfirst waits\tlast waits\t")
	row := func(name string, a, b span) {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t\n", name, a.jobs, ms(a.first), ms(a.last), ms(b.first), ms(b.last))
	}
	row(noisy, oneLine[noisy], lanes[noisy])
	for _, n := range []int{0, quietTenants / 2, quietTenants - 1} {
		row(quiet(n), oneLine[quiet(n)], lanes[quiet(n)])
	}
	row("slowest quiet", slowest(oneLine), slowest(lanes))
	w.Flush()
}

// slowest is the longest wait of any quiet tenant.
func slowest(all waits) span {
	var s span
	for name, w := range all {
		if name != noisy {
			s = span{w.jobs, max(s.first, w.first), max(s.last, w.last), max(s.place, w.place)}
		}
	}
	return s
}

func ms(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }
