package scripts

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"
)

// BenchmarkGrowth gives the server's time for a job while more and more jobs wait: enqueued one at a time,
// claimed 64 at a time, completed; promoted 200 at a time among others that are scheduled; and reaped 64 at a
// time among others that run. Filling the queue takes a minute at the largest sizes.
func BenchmarkGrowth(b *testing.B) {
	for _, size := range []int{1_000, 10_000, 100_000, 1_000_000} {
		b.Run("pending="+strconv.Itoa(size), func(b *testing.B) {
			s := tenantsOn(b, onRedis(b, ownLibrary(b)))
			s.put("", size)
			const jobs = 64
			var enqueue, claim, complete float64
			for b.Loop() {
				enqueue += s.spent(func() { s.put("", jobs) })
				var got []ClaimedJob
				claim += s.spent(func() { got = s.claim(jobs) })
				complete += s.spent(func() {
					for _, j := range got {
						s.complete(j.Fence)
					}
				})
			}
			b.ReportMetric(enqueue/float64(b.N)/jobs, "enqueue-µs/job")
			b.ReportMetric(claim/float64(b.N)/jobs, "claim-µs/job")
			b.ReportMetric(complete/float64(b.N)/jobs, "complete-µs/job")
		})
		b.Run("scheduled="+strconv.Itoa(size), func(b *testing.B) {
			s := tenantsOn(b, onRedis(b, ownLibrary(b)))
			s.park(size, time.Hour)
			const jobs = 200
			var park, promote float64
			for b.Loop() {
				park += s.spent(func() { s.park(jobs, 0) })
				promote += s.spent(func() {
					if n, _, err := s.queue.Promote(context.Background(), jobs); err != nil || n != jobs {
						b.Fatal(fmt.Errorf("%d promoted: %w", n, err))
					}
				})
			}
			b.ReportMetric(park/float64(b.N)/jobs, "schedule-µs/job")
			b.ReportMetric(promote/float64(b.N)/jobs, "promote-µs/job")
		})
		b.Run("active="+strconv.Itoa(size), func(b *testing.B) {
			s := tenantsOn(b, onRedis(b, ownLibrary(b)))
			s.put("", size)
			for left := size; left > 0; {
				left -= len(s.claim(500))
			}
			s.endGrace()
			const jobs = 64
			var reap float64
			for b.Loop() {
				s.put("", jobs)
				s.lapse(jobs)
				reap += s.spent(func() {
					if n, _, err := s.queue.Reap(context.Background(), 1_000_000, jobs, lease); err != nil || n != jobs {
						b.Fatal(fmt.Errorf("%d reaped: %w", n, err))
					}
				})
				s.claim(jobs) // what was reaped is in nobody's way the next time
			}
			b.ReportMetric(reap/float64(b.N)/jobs, "reap-µs/job")
		})
	}
}

// spent is the server's time for what f calls.
func (s *tenants) spent(f func()) float64 {
	before := s.usec()
	f()
	return s.usec() - before
}

// park schedules n jobs for after delay.
func (s *tenants) park(n int, delay time.Duration) {
	s.t.Helper()
	s.admit(n, func(id string) NewJob {
		job := NewJob(inLane(id, ""))
		job.Later, job.Delay = true, delay
		return job
	})
}

// lapse claims n jobs and lets their leases lapse.
func (s *tenants) lapse(n int) {
	s.t.Helper()
	got, err := s.queue.Claim(context.Background(), Claim{Lease: time.Millisecond, N: n, By: "mine0002"})
	if err != nil || len(got.Jobs) != n {
		s.t.Fatal(fmt.Errorf("%d claimed: %w", len(got.Jobs), err))
	}
	time.Sleep(5 * time.Millisecond) // the leases, which the clock of the server ends
}

// endGrace lets the queue have been pumped for so long that a reap gives nobody time to come back.
func (s *tenants) endGrace() {
	s.t.Helper()
	if _, _, err := s.queue.Reap(context.Background(), 1, 1, lease); err != nil {
		s.t.Fatal(err)
	}
	if err := s.do("HSET", s.key("meta"), "grace", "0").Error(); err != nil {
		s.t.Fatal(err)
	}
}
