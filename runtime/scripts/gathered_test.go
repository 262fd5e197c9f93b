package scripts

// settled is a settle that can also be sent with others.
type settled interface {
	step
	one() Settle
}

func (c complete) one() Settle { return Completion(c.Fence, c.Retain, []byte(c.Result)) }
func (r retry) one() Settle    { return Failure(r.Fence, r.Delay, r.Limit, r.Reason) }
func (z snooze) one() Settle   { return Pause(z.Fence, z.Delay) }
func (r release) one() Settle  { return HandBack(r.Fence, r.Delay) }
func (k kill) one() Settle     { return Burial(k.Fence, k.Reason) }
func (d discard) one() Settle  { return Disposal(d.Fence) }

// gatheredScenarios: many settles in one call.
func gatheredScenarios() []scenario {
	first := func(n int) Fence { return fenceOf(jobN(n), 1, "mine0001") }
	take := func(s *scene, n int) {
		for i := range n {
			s.all(enter(jobN(i)))
		}
		s.all(claimBy("mine0001"))
	}
	return []scenario{
		{"completions of plain jobs", func(s *scene) {
			take(s, 5)
			s.together(complete{Fence: first(0)}, complete{Fence: first(1)}, complete{Fence: first(3)})
			s.together(complete{Fence: first(2)}, complete{Fence: first(4)})
		}},
		{"each verb beside completions", func(s *scene) {
			take(s, 9)
			s.together(complete{Fence: first(0)}, retry{first(1), delay, 3, "broken"}, complete{Fence: first(2)},
				snooze{first(3), delay}, release{first(4), 0}, kill{first(5), "poisoned"}, discard{first(6)},
				release{first(7), delay}, retry{first(8), delay, 1, "broken"})
		}},
		{"what is stale, gone or used changes nothing for the others", func(s *scene) {
			take(s, 4)
			s.all(complete{Fence: first(3)})
			s.together(complete{Fence: fenceOf(jobN(0), 1, "other001")}, complete{Fence: first(3)}, complete{Fence: first(1)},
				retry{fenceOf(jobN(0), 2, "mine0001"), delay, 3, "late"}, complete{Fence: fenceOf(jobN(2), 2, "mine0001")},
				complete{Fence: first(0)}, discard{fenceOf(jobN(2), 1, "other001")})
		}},
		{"one job twice in a call", func(s *scene) {
			take(s, 3)
			s.together(complete{Fence: first(0)}, complete{Fence: first(0)}, complete{Fence: first(1)}, retry{first(1), delay, 3, "late"},
				retry{first(2), delay, 3, "broken"}, complete{Fence: first(2)})
		}},
		{"completions that own more than a row", func(s *scene) {
			s.all(only(jobA), inLane(jobB, "a"), enter(jobC), enter(jobN(1)), claimBy("mine0001"))
			of := func(id string) Fence { return fenceOf(id, 1, "mine0001") }
			s.all(cancel{jobN(1)})
			s.together(complete{Fence: of(jobA)}, complete{Fence: of(jobB)}, complete{Fence: of(jobC), Retain: delay, Result: "42"}, complete{Fence: of(jobN(1))})
		}},
		{"a completion after the lease has lapsed", func(s *scene) {
			take(s, 3)
			s.lapse(5)
			s.together(complete{Fence: first(0)}, complete{Fence: first(1)})
		}},
		{"slots that are freed at the limit wake a worker", func(s *scene) {
			s.all(setMeta("concurrency", "2"))
			take(s, 4)
			s.all(popWake())
			s.together(complete{Fence: first(0)}, complete{Fence: first(1)})
		}},
		{"slots that are freed while nothing waits wake nobody", func(s *scene) {
			s.all(setMeta("concurrency", "2"))
			take(s, 2)
			s.all(popWake())
			s.together(complete{Fence: first(0)}, complete{Fence: first(1)})
		}},
		{"a caller without by", func(s *scene) {
			take(s, 2)
			s.together(complete{Fence: fenceOf(jobN(0), 1, "")}, retry{fenceOf(jobN(1), 1, ""), delay, 3, "broken"})
		}},
	}
}
