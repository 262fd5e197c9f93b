package emq

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// loops are the background loops of a worker: each is restarted after an error or a panic, with a
// growing pause, and its last success is known.
type loops struct {
	mu   sync.Mutex
	last map[string]time.Time
	back chan struct{} // closed when a loop succeeds that had failed: the server is back for all of them
}

const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// start runs f in a goroutine until it returns nil or ctx ends. longest bounds the pauses after errors.
func (l *loops) start(ctx context.Context, w *Worker, wg *sync.WaitGroup, name string, longest time.Duration, f func(context.Context, func()) error) {
	wg.Go(func() {
		first := min(firstPause, longest)
		pause := first
		failed := false
		warn := sparse{}
		for ctx.Err() == nil {
			err := guarded(ctx, f, func() {
				l.succeeded(name, failed)
				if failed && warn.allow(name+" again") {
					w.log.Info("emq: the loop of the worker works again", "loop", name)
				}
				pause, failed = first, false
			})
			if err == nil {
				return
			}
			if ctx.Err() != nil {
				return
			}
			failed = true
			w.observer.Observe(ctx, Event{Name: EventRefused, Err: err})
			if warn.allow(name) {
				w.log.Warn("emq: a loop of the worker failed and goes on", "loop", name, "last_success", w.Health()[name], "error", err)
			}
			l.sleep(ctx, pause)
			pause = min(2*pause, longest)
		}
	})
}

func guarded(ctx context.Context, f func(context.Context, func()) error, ok func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f(ctx, ok)
}

// succeeded notes a success. One after a failure ends the pauses of all.
func (l *loops) succeeded(name string, failedBefore bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if failedBefore && l.back != nil {
		close(l.back)
		l.back = nil
	}
	if l.last == nil {
		l.last = make(map[string]time.Time)
	}
	l.last[name] = time.Now()
}

// Health says how long ago each background loop last succeeded, by its name: "fetch mail", "pump mail",
// "heartbeat mail", "wait mail", and "cron mail" where jobs with //emq:cron are bound. A loop that has not
// succeeded yet is missing. While the server answers, no age grows beyond a lease (a second, if that is
// longer) but that of "fetch" while every slot is taken, and that of "cron", which has a minute.
func (w *Worker) Health() map[string]time.Duration {
	w.loops.mu.Lock()
	defer w.loops.mu.Unlock()
	ages := make(map[string]time.Duration, len(w.loops.last))
	for name, at := range w.loops.last {
		ages[name] = time.Since(at)
	}
	return ages
}

// sleep waits for a jittered pause, but not longer than until the server is back.
func (l *loops) sleep(ctx context.Context, pause time.Duration) {
	l.mu.Lock()
	if l.back == nil {
		l.back = make(chan struct{})
	}
	back := l.back
	l.mu.Unlock()
	t := time.NewTimer(jitter(pause))
	defer t.Stop()
	select {
	case <-t.C:
	case <-back:
	case <-ctx.Done():
	}
}

// sparse lets one line a minute through for each key. It is safe for concurrent use.
type sparse struct {
	mu   sync.Mutex
	last map[string]time.Time
	held map[string]int // what was counted since the last line
}

func (s *sparse) allow(key string) bool { return s.count(key, 1) > 0 }

// count adds n, and answers what has come since the last line if a line may be written now, else 0.
func (s *sparse) count(key string, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, known := s.last[key]; known && time.Since(at) < time.Minute {
		s.held[key] += n
		return 0
	}
	if s.last == nil || len(s.last) > 1000 { // hostile kinds do not grow it without end
		s.last, s.held = make(map[string]time.Time), make(map[string]int)
	}
	n += s.held[key]
	delete(s.held, key)
	s.last[key] = time.Now()
	return n
}

// tally counts what runs.
type tally struct {
	mu    sync.Mutex
	n     int
	waits []chan struct{}
}

func (t *tally) add(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n += n
	if t.n == 0 {
		for _, w := range t.waits {
			close(w)
		}
		t.waits = nil
	}
}

func (t *tally) empty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n == 0
}

// zero is closed when nothing runs.
func (t *tally) zero() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	ch := make(chan struct{})
	if t.n == 0 {
		close(ch)
	} else {
		t.waits = append(t.waits, ch)
	}
	return ch
}
