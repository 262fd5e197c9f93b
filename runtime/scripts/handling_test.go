package scripts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// What a handler says of its job while it runs.
type (
	progress struct {
		Fence
		Value string
	}
	logLine struct {
		Fence
		Keep int
		Line string
	}
	logs struct {
		ID   string
		From int64
		N    int
	}
)

func (p progress) call(ctx context.Context, s *target) answer {
	return says("noted", s.queue.Progress(ctx, p.Fence, []byte(p.Value)))
}

func (p progress) expect(m *model, _ stamp) answer {
	return m.outside(p.Fence, func(j *modelJob) answer {
		j.text["progress"] = p.Value
		m.announce("progress", j, j.counted(), p.Value)
		return answer{Says: "noted"}
	})
}

// outside is the answer to a call that is not the holder's, or what the holder's does.
func (m *model) outside(f Fence, does func(j *modelJob) answer) answer {
	j := m.jobs[f.ID]
	switch {
	case j == nil:
		return answer{Says: "EMQGONE"}
	case j.state != "active" || int64(j.attempts) != f.Attempts || j.text["by"] != f.By:
		return answer{Says: "EMQSTALE"}
	}
	return does(j)
}

func (l logLine) call(ctx context.Context, s *target) answer {
	return says("noted", s.queue.Log(ctx, l.Fence, l.Keep, l.Line))
}

func (l logLine) expect(m *model, _ stamp) answer {
	return m.outside(l.Fence, func(j *modelJob) answer {
		if j.text["logs"] == "" {
			delete(m.lines, j.id)
		}
		n, _ := strconv.Atoi(j.text["logs"])
		j.text["logs"] = strconv.Itoa(n + 1)
		lines := append([]string{l.Line}, m.lines[j.id]...)
		m.lines[j.id] = lines[:min(len(lines), max(1, min(l.Keep, 1000)))]
		return answer{Says: "noted"}
	})
}

func (l logs) call(ctx context.Context, s *target) answer {
	got, err := s.queue.Logs(ctx, l.ID, l.From, l.N)
	return says(fmt.Sprintf("%d of %d: %s", got.First, got.Total, strings.Join(got.Lines, ",")), err)
}

func (l logs) expect(m *model, _ stamp) answer {
	j := m.jobs[l.ID]
	if j == nil {
		return answer{Says: "EMQGONE"}
	}
	total, _ := strconv.Atoi(j.text["logs"])
	all := make([]string, total) // the number of a line is its index
	kept := 0
	if total > 0 {
		kept = min(len(m.lines[l.ID]), total)
	}
	for i, line := range m.lines[l.ID][:kept] {
		all[total-1-i] = line
	}
	from := int(l.From)
	if from < 0 {
		from += total
	}
	from = min(max(from, total-kept), total)
	return answer{Says: fmt.Sprintf("%d of %d: %s", from, total, strings.Join(all[from:min(from+l.N, total)], ","))}
}

// chatter writes lines and progress, and reads the lines in every way.
func (s *scene) chatter(f Fence, keep int, lines ...string) {
	for _, line := range lines {
		s.all(logLine{f, keep, line}, progress{f, `{"at":"` + line + `"}`})
	}
	s.readLogs(f.ID)
}

func (s *scene) readLogs(id string) {
	for from := int64(-4); from < 6; from++ {
		s.all(logs{id, from, 1}, logs{id, from, 3})
	}
	s.all(logs{id, 0, 500}, logs{id, -1 << 60, 500}, logs{id, 1 << 50, 500})
}

