package emq_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// Experiment 24. It does not run beside other tests, whose goroutines would be counted.
func TestAThousandStartsAndStopsLeaveNoGoroutine(t *testing.T) {
	server := redistest.Start(t)
	before := goleak.IgnoreCurrent()
	client, err := emq.Open(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	var ran atomic.Int64
	handler := emq.Handle(func(context.Context, job) error { ran.Add(1); return nil })
	var longest time.Duration
	steady := 0
	for i := range 1000 {
		if i%4 == 3 {
			put(t, client, job{i})
		}
		w, err := emq.NewWorker(client, emq.WorkerConfig{Logger: new(logbook).logger()}, handler)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		switch i % 4 {
		case 0: // at once
		case 1: // parked: it has claimed in vain
			eventually(t, "it has claimed", func() bool { _, ok := w.Health()["fetch work"]; return ok })
		case 2:
			w.Abort()
		case 3: // at work
			eventually(t, "the job has run", func() bool { return ran.Load() == int64(i/4+1) })
		}
		began := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(began))
		if i == 100 {
			steady = runtime.NumGoroutine()
		}
	}
	t.Logf("the longest of 1000 stops took %v; %d goroutines after 100, %d after 1000", longest, steady, runtime.NumGoroutine())
	if longest > 900*time.Millisecond {
		t.Errorf("a stop took %v", longest)
	}
	counts, err := client.Queue("work").Counts(t.Context())
	if err != nil || counts.Active != 0 || counts.Totals["completed"] != 250 || counts.Totals["reaped"] != 0 {
		t.Errorf("%+v %v", counts, err)
	}
	client.Close()
	client.Close()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// signalURL makes this test binary the worker that the test sends signals to.
const signalURL = "EMQ_TEST_SIGNAL_URL"

// workUntilSignal is the process under test. It says what happens on its standard output.
func workUntilSignal(t *testing.T, url string) {
	client, err := emq.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	w, err := emq.NewWorker(client, emq.WorkerConfig{}, emq.Handle(func(ctx context.Context, j job) error {
		fmt.Println("runs", j.N)
		if j.N == 0 { // ends as soon as a stop has begun, which it sees by the lock of this file
			for {
				if _, err := os.Stat(os.Getenv("EMQ_TEST_SIGNAL_FILE")); err == nil {
					return nil
				}
				time.Sleep(time.Millisecond) // polling
			}
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := emq.RunUntilSignal(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	fmt.Println("returned")
}

func TestTheFirstSignalStopsAWorkerAndTheSecondAborts(t *testing.T) {
	if url := os.Getenv(signalURL); url != "" {
		workUntilSignal(t, url)
		return
	}
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		for number, signals := range []int{1, 2} {
			t.Run(fmt.Sprintf("%d of %v", signals, sig), func(t *testing.T) {
				t.Parallel()
				s := realStore(t)
				ref := put(t, s, job{number})
				file := t.TempDir() + "/stopped"
				cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()[:strings.Index(t.Name(), "/")]+"$", "-test.v")
				cmd.Env = append(os.Environ(), signalURL+"="+s.url, "EMQ_TEST_SIGNAL_FILE="+file)
				cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
				out, err := cmd.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless the test failed
				lines := bufio.NewScanner(out)
				said := func(what string) {
					t.Helper()
					for lines.Scan() {
						if strings.HasPrefix(lines.Text(), what) {
							return
						}
					}
					t.Errorf("the process never said %q", what)
				}
				said("runs")
				pumped := func() int64 {
					n, err := s.do(t, "EXISTS", "emq:{work}:pump").AsInt64()
					if err != nil {
						t.Error(err)
					}
					return n
				}
				eventually(t, "it pumps", func() bool { return pumped() == 1 })
				began := time.Now()
				for range signals {
					if err := cmd.Process.Signal(sig); err != nil {
						t.Fatal(err)
					}
					// the pump is handed over when the claims have ended
					eventually(t, "the stop has begun", func() bool { return pumped() == 0 })
				}
				if err := os.WriteFile(file, nil, 0o600); err != nil {
					t.Fatal(err)
				}
				said("returned")
				took := time.Since(began)
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
				t.Logf("ended in %v", took)
				if took > 10*time.Second { // SoftStop is 20 s
					t.Errorf("it took %v", took)
				}
				row := s.row(t, ref)
				if signals == 1 && len(row) > 0 {
					t.Errorf("the job did not complete: %v", row)
				}
				if signals == 2 && (row["state"] != "pending" || row["forgiven"] != "1" || row["attempts"] != "1") {
					t.Errorf("the job was not handed back: %v", row)
				}
			})
		}
	}
}
