package emq_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/scripts"
)

// preloaded is how many no-op jobs wait before the clock of a round starts.
const preloaded = 100_000

// BenchmarkProcess measures a whole worker over preloaded no-op jobs, and beside it, on the same server
// in the same run, a bare loop over the same scripts: the limit that the worker is measured by. Look at
// the ratio of the two; the rates are the machine's.
func BenchmarkProcess(b *testing.B) {
	client, raw := benchClient(b)
	b.Run("bare=100", func(b *testing.B) {
		for b.Loop() {
			preload(b, client)
			measure(b, raw, func() { bareLoop(b, client, raw, 100) })
		}
	})
	for _, concurrency := range []int{10, 100, 1000} {
		b.Run("worker="+itoa(concurrency), func(b *testing.B) {
			for b.Loop() {
				preload(b, client)
				measure(b, raw, func() { workOff(b, client, concurrency) })
			}
		})
	}
}

func itoa(n int) string { return map[int]string{10: "10", 100: "100", 1000: "1000"}[n] }

func benchClient(b *testing.B) (*emq.Client, rueidis.Client) {
	b.Helper()
	server := redistest.Start(b)
	raw, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{server.Addr()}, DisableCache: true, PipelineMultiplex: -1, MaxFlushDelay: 20 * time.Microsecond,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(raw.Close)
	client, err := emq.NewClient(raw)
	if err != nil {
		b.Fatal(err)
	}
	return client, raw
}

func preload(b *testing.B, client *emq.Client) {
	b.Helper()
	batch := make([]emq.Job, 1000)
	for i := range batch {
		batch[i] = emq.New(job{i})
	}
	for range preloaded / len(batch) {
		if _, err := client.Enqueue(b.Context(), batch...); err != nil {
			b.Fatal(err)
		}
	}
}

// measure reports the rate, and what one job cost the server.
func measure(b *testing.B, raw rueidis.Client, work func()) {
	b.Helper()
	ctx := b.Context()
	if err := raw.Do(ctx, raw.B().ConfigResetstat().Build()).Error(); err != nil {
		b.Fatal(err)
	}
	began := time.Now()
	work()
	took := time.Since(began)
	stats, err := raw.Do(ctx, raw.B().Info().Section("commandstats").Build()).ToString()
	if err != nil {
		b.Fatal(err)
	}
	calls, usec := scriptCalls(stats)
	b.ReportMetric(preloaded/took.Seconds(), "jobs/s")
	b.ReportMetric(float64(usec)/preloaded, "server-µs/job")
	b.ReportMetric(float64(calls)/preloaded, "calls/job")
}

func workOff(b *testing.B, client *emq.Client, concurrency int) {
	b.Helper()
	var ran atomic.Int64
	ctx, cancel := context.WithCancel(b.Context())
	w, err := emq.NewWorker(client, emq.WorkerConfig{Concurrency: concurrency}, emq.Handle(func(context.Context, job) error {
		if ran.Add(1) == preloaded {
			cancel()
		}
		return nil
	}))
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Run(ctx); err != nil {
		b.Fatal(err)
	}
	settled(b, client)
}

// settled checks that nothing was lost or doubled.
func settled(b *testing.B, client *emq.Client) {
	b.Helper()
	counts, err := client.Queue("work").Counts(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	if left := counts.Pending + counts.Active + counts.Scheduled + counts.Dead; left != 0 || counts.Totals["completed"]%preloaded != 0 {
		b.Fatalf("%d jobs are left, %d completed", left, counts.Totals["completed"])
	}
}

// bareLoop claims up to 64 jobs a call and completes each in one of n goroutines.
func bareLoop(b *testing.B, client *emq.Client, raw rueidis.Client, n int) {
	b.Helper()
	server, err := scripts.NewServer(raw, "")
	if err != nil {
		b.Fatal(err)
	}
	q := server.Queue("work")
	jobs := make(chan scripts.Fence, n)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for f := range jobs {
				if _, err := q.Complete(b.Context(), f, 0, nil); err != nil {
					b.Error(err)
				}
			}
		})
	}
	for taken := 0; taken < preloaded; {
		claimed, err := q.Claim(b.Context(), scripts.Claim{Lease: time.Minute, N: 64, By: "barebare"})
		if err != nil {
			b.Fatal(err)
		}
		taken += len(claimed.Jobs)
		for _, j := range claimed.Jobs {
			jobs <- j.Fence
		}
	}
	close(jobs)
	wg.Wait()
	settled(b, client)
}
