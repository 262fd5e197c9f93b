package scripts

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

type update Update

func (u update) call(ctx context.Context, s *target) answer {
	word, own, err := s.queue.Update(ctx, Update(u))
	return says(strings.TrimSpace(word+" "+own), err)
}

func (u update) expect(m *model, _ stamp) answer {
	j := m.jobs[u.ID]
	switch {
	case j == nil:
		return answer{Says: "EMQGONE"}
	case j.state == "active":
		return answer{Says: "EMQLOCK"}
	case j.state == "completed":
		return answer{Says: "EMQSTATE"}
	case !slices.Contains(u.Kinds, j.text["kind"]):
		return answer{Says: "kind " + j.text["kind"]}
	case j.text["unique"] != "" && j.text["unique"] != u.Unique:
		return answer{Says: "unique " + j.text["unique"]}
	case u.Lane != nil && *u.Lane != j.lane():
		return answer{Says: strings.TrimSpace("lane " + j.lane())}
	}
	j.text["payload"] = string(u.Payload)
	delete(j.text, "v")
	if u.Version != 1 {
		j.text["v"] = strconv.Itoa(u.Version)
	}
	return answer{Says: "updated"}
}

// updateScenarios: another payload for a job.
func updateScenarios() []scenario {
	to := func(id, payload string) update {
		return update{ID: id, Payload: []byte(payload), Version: 1, Kinds: []string{"alias", "mail.send"}}
	}
	lane := func(u update, lane string) update { u.Lane = &lane; return u }
	return []scenario{
		{"a job that waits, also in the morgue, runs with its new payload", func(s *scene) {
			s.says("EMQGONE", to(jobA, "new"))
			s.all(enter(jobA), later(jobB, delay), inLane(jobC, "a"))
			for _, id := range []string{jobA, jobB, jobC} {
				u := to(id, "\x00\xff new")
				u.Version = 3
				s.says("updated", u)
				s.says("updated", u)
				s.says("updated", to(id, "of the first version again"))
			}
			s.all(claimBy("mine0001"))
			s.says("EMQLOCK", to(jobA, "late"))
			s.all(kill{mine, "poisoned"})
			s.says("updated", to(jobA, "mended"))
			s.all(reprocess{jobA}, claimBy("other001"), complete{Fence: fenceOf(jobA, 2, "other001"), Retain: delay})
			s.says("EMQSTATE", to(jobA, "too late"))
		}},
		{"a job keeps its kind, its unique key and its lane", func(s *scene) {
			s.all(only(jobA), inLane(jobB, "-"))
			u := to(jobA, "new")
			s.says("unique "+uniqueKeyName, u)
			u.Unique = uniqueKeyName + "2"
			s.says("unique "+uniqueKeyName, u)
			u.Unique = uniqueKeyName
			s.says("lane", lane(u, "a"))
			s.says("updated", lane(u, ""))
			s.says("updated", u)
			s.says("lane -", lane(to(jobB, "new"), ""))
			s.says("lane -", lane(to(jobB, "new"), "any"))
			s.says("updated", lane(to(jobB, "new"), "-"))
			s.says("updated", to(jobB, "newer"))
			u = to(jobB, "new")
			u.Kinds = []string{"other"}
			s.says("kind mail.send", u)
		}},
		{"a job that lapsed is settled by its old holder whatever its payload is now", func(s *scene) {
			running(s)
			s.lapse(5)
			s.says("updated", to(jobA, "new"))
			s.says("scheduled", snooze{mine, delay})
		}},
		{"a row of another type has no payload", func(s *scene) {
			s.all(enter(jobA), spoilRow(jobA))
			s.says("EMQGONE", to(jobA, "new"))
		}},
	}
}
