package scripts

import (
	"context"
	"fmt"
	"maps"
)

// The reads of a whole queue and of one lane.
type (
	counts   struct{}
	settings struct{}
	oneLane  struct{ Lane string }
)

func (counts) call(ctx context.Context, s *target) answer {
	got, err := s.queue.Counts(ctx)
	return says(fmt.Sprintf("%+v", got), err)
}

func (counts) expect(m *model, _ stamp) answer {
	n := func(set string) int64 { return int64(len(m.members(set))) }
	want := Counts{
		Pending: n("pending") + int64(m.inLanes()), Active: n("active"), Scheduled: n("schedule"), Dead: n("dead"),
		Completed: n("completed"), InLanes: int64(m.inLanes()), Totals: map[string]int64{},
	}
	for _, name := range totals() {
		want.Totals[name] = int64(m.counts[name])
	}
	return answer{Says: fmt.Sprintf("%+v", want)}
}

func (settings) call(ctx context.Context, s *target) answer {
	got, err := s.queue.Settings(ctx)
	return says(fmt.Sprint(got), err)
}

func (settings) expect(m *model, _ stamp) answer {
	want := map[string]string{}
	for _, field := range SettingFields() {
		if m.meta[field] != "" {
			want[field] = m.meta[field]
		}
	}
	if weight := m.weights[""]; weight != 0 {
		want[FlatWeight] = fmt.Sprint(weight)
	}
	return answer{Says: fmt.Sprint(want)}
}

func (l oneLane) call(ctx context.Context, s *target) answer {
	got, err := s.queue.Lane(ctx, l.Lane)
	return says(fmt.Sprint(got), err)
}

func (l oneLane) expect(m *model, _ stamp) answer { return answer{Says: fmt.Sprint(m.laneOf(l.Lane))} }

func (r detail) call(ctx context.Context, s *target) answer {
	d, err := s.queue.Detail(ctx, r.ID)
	if err != nil {
		return says("", err)
	}
	// times are compared with the key space; a count of nothing is the same as no count
	maps.DeleteFunc(d.Row, func(f, v string) bool {
		return timeFields[f] || v == "0" && (f == "forgiven" || f == "lapses")
	})
	var score stamp
	if !d.Score.IsZero() {
		score = stamp(d.Score.UnixMilli())
	}
	return answer{fmt.Sprintf("%s %v %q", d.State, d.Row, d.Entry), score}
}

func (r detail) expect(m *model, _ stamp) answer {
	j := m.jobs[r.ID]
	if j == nil {
		return answer{Says: "EMQGONE"}
	}
	var score stamp
	if !j.unlisted && timeSets[j.list()] {
		score = j.when
	}
	return answer{fmt.Sprintf("%s %v %q", m.stateOf(r.ID), j.render().Text, ""), score}
}

// obliterate deletes a queue as the operator's verb does: what its lists have, then what is left of it, the
// settings last.
type obliterate struct{ Force bool }

func (o obliterate) guard() Guard {
	if o.Force {
		return PausedOnly
	}
	return Paused
}

func (o obliterate) lists() []string {
	return []string{"active", "schedule", "pending", "lanes", "dead", "completed"}
}

func (o obliterate) call(ctx context.Context, s *target) answer {
	for _, list := range o.lists() {
		if _, err := s.queue.Drain(ctx, Drain{List: list, Limit: 100, Guard: o.guard()}); err != nil {
			return says("", err)
		}
	}
	var left []string
	check(s.queue.Scan(ctx, func(keys []string) error {
		for _, k := range keys {
			if k != s.queue.MetaKey() {
				left = append(left, k)
			}
		}
		return nil
	}))
	for _, keys := range [][]string{left, {s.queue.MetaKey()}} {
		if len(keys) == 0 {
			continue
		}
		if gone, err := s.queue.Obliterate(ctx, o.guard(), keys); err != nil || !gone {
			return says("not gone", err)
		}
	}
	return answer{Says: "obliterated"}
}

func (o obliterate) expect(m *model, now stamp) answer {
	for _, list := range o.lists() {
		if got := (drain{List: list, Limit: 100, Guard: o.guard()}).expect(m, now); got.Says == "EMQSTATE" {
			return got
		}
	}
	told := m.told
	*m = *newModel(m.base)
	m.told = told
	return answer{Says: "obliterated"}
}
