package scripts

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
)

// scene is one story on one server, told to the server and to the model at once.
type scene struct {
	*target
	m     *model
	at    stamp // the server's clock after the last step
	trail []any
	last  space    // the key space after the last step
	told  []string // what the last step has published
	// beside are the scenes of other queues on the same server. A step of this one changes no key of theirs.
	beside []*scene
}

func newScene(s *target) *scene {
	s.clear()
	if s.ear == nil {
		s.listen()
	}
	return &scene{target: s, m: newModel(s.queue.keys.Base())}
}

// do takes a step on the server and on the model and compares the answers and the whole key space.
func (s *scene) do(st step) answer {
	s.trail = append(s.trail, st)
	since := s.nowAfter(s.at)
	got := st.call(context.Background(), s.target)
	s.judge(st, s.see(since, got))
	return got
}

func (s *scene) story() string {
	var b strings.Builder
	for _, st := range s.trail {
		fmt.Fprintf(&b, "\n  %T%+v", st, st)
	}
	return b.String()
}

// says takes a step whose answer the contract states.
func (s *scene) says(want string, st step) {
	if got := s.do(st); got.Says != want {
		failf("after %s\nthe answer is %q, want %q", s.story(), got.Says, want)
	}
}

// all takes steps whose answers only the model knows.
func (s *scene) all(steps ...step) {
	for _, st := range steps {
		s.do(st)
	}
}

// leaves takes a step that may change nothing but the count of stale settles.
func (s *scene) leaves(st step) answer {
	before := maps.Clone(s.last)
	got := s.do(st)
	after := maps.Clone(s.last)
	delete(before, s.key("metrics:stale"))
	delete(after, s.key("metrics:stale"))
	maps.DeleteFunc(before, func(k string, v value) bool { return after.expired(k, v.Ends, s.at) })
	if d := differs(before, after, 0); d != "" {
		failf("after %s\nthe last step has changed something:\n%s", s.story(), d)
	}
	return got
}

// pass lets time pass.
func (s *scene) pass(d time.Duration) {
	s.trail = append(s.trail, "time passes: "+d.String())
	by := s.advance(d)
	for _, b := range s.queues() {
		b.clock = s.clock
		b.m.shift(by)
	}
	s.same()
}

// byHand is what somebody does to the keys behind the scripts' back.
type byHand struct {
	name  string
	words func(s *target) []string
	edit  func(m *model)
}

func (h byHand) String() string { return h.name }

func (h byHand) call(_ context.Context, s *target) answer {
	s.must(h.words(s)...)
	return answer{}
}

func (h byHand) expect(m *model, _ stamp) answer {
	h.edit(m)
	return answer{}
}

func setMeta(field, val string) step {
	return byHand{"meta " + field + " = " + val,
		func(s *target) []string { return []string{"HSET", s.key("meta"), field, val} },
		func(m *model) { m.meta[field] = val }}
}

// haunt leaves the id of a job in its set when the row goes.
func (m *model) haunt(id string) {
	j := m.jobs[id]
	if j == nil {
		return
	}
	delete(m.jobs, id)
	add := func(set string, at stamp) {
		if m.ghosts[set] == nil {
			m.ghosts[set] = map[string]stamp{}
		}
		m.ghosts[set][id] = at
	}
	if j.state == "active" && j.lane() != "" {
		add("g:"+j.lane()+":active", 0)
	}
	if j.unlisted {
		return
	}
	add(j.list(), j.when)
	if j.state == "dead" {
		add("dead:at", j.settled)
	}
}

func deleteRow(id string) step {
	return byHand{"delete the row of " + id,
		func(s *target) []string { return []string{"DEL", s.queue.keys.Row(id)} },
		func(m *model) { m.haunt(id); delete(m.spoilt, id) }}
}

func spoilRow(id string) step {
	return byHand{"overwrite the row of " + id,
		func(s *target) []string { return []string{"SET", s.queue.keys.Row(id), "spoilt"} },
		func(m *model) { m.haunt(id); m.spoilt[id] = true }}
}

// unlist takes a job out of the set that its state names.
func unlist(id, set string) step {
	return byHand{"take " + id + " out of " + set,
		func(s *target) []string { return []string{"ZREM", s.key(set), id} },
		func(m *model) {
			if j := m.jobs[id]; j != nil && j.list() == set {
				j.unlisted = true
			}
			delete(m.ghosts[set], id)
		}}
}

// popWake and popPump are waiters that take their token.
func popWake() step {
	return byHand{"a worker is woken", func(s *target) []string { return []string{"DEL", s.key("wake")} },
		func(m *model) { m.wake = false }}
}

func popPump() step {
	return byHand{"the pump is woken", func(s *target) []string { return []string{"DEL", s.key("wake:pump")} },
		func(m *model) { m.wakeUp = false }}
}

// scenario is one case of the suite. Its name is a sentence.
type scenario struct {
	name string
	run  func(s *scene)
}

// play runs a scenario and gives what failed, or an empty text.
func (c scenario) play(s *target) (failed string) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			failed = f.text
		}
	}()
	c.run(newScene(s))
	return ""
}

// suite is every scenario, by subject.
func suite() map[string][]scenario {
	return map[string][]scenario{
		"settle": settleScenarios(), "again": againScenarios(), "verbs": verbScenarios(),
		"debounce": debounceScenarios(),
		"unique":   uniqueScenarios(), "limits": limitScenarios(), "wake": wakeScenarios(),
		"reap": reapScenarios(), "orphans": orphanScenarios(), "keep": keepScenarios(),
		"admit": admitScenarios(), "lanes": laneScenarios(), "bulk": bulkScenarios(), "read": readScenarios(),
		"announce": announceScenarios(), "handling": handlingScenarios(),
		"settings": settingScenarios(), "gathered": gatheredScenarios(), "update": updateScenarios(), "cron": cronScenarios(),
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, server := range targets {
		t.Run(server.name, func(t *testing.T) {
			t.Parallel()
			var shared *target
			if server.once {
				shared = server.open(t, ownLibrary(t))
			}
			for subject, scenarios := range suite() {
				t.Run(subject, func(t *testing.T) {
					s := shared
					if s == nil {
						t.Parallel()
						s = server.open(t, ownLibrary(t))
					}
					for _, c := range scenarios {
						t.Run(c.name, func(t *testing.T) {
							if failed := c.play(s); failed != "" {
								t.Fatal(failed)
							}
						})
					}
				})
			}
		})
	}
}
