package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// stage is what a drill has: a directory, a log that every process of it appends to, chance drawn from
// the seed, servers and processes, and the findings.
type stage struct {
	settings
	run    context.Context // ends when the run is interrupted
	ctx    context.Context // ends then, or when the drill has taken too long
	dir    string
	log    string
	reader reader // of the log
	rng    *rand.Rand
	began  time.Time

	mu       sync.Mutex
	problems []string
	doubtful int // of the problems
	figures  []string
	cleanups []func()
	procs    []*process
	clients  map[string]*emq.Client
}

func newStage(ctx context.Context, name string, s settings) (*stage, error) {
	dir, err := os.MkdirTemp("", "emq-drill-"+name+"-")
	if err != nil {
		return nil, err
	}
	st := &stage{settings: s, run: ctx, ctx: ctx, dir: dir, log: filepath.Join(dir, "log"), began: time.Now(), clients: make(map[string]*emq.Client)}
	st.reader.name = st.log
	h := fnv.New64a()
	h.Write([]byte(name)) // so that a drill draws the same alone and among others
	st.rng = rand.New(rand.NewPCG(s.seed, h.Sum64()))
	return st, os.WriteFile(st.log, nil, 0o600)
}

// broken ends a drill early; its text is among the problems already.
type broken struct{}

// longest is what no drill should need; it stands between a hanging one and the others.
func (st *stage) longest() time.Duration {
	if st.long {
		return 20*time.Minute + st.soakFor()
	}
	return 3*time.Minute + st.soakFor()
}

// play runs a drill and takes everything down that it has started, by process id, also after a failure.
func (st *stage) play(run func(*stage)) {
	var cancel context.CancelFunc
	st.ctx, cancel = context.WithTimeout(st.run, st.longest())
	defer cancel()
	defer st.tearDown()
	defer func() {
		if p := recover(); p != nil {
			if _, ours := p.(broken); !ours {
				st.failf("the drill panicked: %v\n%s", p, debug.Stack())
			}
		}
	}()
	run(st)
}

func (st *stage) tearDown() {
	for _, p := range st.procs {
		p.end()
	}
	for i := len(st.cleanups) - 1; i >= 0; i-- {
		st.cleanups[i]()
	}
	if !st.keeps() {
		if err := os.RemoveAll(st.dir); err != nil {
			st.failf("the directory stays: %v", err)
		}
	}
}

// keeps tells whether the logs stay.
func (st *stage) keeps() bool { return len(st.problems) > 0 || st.keep }

func (st *stage) cleanup(f func()) { st.cleanups = append(st.cleanups, f) }

// failf notes something that does not hold, and goes on. What an interrupted drill finds is no finding.
func (st *stage) failf(format string, args ...any) { st.note(0, format, args...) }

// doubtf is failf for what a machine that others use may have done: something took too long, or a fault did not
// come about. A drill that found nothing else is played once more.
func (st *stage) doubtf(format string, args ...any) { st.note(1, format, args...) }

func (st *stage) note(doubtful int, format string, args ...any) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.run.Err() != nil {
		return
	}
	st.problems = append(st.problems, fmt.Sprintf(format, args...))
	st.doubtful += doubtful
}

// doubts tells whether all that was found is doubtful.
func (st *stage) doubts() bool { return len(st.problems) > 0 && st.doubtful == len(st.problems) }

// must ends the drill: what it needs is not there.
func (st *stage) must(what string, err error) {
	if err != nil {
		st.failf("cannot be done: %s: %v", what, err)
		panic(broken{})
	}
}

// figure adds to the drill's line.
func (st *stage) figure(format string, args ...any) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.figures = append(st.figures, fmt.Sprintf(format, args...))
}

// size is one number for the short form and one for the long form.
func (st *stage) size(short, long int) int {
	if st.long {
		return long
	}
	return short
}

// sleep lets the fault last. It is never used to wait for something to happen.
func (st *stage) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-st.ctx.Done():
		st.must("the drill", errors.New("it has run for too long"))
	}
}

// between draws a duration.
func (st *stage) between(low, high time.Duration) time.Duration {
	return low + time.Duration(st.rng.Int64N(int64(high-low)+1))
}

// reached waits for a condition; false after the deadline, which is a problem.
func (st *stage) reached(what string, within time.Duration, is func() bool) bool {
	deadline := time.Now().Add(within)
	for !is() {
		if time.Now().After(deadline) || st.ctx.Err() != nil {
			st.failf("not within %v: %s", within, what)
			return false
		}
		time.Sleep(20 * time.Millisecond) // polling, under the deadline
	}
	return true
}

// need is reached for what the rest of the drill cannot do without.
func (st *stage) need(what string, within time.Duration, is func() bool) {
	if !st.reached(what, within, is) {
		panic(broken{})
	}
}
