package emq_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// The experiments let real processes die beside a real server. A process is this test binary, started
// again with its part in the environment; what it does to jobs it writes to a journal, and the audit
// reads nothing else of it.
const partVariable = "EMQ_EXPERIMENT"

func TestMain(m *testing.M) {
	text := os.Getenv(partVariable)
	if text == "" {
		if err := flag.Set("rapid.nofailfile", "true"); err != nil { // a history that fails is in the output
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		code := m.Run()
		stopStands()
		os.Exit(code)
	}
	var p part
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	play := p.work
	if p.Produce > 0 {
		play = p.produce
	}
	if err := play(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// part is what a process does. Times of zero are the worker's defaults.
type part struct {
	URL, Journal             string
	Concurrency, CrashBudget int
	Lease                    time.Duration
	SoftStop, HardStop       time.Duration

	Produce int // jobs that each client of a producer enqueues, in place of work
	First   int // number of its first job

	Every time.Duration // what every cron spec means; 0: what it says
}

func (p part) work(ctx context.Context) error {
	j, err := openJournal(p.Journal)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	client, err := emq.Open(ctx, p.URL, emq.WithLogger(log))
	if err != nil {
		return err
	}
	defer client.Close()
	if p.Every > 0 {
		emq.FireEvery(client, p.Every)
	}
	w, err := emq.NewWorker(client, emq.WorkerConfig{
		Concurrency: p.Concurrency, CrashBudget: p.CrashBudget, Lease: p.Lease, SoftStop: p.SoftStop, HardStop: p.HardStop,
	}, emq.Handle(j.errand), emq.Handle(j.lastChance), emq.Handle(j.toll))
	if err != nil {
		return err
	}
	return emq.RunUntilSignal(ctx, w)
}

// experiment is a server, a client to look at it with, the processes, and their journal.
type experiment struct {
	t       *testing.T
	server  *redistest.Server
	client  *emq.Client
	raw     rueidis.Client // to look behind the client's back
	journal string

	mu        sync.Mutex
	processes []*process
}

func newExperiment(t *testing.T, serverArgs ...string) *experiment {
	t.Helper()
	server := redistest.Start(t, serverArgs...)
	client, err := emq.Open(t.Context(), server.URL(), emq.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true, DisableRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	e := &experiment{t: t, server: server, client: client, raw: raw, journal: filepath.Join(t.TempDir(), "journal")}
	if err := os.WriteFile(e.journal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, p := range e.all() {
			p.end()
		}
	})
	return e
}

func (e *experiment) all() []*process {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]*process(nil), e.processes...)
}

// process is one that the test has started. It dies with the test, whatever becomes of that.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	log    string // the file of its output
	exited chan struct{}
	err    error     // how it ended; once exited
	died   time.Time // when that was seen; once exited
	checks sync.Once
}

// start starts a process and does not wait for anything that it does.
func (e *experiment) start(p part) *process {
	e.t.Helper()
	p.URL, p.Journal = e.server.URL(), e.journal
	text, err := json.Marshal(p)
	if err != nil {
		e.t.Fatal(err)
	}
	out, err := os.CreateTemp(filepath.Dir(e.journal), "process-*.log")
	if err != nil {
		e.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(os.Args[0])
	// the race detector's exit would take a second
	cmd.Env = append(os.Environ(), partVariable+"="+string(text), "GORACE=atexit_sleep_ms=0")
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	proc := &process{t: e.t, cmd: cmd, log: out.Name(), exited: make(chan struct{})}
	go func() {
		proc.err, proc.died = cmd.Wait(), time.Now()
		close(proc.exited)
	}()
	e.mu.Lock()
	e.processes = append(e.processes, proc)
	e.mu.Unlock()
	return proc
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("signal %v: %v", sig, err)
	}
}

// alive tells whether the process has not ended yet.
func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill is kill -9; it answers when the process is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
}

// end kills what is left of the process and looks for what no process may ever say.
func (p *process) end() {
	p.kill()
	p.checks.Do(func() {
		text := p.output()
		for _, bad := range []string{"DATA RACE", "panic:", "fatal error:"} {
			if strings.Contains(text, bad) {
				p.t.Errorf("process %d says %q:\n%s", p.pid(), bad, text)
			}
		}
		if p.t.Failed() {
			p.t.Logf("the last words of process %d:\n%s", p.pid(), text[max(0, len(text)-2000):])
		}
	})
}

// exit waits for the process to end by itself.
func (p *process) exit(within time.Duration) error {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.err
	case <-time.After(within):
		p.t.Fatalf("process %d has not ended within %v", p.pid(), within)
		return nil
	}
}

func (p *process) output() string {
	p.t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// reached waits for what processes bring about. The time is what a busy machine may need; where an
// experiment has a limit, it compares times of the journal.
func (e *experiment) reached(what string, ok func() bool) {
	e.t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			e.t.Fatalf("not within 40 s: %s; %+v", what, e.counts())
		}
		time.Sleep(5 * time.Millisecond) // polling with a deadline; nothing is concluded from the pause
	}
}

// counts asks the server; the zero value while it does not answer.
func (e *experiment) counts() emq.Counts {
	ctx, cancel := context.WithTimeout(e.t.Context(), 5*time.Second)
	defer cancel()
	c, err := e.client.Queue("errands").Counts(ctx)
	if err != nil {
		return emq.Counts{}
	}
	return c
}

// enqueue enqueues jobs that must be taken.
func (e *experiment) enqueue(jobs ...emq.Job) []emq.Receipt {
	e.t.Helper()
	receipts, err := e.client.Enqueue(e.t.Context(), jobs...)
	if err != nil {
		e.t.Fatal(err)
	}
	return receipts
}

// field reads a field of a job's row; empty if there is none.
func (e *experiment) field(id emq.ID, name string) (text string) {
	e.t.Helper()
	e.reached("the server tells a field", func() bool {
		var err error
		text, err = e.raw.Do(e.t.Context(), e.raw.B().Hget().Key("emq:{errands}:job:"+string(id)).Field(name).Build()).ToString()
		return err == nil || rueidis.IsRedisNil(err)
	})
	return text
}