// handlingScenarios: progress and log lines of a running job.
func handlingScenarios() []scenario {
	all := []scenario{
		{"the last lines are kept over all runs, and progress is written over", func(s *scene) {
			running(s)
			s.readLogs(jobA)
			s.chatter(mine, 3, "a", "b", "c", "d", "e")
			s.says("2 of 5: c,d,e", logs{jobA, 0, 500})
			s.says("3 of 5: d", logs{jobA, -2, 1})
			s.all(release{mine, 0}, claimBy("other001"))
			other := fenceOf(jobA, 2, "other001")
			s.chatter(other, 4, "f", "g")
			s.says("3 of 7: d,e,f,g", logs{jobA, 0, 500})
			s.chatter(other, 0, "h")
			s.chatter(other, 1<<30, "i")
		}},
		{"only the claim that holds the job may speak of it", func(s *scene) {
			s.says("EMQGONE", progress{mine, "1"})
			s.says("EMQGONE", logLine{mine, 9, "x"})
			s.says("EMQGONE", logs{jobA, 0, 9})
			s.all(enter(jobA))
			s.says("EMQSTALE", progress{fenceOf(jobA, 0, ""), "1"})
			s.all(claimBy("mine0001"))
			for _, f := range []Fence{fenceOf(jobA, 1, "other001"), fenceOf(jobA, 2, "mine0001"), fenceOf(jobA, 1, "")} {
				s.says("EMQSTALE", progress{f, "1"})
				s.says("EMQSTALE", logLine{f, 9, "x"})
			}
			s.says("noted", progress{mine, "1"})
			s.lapse(5)
			s.says("EMQSTALE", progress{mine, "2"})
			s.says("EMQSTALE", logLine{mine, 9, "x"})
			s.all(claimBy("other001"), complete{Fence: fenceOf(jobA, 2, "other001"), Retain: delay})
			s.says("EMQSTALE", progress{mine, "2"})
			s.says("EMQSTALE", logLine{fenceOf(jobA, 2, "other001"), 9, "x"})
		}},
		{"progress is told to those who listen, and that of others is not", func(s *scene) {
			running(s)
			s.all(setMeta("events", "1"), progress{mine, `{"done":7}`}, progress{fenceOf(jobA, 1, "other001"), "8"})
			if s.all(progress{mine, "9"}); len(s.told) != 1 {
				failf("after %s\nis told: %q", s.story(), s.told)
			}
		}},
		{"what is kept keeps its lines until it goes", func(s *scene) {
			s.all(enter(jobA), enter(jobB), claimBy("mine0001"))
			b := fenceOf(jobB, 1, "mine0001")
			s.chatter(mine, 9, "a", "b")
			s.chatter(b, 9, "c")
			s.all(complete{Fence: mine, Retain: delay}, kill{b, "poisoned"}, setMeta("dead_ms", "10800000"))
			s.says("0 of 2: a,b", logs{jobA, 0, 9})
			s.says("0 of 1: c", logs{jobB, 0, 9})
			s.pass(delay2)
			s.says("moved 2", expire{100})
		}},
		{"lines that somebody's hand left behind are not another job's", func(s *scene) {
			running(s)
			s.chatter(mine, 9, "a", "b")
			s.all(deleteRow(jobA), enter(jobA), claimBy("other001"))
			s.readLogs(jobA)
			s.chatter(fenceOf(jobA, 1, "other001"), 9, "c")
			s.says("0 of 1: c", logs{jobA, 0, 9})
		}},
		{"a row of another type has no lines", func(s *scene) {
			running(s)
			s.all(logLine{mine, 9, "x"}, spoilRow(jobA))
			s.says("EMQGONE", logs{jobA, 0, 9})
			s.says("EMQGONE", logLine{mine, 9, "x"})
			s.says("EMQGONE", progress{mine, "1"})
		}},
	}
	f := mine
	for name, end := range map[string]func(s *scene){
		"completed":                 func(s *scene) { s.do(complete{Fence: f}) },
		"discarded":                 func(s *scene) { s.do(discard{f}) },
		"cancelled and failed":      func(s *scene) { s.all(cancel{jobA}, retry{f, delay, 3, "broken"}) },
		"cancelled and lapsed":      func(s *scene) { s.do(cancel{jobA}); s.lapse(5) },
		"cancelled while it waited": func(s *scene) { s.all(release{f, 0}, cancel{jobA}) },
		"removed":                   func(s *scene) { s.all(release{f, 0}, remove{jobA}) },
		"drained":                   func(s *scene) { s.all(release{f, 0}, drain{List: "pending", Limit: 100}) },
		"buried and drained":        func(s *scene) { s.all(kill{f, "poisoned"}, drain{List: "dead", Limit: 100}) },
		"settled late":              func(s *scene) { s.lapse(5); s.do(complete{Fence: f}) },
	} {
		all = append(all, scenario{"the lines of a job go with it when it is " + name, func(s *scene) {
			running(s)
			s.chatter(f, 9, "a", "b")
			end(s)
			if _, there := s.last[s.queue.keys.Row(jobA)+":logs"]; there || s.m.jobs[jobA] != nil {
				failf("after %s\nthe job or its lines are still there", s.story())
			}
			s.pass(time.Minute)
		}})
	}
	return all
}
