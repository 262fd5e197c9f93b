package scripts

import (
	"fmt"
	"time"
)

// removals says what remove answers in each of the states.
func removals(state string) string {
	switch others[state].cancel {
	case "cancelled", "EMQSTATE": // it waits, or has ended and is kept
		return "removed"
	case "cancelling":
		return "EMQLOCK"
	}
	return "EMQGONE"
}

// morgue buries n jobs of a kind, one at a time, each in its own millisecond.
func (s *scene) morgue(kind string, from, n int, of func(id string) enqueue) {
	for i := range n {
		e := of(jobN(from + i))
		e.Fields = append([]string{"kind", kind}, e.Fields[2:]...)
		s.all(e, claimBy("mine0001"), kill{fenceOf(e.ID, 1, "mine0001"), "poisoned"})
	}
}

func (s *scene) empty(what string, names ...string) {
	for _, name := range names {
		if _, there := s.last[s.key(name)]; there {
			failf("after %s\n%s: %s is still there", s.story(), what, name)
		}
	}
}

func bulkScenarios() []scenario {
	var all []scenario
	for _, st := range states {
		all = append(all, scenario{"remove when " + st.name, func(s *scene) {
			st.reach(s)
			want := removals(st.name)
			s.says(want, remove{jobA})
			if want == "removed" {
				want = "EMQGONE"
			}
			s.leaves(remove{jobA})
			s.says(want, remove{jobA})
		}})
		all = append(all, scenario{"drain, of every list, when " + st.name, func(s *scene) {
			st.reach(s)
			for _, list := range []string{"pending", "lanes", "schedule", "dead", "completed"} {
				s.all(drain{List: list, Limit: 100})
			}
			s.leaves(drain{List: "pending", Limit: 100})
			s.all(setMeta("paused", "1"), drain{List: "active", Limit: 100, Guard: PausedOnly})
			s.empty("drained", "pending", "schedule", "dead", "dead:at", "completed", "active")
		}})
		all = append(all, scenario{"an audit when " + st.name, func(s *scene) {
			st.reach(s)
			s.leaves(audit{Look: true})
			s.all(audit{})
			s.leaves(audit{})
		}})
		all = append(all, scenario{"all dead letters get a new life when " + st.name, func(s *scene) {
			st.reach(s)
			s.all(revive{Look: 2})
			s.leaves(revive{Look: 2})
		}})
	}
	for _, lane := range []string{"", "a"} {
		of := func(id string) enqueue { return inLane(id, lane) }
		in := func(name string, run func(s *scene)) {
			if lane != "" {
				name += ", in a lane"
			}
			all = append(all, scenario{name, run})
		}
		in("remove takes a job out of the middle, and its key is free", func(s *scene) {
			e := of(jobB)
			e.Unique = uniqueKeyName
			s.all(of(jobA), e, of(jobC))
			s.says("removed", remove{jobB})
			e.ID = jobN(1)
			s.says("enqueued", e)
			s.all(remove{jobA}, remove{jobC}, remove{jobN(1)})
			s.empty("all removed", "pending", "g:a:pending", "ring", "de:"+uniqueKeyName)
		})
		in("a drained list is empty and its keys are free", func(s *scene) {
			for i := range 7 {
				e := of(jobN(i))
				e.Unique = fmt.Sprint(uniqueKeyName, i)
				s.all(e)
			}
			list := "pending"
			if lane != "" {
				list = "lanes"
			}
			s.all(deleteRow(jobN(3)))
			s.says("removed 3 dropped 0 more true", drain{List: list, Limit: 3})
			s.says("removed 2 dropped 1 more true", drain{List: list, Limit: 3})
			s.says("removed 1 dropped 0 more false", drain{List: list, Limit: 3})
			s.says("removed 0 dropped 0 more false", drain{List: list, Limit: 3})
			s.empty("drained", "pending", "g:a:pending", "ring", "de:"+uniqueKeyName+"0")
		})
		in("dead letters of a kind live again, the oldest deaths first, and the others stay", func(s *scene) {
			s.morgue("one", 0, 5, of)
			s.morgue("two", 10, 2, of)
			s.morgue("one", 20, 2, of)
			s.all(deleteRow(jobN(2)))
			s.says("revived 6 refused 0 other 2 dropped 1", revive{Kind: "one", Look: 2})
			s.says("revived 0 refused 0 other 2 dropped 0", revive{Kind: "one", Look: 2})
			s.says("revived 2 refused 0 other 0 dropped 0", revive{Look: 100, Up: 1})
			s.empty("all revived", "dead", "dead:at")
		})
		in("dead letters of one unique key: the first gets it, the others stay and are counted", func(s *scene) {
			unique := func(id string) enqueue {
				e := of(id)
				e.Unique = uniqueKeyName
				return e
			}
			s.morgue("one", 0, 3, unique)
			s.morgue("one", 10, 1, of)
			s.says("revived 2 refused 2 other 0 dropped 0", revive{Look: 1})
			s.says("revived 0 refused 2 other 0 dropped 0", revive{Look: 2})
			s.all(remove{jobN(0)})
			s.says("revived 1 refused 1 other 0 dropped 0", revive{Look: 2})
		})
		in("a job that active has lost gets a lease, which its holder renews", func(s *scene) {
			s.all(of(jobA), claimBy("mine0001"), unlist(jobA, "active"))
			s.says("0", extend{lease, []Fence{mine}})
			s.leaves(audit{Look: true})
			s.all(audit{})
			s.leaves(audit{})
			s.says("1", extend{lease, []Fence{mine}})
			s.says("completed", complete{Fence: mine})
		})
		in("a job that active has lost and whose holder is gone is taken back when its lease ends", func(s *scene) {
			s.all(of(jobA), claimBy("mine0001"), unlist(jobA, "active"), audit{})
			s.lapse(5)
			if j := s.m.jobs[jobA]; j.state != "pending" || j.lapses != 1 || j.forgiven != 1 {
				failf("after %s\nthe job is %+v", s.story(), j)
			}
			s.all(claimBy("other002"))
			s.says("EMQSTALE", complete{Fence: mine})
		})
		in("an audit frees the key of a holder that is gone, and of no other", func(s *scene) {
			e := of(jobA)
			e.Unique = uniqueKeyName
			f := of(jobB)
			f.Unique = uniqueKeyName + "x"
			g := onlyFor(jobC, 3*time.Hour)
			g.Unique, g.Lane = uniqueKeyName+"y", lane
			s.all(e, f, g, deleteRow(jobA), deleteRow(jobC))
			s.leaves(audit{Look: true})
			s.all(audit{})
			s.empty("audited", "de:"+uniqueKeyName)
			if _, held := s.last[s.key("de:"+uniqueKeyName+"x")]; !held {
				failf("after %s\na living holder has lost its key", s.story())
			}
		})
	}
	return append(append(all, guardScenarios()...), reassignScenarios()...)
}

