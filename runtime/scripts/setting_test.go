package scripts

import (
	"context"
	"strconv"
	"time"
)

// setting changes fields of meta, given with their values in pairs.
type setting struct{ Pairs []string }

func set(pairs ...string) setting { return setting{pairs} }

func rate(most int, period time.Duration) setting {
	return set("rate_max", strconv.Itoa(most), "rate_ms", ms(period))
}

func (c setting) call(ctx context.Context, s *target) answer {
	return says("set", s.queue.Set(ctx, c.Pairs...))
}

func (c setting) expect(m *model, now stamp) answer {
	was := m.meta["rate_max"] + " in " + m.meta["rate_ms"]
	for i := 0; i < len(c.Pairs); i += 2 {
		m.setText(c.Pairs[i], c.Pairs[i+1])
	}
	switch is := m.meta["rate_max"] + " in " + m.meta["rate_ms"]; {
	case m.meta["rate_max"] == "" || m.meta["rate_ms"] == "":
		delete(m.metaAt, "rate_tat")
	case is != was:
		_, tat, _ := m.allowance(now)
		m.metaAt["rate_tat"] = max(tat, now)
	}
	limit, err := strconv.Atoi(m.meta["concurrency"])
	if m.meta["paused"] == "" && (err != nil || len(m.members("active")) < limit) && m.servable() {
		m.wake = true
	}
	return answer{Says: "set"}
}

