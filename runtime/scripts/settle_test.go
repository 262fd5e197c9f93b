package scripts

import (
	"strings"
	"time"
)

// The jobs, claims and times of the scenarios. The times are so far apart that the run of a test on
// a real clock never makes one pass for another.
const (
	jobA = "JOB0KHTOWnGLuA"
	jobB = "JOB0KHTOWnGLuB"
	jobC = "JOB0KHTOWnGLuC"

	lease  = 10 * time.Minute
	delay  = 3 * time.Hour
	delay2 = 7 * time.Hour
)

func fenceOf(id string, attempts int64, by string) Fence { return Fence{id, attempts, by} }

// mine is the fence that the scenarios settle under: the first claim of job A.
var mine = fenceOf(jobA, 1, "mine0001")

func enter(id string) enqueue {
	return enqueue{ID: id, Payload: []byte(`{"n":1}`), Src: "src00001", Fields: []string{"kind", "mail.send"}}
}

func claimBy(by string) claim { return claim{Lease: lease, N: 10, By: by} }

// reapAll is the second beat of a reaper that has been alive for long: the first one after a silence
// only starts the grace.
func (s *scene) reapAll(budget int) {
	s.do(reap{Budget: budget, Limit: 100, Lease: lease})
	s.pass(lease/3 + time.Minute)
	s.do(reap{Budget: budget, Limit: 100, Lease: lease})
}

func (s *scene) lapse(budget int) {
	s.pass(2 * lease)
	s.reapAll(budget)
}

func (s *scene) promoteAll() {
	s.pass(delay2)
	s.do(promote{100})
}

// verb is one way to settle a claim.
type verb struct {
	name string
	step step
	ok   string // the verdict for the claim's holder
	then string // the state of the job after that; empty: it is gone
}

func verbs(f Fence) []verb {
	return []verb{
		{"complete", complete{Fence: f}, "completed", ""},
		{"complete with retention", complete{Fence: f, Retain: delay, Result: "42"}, "completed", "completed"},
		{"retry", retry{f, delay, 5, "broken"}, "scheduled", "scheduled"},
		{"the last retry", retry{f, delay, 1, "broken"}, "dead", "dead"},
		{"snooze", snooze{f, delay}, "scheduled", "scheduled"},
		{"release", release{f, 0}, "pending", "pending"},
		{"release with a delay", release{f, delay}, "scheduled", "scheduled"},
		{"kill", kill{f, "poisoned"}, "dead", "dead"},
		{"discard", discard{f}, "discarded", ""},
	}
}

// says is what the verb answers where the table of states says "ok", "cancelled" or another word.
func (v verb) says(word string) string {
	completes := strings.HasPrefix(v.name, "complete")
	switch {
	case word == "ok", word == "cancelled" && completes:
		return v.ok
	case word == "gone":
		return "EMQGONE"
	case word == "stale":
		return "EMQSTALE"
	case strings.HasPrefix(word, "again") && completes:
		return "again"
	}
	return word
}

// states are all the moments at which a settle under the fence mine may come.
var states = []struct {
	name  string
	reach func(s *scene)
	word  string
}{
	{"there is no such job", func(*scene) {}, "gone"},
	{"the job waits and was never claimed", func(s *scene) { s.all(enter(jobA)) }, "stale"},
	{"the job is scheduled and was never claimed", func(s *scene) { s.all(later(jobA, delay)) }, "stale"},
	{"the job runs under this claim", running, "ok"},
	{"the job runs under this claim beside another job", func(s *scene) {
		s.all(enter(jobA), enter(jobB), claimBy("mine0001"))
	}, "ok"},
	{"the job runs under the same attempts of another claim", func(s *scene) {
		s.all(enter(jobA), claimBy("other001"))
	}, "stale"},
	{"the job runs under a later claim", func(s *scene) {
		running(s)
		s.all(retry{mine, delay, 5, "broken"})
		s.promoteAll()
		s.all(claimBy("other001"))
	}, "stale"},
	{"the job runs under a later claim with the same mark", func(s *scene) {
		running(s)
		s.all(release{mine, 0}, claimBy("mine0001"))
	}, "stale"},
	{"the lease lapsed but nobody has reaped it", func(s *scene) { running(s); s.pass(2 * lease) }, "ok"},
	{"reap took the lease and nobody has claimed since", func(s *scene) { running(s); s.lapse(5) }, "ok"},
	{"reap took the lease and another claim has the job", func(s *scene) {
		running(s)
		s.lapse(5)
		s.all(claimBy("other001"))
	}, "stale"},
	{"reap took a second lease and nobody has claimed since", func(s *scene) {
		running(s)
		s.lapse(5)
		s.all(claimBy("other001"))
		s.lapse(5)
	}, "stale"},
	{"reap took the lease and this claim has settled already", func(s *scene) {
		running(s)
		s.lapse(5)
		s.all(release{mine, 0})
	}, "again pending"},
	{"reap buried the job", func(s *scene) { running(s); s.lapse(1) }, "again dead"},
	{"this claim has retried", func(s *scene) { running(s); s.all(retry{mine, delay, 5, "broken"}) }, "again scheduled"},
	{"this claim has retried and the job waits again", func(s *scene) {
		running(s)
		s.all(retry{mine, delay, 5, "broken"})
		s.promoteAll()
	}, "again pending"},
	{"this claim has snoozed", func(s *scene) { running(s); s.all(snooze{mine, delay}) }, "again scheduled"},
	{"this claim has released", func(s *scene) { running(s); s.all(release{mine, 0}) }, "again pending"},
	{"this claim has killed", func(s *scene) { running(s); s.all(kill{mine, "poisoned"}) }, "again dead"},
	{"this claim has killed and the job lives again", func(s *scene) {
		running(s)
		s.all(kill{mine, "poisoned"}, reprocess{jobA})
	}, "again pending"},
	{"this claim has completed and the row is kept", func(s *scene) {
		running(s)
		s.all(complete{Fence: mine, Retain: delay})
	}, "again completed"},
	{"this claim has completed", func(s *scene) { running(s); s.all(complete{Fence: mine}) }, "gone"},
	{"the job was cancelled while it ran", func(s *scene) { running(s); s.all(cancel{jobA}) }, "cancelled"},
	{"the job was cancelled while it waited after a lapse", func(s *scene) {
		running(s)
		s.lapse(5)
		s.all(cancel{jobA})
	}, "gone"},
	{"the job was cancelled while it ran and reap took the lease", func(s *scene) {
		running(s)
		s.all(cancel{jobA})
		s.lapse(5)
	}, "gone"},
	{"somebody took the job out of the active set", func(s *scene) { running(s); s.all(unlist(jobA, "active")) }, "ok"},
	{"somebody deleted the row", func(s *scene) { running(s); s.all(deleteRow(jobA)) }, "gone"},
	{"somebody overwrote the row with another type", func(s *scene) { running(s); s.all(spoilRow(jobA)) }, "gone"},
}

