package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a worker or a producer.
type process struct {
	st     *stage
	cmd    *exec.Cmd
	exited chan struct{}
	err    error // how it ended, once exited is closed

	mu     sync.Mutex
	died   int64 // monotonic ns; 0: it lives
	frozen []window
}

// window is a span of monotonic time; end 0: it lasts on.
type window struct{ start, end int64 }

func (w window) endAt(now int64) int64 {
	if w.end == 0 {
		return now
	}
	return w.end
}

func (st *stage) worker(url string, w workRole) *process {
	return st.start(role{URL: url, Log: st.log, Work: &w})
}

func (st *stage) producer(url string, p produceRole) *process {
	if p.Seed == 0 {
		p.Seed = st.rng.Uint64N(1<<40) + 1
	}
	return st.start(role{URL: url, Log: st.log, Produce: &p})
}

func (st *stage) workers(n int, url string, w workRole) []*process {
	all := make([]*process, n)
	for i := range all {
		all[i] = st.worker(url, w)
	}
	return all
}

func (st *stage) start(r role) *process {
	text, err := json.Marshal(r)
	st.must("write a role", err)
	self, err := os.Executable()
	st.must("find this program", err)
	out, err := os.OpenFile(filepath.Join(st.dir, fmt.Sprintf("process-%02d", len(st.procs)+1)), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	st.must("open a process's output", err)
	defer out.Close()
	p := &process{st: st, cmd: exec.Command(self), exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleVariable+"="+string(text))
	p.cmd.Stdout, p.cmd.Stderr = out, out
	// it dies with the drills, also when those are killed
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	st.must("start a process", p.cmd.Start())
	go func() {
		p.err = p.cmd.Wait()
		p.mu.Lock()
		p.died = monotonic()
		p.mu.Unlock()
		close(p.exited)
	}()
	st.procs = append(st.procs, p)
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *process) signal(sig syscall.Signal) {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.st.failf("signal %v to process %d: %v", sig, p.pid(), err)
	}
}

// terminate sends SIGTERM once the process is up: before, it would die of it as any program does.
func (p *process) terminate() {
	p.st.need("a process is up", 30*time.Second, func() bool { return !p.alive() || p.st.count(p, isUp) > 0 })
	p.signal(syscall.SIGTERM)
}

// kill ends it with SIGKILL and waits for its end.
func (p *process) kill() {
	p.signal(syscall.SIGKILL)
	<-p.exited
}

func (p *process) freeze() {
	p.outOfReach(true)
	p.signal(syscall.SIGSTOP)
}

func (p *process) thaw() {
	p.signal(syscall.SIGCONT)
	p.outOfReach(false)
}

// exits waits for an end by itself, and says how it ended.
func (p *process) exits(within time.Duration) error {
	select {
	case <-p.exited:
		return p.err
	case <-time.After(within):
		return fmt.Errorf("it has not ended within %v", within)
	case <-p.st.ctx.Done():
		return errors.New("the drill has run for too long")
	}
}

// end is for the stage: whatever still lives is killed.
func (p *process) end() {
	if p.alive() {
		p.kill()
	}
}

// cpu is the processor time that it has used.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid()))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", p.pid(), len(fields))
	}
	var ticks int
	for _, f := range fields[11:13] { // user and system
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * (time.Second / 100), nil
}

// output is what it has printed.
func (p *process) output() string {
	for i, q := range p.st.procs {
		if p == q {
			text, err := os.ReadFile(filepath.Join(p.st.dir, fmt.Sprintf("process-%02d", i+1)))
			if err != nil {
				return err.Error()
			}
			return string(text)
		}
	}
	return ""
}

// finish stops workers with SIGTERM; each must end by itself and well.
func (st *stage) finish(workers ...*process) {
	alive := slices.DeleteFunc(slices.Clone(workers), func(w *process) bool { return !w.alive() })
	for _, w := range alive {
		w.terminate()
	}
	for _, w := range alive {
		if err := w.exits(40 * time.Second); err != nil {
			st.failf("process %d after SIGTERM: %v: %s", w.pid(), err, tail(w.output()))
		}
	}
}

// produced waits until producers have done their part.
func (st *stage) produced(within time.Duration, producers ...*process) {
	for _, p := range producers {
		if err := p.exits(within); err != nil {
			st.must("produce", fmt.Errorf("process %d: %w: %s", p.pid(), err, tail(p.output())))
		}
	}
}

func tail(text string) string {
	const most = 600
	return strings.TrimSpace(text[max(0, len(text)-most):])
}

// outOfReach notes that the process and the server cannot hear each other; for the audit that is the
// same as a frozen process.
func (p *process) outOfReach(begin bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if begin {
		p.frozen = append(p.frozen, window{start: monotonic()})
	} else {
		p.frozen[len(p.frozen)-1].end = monotonic()
	}
}