func settingScenarios() []scenario {
	return []scenario{
		{"a pause gives nothing and wakes nobody, a resume wakes a worker", func(s *scene) {
			s.enterMany(2)
			s.all(popWake(), set("paused", "1"))
			s.woken(false)
			s.takes(0, claimBy("mine0001"))
			s.all(enter(jobN(7)), popWake(), set("paused", "1"), set("concurrency", "5"), rate(9, time.Hour), set("concurrency", ""))
			s.woken(false)
			s.all(set("rate_max", "", "rate_ms", "", "paused", ""))
			s.woken(true)
			s.takes(3, claimBy("mine0002"))
			s.all(set("paused", "1"))
			s.says("completed", complete{Fence: fenceOf(jobN(0), 1, "mine0002")})
			s.all(set("paused", ""))
			s.woken(false)
		}},
		{"a higher concurrency and none wake a worker, one that is reached does not", func(s *scene) {
			s.enterMany(9)
			s.all(set("concurrency", "2"))
			s.takes(2, claimBy("mine0001"))
			s.all(popWake(), set("concurrency", "2"), set("concurrency", "1"))
			s.woken(false)
			s.takes(0, claimBy("mine0002"))
			s.all(set("concurrency", "4"))
			s.woken(true)
			s.takes(2, claimBy("mine0003"))
			s.all(set("concurrency", ""))
			s.woken(true)
			s.takes(5, claimBy("mine0004"))
			s.all(popWake(), set("concurrency", "99"))
			s.woken(false)
		}},
		{"a limit that was lowered below what runs is reached from above, and its first slot wakes", func(s *scene) {
			s.enterMany(8)
			s.takes(4, claim{Lease: lease, N: 4, By: "mine0001"})
			s.all(set("concurrency", "2"), popWake())
			for i := range 2 {
				s.all(complete{Fence: fenceOf(jobN(i), 1, "mine0001")})
				s.woken(false)
				s.takes(0, claimBy("mine0002"))
			}
			s.all(complete{Fence: fenceOf(jobN(2), 1, "mine0001")})
			s.woken(true)
			s.takes(1, claimBy("mine0003"))
		}},
		{"only lanes at their limit wait: nothing that is set for the queue wakes anybody", func(s *scene) {
			s.all(tune{"a", "limit", 1})
			s.fill("a", 0, 3)
			s.takes(1, claimBy("mine0001"))
			s.all(popWake(), set("concurrency", "5"), set("paused", ""))
			s.woken(false)
			s.fill("b", 10, 1)
			s.all(popWake(), set("concurrency", "1"))
			s.woken(false)
			s.all(set("concurrency", "2"))
			s.woken(true)
		}},
		{"a rate that is set begins with one job, and the same rate again gives none", func(s *scene) {
			s.enterMany(50)
			s.all(rate(40, time.Hour))
			s.woken(true)
			s.takes(1, claimBy("mine0001"))
			for range 3 {
				s.all(rate(40, time.Hour))
				s.takes(0, claimBy("mine0002"))
			}
		}},
		{"a rate that is raised or cleared wakes a worker, which learns how long to wait", func(s *scene) {
			s.enterMany(9)
			s.all(rate(1, 24*time.Hour))
			s.takes(1, claimBy("mine0001"))
			s.all(popWake(), rate(1, time.Hour))
			s.woken(true)
			if got := s.do(claimBy("mine0002")); got.In <= 0 || got.In > millis(64*time.Minute) {
				failf("after %s\nthe wait is %v", s.story(), got.In)
			}
			s.pass(64 * time.Minute)
			s.takes(1, claimBy("mine0003"))
			s.all(set("rate_max", "", "rate_ms", ""))
			s.woken(true)
			s.takes(7, claimBy("mine0004"))
		}},
		{"a rate that is lowered lets the next job begin no later than by the old one", func(s *scene) {
			s.enterMany(9)
			s.all(rate(4, time.Hour))
			s.takes(1, claimBy("mine0001"))
			s.all(rate(1, time.Hour))
			s.takes(0, claimBy("mine0002"))
			s.pass(17 * time.Minute)
			s.takes(1, claimBy("mine0003"))
			s.pass(40 * time.Minute)
			s.takes(0, claimBy("mine0004"))
		}},
		{"rates that change all the time give no more than the highest of them", func(s *scene) {
			s.enterMany(40)
			taken := 0
			for range 12 {
				for _, most := range []int{1, 6, 2} {
					s.all(rate(most, time.Hour))
					taken += s.taken(claimBy("mine0001"))
				}
				s.pass(5 * time.Minute)
			}
			if taken > 6 {
				failf("after %s\n%d jobs in an hour", s.story(), taken)
			}
		}},
		{"a maximum length, the caps of the morgue and a crash budget are heard, and are taken away", func(s *scene) {
			s.all(set("max_len", "1"), enter(jobN(0)))
			s.says("EMQFULL", enter(jobN(1)))
			s.all(set("max_len", ""), enter(jobN(1)), set("crash_budget", "1"), claimBy("mine0001"))
			s.lapse(5)
			if n := len(s.m.members("dead")); n != 2 {
				failf("after %s\n%d are dead", s.story(), n)
			}
			s.all(set("dead_max", "1", "dead_ms", ms(24*time.Hour)))
			s.says("moved 1", expire{100})
			s.pass(25 * time.Hour)
			s.all(set("dead_max", "", "dead_ms", "", "crash_budget", ""))
			s.says("moved 0", expire{100})
			s.all(set("dead_ms", ms(24*time.Hour)))
			s.says("moved 1", expire{100})
		}},
		{"all limits at once: each cuts the claim, and the tightest one counts", func(s *scene) {
			s.all(tune{"a", "limit", 2}, set("concurrency", "4"), rate(100, time.Minute))
			s.fill("a", 0, 6)
			s.fill("b", 10, 6)
			s.takes(1, claimBy("mine0001"))
			s.pass(2 * time.Minute)
			s.takes(3, claimBy("mine0002")) // the concurrency
			if a := len(s.m.runningIn("a")); a != 2 {
				failf("after %s\n%d of lane a run", s.story(), a)
			}
			s.all(set("concurrency", "9"))
			s.pass(2 * time.Minute)
			s.takes(4, claimBy("mine0003")) // all that the lanes have for now
			s.all(popWake(), tune{"a", "limit", 3}, rate(1, time.Hour))
			s.pass(2 * time.Hour)
			s.takes(1, claimBy("mine0004"))
			s.takes(0, claimBy("mine0005"))
			s.all(popWake(), set("rate_max", "", "rate_ms", ""))
			s.woken(false) // the concurrency is reached
			s.all(set("concurrency", "10"))
			s.woken(false) // and so is the lane's limit
			s.all(tune{"a", "limit", 0})
			s.woken(true)
			s.takes(1, claimBy("mine0006"))
			s.all(set("concurrency", ""))
			s.takes(2, claimBy("mine0007"))
		}},
	}
}
