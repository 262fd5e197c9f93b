package scripts

import "time"

const uniqueKeyName = "mail.send:42"

func only(id string) enqueue {
	e := enter(id)
	e.Unique = uniqueKeyName
	return e
}

func onlyUntilStart(id string) enqueue {
	e := only(id)
	e.UntilStart = true
	return e
}

func onlyFor(id string, window time.Duration) enqueue {
	e := only(id)
	e.Window = window
	return e
}

// parked makes an enqueue a schedule.
func (e enqueue) parked() enqueue {
	e.Later, e.Delay = true, delay
	return e
}

// breakLock gives the unique key to a job that does not exist.
func breakLock(holder string) step {
	return byHand{"give the unique key to " + holder,
		func(s *target) []string { return []string{"SET", s.queue.keys.Unique(uniqueKeyName), holder} },
		func(m *model) { m.locks[uniqueKeyName] = modelLock{holder: holder} }}
}

func uniqueScenarios() []scenario {
	all := []scenario{
		{"a second job of a key is refused with the first one's id", func(s *scene) {
			s.says("enqueued", only(jobA))
			s.says("conflict "+jobA, only(jobB))
			s.says("conflict "+jobA, only(jobB).parked())
			s.all(claimBy("mine0001"))
			s.says("conflict "+jobA, only(jobB))
			s.all(retry{mine, delay, 5, "broken"})
			s.says("conflict "+jobA, only(jobB))
			s.promoteAll()
			s.says("conflict "+jobA, only(jobB))
		}},
		{"a scheduled job holds its key", func(s *scene) {
			s.says("enqueued", only(jobA).parked())
			s.says("conflict "+jobA, only(jobB))
		}},
		{"a duplicate id is found before its unique key is looked at", func(s *scene) {
			s.all(only(jobA))
			s.says("duplicate src00001", only(jobA))
			s.all(only(jobB), enter(jobC))
			s.says("duplicate src00001", only(jobC))
			s.says("conflict "+jobA, only(jobB))
		}},
		{"a wrong kind of id is refused before anything else", func(s *scene) {
			s.all(only(jobA))
			s.says("EMQKIND", only("USR0KHTOWnGLuA"))
			s.says("EMQKIND", only("").parked())
		}},
		{"a full queue takes no unique key", func(s *scene) {
			s.all(setMeta("max_len", "1"), enter(jobA))
			s.says("EMQFULL", only(jobB))
			s.says("EMQFULL", only(jobB).parked())
		}},
		{"a key held until the start is free at the first claim", func(s *scene) {
			s.says("enqueued", onlyUntilStart(jobA))
			s.says("conflict "+jobA, onlyUntilStart(jobB))
			s.all(claimBy("mine0001"))
			s.says("enqueued", onlyUntilStart(jobB))
			s.all(retry{mine, delay, 5, "broken"})
			s.promoteAll()
			s.all(claim{Lease: lease, N: 1, By: "other001"})
			s.says("conflict "+jobB, onlyUntilStart(jobC))
		}},
		{"a claim never frees the key of a newer holder", func(s *scene) {
			s.all(onlyUntilStart(jobA), breakLock(jobB), claimBy("mine0001"))
			s.all(complete{Fence: mine})
		}},
		{"a window outlives its job and ends by itself", func(s *scene) {
			s.says("enqueued", onlyFor(jobA, delay))
			s.says("conflict "+jobA, onlyFor(jobB, delay))
			s.all(claimBy("mine0001"), complete{Fence: mine})
			s.says("conflict "+jobA, onlyFor(jobB, delay))
			s.says("conflict "+jobA, only(jobB))
			s.pass(2 * delay)
			s.says("enqueued", onlyFor(jobB, delay))
		}},
		{"a window is not the job's to free", func(s *scene) {
			s.all(onlyFor(jobA, delay), claimBy("mine0001"), kill{mine, "poisoned"})
			s.says("conflict "+jobA, only(jobB))
			s.says("revived", reprocess{jobA})
			s.says("cancelled", cancel{jobA})
			s.says("conflict "+jobA, only(jobB))
		}},
		{"a holder whose row is gone loses its key", func(s *scene) {
			s.all(only(jobA), deleteRow(jobA))
			s.says("enqueued", only(jobB))
			s.says("conflict "+jobB, only(jobC))
		}},
		{"a holder whose row was overwritten loses its key", func(s *scene) {
			s.all(only(jobA), spoilRow(jobA))
			s.says("enqueued", only(jobB))
		}},
		{"a holder that names another key loses this one", func(s *scene) {
			s.all(enter(jobA), breakLock(jobA))
			s.says("enqueued", only(jobB).parked())
			s.says("conflict "+jobB, only(jobC))
		}},
		{"a vanished holder's key may be taken over for a window", func(s *scene) {
			s.all(breakLock(jobC))
			s.says("enqueued", onlyFor(jobB, delay))
		}},
		{"reprocess takes the key again", func(s *scene) {
			s.all(only(jobA), claimBy("mine0001"), kill{mine, "poisoned"})
			s.says("revived", reprocess{jobA})
			s.says("conflict "+jobA, only(jobB))
		}},
		{"reprocess refuses while another job holds the key", func(s *scene) {
			s.all(only(jobA), claimBy("mine0001"), kill{mine, "poisoned"}, only(jobB))
			s.says("EMQLOCK", reprocess{jobA})
			s.leaves(reprocess{jobA})
			s.all(cancel{jobB})
			s.says("revived", reprocess{jobA})
		}},
		{"reprocess takes the key of a vanished holder", func(s *scene) {
			s.all(only(jobA), claimBy("mine0001"), kill{mine, "poisoned"}, breakLock(jobC))
			s.says("revived", reprocess{jobA})
		}},
		{"reprocess of a job that had its key until the start takes none", func(s *scene) {
			s.all(onlyUntilStart(jobA), claimBy("mine0001"), kill{mine, "poisoned"}, onlyUntilStart(jobB))
			s.says("revived", reprocess{jobA})
		}},
		{"a cancelled job frees its key, waiting or scheduled", func(s *scene) {
			s.all(only(jobA), cancel{jobA})
			s.says("enqueued", only(jobB).parked())
			s.all(cancel{jobB})
			s.says("enqueued", only(jobC))
		}},
		{"reap frees the key of a job that it buries or ends, and of no other", func(s *scene) {
			s.all(only(jobA), claimBy("mine0001"))
			s.lapse(5)
			s.says("conflict "+jobA, only(jobB))
			s.all(claimBy("other001"))
			s.lapse(2)
			s.says("enqueued", only(jobB))
			s.all(claimBy("other002"), cancel{jobB})
			s.lapse(5)
			s.says("enqueued", only(jobC))
		}},
	}
	for _, v := range verbs(mine) {
		all = append(all,
			scenario{"a key is free after " + v.name + " only if the job has ended", func(s *scene) {
				s.all(only(jobA), claimBy("mine0001"))
				s.says(v.ok, v.step)
				want := "enqueued"
				if v.ok == "scheduled" || v.ok == "pending" {
					want = "conflict " + jobA
				}
				s.says(want, only(jobB))
				s.leaves(v.step)
			}},
			scenario{v.name + " never frees the key of a newer holder", func(s *scene) {
				s.all(only(jobA), claimBy("mine0001"), breakLock(jobB))
				s.says(v.ok, v.step)
			}},
			scenario{v.name + " of a cancelled job frees the key", func(s *scene) {
				s.all(only(jobA), claimBy("mine0001"), cancel{jobA})
				s.do(v.step)
				s.says("enqueued", only(jobB))
			}},
			scenario{v.name + " of a cancelled job never frees the key of a newer holder", func(s *scene) {
				s.all(only(jobA), claimBy("mine0001"), cancel{jobA}, breakLock(jobB))
				s.do(v.step)
			}},
		)
	}
	return all
}