func guardScenarios() []scenario {
	return []scenario{
		{"a drain of an unknown lane changes nothing", func(s *scene) {
			s.fill("b", 0, 2)
			s.says("removed 0 dropped 0 more false", drain{List: "lane", Lane: "a", Limit: 100})
			s.leaves(drain{List: "lane", Lane: "a", Limit: 100})
		}},
		{"a drain leaves a job whose id is listed where it does not wait", func(s *scene) {
			s.all(later(jobA, delay), deleteRow(jobA), enter(jobA), inLane(jobB, "a"), deleteRow(jobB), inLane(jobB, "b"))
			s.says("removed 0 dropped 1 more false", drain{List: "schedule", Limit: 100})
			s.says("removed 0 dropped 1 more false", drain{List: "lane", Lane: "a", Limit: 100})
			s.serves("-b", 2)
		}},
		{"an audit drops the ids of jobs that wait elsewhere, and no job", func(s *scene) {
			s.all(later(jobA, delay), deleteRow(jobA), enter(jobA), inLane(jobB, "a"), deleteRow(jobB), inLane(jobB, "b"))
			s.leaves(audit{Look: true})
			s.all(audit{})
			s.orphans(2)
			s.serves("-b", 2)
		}},
		{"a dry run counts what active and its lane have lost as the audit does", func(s *scene) {
			again := inLane(jobA, "a").parked()
			s.all(inLane(jobA, "a"), claimBy("mine0001"), deleteRow(jobA), again)
			dry := s.leaves(audit{Look: true})
			s.says(dry.Says, audit{})
			s.orphans(1)
		}},
		{"an audit lists a waiting job again and wakes a worker", func(s *scene) {
			s.all(enter(jobA), popWake(), unlist(jobA, "pending"), audit{})
			s.woken(true)
			s.serves("-", 1)
		}},
		{"a guard keeps everything of a queue that is not paused", func(s *scene) {
			s.all(enter(jobA), later(jobB, delay))
			for _, list := range []string{"pending", "lanes", "schedule", "dead", "completed", "active"} {
				for _, guard := range []Guard{Paused, PausedOnly} {
					s.says("EMQSTATE", drain{List: list, Limit: 100, Guard: guard})
				}
			}
		}},
		{"a guard keeps what runs unless it is forced", func(s *scene) {
			s.all(inLane(jobA, "a"), tune{"a", "limit", 1}, inLane(jobB, "a"), claimBy("mine0001"), setMeta("paused", "1"))
			s.says("EMQSTATE", drain{List: "active", Limit: 100, Guard: Paused})
			s.says("removed 1 dropped 0 more false", drain{List: "active", Limit: 100, Guard: PausedOnly})
			s.says("EMQGONE", complete{Fence: mine})
			s.empty("drained", "active", "g:a:active")
		}},
		{"a slot that a drain frees at the limit wakes a worker", func(s *scene) {
			s.all(setMeta("concurrency", "1"), enter(jobA), enter(jobB), claimBy("mine0001"), popWake(), setMeta("paused", "1"))
			s.all(drain{List: "active", Limit: 1, Guard: PausedOnly})
			s.woken(true)
		}},
	}
}

