package scripts

import "time"

// wreck is what somebody does to a row by hand.
var wrecks = []struct {
	name string
	step func(id string) step
}{
	{"deleted", deleteRow},
	{"overwritten with another type", spoilRow},
}

func (s *scene) orphans(want int) {
	if got := s.m.counts["orphan"]; got != want {
		failf("after %s\n%d orphans are counted, want %d", s.story(), got, want)
	}
}

func orphanScenarios() []scenario {
	var all []scenario
	for _, w := range wrecks {
		all = append(all,
			scenario{"a claim drops the id of a row that was " + w.name + " and takes the others", func(s *scene) {
				s.enterMany(4)
				s.all(w.step(jobN(0)), w.step(jobN(2)))
				s.takes(2, claim{Lease: lease, N: 2, By: "mine0001"})
				s.orphans(2)
			}},
			scenario{"a claim that finds only rows that were " + w.name + " takes nothing and makes no ghost", func(s *scene) {
				s.enterMany(2)
				s.all(popWake(), w.step(jobN(0)), w.step(jobN(1)))
				s.takes(0, claimBy("mine0001"))
				s.orphans(2)
				s.woken(false)
			}},
			scenario{"promote drops the id of a row that was " + w.name + " and moves the others", func(s *scene) {
				s.all(later(jobA, delay), later(jobB, delay), later(jobC, delay), w.step(jobB))
				s.pass(delay2)
				s.says("moved 2", promote{100})
				s.orphans(1)
			}},
			scenario{"reap drops the id of a row that was " + w.name + " and takes the others back", func(s *scene) {
				s.all(enter(jobA), enter(jobB), enter(jobC), claimBy("mine0001"), w.step(jobB))
				s.lapse(5)
				s.orphans(1)
				if s.m.jobs[jobA].state != "pending" || s.m.jobs[jobC].state != "pending" {
					failf("after %s\nthe others are not back", s.story())
				}
			}},
			scenario{"extend reports a row that was " + w.name + " as lost and extends the others", func(s *scene) {
				s.all(enter(jobA), enter(jobB), claimBy("mine0001"), w.step(jobB))
				s.says("0 1", extend{lease, []Fence{fenceOf(jobB, 1, "mine0001"), mine}})
			}},
			scenario{"the caps of the morgue forget a row that was " + w.name, func(s *scene) {
				running(s)
				s.all(kill{mine, "poisoned"}, w.step(jobA), setMeta("dead_max", "0"))
				s.says("moved 1", expire{100})
			}},
			scenario{"a row that was " + w.name + " in the morgue cannot be reprocessed or cancelled", func(s *scene) {
				running(s)
				s.all(kill{mine, "poisoned"}, w.step(jobA))
				s.says("EMQGONE", reprocess{jobA})
				s.says("EMQGONE", cancel{jobA})
			}},
			scenario{"retention forgets a row that was " + w.name, func(s *scene) {
				running(s)
				s.all(complete{Fence: mine, Retain: delay}, w.step(jobA))
				s.pass(delay2)
				s.says("moved 1", expire{100})
			}},
		)
	}
	return append(all,
		scenario{"a stray member of pending never starts a job that waits for its time or is dead", func(s *scene) {
			s.all(later(jobA, delay), enter(jobB), claim{Lease: lease, N: 1, By: "mine0001"}, kill{fenceOf(jobB, 1, "mine0001"), "poisoned"})
			s.all(stray("pending", jobA, 0), stray("pending", jobB, 0))
			s.takes(0, claimBy("mine0002"))
			s.orphans(2)
		}},
		scenario{"a stray member of the schedule never moves a job that runs or is dead", func(s *scene) {
			running(s)
			s.all(stray("schedule", jobA, 1))
			s.says("moved 0", promote{100})
			s.all(kill{mine, "poisoned"}, stray("schedule", jobA, 1))
			s.says("moved 0", promote{100})
			s.orphans(2)
		}},
		scenario{"a stray member of the active set never takes back a job that does not run", func(s *scene) {
			s.all(enter(jobA), later(jobB, delay), stray("active", jobA, 1), stray("active", jobB, 1))
			s.reapAll(1)
			s.orphans(2)
		}},
		scenario{"a stray member of the completed set never deletes a job that has not ended", func(s *scene) {
			s.all(enter(jobA), stray("completed", jobA, 1))
			s.says("moved 1", expire{100})
			s.takes(1, claimBy("mine0001"))
		}},
		scenario{"a stray member of the morgue never deletes a job that is not dead", func(s *scene) {
			s.all(enter(jobA), stray("dead:at", jobA, 1))
			s.says("moved 1", expire{100})
			s.all(stray("dead:at", jobA, 1), setMeta("dead_ms", "9000000000000"), setMeta("dead_max", "0"))
			s.says("moved 1", expire{100})
			s.takes(1, claimBy("mine0001"))
		}},
		scenario{"an active set that was deleted loses no settle", func(s *scene) {
			s.all(enter(jobA), enter(jobB), claimBy("mine0001"), unlist(jobA, "active"), unlist(jobB, "active"))
			s.says("0 0", extend{lease, []Fence{mine, fenceOf(jobB, 1, "mine0001")}})
			s.says("completed", complete{Fence: mine})
			s.says("pending", release{fenceOf(jobB, 1, "mine0001"), 0})
			s.takes(1, claimBy("other001"))
		}},
		scenario{"a row without attempts is claimed as if it were new", func(s *scene) {
			s.all(enter(jobA))
			s.must("HDEL", s.queue.keys.Row(jobA), "attempts")
			s.takes(1, claimBy("mine0001"))
		}},
		scenario{"more orphans than one claim looks at do not hide the jobs behind them", func(s *scene) {
			var zadd []string
			for i := range 1100 {
				zadd = append(zadd, "0", jobN(i))
			}
			s.all(byHand{"1100 ids without rows",
				func(s *target) []string { return append([]string{"ZADD", s.key("pending")}, zadd...) },
				func(m *model) {
					m.ghosts["pending"] = map[string]stamp{}
					for i := range 1100 {
						m.ghosts["pending"][jobN(i)] = 0
					}
				}}, enter(jobN(2000)))
			for range 2 {
				if got := s.do(claim{Lease: lease, N: 300, By: "mine0001"}); got.In != 0 {
					failf("after a claim of nothing but orphans the wait is %v, want none", got.In)
				}
			}
			s.takes(1, claim{Lease: lease, N: 300, By: "mine0001"})
		}},
	)
}

// stray lists an id where its state does not belong.
func stray(set, id string, score stamp) step {
	return byHand{"list " + id + " in " + set,
		func(s *target) []string {
			return []string{"ZADD", s.key(set), ms(time.Duration(score) * time.Millisecond), id}
		},
		func(m *model) {
			if m.ghosts[set] == nil {
				m.ghosts[set] = map[string]stamp{}
			}
			m.ghosts[set][id] = score
		}}
}
