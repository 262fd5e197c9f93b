package emq_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// errand is the job of the experiments. Its payload says what its handler does.
type errand struct {
	N    int           `json:"n"`
	Do   string        `json:"do,omitempty"`
	For  time.Duration `json:"for,omitempty"`
	Gate string        `json:"gate,omitempty"`
	Pad  string        `json:"pad,omitempty"` // weight
}

// What an errand does besides working for its time and heeding its context.
const (
	untilGate  = "gate"      // work until the gate is open, whatever the context says
	failAtGate = "gate-fail" // work until the gate is open, and fail
	windDown   = "wind"      // work until the gate is open; when the context ends, need the time to fail
	die        = "die"       // kill the own process after the time
	failOnce   = "fail"      // work for the time, and fail in the first attempt
)

func (errand) EmqSpec() emq.Spec[errand] {
	return emq.Spec[errand]{Queue: "errands", Kind: "errand", Attempts: 3, Timeout: time.Minute, Backoff: emq.Fixed(20 * time.Millisecond)}
}

// lastChance is an errand that may be attempted once.
type lastChance struct {
	Errand errand `json:"errand"`
}

func (lastChance) EmqSpec() emq.Spec[lastChance] {
	return emq.Spec[lastChance]{Queue: "errands", Kind: "last-chance", Attempts: 1, Timeout: time.Minute}
}

// journal is the file to which all processes of an experiment append a line for each start and end of a
// handler: the time in ns, the process, the number of the run in it, the event, and for a start the
// job's id, its number and its attempt.
type journal struct {
	file  *os.File
	runs  atomic.Int64
	gates sync.Map // of channels, by their files
}

func openJournal(name string) (*journal, error) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	return &journal{file: f}, err
}

// write appends a line in one write, so that lines of several processes never mix.
func (j *journal) write(words ...any) {
	line := fmt.Sprintln(append([]any{time.Now().UnixNano(), os.Getpid()}, words...)...)
	if _, err := j.file.WriteString(line); err != nil {
		panic(err)
	}
}

func (j *journal) lastChance(ctx context.Context, l lastChance) error { return j.errand(ctx, l.Errand) }

func (j *journal) errand(ctx context.Context, e errand) error {
	info, _ := emq.InfoFrom(ctx)
	run := j.runs.Add(1)
	j.write(run, "start", info.ID, e.N, info.Attempt)
	stop := context.AfterFunc(ctx, func() { j.write(run, "cancelled") })
	defer stop()
	err := j.do(ctx, e, info.Attempt)
	if err != nil {
		j.write(run, "failed")
	} else {
		j.write(run, "ok")
	}
	return err
}

