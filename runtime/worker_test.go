package emq_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// job is a job whose handler each test writes.
type job struct {
	N int `json:"n"`
}

func (job) EmqSpec() emq.Spec[job] {
	return emq.Spec[job]{Queue: "work", Kind: "job", Version: 1, Attempts: 3, Timeout: time.Minute, Backoff: emq.Fixed(20 * time.Millisecond)}
}

// onEachServer runs a test with a client of each kind of server, one after another.
func onEachServer(t *testing.T, test func(t *testing.T, client *emq.Client)) {
	t.Helper()
	for _, kind := range storesOf(t) {
		t.Run(kind, func(t *testing.T) { test(t, openStore(t, kind).Client) })
	}
}

// run runs a worker until the returned stop is called, or the test ends.
func run(t *testing.T, client *emq.Client, cfg emq.WorkerConfig, bindings ...emq.Binding) (stop func()) {
	t.Helper()
	w, err := emq.NewWorker(client, cfg, bindings...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	var once atomic.Bool
	stop = func() {
		cancel()
		if once.CompareAndSwap(false, true) {
			if err := <-ended; err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	}
	t.Cleanup(stop)
	return stop
}

// eventually waits for a condition that other processes bring about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond) // polling with a deadline; nothing is concluded from the pause
	}
}

func TestAJobThatFailsOnceRunsAgainAndCompletes(t *testing.T) {
	onEachServer(t, func(t *testing.T, client *emq.Client) {
		var runs atomic.Int32
		run(t, client, emq.WorkerConfig{}, emq.Handle(func(ctx context.Context, j job) error {
			if info, ok := emq.InfoFrom(ctx); !ok || info.Attempt != int(runs.Load())+1 {
				t.Errorf("attempt %d in run %d", info.Attempt, runs.Load()+1)
			}
			if runs.Add(1) == 1 {
				return errors.New("not yet")
			}
			return nil
		}))
		if _, err := emq.Enqueue(t.Context(), client, job{1}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the job completes", func() bool {
			c, err := client.Queue("work").Counts(t.Context())
			return err == nil && c.Totals["completed"] == 1 && c.Totals["retried"] == 1
		})
	})
}
