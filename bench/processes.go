package main

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/echomq/emq/bench/jobs"
	emq "github.com/echomq/emq/runtime"
)

// workerGrowth measures the server while 1 to 64 processes work off the same jobs.
func workerGrowth(ctx context.Context) ([]sample, error) {
	dir, err := os.MkdirTemp("", "emq-growth-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	redis, err := startRedis(dir)
	if err != nil {
		return nil, err
	}
	defer redis.stop()
	e, err := newEmq(ctx, redis, "", false)
	if err != nil {
		return nil, err
	}
	defer e.client.Close()
	var samples []sample
	for n := 1; n <= 64; n *= 2 {
		s, err := e.workedBy(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("%d processes: %w", n, err)
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// workedBy lets so many processes, of 8 slots each, work off jobs that waited when all were ready.
func (s *emqSystem) workedBy(ctx context.Context, processes int) (sample, error) {
	const n = 50_000
	if err := s.reset(ctx); err != nil {
		return sample{}, err
	}
	q := s.client.Queue(jobs.QueueBench)
	if err := q.Pause(ctx); err != nil {
		return sample{}, err
	}
	if err := s.bulk(ctx, n, small); err != nil {
		return sample{}, err
	}
	stop, err := startWorkers(ctx, processes, s.redis.URL())
	defer stop()
	if err != nil {
		return sample{}, err
	}
	before, err := s.redis.cpu()
	if err != nil {
		return sample{}, err
	}
	if err := q.Resume(ctx); err != nil {
		return sample{}, err
	}
	for {
		c, err := q.Counts(ctx)
		if err != nil {
			return sample{}, err
		}
		if c.Totals["completed"] == n {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return sample{}, ctx.Err()
		}
	}
	after, err := s.redis.cpu()
	if err != nil {
		return sample{}, err
	}
	return sample{"processes", "claim and complete", processes, float64((after - before).Microseconds()) / n}, holds(ctx, s, 0)
}

// startWorkers starts this program so many times, as workers, and answers when all are ready.
func startWorkers(ctx context.Context, n int, url string) (stop func(), err error) {
	var started []*exec.Cmd
	stop = func() {
		for _, c := range started {
			_ = c.Process.Signal(os.Interrupt)
		}
		for _, c := range started {
			_ = c.Wait() // what they did is counted by the server
		}
	}
	for range n {
		c := exec.CommandContext(ctx, os.Args[0], "-worker", url)
		c.Stderr, c.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := c.StdoutPipe()
		if err != nil {
			return stop, err
		}
		if err := c.Start(); err != nil {
			return stop, err
		}
		started = append(started, c)
		if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
			return stop, fmt.Errorf("a worker did not start: %w", err)
		}
	}
	return stop, nil
}

// workUntilInterrupt is what such a process does.
func workUntilInterrupt(url string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	quiet := slog.New(slog.DiscardHandler)
	client, err := emq.Open(ctx, url, emq.WithLogger(quiet))
	if err != nil {
		return err
	}
	defer client.Close()
	w, err := emq.NewWorker(client, emq.WorkerConfig{Concurrency: 8, Logger: quiet}, jobs.Bind(handler{func(int64) {}}))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return w.Run(ctx)
}
