package scripts

import (
	"context"
	"slices"
	"strings"
	"time"
)

// publishing switches the events of a queue on.
func publishing(s *scene) { s.all(setMeta("events", "1")) }

// hears takes a step and compares what is published with what the contract states.
func (s *scene) hears(st step, want ...string) {
	s.do(st)
	if d := differs(want, s.told, 0); d != "" {
		failf("after %s\nwhat is published differs (-want +got):\n%s", s.story(), d)
	}
}

// announceScenarios: what is published at each transition.
func announceScenarios() []scenario {
	all := []scenario{
		{"nothing is published while nobody has switched it on", func(s *scene) {
			running(s)
			s.hears(complete{Fence: mine})
		}},
		{"an enqueue is no event, one for later is", func(s *scene) {
			publishing(s)
			s.hears(enter(jobA))
			s.hears(later(jobB, delay), "events scheduled "+jobB+" mail.send attempt ?")
			s.hears(later(jobB, delay)) // a duplicate
		}},
		{"a failure says why, and what follows", func(s *scene) {
			publishing(s)
			running(s)
			s.hears(retry{mine, delay, 5, "broken"},
				"events failed "+jobA+" mail.send attempt 1 broken", "events retried "+jobA+" mail.send attempt 1")
			s.hears(retry{mine, delay, 5, "broken"}) // used
		}},
		{"the last failure is a death", func(s *scene) {
			publishing(s)
			running(s)
			s.hears(retry{mine, delay, 1, "broken"},
				"events failed "+jobA+" mail.send attempt 1 broken", "events dead "+jobA+" mail.send attempt 1 broken")
			s.hears(reprocess{jobA}, "events reprocessed "+jobA+" mail.send attempt ?")
		}},
		{"the count is that of the attempts, not of the claims", func(s *scene) {
			publishing(s)
			running(s)
			s.hears(snooze{mine, 0}, "events snoozed "+jobA+" mail.send attempt 1")
			s.promoteAll()
			s.all(claimBy("other001"))
			s.hears(release{fenceOf(jobA, 2, "other001"), 0}, "events released "+jobA+" mail.send attempt 1")
			s.all(claimBy("third001"))
			s.hears(complete{Fence: fenceOf(jobA, 3, "third001")}, "events completed "+jobA+" mail.send attempt 1")
		}},
		{"a lapse is an event, and its death another", func(s *scene) {
			publishing(s)
			s.all(enter(jobA), claimBy("mine0001"))
			s.pass(2 * lease)
			s.hears(reap{1, 100, lease})
			s.pass(lease/3 + time.Minute)
			s.hears(reap{1, 100, lease}, "events reaped "+jobA+" mail.send attempt 1", "events dead "+jobA+" mail.send attempt 1 lease lapsed 1 times")
		}},
		{"a cancelled job that waits is told, one that runs is notified", func(s *scene) {
			publishing(s)
			s.all(enter(jobA), claimBy("mine0001"), enter(jobB))
			s.hears(cancel{jobB}, "events cancelled "+jobB+" mail.send attempt ?")
			s.hears(cancel{jobA}, "cancel "+jobA)
			s.hears(cancel{jobA}, "cancel "+jobA)
			s.hears(kill{mine, "poisoned"}, "events cancelled "+jobA+" mail.send attempt 1")
		}},
		{"a long reason is cut", func(s *scene) {
			publishing(s)
			running(s)
			s.says("dead", kill{mine, "x" + strings.Repeat("é", 600)})
		}},
		{"a reason of any bytes is published", func(s *scene) {
			publishing(s)
			running(s)
			s.says("dead", kill{mine, "\"\\\x00\n\x7f\u2028</script>"})
		}},
	}
	words := map[string][]string{
		"complete": {"completed"}, "complete with retention": {"completed"}, "retry": {"failed", "retried"},
		"the last retry": {"failed", "dead"}, "snooze": {"snoozed"}, "release": {"released"},
		"release with a delay": {"released"}, "kill": {"dead"}, "discard": {"discarded"},
	}
	for _, v := range verbs(mine) {
		all = append(all, scenario{v.name + " is published once, and the end to who waits for it", func(s *scene) {
			publishing(s)
			running(s)
			s.says("active", await{jobA})
			s.do(v.step)
			var events, ended []string
			for _, text := range s.told {
				channel, rest, _ := strings.Cut(text, " ")
				if channel == "events" {
					event, _, _ := strings.Cut(rest, " ")
					events = append(events, event)
				} else {
					ended = append(ended, text)
				}
			}
			if !slices.Equal(events, words[v.name]) {
				failf("%s publishes %v", v.name, events)
			}
			if ends := v.then == "" || v.then == "dead" || v.then == "completed"; ends != (len(ended) == 1) {
				failf("%s tells those who wait %v", v.name, ended)
			}
			s.hears(v.step) // again
		}})
	}
	for _, st := range states {
		all = append(all, scenario{"somebody waits for a job when " + st.name, func(s *scene) {
			st.reach(s)
			s.all(await{jobA})
			s.leaves(await{jobA})
		}})
	}
	return append(all,
		scenario{"a result and a death are told to who comes later", func(s *scene) {
			s.all(enter(jobA), enter(jobB), claimBy("mine0001"))
			s.all(complete{Fence: mine, Retain: delay, Result: "\x00\"é\xff"}, kill{fenceOf(jobB, 1, "mine0001"), "poisoned"})
			s.says("completed \x00\"é\xff", await{jobA})
			s.says("dead poisoned", await{jobB})
			s.pass(delay2)
			s.all(expire{100})
			s.says("EMQGONE", await{jobA})
		}},
		scenario{"who waits is told of each way out but not of a detour", func(s *scene) {
			s.all(enter(jobA), enter(jobB), enter(jobC), await{jobA}, await{jobB}, await{jobC}, claimBy("mine0001"))
			s.hears(snooze{mine, 0})
			s.promoteAll()
			s.hears(cancel{jobA}, "ended "+jobA+" cancelled")
			s.hears(discard{fenceOf(jobB, 1, "mine0001")}, "ended "+jobB+" discarded")
			s.pass(2 * lease)
			s.all(reap{1, 100, lease})
			s.pass(lease/3 + time.Minute)
			s.hears(reap{1, 100, lease}, "ended "+jobC+" dead")
			s.hears(reprocess{jobC})
			s.hears(remove{jobC}, "ended "+jobC+" removed")
		}},
		scenario{"who waits for what is drained is told", func(s *scene) {
			s.all(enter(jobA), enter(jobB), await{jobA})
			s.hears(drain{List: "pending", Limit: 100}, "ended "+jobA+" removed")
		}},
	)
}

// await is somebody who waits for a job's end.
type await struct{ ID string }

func (a await) call(ctx context.Context, s *target) answer {
	got, err := s.queue.Await(ctx, a.ID)
	return says(strings.TrimSpace(got.State+" "+string(got.Result)+got.LastError), err)
}

func (a await) expect(m *model, _ stamp) answer {
	j := m.jobs[a.ID]
	switch {
	case j == nil:
		return answer{Says: "EMQGONE"}
	case j.state == "completed":
		return answer{Says: strings.TrimSpace("completed " + j.text["result"])}
	case j.state == "dead":
		return answer{Says: "dead " + j.text["last_error"]}
	}
	j.text["awaited"] = "1"
	return answer{Says: j.state}
}
