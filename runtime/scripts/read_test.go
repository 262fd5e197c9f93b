package scripts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The reads. They are steps like the transitions, so every scenario and history also shows that they
// change nothing.
type (
	stateOf struct{ ID string }
	detail  struct{ ID string }
	pages   struct {
		State, Lane string
		Up          bool
		N           int
	}
	next struct{}
)

func (r stateOf) call(ctx context.Context, s *target) answer { return says(s.queue.State(ctx, r.ID)) }

func (r stateOf) expect(m *model, _ stamp) answer { return answer{Says: m.stateOf(r.ID)} }

func (m *model) stateOf(id string) string {
	j := m.jobs[id]
	if j == nil {
		return "absent"
	}
	lists := []string{"pending", "active", "schedule", "dead", "completed"}
	if j.lane() != "" {
		lists[0] = "g:" + j.lane() + ":pending"
	}
	for _, list := range lists {
		if _, stray := m.ghosts[list][id]; stray && list != j.list() {
			return "unknown"
		}
	}
	if j.unlisted {
		return "unknown"
	}
	return j.state
}

func (p pages) call(ctx context.Context, s *target) answer {
	var ids []string
	var after *Place
	for {
		jobs, more, err := s.queue.Browse(ctx, p.State, p.Lane, p.Up, p.N, after)
		if err != nil {
			return says("", err)
		}
		if len(jobs) > p.N || more && len(jobs) < p.N || len(ids) > 10_000 {
			return answer{Says: fmt.Sprintf("a page of %d", len(jobs))}
		}
		for _, j := range jobs {
			ids = append(ids, j.ID+":"+j.State)
		}
		if !more {
			return answer{Says: strings.Join(ids, " ")}
		}
		after = &jobs[len(jobs)-1].Place
	}
}

func (p pages) expect(m *model, _ stamp) answer {
	list := listOf(p.State)
	if p.State == "dead" {
		list = "dead:at"
	}
	if p.Lane != "" {
		list = "g:" + p.Lane + ":pending"
	}
	var ids []string
	for _, e := range m.members(list) {
		state := ""
		if j := m.jobs[e.id]; j != nil {
			state = j.state
		}
		ids = append(ids, e.id+":"+state)
	}
	if !p.Up {
		slices.Reverse(ids)
	}
	return answer{Says: strings.Join(ids, " ")}
}

func (next) call(ctx context.Context, s *target) answer {
	_, jobs, err := s.queue.Next(ctx)
	var ids []string
	for _, j := range jobs {
		ids = append(ids, fmt.Sprint(j.ID, !j.Due.IsZero()))
	}
	slices.Sort(ids)
	return says(strings.Join(ids, " "), err)
}

func (next) expect(m *model, _ stamp) answer {
	var ids []string
	look := func(list string, n int) {
		for _, e := range m.members(list)[:min(n, len(m.members(list)))] {
			if j := m.jobs[e.id]; j != nil && j.state == "pending" {
				ids = append(ids, fmt.Sprint(e.id, j.due != 0))
			}
		}
	}
	look("pending", 100)
	for lane, score := range m.ring {
		if score < parkedScore {
			look("g:"+lane+":pending", 1)
		}
	}
	slices.Sort(ids)
	return answer{Says: strings.Join(ids, " ")}
}

// readAll looks at everything in every way.
func (s *scene) readAll() {
	for _, state := range []string{"pending", "active", "scheduled", "dead", "completed"} {
		for _, n := range []int{1, 2, 500} {
			s.all(pages{state, "", true, n}, pages{state, "", false, n})
		}
	}
	for _, lane := range s.m.laneNames() {
		s.all(pages{"pending", lane, true, 2}, pages{"pending", lane, false, 2})
	}
	for _, id := range []string{jobA, jobB, jobC, jobN(1), jobN(2), jobN(3)} {
		s.all(stateOf{id}, detail{id})
	}
	s.do(next{})
}

// readScenarios: looking at jobs.
func readScenarios() []scenario {
	all := []scenario{
		{"jobs are found in every state, and looking changes nothing", func(s *scene) {
			s.readAll()
			s.all(enter(jobA), inLane(jobB, "a"), inLane(jobC, "a"), later(jobN(1), delay), enter(jobN(2)), inLane(jobN(3), "b"))
			s.readAll()
			s.all(claimBy("mine0001"))
			s.readAll()
			s.all(complete{Fence: mine, Retain: delay}, kill{fenceOf(jobB, 1, "mine0001"), "poisoned"}, release{fenceOf(jobC, 1, "mine0001"), 0},
				retry{fenceOf(jobN(2), 1, "mine0001"), delay, 3, "broken"}, discard{fenceOf(jobN(3), 1, "mine0001")})
			s.readAll()
			s.all(tune{"a", "pause", 0})
			s.readAll()
			s.says("completed", stateOf{jobA})
			s.says("dead", stateOf{jobB})
			s.says("pending", stateOf{jobC})
			s.says("scheduled", stateOf{jobN(1)})
			s.says("absent", stateOf{jobN(3)})
			s.says("", next{})
		}},
		{"a job that a hand took out of its list is in an unknown state", func(s *scene) {
			s.all(enter(jobA), enter(jobB), unlist(jobA, "pending"))
			s.says("unknown", stateOf{jobA})
			s.says("pending", stateOf{jobB})
			s.readAll()
		}},
		{"a job that stands in two lists is in an unknown state", func(s *scene) {
			s.all(enter(jobA), later(jobB, time.Hour), deleteRow(jobB), enter(jobB))
			s.says("unknown", stateOf{jobB})
			s.readAll()
		}},
		{"jobs of one time are in the order of their ids, in whichever pages", func(s *scene) {
			for n := range 12 {
				e := enter(jobN(n))
				e.Later, e.At = true, time.UnixMilli(int64(s.now())).Truncate(time.Hour).Add(delay)
				s.do(e)
			}
			for n := 1; n < 14; n++ {
				s.all(pages{"scheduled", "", true, n}, pages{"scheduled", "", false, n})
			}
		}},
	}
	for _, w := range wrecks {
		all = append(all, scenario{"a row that was " + w.name + " is listed still, and its job is absent", func(s *scene) {
			s.all(enter(jobA), enter(jobB), inLane(jobC, "a"), w.step(jobA), w.step(jobC))
			s.says("absent", stateOf{jobA})
			s.says(jobA+": "+jobB+":pending", pages{"pending", "", true, 1})
			s.says("EMQGONE", detail{jobA})
			s.readAll()
		}})
	}
	return all
}
