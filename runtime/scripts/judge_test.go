package scripts

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// sight is what is seen of a step: its answer, and all keys and messages after it. The server's clock stood
// between two moments meanwhile, which may be far apart on a busy machine.
type sight struct {
	since, end stamp
	answer     answer
	keys       space
	told       []string
}

// see looks at the server after a step that began at a time of its clock.
func (s *scene) see(since stamp, got answer) sight {
	sp, end := s.dump()
	return sight{since, end, got, sp, s.heard(since, end)}
}

// queues are the scene and those beside it.
func (s *scene) queues() []*scene { return append([]*scene{s}, s.beside...) }

// judge asks the model what the step was to do. The model is asked for the time before the step. If the step does not
// fit, the server has perhaps made it after a time that has come meanwhile, so the model is asked for these too.
func (s *scene) judge(st step, saw sight) {
	var before []*model
	for _, q := range s.queues() {
		before = append(before, q.m)
	}
	first := ""
	for _, at := range s.moments(saw.since, saw.end) {
		for i, q := range s.queues() {
			q.m = before[i].clone()
			q.m.pass(s.expires(at))
		}
		want := st.expect(s.m, at)
		s.m.refresh()
		differs := s.differs(want, saw)
		if differs == "" {
			s.adopt(saw)
			return
		}
		if first == "" {
			first = differs
		}
	}
	failf("after %s\n%s", s.story(), first)
}

// moments are the times from since to end between which a step can have had another outcome, as what the server has
// stored was over by then.
func (s *scene) moments(since, end stamp) []stamp {
	all := []stamp{since}
	add := func(at stamp) {
		for _, at := range []stamp{at, at + 1} { // due at it, and expired after it
			if at > since && at < end {
				all = append(all, at)
			}
		}
	}
	for _, v := range s.last {
		add(v.Ends)
		for _, at := range v.At {
			add(at)
		}
	}
	if end > since {
		all = append(all, end)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// expires gives the time until which keys have expired at a moment: a real server keeps a key to the end of its last
// millisecond.
func (s *target) expires(at stamp) stamp {
	if s.mini == nil {
		at--
	}
	return at
}

// differs says in what the model and the server differ, or nothing.
func (s *scene) differs(want answer, saw sight) string {
	slop := saw.end - saw.since
	if want.Says != saw.answer.Says || !want.In.near(saw.answer.In, slop) {
		return "the answer differs (-model +server):\n" + differs(want, saw.answer, slop)
	}
	model := space{}
	for _, q := range s.queues() {
		q.m.lose(saw.keys, saw.end)
		maps.Copy(model, q.m.render())
	}
	if !model.near(saw.keys, slop) {
		if d := differs(model, saw.keys, slop); d != "" {
			return "the key space differs (-model +server):\n" + d
		}
	}
	// a call over many jobs has an order of its own
	if d := differs(slices.Sorted(slices.Values(s.m.told)), slices.Sorted(slices.Values(saw.told)), 0); d != "" {
		return "what is published differs (-model +server):\n" + d
	}
	return ""
}

func (s *scene) adopt(saw sight) {
	s.told, s.m.told = saw.told, nil
	for _, q := range s.queues() {
		q.m.adopt(saw.keys)
		q.at, q.last = saw.end, saw.keys
	}
}

// same tells that the server is as the model is, without a step: nothing but what has expired has changed.
func (s *scene) same() {
	saw := s.see(0, answer{})
	saw.since = saw.end
	if d := s.differs(answer{}, saw); d != "" {
		failf("after %s\n%s", s.story(), d)
	}
	s.adopt(saw)
}

// expired tells whether a key that was to end is not there any more, after its time.
func (sp space) expired(key string, ends, now stamp) bool {
	_, there := sp[key]
	return !there && ends > 0 && ends <= now
}

// lose forgets the keys that have expired since the step.
func (m *model) lose(sp space, now stamp) {
	maps.DeleteFunc(m.locks, func(k string, l modelLock) bool { return sp.expired(m.base+"de:"+k, l.until, now) })
	maps.DeleteFunc(m.nudges, func(tag string, l modelNudge) bool { return sp.expired(m.base+"wake:"+tag, l.until, now) })
	if sp.expired(m.base+"pump", m.pump.until, now) {
		m.pump = modelLock{}
	}
}

// clone gives a model that changes apart from m.
func (m *model) clone() *model {
	c := *m
	c.jobs = maps.Clone(m.jobs)
	for id, j := range c.jobs {
		copied := *j
		copied.text = maps.Clone(j.text)
		c.jobs[id] = &copied
	}
	c.ghosts = maps.Clone(m.ghosts)
	for set, ids := range c.ghosts {
		c.ghosts[set] = maps.Clone(ids)
	}
	c.crons = maps.Clone(m.crons)
	for name, e := range c.crons {
		copied := *e
		copied.older = slices.Clone(e.older)
		c.crons[name] = &copied
	}
	c.lines = maps.Clone(m.lines)
	for id, lines := range c.lines {
		c.lines[id] = slices.Clone(lines)
	}
	c.spoilt, c.locks, c.nudges, c.counts = maps.Clone(m.spoilt), maps.Clone(m.locks), maps.Clone(m.nudges), maps.Clone(m.counts)
	c.meta, c.metaAt, c.told = maps.Clone(m.meta), maps.Clone(m.metaAt), slices.Clone(m.told)
	c.laneModel = laneModel{maps.Clone(m.ring), maps.Clone(m.paused), maps.Clone(m.limits), maps.Clone(m.weights)}
	return &c
}

// slow is a step on a busy machine: time passes after the clock was read, before the server is called or after it.
type slow struct {
	step
	until stamp
	first bool
}

func (l slow) call(ctx context.Context, s *target) answer {
	if l.first {
		s.nowAfter(l.until)
	}
	got := l.step.call(ctx, s)
	s.nowAfter(l.until)
	return got
}

// endsAt sets when a key is over.
func endsAt(name string, at stamp, edit func(m *model)) step {
	return byHand{"an end of " + name,
		func(s *target) []string { return []string{"PEXPIREAT", s.key(name), fmt.Sprintf("%.0f", at)} }, edit}
}

// A step may be long, and what the server has stored may be over before it, in it or after it.
func TestABusyMachineFailsNoStep(t *testing.T) {
	for name, play := range map[string]func(s *scene, end stamp, first bool){
		"a pump that ends": func(s *scene, end stamp, first bool) {
			s.all(pump{Tag: "process1", Budget: 2, Limit: 1, Lease: lease},
				endsAt("pump", end, func(m *model) { m.pump.until = end }),
				slow{pump{Tag: "process2", Budget: 2, Limit: 1, Lease: lease}, end, first}, counts{})
		},
		"a pump that ends before a job is due": func(s *scene, end stamp, first bool) {
			e := enter(jobA)
			e.Later, e.At = true, time.UnixMilli(int64(end+50))
			s.all(e, pump{Tag: "process1", Budget: 2, Limit: 1, Lease: lease},
				endsAt("pump", end, func(m *model) { m.pump.until = end }),
				slow{slow{pump{Tag: "process2", Budget: 2, Limit: 1, Lease: lease}, end, first}, end + 70, false}, counts{})
		},
		"a job that is due": func(s *scene, end stamp, first bool) {
			e := enter(jobA)
			e.Later, e.At = true, time.UnixMilli(int64(end))
			s.all(e, slow{promote{1}, end, first}, stateOf{jobA})
		},
		"a lease that is over": func(s *scene, end stamp, first bool) {
			s.all(extend{lease, nil})
			s.pass(lease/2 - time.Minute)
			s.all(enter(jobA), claim{Lease: time.Duration(end-s.at) * time.Millisecond, N: 1, By: "mine0001"},
				slow{reap{3, 1, lease}, end + 5, first}, stateOf{jobA})
		},
	} {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, first %t", name, first), func(t *testing.T) {
				failed := scenario{name, func(s *scene) { play(s, s.now()+150, first) }}.play(onRedis(t, ownLibrary(t)))
				if failed != "" {
					t.Fatal(failed)
				}
			})
		}
	}
}

