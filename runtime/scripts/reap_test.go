package scripts

import (
	"fmt"
	"time"
)

func reapScenarios() []scenario {
	beat := reap{Budget: 5, Limit: 100, Lease: lease}
	return []scenario{
		{"a job is taken back as often as the crash budget lets it and then buried", func(s *scene) {
			s.all(enter(jobA))
			for n := 1; n <= 3; n++ {
				s.all(claimBy("mine0001"))
				s.lapse(3)
			}
			j := s.m.jobs[jobA]
			if j.state != "dead" || j.text["last_error"] != "lease lapsed 3 times" {
				failf("the job is %s: %s", j.state, j.text["last_error"])
			}
			s.says("revived", reprocess{jobA})
			s.all(claimBy("mine0001"))
			s.lapse(3)
			if s.m.jobs[jobA].state != "pending" {
				failf("a reprocessed job has no new budget")
			}
		}},
		{"a crash budget of nothing is no limit", func(s *scene) {
			s.all(enter(jobA))
			for range 8 {
				s.all(claimBy("mine0001"))
				s.lapse(0)
			}
		}},
		{"the queue's crash budget wins over the caller's", func(s *scene) {
			s.all(setMeta("crash_budget", "2"), enter(jobA), claimBy("mine0001"))
			s.lapse(1)
			s.all(claimBy("mine0001"))
			s.lapse(9)
			if s.m.jobs[jobA].state != "dead" {
				failf("the job is %s", s.m.jobs[jobA].state)
			}
		}},
		{"a beat of the pump that promotes much reaps and expires little, but never nothing", func(s *scene) {
			s.enterMany(24)
			for range 3 {
				s.all(claimBy("mine0001"))
			}
			for n := range 8 {
				s.says("completed", complete{Fence: fenceOf(jobN(n), 1, "mine0001"), Retain: delay})
			}
			for n := range 8 {
				s.all(later(jobN(100+n), delay))
			}
			s.pass(delay)
			s.all(beat) // the grace begins
			s.pass(lease/3 + time.Minute)
			full := pump{Tag: "process1", Budget: 5, Limit: 8, Lease: lease}
			s.says("pumped 8 1 1", full)
			s.says("pumped 0 4 4", full)
		}},
		{"a lapse costs no attempt", func(s *scene) {
			s.all(enter(jobA), claimBy("mine0001"))
			s.lapse(5)
			s.all(claimBy("other001"))
			s.says("scheduled", retry{fenceOf(jobA, 2, "other001"), delay, 2, "broken"})
			s.promoteAll()
			s.all(claimBy("other002"))
			s.says("dead", retry{fenceOf(jobA, 3, "other002"), delay, 2, "broken"})
		}},
		{"a late settle after a lapse counts the attempt after all", func(s *scene) {
			s.all(enter(jobA), claimBy("mine0001"))
			s.lapse(5)
			s.says("scheduled", retry{mine, delay, 2, "broken"})
			s.promoteAll()
			s.all(claimBy("other001"))
			s.says("dead", retry{fenceOf(jobA, 2, "other001"), delay, 2, "broken"})
		}},
		{"the row's own maximum wins over the worker's", func(s *scene) {
			own := enter(jobA)
			own.Fields = append(own.Fields, "max", "1", "v", "3", "headers", `{"trace":"abc"}`)
			s.all(own, claimBy("mine0001"))
			s.says("dead", retry{mine, delay, 25, "broken"})
		}},
		{"a first beat after a silence reaps nothing, and the living extend meanwhile", func(s *scene) {
			s.all(enter(jobA), enter(jobB), claimBy("mine0001"))
			s.pass(3 * lease)
			s.says("moved 0", beat)
			s.says("moved 0", beat)
			s.all(extend{lease, []Fence{mine}})
			s.pass(lease/3 + time.Minute)
			s.says("moved 1", beat)
			if s.m.jobs[jobA].lapses != 0 || s.m.jobs[jobB].lapses != 1 {
				failf("after %s\nthe living lost a lease", s.story())
			}
		}},
		{"the first extend after a silence gives the others the same grace", func(s *scene) {
			s.all(enter(jobA), enter(jobB), claimBy("mine0001"), extend{lease, []Fence{mine}})
			s.pass(3 * lease)
			s.says("1", extend{lease, []Fence{mine}})
			s.says("moved 0", beat)
			s.says("1", extend{lease, []Fence{fenceOf(jobB, 1, "mine0001")}})
			s.pass(lease/3 + time.Minute)
			s.says("moved 0", beat)
		}},
		{"while somebody beats there is no grace", func(s *scene) {
			s.all(enter(jobA), claimBy("mine0001"), beat)
			for range 3 {
				s.pass(lease/3 + time.Minute)
				s.all(beat)
			}
			if s.m.jobs[jobA].lapses != 1 {
				failf("after %s\nthe lease was not reaped in time", s.story())
			}
		}},
		{"a grace that the clock has left behind is no grace", func(s *scene) {
			s.all(enter(jobA), claimBy("mine0001"), beat)
			s.pass(-100 * lease)
			s.all(beat)
			s.pass(lease / 3)
			s.all(beat)
		}},
		{"a cancelled job that lapses has ended", func(s *scene) {
			running(s)
			s.says("cancelling", cancel{jobA})
			s.lapse(1)
			if s.m.counts["cancelled"] != 1 || s.m.counts["failed"] != 0 {
				failf("the counts are %v", s.m.counts)
			}
		}},
		{"a heartbeat keeps its job from the reaper and brings none back", func(s *scene) {
			running(s)
			for range 6 {
				s.pass(lease / 3)
				s.says("1", extend{lease, []Fence{mine}})
				s.says("moved 0", beat)
			}
			for range 3 {
				s.pass(lease/3 + time.Minute)
				s.all(beat)
			}
			s.leavesJob(jobA, extend{lease, []Fence{mine}})
		}},
		{"many leases lapse at once under a limit", func(s *scene) {
			s.enterMany(6)
			s.all(setMeta("concurrency", "4"), claimBy("mine0001"), popWake(), cancel{jobN(1)})
			s.lapse(5)
			s.woken(true)
		}},
	}
}

// leavesJob takes a step that may not touch a job.
func (s *scene) leavesJob(id string, st step) {
	before := fmt.Sprint(*s.m.jobs[id])
	s.do(st)
	if after := fmt.Sprint(*s.m.jobs[id]); after != before {
		failf("after %s\nthe job was %s and is %s", s.story(), before, after)
	}
}