func running(s *scene) { s.all(enter(jobA), claimBy("mine0001"), popWake()) }

func later(id string, d time.Duration) enqueue {
	e := enter(id)
	e.Later, e.Delay = true, d
	return e
}

// settleScenarios: every verb in every state, and once more at once.
func settleScenarios() []scenario {
	var all []scenario
	for _, st := range states {
		for _, v := range verbs(mine) {
			all = append(all, scenario{v.name + " when " + st.name, func(s *scene) {
				st.reach(s)
				s.says(v.says(st.word), v.step)
				after := st.word
				if after == "ok" || after == "cancelled" {
					after = "again " + v.then
					if v.then == "" || (st.word == "cancelled" && !strings.HasPrefix(v.name, "complete")) {
						after = "gone"
					}
				}
				if got := s.leaves(v.step); got.Says != v.says(after) {
					failf("after %s\nthe second answer is %q, want %q", s.story(), got.Says, v.says(after))
				}
			}})
		}
	}
	for _, v := range verbs(fenceOf(jobA, 1, "")) {
		all = append(all, scenario{v.name + " by a caller of the published protocol is fenced by attempts alone", func(s *scene) {
			running(s)
			s.says(v.ok, v.step)
		}})
	}
	return all
}

// againScenarios: a used token does nothing at any later moment, whatever the verb.
func againScenarios() []scenario {
	moments := []struct {
		name  string
		reach func(s *scene)
	}{
		{"at once", func(*scene) {}},
		{"after the pump", func(s *scene) { s.pass(delay2); s.all(promote{100}, expire{100}) }},
		{"after another claim", func(s *scene) { s.promoteAll(); s.all(claimBy("other001")) }},
		{"after another claim lapsed", func(s *scene) {
			s.promoteAll()
			s.all(claimBy("other001"))
			s.lapse(5)
		}},
		{"after another claim completed", func(s *scene) {
			s.promoteAll()
			s.all(claimBy("other001"), complete{Fence: fenceOf(jobA, 2, "other001"), Retain: delay})
		}},
		{"after the job was reprocessed", func(s *scene) { s.all(reprocess{jobA}) }},
		{"after the job was reprocessed and claimed", func(s *scene) { s.all(reprocess{jobA}, claimBy("other001")) }},
		{"after the job was cancelled", func(s *scene) { s.all(cancel{jobA}) }},
		{"after the id was used for a new job", func(s *scene) { s.all(cancel{jobA}, enter(jobA)) }},
	}
	var all []scenario
	for _, late := range []bool{false, true} {
		for _, v := range verbs(mine) {
			for _, m := range moments {
				name := "a token used by " + v.name + " changes nothing " + m.name
				if late {
					name = "a token used after its lapse by " + v.name + " changes nothing " + m.name
				}
				all = append(all, scenario{name, func(s *scene) {
					running(s)
					if late {
						s.lapse(5)
					}
					s.says(v.ok, v.step)
					m.reach(s)
					for _, again := range verbs(mine) {
						if got := s.leaves(again.step).Says; got == again.ok {
							failf("after %s\nthe token was accepted twice", s.story())
						}
					}
				}})
			}
		}
	}
	return all
}
