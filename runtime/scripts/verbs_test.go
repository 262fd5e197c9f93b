package scripts

// others says what the transitions that are no settles answer in each of the states.
var others = map[string]struct{ extend, cancel, reprocess, enqueue string }{
	"there is no such job":                                       {"0", "EMQGONE", "EMQGONE", "enqueued"},
	"the job waits and was never claimed":                        {"0", "cancelled", "EMQSTATE", "duplicate src00001"},
	"the job is scheduled and was never claimed":                 {"0", "cancelled", "EMQSTATE", "duplicate src00001"},
	"the job runs under this claim":                              {"1", "cancelling", "EMQSTATE", "duplicate src00001"},
	"the job runs under this claim beside another job":           {"1", "cancelling", "EMQSTATE", "duplicate src00001"},
	"the job runs under the same attempts of another claim":      {"0", "cancelling", "EMQSTATE", "duplicate src00001"},
	"the job runs under a later claim":                           {"0", "cancelling", "EMQSTATE", "duplicate src00001"},
	"the job runs under a later claim with the same mark":        {"0", "cancelling", "EMQSTATE", "duplicate src00001"},
	"the lease lapsed but nobody has reaped it":                  {"1", "cancelling", "EMQSTATE", "duplicate src00001"},
	"reap took the lease and nobody has claimed since":           {"0", "cancelled", "EMQSTATE", "duplicate src00001"},
	"reap took the lease and another claim has the job":          {"0", "cancelling", "EMQSTATE", "duplicate src00001"},
	"reap took a second lease and nobody has claimed since":      {"0", "cancelled", "EMQSTATE", "duplicate src00001"},
	"reap took the lease and this claim has settled already":     {"0", "cancelled", "EMQSTATE", "duplicate src00001"},
	"reap buried the job":                                        {"0", "EMQSTATE", "revived", "duplicate src00001"},
	"this claim has retried":                                     {"0", "cancelled", "EMQSTATE", "duplicate src00001"},
	"this claim has retried and the job waits again":             {"0", "cancelled", "EMQSTATE", "duplicate src00001"},
	"this claim has snoozed":                                     {"0", "cancelled", "EMQSTATE", "duplicate src00001"},
	"this claim has released":                                    {"0", "cancelled", "EMQSTATE", "duplicate src00001"},
	"this claim has killed":                                      {"0", "EMQSTATE", "revived", "duplicate src00001"},
	"this claim has killed and the job lives again":              {"0", "cancelled", "EMQSTATE", "duplicate src00001"},
	"this claim has completed and the row is kept":               {"0", "EMQSTATE", "EMQSTATE", "duplicate src00001"},
	"this claim has completed":                                   {"0", "EMQGONE", "EMQGONE", "enqueued"},
	"the job was cancelled while it ran":                         {"2", "cancelling", "EMQSTATE", "duplicate src00001"},
	"the job was cancelled while it waited after a lapse":        {"0", "EMQGONE", "EMQGONE", "enqueued"},
	"the job was cancelled while it ran and reap took the lease": {"0", "EMQGONE", "EMQGONE", "enqueued"},
	"somebody took the job out of the active set":                {"0", "cancelling", "EMQSTATE", "duplicate src00001"},
	"somebody deleted the row":                                   {"0", "EMQGONE", "EMQGONE", "enqueued"},
	"somebody overwrote the row with another type":               {"0", "EMQGONE", "EMQGONE", "duplicate"},
}

// verbScenarios: every transition that is no settle in every state, and once more at once.
func verbScenarios() []scenario {
	var all []scenario
	for _, st := range states {
		want, known := others[st.name]
		in := func(name string, run func(s *scene)) {
			all = append(all, scenario{name + " when " + st.name, func(s *scene) {
				if !known {
					failf("no verdicts for this state")
				}
				st.reach(s)
				run(s)
			}})
		}
		in("extend", func(s *scene) {
			s.says(want.extend, extend{lease, []Fence{mine}})
			s.says(want.extend, extend{lease, []Fence{mine}})
		})
		in("extend under no mark, among others", func(s *scene) {
			s.all(enter(jobC))
			s.do(extend{lease, []Fence{fenceOf(jobC, 0, "mine0001"), fenceOf(jobA, 1, ""), fenceOf(jobB, 1, "mine0001")}})
		})
		in("cancel", func(s *scene) {
			s.says(want.cancel, cancel{jobA})
			again := want.cancel
			if again == "cancelled" {
				again = "EMQGONE"
			}
			s.leaves(cancel{jobA})
			s.says(again, cancel{jobA})
		})
		in("reprocess", func(s *scene) {
			s.says(want.reprocess, reprocess{jobA})
			again := want.reprocess
			if again == "revived" {
				again = "EMQSTATE"
			}
			s.leaves(reprocess{jobA})
			s.says(again, reprocess{jobA})
		})
		in("enqueue of the same id", func(s *scene) {
			s.says(want.enqueue, enter(jobA))
			s.leaves(enter(jobA))
			other := enter(jobA)
			other.Src, other.Payload = "src00002", []byte("other")
			s.leaves(other)
		})
		in("schedule of the same id", func(s *scene) {
			s.says(want.enqueue, later(jobA, delay))
			s.leaves(later(jobA, delay2))
			other := later(jobA, delay)
			other.Src, other.Payload = "src00002", []byte("other")
			s.leaves(other)
		})
		in("claim", func(s *scene) {
			s.all(claimBy("other002"))
			s.leaves(claimBy("other003"))
		})
		in("promote", func(s *scene) {
			s.all(promote{100})
			s.promoteAll()
			s.leaves(promote{100})
		})
		in("reap", func(s *scene) {
			s.reapAll(5)
			s.lapse(5)
			s.lapse(2)
		})
		in("expire", func(s *scene) {
			s.all(expire{100})
			s.pass(2 * delay2)
			s.all(expire{100})
			s.leaves(expire{100})
		})
		in("a pump's beat", func(s *scene) {
			beat := pump{Tag: "process1", Budget: 3, Limit: 100, Lease: lease}
			s.all(beat, beat)
			s.pass(2 * delay2)
			s.all(beat, beat)
			s.pass(lease)
			s.all(beat)
			s.says("another pumps", pump{Tag: "process2", Budget: 3, Limit: 100, Lease: lease})
		})
	}
	return all
}
