package scripts

import "time"

// woken and pumpWoken say whether a token lies there now; they take it.
func (s *scene) woken(want bool) {
	if s.m.wake != want {
		failf("after %s\na token for a worker lies there: %t, want %t", s.story(), s.m.wake, want)
	}
	s.all(popWake())
}

func (s *scene) pumpWoken(want bool) {
	if s.m.wakeUp != want {
		failf("after %s\na token for the pump lies there: %t, want %t", s.story(), s.m.wakeUp, want)
	}
	s.all(popPump())
}

func wakeScenarios() []scenario {
	return []scenario{
		{"one token is enough for many jobs", func(s *scene) {
			s.enterMany(3)
			s.all(wakeOne{}, wakeOne{})
			s.woken(true)
		}},
		{"a claim passes the token on only if more could be taken", func(s *scene) {
			s.enterMany(3)
			s.all(popWake(), claim{Lease: lease, N: 2, By: "mine0001"})
			s.woken(true)
			s.all(claim{Lease: lease, N: 2, By: "mine0002"})
			s.woken(false)
			s.all(claim{Lease: lease, N: 2, By: "mine0003"})
			s.woken(false)
		}},
		{"a claim at the concurrency limit passes no token on", func(s *scene) {
			s.enterMany(3)
			s.all(popWake(), setMeta("concurrency", "2"), claim{Lease: lease, N: 1, By: "mine0001"})
			s.woken(true)
			s.all(claim{Lease: lease, N: 1, By: "mine0002"})
			s.woken(false)
			s.all(claim{Lease: lease, N: 1, By: "mine0003"})
			s.woken(false)
		}},
		{"a claim at the rate's limit passes no token on", func(s *scene) {
			s.enterMany(3)
			s.all(popWake(), setMeta("rate_max", "1"), setMeta("rate_ms", "3600000"), claim{Lease: lease, N: 3, By: "mine0001"})
			s.woken(false)
		}},
		{"a slot that is freed at the limit wakes a worker", func(s *scene) {
			s.enterMany(4)
			s.all(setMeta("concurrency", "2"), claimBy("mine0001"), popWake())
			s.all(complete{Fence: fenceOf(jobN(0), 1, "mine0001")})
			s.woken(true)
			s.all(complete{Fence: fenceOf(jobN(1), 1, "mine0001")})
			s.woken(false)
		}},
		{"a slot that is freed wakes nobody while nothing waits", func(s *scene) {
			s.enterMany(2)
			s.all(setMeta("concurrency", "2"), claimBy("mine0001"), popWake())
			s.all(complete{Fence: fenceOf(jobN(0), 1, "mine0001")})
			s.woken(false)
		}},
		{"a released job wakes a worker at once, a parked one the pump", func(s *scene) {
			running(s)
			s.all(release{mine, 0})
			s.woken(true)
			s.pumpWoken(false)
			s.all(claimBy("other001"), release{fenceOf(jobA, 2, "other001"), delay})
			s.woken(false)
			s.pumpWoken(true)
		}},
		{"only the earliest scheduled job wakes the pump", func(s *scene) {
			s.all(later(jobB, delay))
			s.pumpWoken(true)
			s.all(later(jobA, delay2))
			s.pumpWoken(false)
			s.all(later(jobC, time.Hour))
			s.pumpWoken(true)
		}},
		{"promote wakes a worker if it moved a job", func(s *scene) {
			s.all(later(jobA, delay), promote{100})
			s.woken(false)
			s.promoteAll()
			s.woken(true)
			s.all(promote{100})
			s.woken(false)
		}},
		{"reap wakes a worker if it put a job back", func(s *scene) {
			running(s)
			s.lapse(5)
			s.woken(true)
			s.all(claimBy("other001"))
			s.woken(false)
			s.lapse(2)
			s.woken(false)
		}},
		{"reprocess wakes a worker", func(s *scene) {
			running(s)
			s.all(kill{mine, "poisoned"})
			s.woken(false)
			s.all(reprocess{jobA})
			s.woken(true)
		}},
		{"a process that leaves gives up its own pump only and wakes those who wait", func(s *scene) {
			s.all(pump{Tag: "process1", Limit: 100, Lease: lease})
			s.all(handover{"process2"})
			s.woken(true)
			s.pumpWoken(false)
			s.all(handover{"process1"})
			s.woken(true)
			s.pumpWoken(true)
			s.all(handover{"process1"}, pump{Tag: "process2", Limit: 100, Lease: lease})
		}},
		{"a nudge reaches one process alone and leaves nothing behind", func(s *scene) {
			s.all(nudge{"process1"}, nudge{"process2"}, nudge{"process1"})
			s.woken(false)
			s.all(handover{"process1"})
			s.pass(59 * time.Second)
			s.all(nudge{"process1"})
			s.pass(30 * time.Second)
			s.pass(time.Minute)
		}},
		{"a pump that beats no more is free after its time", func(s *scene) {
			s.all(pump{Tag: "process1", Limit: 100, Lease: lease})
			s.says("idle=false", claimBy("mine0001"))
			s.says("another pumps", pump{Tag: "process2", Limit: 100, Lease: lease})
			s.pass(4 * time.Second)
			s.says("idle=true", claimBy("mine0001"))
			s.says("pumped 0 0 0", pump{Tag: "process2", Limit: 100, Lease: lease})
		}},
	}
}
