// Package redistest starts real servers for tests, benchmarks and drills: each on a free port of the
// loopback interface, with a directory of its own, and stopped by its process id.
package redistest

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ProgramVariable names the server program, where it is not the redis-server in the PATH: another version, or
// valkey-server.
const ProgramVariable = "EMQ_TEST_SERVER"

func program() string { return cmp.Or(os.Getenv(ProgramVariable), "redis-server") }

// Server is one process of a server.
type Server struct {
	Port int
	Dir  string

	args []string
	bus  int    // the port of a cluster's bus
	conf string // of a sentinel

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start starts a server for the length of a test. Persistence is off unless args say otherwise.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s, err := New(t.TempDir(), args...)
	if err != nil {
		t.Fatalf("redistest: %v", err)
	}
	t.Cleanup(s.Stop)
	return s
}

// New starts a server with its files in dir. The caller stops it.
func New(dir string, args ...string) (*Server, error) {
	for try := 1; ; try++ {
		s := &Server{Dir: dir, args: args}
		err := s.takePorts()
		if err == nil {
			err = s.Run()
		}
		// a program beside this one may have been quicker to take a port
		if err == nil || try == 5 || !strings.Contains(err.Error(), "Address already in use") {
			return s, err
		}
	}
}

// takePorts chooses the ports. The bus of a cluster has one too, which is 10000 more if nobody says otherwise:
// one that the system gives to clients, as likely as not.
func (s *Server) takePorts() (err error) {
	if s.Port, err = FreePort(); err != nil {
		return err
	}
	if !slices.Contains(s.args, "--cluster-enabled") {
		return nil
	}
	if s.bus, err = FreePort(); err != nil {
		return err
	}
	s.args = append(slices.Clip(s.args), "--cluster-port", strconv.Itoa(s.bus))
	return nil
}

// newSentinel starts a sentinel with a configuration file, which it rewrites.
func newSentinel(dir, conf string) (*Server, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s := &Server{Port: port, Dir: dir, conf: conf}
	return s, s.Run()
}

// Addr is host:port.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)) }

// URL is what emq.Open takes.
func (s *Server) URL() string { return "redis://" + s.Addr() }

// Run starts the process, again after Kill or Stop on the same port and files, and waits until it
// answers.
func (s *Server) Run() error {
	args := []string{"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.Dir, "--logfile", "redis.log", "--daemonize", "no"}
	if s.conf != "" {
		args = append([]string{s.conf, "--sentinel"}, args...)
	} else {
		args = append(args, "--save", "", "--enable-debug-command", "yes")
	}
	args = append(args, s.args...)
	cmd := exec.Command(program(), args...)
	// it dies with the program that started it, also when that is killed
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s does not start (Debian: apt-get install redis-server; %s names another program): %w", program(), ProgramVariable, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(exited)
	}()
	s.mu.Lock()
	s.cmd, s.exited = cmd, exited
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		if reply, err := s.Command("PING"); err == nil && reply == "+PONG" {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("%s ended at once: %s", program(), s.logTail())
		case <-ctx.Done():
			s.Stop()
			return fmt.Errorf("%s does not answer: %s", program(), s.logTail())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *Server) logTail() string {
	b, err := os.ReadFile(filepath.Join(s.Dir, "redis.log"))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-500):]))
}

// Signal sends a signal to the process: SIGSTOP and SIGCONT freeze and thaw it.
func (s *Server) Signal(sig syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd.Process.Signal(sig)
}

// Kill ends the process with SIGKILL and waits for its end.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.exited
}

// Stop is Kill: nothing that a test wants is in the server's memory. Safe to repeat.
func (s *Server) Stop() { s.Kill() }

// Command sends one command on a connection of its own and answers the first line of the reply. It
// is for control (DEBUG, CONFIG, CLIENT), independent of every client under test.
func (s *Server) Command(words ...string) (string, error) {
	reply, err := s.exchange(words)
	line, _, _ := strings.Cut(string(reply), "\r\n")
	if err == nil && strings.HasPrefix(line, "-") {
		return line, errors.New(line[1:])
	}
	return line, err
}

// Bulk is Command for a reply that is one text, as INFO's.
func (s *Server) Bulk(words ...string) (string, error) {
	reply, err := s.exchange(words)
	head, text, _ := strings.Cut(string(reply), "\r\n")
	if err == nil && !strings.HasPrefix(head, "$") {
		return "", fmt.Errorf("%s answered %q", words[0], head)
	}
	return strings.TrimSuffix(text, "\r\n"), err
}

// List is Command for a reply that is a list of texts.
func (s *Server) List(words ...string) ([]string, error) {
	reply, err := s.exchange(words)
	if err == nil && reply[0] != '*' {
		return nil, fmt.Errorf("%s answered %q", words[0], reply)
	}
	return WordsOf(reply), err
}

// Info is a section of INFO.
func (s *Server) Info(section string) (map[string]string, error) {
	text, err := s.Bulk("INFO", section)
	if err != nil {
		return nil, err
	}
	info := make(map[string]string)
	for l := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(l), ":"); ok {
			info[k] = v
		}
	}
	return info, nil
}

// exchange sends one command and reads its whole reply.
func (s *Server) exchange(words []string) ([]byte, error) {
	conn, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := conn.Write([]byte(b.String())); err != nil {
		return nil, err
	}
	return ReadReply(bufio.NewReader(conn))
}