func reassignScenarios() []scenario {
	return []scenario{
		{"a lane moves to another in the order of its ids, with what is scheduled and dead", func(s *scene) {
			s.morgue("one", 30, 1, func(id string) enqueue { return inLane(id, "a") })
			s.fill("a", 0, 5)
			s.fill("b", 10, 2)
			e := later(jobN(20), delay)
			e.Lane = "a"
			s.all(e, deleteRow(jobN(1)))
			s.says("known true moved 6 dropped 1", reassign{"a", "b", 2})
			s.says("known false moved 0 dropped 0", reassign{"a", "b", 2})
			s.serves("bbbbbb", 1)
		}},
		{"a lane moves out of lanes", func(s *scene) {
			s.fill("a", 0, 3)
			s.all(popWake())
			s.says("known true moved 3 dropped 0", reassign{"a", "", 2})
			s.woken(true)
			s.serves("---", 2)
		}},
		{"the limits of both lanes hold, and what runs stays", func(s *scene) {
			s.fill("a", 0, 4)
			s.fill("b", 10, 1)
			s.all(tune{"a", "limit", 2}, tune{"b", "limit", 1}, claim{Lease: lease, N: 3, By: "mine0001"})
			s.says("known true moved 2 dropped 0", reassign{"a", "b", 100})
			s.serves("", 5)
			s.says("scheduled", retry{fenceOf(jobN(0), 1, "mine0001"), delay, 5, "broken"})
			if lane := s.m.jobs[jobN(0)].lane(); lane != "a" {
				failf("after %s\nit is in lane %s", s.story(), lane)
			}
			s.says("completed", complete{Fence: fenceOf(jobN(10), 1, "mine0001")})
			s.serves("b", 5)
		}},
		{"a lane is known by its control, by what runs and by what is scheduled; another is not", func(s *scene) {
			s.says("known false moved 0 dropped 0", reassign{"a", "b", 100})
			s.all(tune{"a", "pause", 0})
			s.says("known true moved 0 dropped 0", reassign{"a", "b", 100})
			s.all(tune{"a", "resume", 0}, inLane(jobA, "a"), claimBy("mine0001"))
			s.says("known true moved 0 dropped 0", reassign{"a", "b", 100})
			s.says("scheduled", retry{mine, delay, 5, "broken"})
			s.says("known true moved 1 dropped 0", reassign{"a", "b", 100})
			s.says("known false moved 0 dropped 0", reassign{"a", "b", 100})
		}},
		{"a paused lane receives and stays paused", func(s *scene) {
			s.fill("a", 0, 2)
			s.all(tune{"b", "pause", 0})
			s.says("known true moved 2 dropped 0", reassign{"a", "b", 100})
			s.serves("", 2)
			s.all(popWake(), tune{"b", "resume", 0})
			s.woken(true)
			s.serves("bb", 2)
		}},
		{"one lane's lapsed leases are taken back, after the grace, and no other lane's", func(s *scene) {
			s.fill("a", 0, 2)
			s.fill("b", 10, 2)
			s.fill("a", 20, 1)
			s.all(tune{"a", "limit", 2}, claim{Lease: lease, N: 4, By: "mine0001"}, extend{lease, nil})
			s.pass(lease + time.Minute)
			s.says("grace", reapLane{"a", 5, lease})
			s.pass(lease/3 + time.Minute)
			s.says("1", extend{lease, []Fence{fenceOf(jobN(1), 1, "mine0001")}})
			s.says("taken back 1", reapLane{"a", 5, lease})
			s.says("taken back 0", reapLane{"a", 5, lease})
			if j := s.m.jobs[jobN(10)]; j.state != "active" {
				failf("after %s\nthe other lane's job is %s", s.story(), j.state)
			}
			s.says("completed", complete{Fence: fenceOf(jobN(0), 1, "mine0001")})
		}},
		{"reaping a lane keeps to the crash budget and ends what was cancelled", func(s *scene) {
			s.fill("a", 0, 2)
			s.all(claim{Lease: lease, N: 2, By: "mine0001"}, cancel{jobN(0)}, extend{lease, nil}, setMeta("crash_budget", "1"))
			s.pass(lease + time.Minute)
			s.all(reapLane{"a", 5, lease})
			s.pass(lease/3 + time.Minute)
			s.says("taken back 2", reapLane{"a", 5, lease})
			s.empty("reaped", "active", "g:a:active")
		}},
	}
}