// TestACloneSharesNothing: what a clone of the model had in common with it would change with each try.
func TestACloneSharesNothing(t *testing.T) {
	m := newModel("base")
	m.jobs["a"], m.spoilt["a"], m.ghosts["a"] = &modelJob{text: map[string]string{"a": "a"}}, true, map[string]stamp{"a": 1}
	m.locks["a"], m.meta["a"], m.metaAt["a"], m.counts["a"] = modelLock{}, "a", 1, 1
	m.nudges["a"], m.told, m.lines["a"] = modelNudge{}, []string{"a"}, []string{"a"}
	m.ring["a"], m.paused["a"], m.limits["a"], m.weights["a"] = 1, true, 1, 1
	m.crons["a"] = &modelCron{older: []string{"a"}}
	var apart func(path string, a, b reflect.Value)
	apart = func(path string, a, b reflect.Value) {
		switch a.Kind() {
		case reflect.Struct:
			for i := range a.NumField() {
				if f := a.Type().Field(i); f.Type != reflect.TypeFor[CronDef]() { // is only replaced
					apart(path+"."+f.Name, a.Field(i), b.Field(i))
				}
			}
		case reflect.Map, reflect.Slice, reflect.Pointer:
			if a.IsZero() || a.Pointer() == b.Pointer() {
				t.Errorf("%s is empty here, or the clone's too", path)
				return
			}
			if a.Kind() == reflect.Pointer {
				apart(path, a.Elem(), b.Elem())
			}
			if a.Kind() == reflect.Map {
				key := reflect.ValueOf("a")
				if !a.MapIndex(key).IsValid() {
					t.Errorf("the test fills no %s", path)
					return
				}
				apart(path, a.MapIndex(key), b.MapIndex(key))
			}
		}
	}
	c := m.clone()
	if d := cmp.Diff(m, c, cmp.Exporter(func(reflect.Type) bool { return true })); d != "" {
		t.Errorf("a clone differs: %s", d)
	}
	apart("model", reflect.ValueOf(m), reflect.ValueOf(c))
}