func (j *journal) do(ctx context.Context, e errand, attempt int) error {
	switch e.Do {
	case untilGate:
		<-j.gate(e.Gate)
		return nil
	case failAtGate:
		<-j.gate(e.Gate)
		return errors.New("the gate is open")
	case windDown:
		select {
		case <-j.gate(e.Gate):
			return nil
		case <-ctx.Done():
			time.Sleep(e.For) // the work that is left
			return ctx.Err()
		}
	case die:
		time.Sleep(e.For) // the work until then
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	select {
	case <-time.After(e.For):
	case <-ctx.Done():
		return ctx.Err()
	}
	if e.Do == failOnce && attempt == 1 {
		return errors.New("the first attempt fails")
	}
	return nil
}

// gate is closed when the gate of that name is open for this process.
func (j *journal) gate(name string) <-chan struct{} {
	opened := make(chan struct{})
	known, loaded := j.gates.LoadOrStore(name, opened)
	if !loaded {
		go func() {
			for !exists(name) && !exists(fmt.Sprint(name, ".", os.Getpid())) {
				time.Sleep(5 * time.Millisecond) // polling; the test has the deadline
			}
			close(opened)
		}()
	}
	return known.(chan struct{})
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// gate is what errands wait at: a file.
type gate struct {
	e    *experiment
	file string
}

func (e *experiment) gate(name string) gate {
	return gate{e, filepath.Join(filepath.Dir(e.journal), name)}
}

// errand is one that waits at the gate.
func (g gate) errand(n int) emq.Job { return emq.New(errand{N: n, Do: untilGate, Gate: g.file}) }

// open opens the gate for every process.
func (g gate) open() { g.touch(g.file) }

// openIn opens it for one process only.
func (g gate) openIn(p *process) { g.touch(fmt.Sprint(g.file, ".", p.pid())) }

func (g gate) touch(file string) {
	g.e.t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		g.e.t.Fatal(err)
	}
}

// stint is one run of a handler as the journal has it.
type stint struct {
	id                    string
	n, attempt, pid       int
	start, end, cancelled time.Time // zero: not
	outcome               string    // "ok", "failed", or empty while it runs and when its process died
}

func (s stint) String() string {
	return fmt.Sprintf("job %d (%s) in process %d, attempt %d, from %s to %s: %s", s.n, s.id, s.pid, s.attempt,
		s.start.Format("05.000"), s.end.Format("05.000"), cmp.Or(s.outcome, "no end"))
}

// stints reads the journal, in the order of the starts. The end of a run that died is its process's.
func (e *experiment) stints() []stint {
	e.t.Helper()
	text, err := os.ReadFile(e.journal)
	if err != nil {
		e.t.Fatal(err)
	}
	died := make(map[int]time.Time)
	for _, p := range e.all() {
		if !p.alive() {
			died[p.pid()] = p.died
		}
	}
	var stints []stint
	byRun := make(map[[2]int]int)
	whole := string(text[:bytes.LastIndexByte(text, '\n')+1]) // a line may be half there when it is read
	for line := range strings.Lines(whole) {
		var ns int64
		var pid, run int
		var event string
		if _, err := fmt.Sscan(line, &ns, &pid, &run, &event); err != nil {
			e.t.Fatalf("journal: %v in %q", err, line)
		}
		at := time.Unix(0, ns)
		key := [2]int{pid, run}
		switch event {
		case "start":
			s := stint{pid: pid, start: at, end: died[pid]}
			if _, err := fmt.Sscan(line, new(int64), new(int), new(int), new(string), &s.id, &s.n, &s.attempt); err != nil {
				e.t.Fatalf("journal: %v in %q", err, line)
			}
			byRun[key] = len(stints)
			stints = append(stints, s)
		case "cancelled":
			stints[byRun[key]].cancelled = at
		default:
			stints[byRun[key]].outcome, stints[byRun[key]].end = event, at
		}
	}
	slices.SortStableFunc(stints, func(a, b stint) int { return a.start.Compare(b.start) })
	return stints
}

// byJob sorts runs by their job's number.
func byJob(stints []stint) map[int][]stint {
	jobs := make(map[int][]stint)
	for _, s := range stints {
		jobs[s.n] = append(jobs[s.n], s)
	}
	return jobs
}

// with picks the runs with an outcome.
func with(stints []stint, outcome string) (picked []stint) {
	for _, s := range stints {
		if s.outcome == outcome {
			picked = append(picked, s)
		}
	}
	return picked
}

// none fails if there is such a run, and shows the first ones.
func (e *experiment) none(bad []stint, what string) {
	e.t.Helper()
	if len(bad) > 0 {
		e.t.Errorf("%d times: %s: %v", len(bad), what, bad[:min(3, len(bad))])
	}
}

// neverTwiceAtOnce fails if a job began while another run of it had not ended.
func (e *experiment) neverTwiceAtOnce() {
	e.t.Helper()
	var bad []stint
	for _, runs := range byJob(e.stints()) {
		for i := 1; i < len(runs); i++ {
			if before := runs[i-1]; before.end.IsZero() || before.end.After(runs[i].start) {
				bad = append(bad, before, runs[i])
			}
		}
	}
	e.none(bad, "began while the run before had not ended")
}

// noAttemptSpent fails if a run counted as more than the first attempt.
func (e *experiment) noAttemptSpent() {
	e.t.Helper()
	var bad []stint
	for _, s := range e.stints() {
		if s.attempt != 1 {
			bad = append(bad, s)
		}
	}
	e.none(bad, "an attempt was spent")
}

// eachOnce fails unless each of the jobs from 0 to n ran once and ended well.
func (e *experiment) eachOnce(n int) {
	e.t.Helper()
	jobs := byJob(e.stints())
	var bad []stint
	for i := range n {
		runs := jobs[i]
		switch {
		case len(runs) == 0:
			e.t.Errorf("job %d has not run", i)
		case len(runs) > 1 || runs[0].outcome != "ok":
			bad = append(bad, runs...)
		}
	}
	e.none(bad, "not run once and well")
}
