package scripts

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

func jobN(n int) string { return fmt.Sprintf("JOB%011d", n) }

func (s *scene) enterMany(n int) {
	for i := range n {
		s.all(enter(jobN(i)))
	}
}

// taken is how many jobs a claim gave.
func (s *scene) taken(c claim) int {
	before := len(s.m.members("active"))
	s.do(c)
	return len(s.m.members("active")) - before
}

func (s *scene) takes(want int, c claim) {
	if got := s.taken(c); got != want {
		failf("after %s\nthe claim took %d jobs, want %d", s.story(), got, want)
	}
}

func limitScenarios() []scenario {
	return []scenario{
		{"a paused queue gives nothing", func(s *scene) {
			s.all(enter(jobA), setMeta("paused", "1"))
			s.takes(0, claimBy("mine0001"))
			s.leaves(claimBy("mine0001"))
		}},
		{"a claim takes the oldest ids and no more than it asks for", func(s *scene) {
			for i := 5; i >= 0; i-- {
				s.all(enter(jobN(i)))
			}
			s.takes(2, claim{Lease: lease, N: 2, By: "mine0001"})
			s.takes(3, claim{Lease: lease, N: 3, By: "mine0002"})
			s.takes(1, claimBy("mine0003"))
			s.takes(0, claimBy("mine0004"))
		}},
		{"a claim of nothing takes nothing", func(s *scene) {
			s.all(enter(jobA))
			s.takes(0, claim{Lease: lease, N: 0, By: "mine0001"})
			s.takes(0, claim{Lease: lease, N: -1, By: "mine0001"})
		}},
		{"concurrency cuts a claim to the free slots", func(s *scene) {
			s.enterMany(6)
			s.all(setMeta("concurrency", "3"))
			s.takes(2, claim{Lease: lease, N: 2, By: "mine0001"})
			s.takes(1, claimBy("mine0002"))
			s.takes(0, claimBy("mine0003"))
			s.all(popWake(), complete{Fence: fenceOf(jobN(0), 1, "mine0001")})
			s.takes(1, claimBy("mine0004"))
			s.all(setMeta("concurrency", "1"))
			s.takes(0, claimBy("mine0005"))
		}},
		{"a lapsed lease counts against the concurrency until it is reaped", func(s *scene) {
			s.enterMany(3)
			s.all(setMeta("concurrency", "1"))
			s.takes(1, claimBy("mine0001"))
			s.pass(2 * lease)
			s.takes(0, claimBy("mine0002"))
			s.reapAll(5)
			s.takes(1, claimBy("mine0003"))
		}},
		{"a rate cuts a claim and tells when to come again", func(s *scene) {
			s.enterMany(8)
			s.all(setMeta("rate_max", "4"), setMeta("rate_ms", "3600000"))
			first := s.taken(claimBy("mine0001"))
			if first != 1 {
				failf("after %s\nthe first claim took %d jobs", s.story(), first)
			}
			got := s.do(claimBy("mine0002"))
			if got.In <= 0 {
				failf("after %s\nthe wait is %v", s.story(), got.In)
			}
			s.pass(time.Duration(got.In)*time.Millisecond + time.Second)
			s.takes(1, claimBy("mine0003"))
		}},
		{"orphans spend nothing of the rate or the concurrency", func(s *scene) {
			s.enterMany(5)
			s.all(setMeta("rate_max", "1"), setMeta("rate_ms", "3600000"), setMeta("concurrency", "1"))
			s.all(deleteRow(jobN(0)), spoilRow(jobN(1)))
			s.takes(1, claimBy("mine0001"))
			if s.m.counts["orphan"] != 2 {
				failf("after %s\n%d orphans", s.story(), s.m.counts["orphan"])
			}
		}},
		{"a clock that steps back never stops a rate for longer than one spacing", func(s *scene) {
			s.enterMany(4)
			s.all(setMeta("rate_max", "2"), setMeta("rate_ms", "3600000"))
			s.takes(1, claimBy("mine0001"))
			s.pass(-50 * time.Hour)
			s.takes(0, claimBy("mine0002"))
			s.pass(32 * time.Minute)
			s.takes(1, claimBy("mine0003"))
		}},
		{"no window ever holds more than the rate's maximum", rateWindows},
		{"max_len counts what waits and what is scheduled, not what runs", func(s *scene) {
			s.all(setMeta("max_len", "2"), enter(jobN(0)), later(jobN(1), delay))
			s.says("EMQFULL", enter(jobN(2)))
			s.says("EMQFULL", later(jobN(2), delay))
			s.says("duplicate src00001", enter(jobN(1)))
			s.all(claimBy("mine0001"))
			s.says("enqueued", enter(jobN(2)))
			s.says("EMQFULL", enter(jobN(3)))
		}},
		{"promote, expire and reap move no more than their limit", func(s *scene) {
			for i := range 5 {
				s.all(later(jobN(i), delay))
			}
			s.pass(delay2)
			s.says("moved 2", promote{2})
			s.says("moved 0", promote{0})
			s.says("moved 0", promote{-1})
			s.says("moved 3", promote{100})
			s.all(claimBy("mine0001"))
			s.pass(2 * lease)
			s.all(reap{5, 2, lease})
			s.pass(lease/3 + time.Minute)
			s.says("moved 2", reap{5, 2, lease})
			s.says("moved 0", reap{5, 0, lease})
			s.says("moved 0", reap{5, -1, lease})
			s.says("moved 3", reap{5, 100, lease})
			s.all(claimBy("mine0002"))
			for i := range 5 {
				s.all(complete{Fence: fenceOf(jobN(i), 2, "mine0002"), Retain: delay})
			}
			s.pass(2 * delay)
			s.says("moved 2", expire{2})
			s.says("moved 0", expire{0})
			s.says("moved 0", expire{-1})
			s.says("moved 3", expire{100})
		}},
	}
}

// rateWindows takes jobs at random moments as fast as the rate lets it, and looks at every window.
func rateWindows(s *scene) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, most := range []int{1, 3, 7, 40} {
		const period = 3600_000
		*s = *newScene(s.target)
		s.all(setMeta("rate_max", strconv.Itoa(most)), setMeta("rate_ms", strconv.Itoa(period)))
		var taken []stamp
		var clock stamp // what has passed, beside the time that the test itself takes
		next := 0
		for range 30 {
			for len(s.m.members("pending")) < most+1 {
				s.all(enter(jobN(next)))
				next++
			}
			n := s.taken(claim{Lease: lease, N: 1 + r.IntN(most+1), By: "mine0001"})
			for range n {
				taken = append(taken, clock)
			}
			gap := time.Duration(r.IntN(period/4)) * time.Millisecond
			if r.IntN(6) == 0 {
				gap *= 16
			}
			s.pass(gap)
			clock += millis(gap)
			for _, e := range s.m.members("active") {
				s.m.jobs[e.id].unlisted = true
				s.must("ZREM", s.key("active"), e.id)
			}
		}
		for i := range taken {
			if i >= most && taken[i]-taken[i-most] < period-10_000 {
				failf("%d jobs within %v ms, at most %d in %d", most+1, taken[i]-taken[i-most], most, period)
			}
		}
		if len(taken) < most {
			failf("only %d jobs in all: the rate does not let through what it may", len(taken))
		}
	}
}
