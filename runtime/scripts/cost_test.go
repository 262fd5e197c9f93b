package scripts

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// BenchmarkComplete reports what the server itself spends on one completion, in microseconds.
func BenchmarkComplete(b *testing.B) {
	for _, c := range []struct {
		name   string
		retain time.Duration
		events bool
	}{{"plain", 0, false}, {"kept", time.Hour, false}, {"events", 0, true}} {
		b.Run(c.name, func(b *testing.B) {
			s := onRedis(b, ownLibrary(b))
			s.clear()
			ctx := context.Background()
			if c.events {
				s.must("HSET", s.key("meta"), "events", "1")
			}
			var jobs []ClaimedJob
			for n := range b.N {
				j := enter(jobN(n))
				if a, err := s.queue.Enqueue(ctx, NewJob(j)); err != nil || a.Status != "enqueued" {
					b.Fatal(a, err)
				}
			}
			for len(jobs) < b.N {
				got, err := s.queue.Claim(ctx, Claim{Lease: time.Hour, N: 500, By: "mine0001"})
				if err != nil {
					b.Fatal(err)
				}
				jobs = append(jobs, got.Jobs...)
			}
			s.must("CONFIG", "RESETSTAT")
			b.ResetTimer()
			for _, j := range jobs {
				if v, err := s.queue.Complete(ctx, j.Fence, c.retain, []byte("7")); err != nil || v.Status != "completed" {
					b.Fatal(v, err)
				}
			}
			text, err := s.do("INFO", "commandstats").ToString()
			if err != nil {
				b.Fatal(err)
			}
			m := regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+)`).FindStringSubmatch(text)
			usec, err := strconv.ParseFloat(m[1], 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(usec/float64(b.N), "server-us/op")
		})
	}
}
