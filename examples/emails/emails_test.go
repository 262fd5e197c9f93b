package emails_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/echomq/emq/examples/emails/jobs"
	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// patience bounds every wait for another process.
const patience = 30 * time.Second

// build makes both programs, once for each test.
func build(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+string(os.PathSeparator), "./web", "./worker").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

// process is one of the programs.
type process struct {
	cmd    *exec.Cmd
	ended  chan struct{}
	err    error
	mu     sync.Mutex
	stderr strings.Builder
	lines  chan string
}

// start starts a program and stops it, at the latest, with the test.
func start(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(name, args...), ended: make(chan struct{}), lines: make(chan string, 10_000)}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for s := bufio.NewScanner(stderr); s.Scan(); {
			p.mu.Lock()
			fmt.Fprintln(&p.stderr, s.Text())
			p.mu.Unlock()
			p.lines <- s.Text()
		}
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended by itself
		<-p.ended
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(name), p.log())
		}
	})
	return p
}

func (p *process) log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

// line waits for a line of its log.
func (p *process) line(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for late := time.After(patience); ; {
		select {
		case line := <-p.lines:
			if m := re.FindStringSubmatch(line); m != nil {
				return m
			}
		case <-p.ended:
			t.Fatalf("it ended (%v) before it said %s", p.err, pattern)
		case <-late:
			t.Fatalf("it did not say %s", pattern)
		}
	}
}

// stop sends SIGTERM; exit waits for a clean end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

func (p *process) exit(t *testing.T) {
	t.Helper()
	select {
	case <-p.ended:
		if p.err != nil {
			t.Errorf("%s: %v", p.cmd.Path, p.err)
		}
	case <-time.After(patience):
		t.Fatalf("%s did not end", p.cmd.Path)
	}
}

// provider stands for the mail provider's API: each request waits for an answer of the test.
type provider struct {
	url      string
	requests chan request
}

type request struct {
	to, key string
	answer  chan int
	gone    <-chan struct{} // closed when the caller hangs up
}

func newProvider(t *testing.T) *provider {
	p := &provider{requests: make(chan request)}
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var mail struct{ To string }
		if err := json.NewDecoder(r.Body).Decode(&mail); err != nil {
			t.Errorf("the provider cannot read the mail: %v", err)
		}
		req := request{mail.To, r.Header.Get("Idempotency-Key"), make(chan int, 1), r.Context().Done()}
		select {
		case p.requests <- req:
		case <-over:
			return
		}
		select {
		case status := <-req.answer:
			w.WriteHeader(status)
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	p.url = server.URL
	return p
}

func (p *provider) next(t *testing.T) request {
	t.Helper()
	select {
	case r := <-p.requests:
		return r
	case <-time.After(patience):
		t.Fatal("no mail came")
		panic("unreachable")
	}
}

type signupAnswer struct {
	Job    emq.Ref `json:"job"`
	Status string  `json:"status"`
}

func signup(t *testing.T, addr, body string) (int, signupAnswer) {
	t.Helper()
	resp, err := http.Post("http://"+addr+"/signup", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var a signupAnswer
	if resp.StatusCode == http.StatusAccepted {
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
	}
	return resp.StatusCode, a
}

// scene is both programs on a server and the provider that they send to.
type scene struct {
	dir, addr   string
	env         []string
	web, worker *process
	mails       *provider
	queue       *emq.Queue
}

func play(t *testing.T, workerArgs ...string) *scene {
	t.Helper()
	server := redistest.Start(t)
	client, err := emq.Open(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := &scene{dir: build(t), mails: newProvider(t), queue: client.Queue(jobs.QueueEmails)}
	s.env = []string{"EMQ_URL=" + server.URL(), "MAIL_API=" + s.mails.url}
	s.worker = start(t, s.env, filepath.Join(s.dir, "worker"), workerArgs...)
	s.worker.line(t, "working")
	s.web = start(t, s.env, filepath.Join(s.dir, "web"), "-addr", "127.0.0.1:0")
	s.addr = s.web.line(t, `listening addr=(\S+)`)[1]
	return s
}

func (s *scene) counts(t *testing.T) emq.Counts {
	t.Helper()
	c, err := s.queue.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const ada = `{"user_id": 7, "email": "ada@example.org"}`

func TestAWorkerThatIsStoppedInMidJobFinishesIt(t *testing.T) {
	s := play(t)
	status, first := signup(t, s.addr, ada)
	if status != http.StatusAccepted || first.Status != "enqueued" || first.Job.Queue != jobs.QueueEmails {
		t.Fatalf("%d %+v", status, first)
	}
	mail := s.mails.next(t)
	if mail.to != "ada@example.org" || mail.key != string(first.Job.ID) {
		t.Errorf("mail to %s under %s, job %s", mail.to, mail.key, first.Job)
	}
	// while it is on its way, the same address is greeted once only
	if status, again := signup(t, s.addr, ada); status != http.StatusAccepted || again.Status != "conflict" || again.Job != first.Job {
		t.Errorf("%d %+v", status, again)
	}
	if status, _ := signup(t, s.addr, `{"email": 1}`); status != http.StatusBadRequest {
		t.Errorf("a bad request: %d", status)
	}

	s.worker.stop(t)
	mail.answer <- http.StatusOK
	s.worker.exit(t)
	c := s.counts(t)
	if c.Totals["completed"] != 1 || c.Active != 0 || c.Pending != 0 || c.Scheduled != 1 {
		t.Errorf("%+v", c)
	}
	if log := s.worker.log(); strings.Contains(log, "ada@") {
		t.Error("the redacted address stands in the log")
	}
	s.web.stop(t)
	s.web.exit(t)
}

func TestAWorkerThatIsStoppedForTooLongAJobHandsItBack(t *testing.T) {
	s := play(t, "-soft-stop", "200ms")
	if status, _ := signup(t, s.addr, ada); status != http.StatusAccepted {
		t.Fatal(status)
	}
	mail := s.mails.next(t)
	s.worker.stop(t)
	select {
	case <-mail.gone: // its context ended, and the request with it
	case <-time.After(patience):
		t.Fatal("the request goes on")
	}
	s.worker.exit(t)
	c := s.counts(t)
	if c.Totals["released"] != 1 || c.Totals["retried"] != 0 || c.Active != 0 || c.Pending != 1 {
		t.Errorf("%+v", c)
	}
	// the next worker takes it up, and it has cost no attempt
	next := start(t, s.env, filepath.Join(s.dir, "worker"))
	again := s.mails.next(t)
	if again.key != mail.key {
		t.Errorf("job %s, not %s", again.key, mail.key)
	}
	again.answer <- http.StatusOK
	if m := next.line(t, `INFO ran .*attempt=(\d+)`); m[1] != "1" {
		t.Errorf("attempt %s", m[1])
	}
	next.stop(t)
	next.exit(t)
	if c := s.counts(t); c.Totals["completed"] != 1 {
		t.Errorf("%+v", c)
	}
}
