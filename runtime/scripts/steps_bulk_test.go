package scripts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The steps of the verbs that an operator has for one job or for many. Those over many jobs make all their
// calls, a few jobs each.
type (
	remove struct{ ID string }
	drain  Drain
	revive struct {
		Kind     string
		Look, Up int
	}
	reassign struct {
		From, To string
		Limit    int
	}
	reapLane struct {
		Lane   string
		Budget int
		Lease  time.Duration
	}
	audit struct{ Look bool }
)

// rounds counts the calls of a verb. A script that is broken may ask for another one for ever.
type rounds int

func (r *rounds) more() {
	if *r++; *r > 10_000 {
		failf("a verb calls its script without end")
	}
}

func (r remove) call(ctx context.Context, s *target) answer {
	return says("removed", s.queue.Remove(ctx, r.ID))
}

func (r remove) expect(m *model, _ stamp) answer {
	j := m.jobs[r.ID]
	if j == nil {
		return answer{Says: "EMQGONE"}
	}
	if j.state == "active" {
		return answer{Says: "EMQLOCK"}
	}
	m.end(j, "removed", -1)
	for _, set := range []string{"schedule", "dead", "dead:at", "completed"} {
		delete(m.ghosts[set], r.ID)
	}
	return answer{Says: "removed"}
}

func (d drain) call(ctx context.Context, s *target) answer {
	got, err := s.queue.Drain(ctx, Drain(d))
	return says(saysDrained(got), err)
}

func saysDrained(d Drained) string {
	return fmt.Sprintf("removed %d dropped %d more %t", d.Removed, d.Dropped, d.More)
}

func (d drain) expect(m *model, _ stamp) answer {
	if d.Guard != Unguarded && m.meta["paused"] == "" || d.Guard == Paused && len(m.members("active")) > 0 {
		return answer{Says: "EMQSTATE"}
	}
	sets := []string{d.List}
	switch d.List {
	case "lane":
		sets = []string{"g:" + d.Lane + ":pending"}
	case "lanes":
		sets = nil
		for _, lane := range slices.SortedFunc(maps.Keys(m.ring), func(a, b string) int {
			return cmp.Or(cmp.Compare(m.ring[a], m.ring[b]), cmp.Compare(a, b))
		}) {
			sets = append(sets, "g:"+lane+":pending")
		}
		sets = sets[:min(len(sets), d.Limit)]
	}
	left := d.Limit
	var got Drained
	var ended []*modelJob
	for _, set := range sets {
		if left <= 0 {
			break
		}
		ids := m.members(set)
		ids = ids[:min(left, len(ids))]
		left -= max(len(ids), 1)
		for _, e := range ids {
			j := m.jobs[e.id]
			if set == "active" {
				lane := ""
				if j != nil {
					lane = j.lane()
				}
				m.vacate(e.id, lane, len(m.members("active")))
			}
			if set == "dead" {
				delete(m.ghosts["dead:at"], e.id)
			}
			delete(m.ghosts[set], e.id)
			if j == nil || j.list() != set {
				got.Dropped++
				m.counts["orphan"]++
				continue
			}
			got.Removed++
			j.unlisted = true
			ended = append(ended, j)
		}
	}
	m.refresh()
	for _, j := range ended {
		m.end(j, "removed", -1)
	}
	got.More = left <= 0
	return answer{Says: saysDrained(got)}
}

func (r revive) call(ctx context.Context, s *target) answer {
	var sum Revived
	var calls rounds
	for next := (ReviveAt{}); ; {
		calls.more()
		got, err := s.queue.Revive(ctx, Revive{next, r.Kind, r.Look, r.Up})
		if err != nil {
			return says("", err)
		}
		next = got.Next
		sum.Done, sum.Refused, sum.Other, sum.Dropped = sum.Done+got.Done, sum.Refused+got.Refused, sum.Other+got.Other, sum.Dropped+got.Dropped
		if !got.More {
			return answer{Says: saysRevived(sum)}
		}
	}
}

func saysRevived(r Revived) string {
	return fmt.Sprintf("revived %d refused %d other %d dropped %d", r.Done, r.Refused, r.Other, r.Dropped)
}

func (r revive) expect(m *model, now stamp) answer {
	var got Revived
	for _, e := range m.members("dead:at") {
		if e.score > now {
			break
		}
		j := m.jobs[e.id]
		switch {
		case j == nil || j.state != "dead":
			delete(m.ghosts["dead"], e.id)
			delete(m.ghosts["dead:at"], e.id)
			m.counts["orphan"]++
			got.Dropped++
		case r.Kind != "" && j.text["kind"] != r.Kind:
			got.Other++
		case reprocess{e.id}.expect(m, now).Says == "revived":
			got.Done++
		default:
			got.Refused++
		}
	}
	return answer{Says: saysRevived(got)}
}

func (r reassign) call(ctx context.Context, s *target) answer {
	var sum Reassigned
	var calls rounds
	for at := ReassignBegin; at.Stage != ""; {
		calls.more()
		got, err := s.queue.Reassign(ctx, r.From, r.To, at, r.Limit)
		if err != nil {
			return says("", err)
		}
		at = got.Next
		sum.Known, sum.Moved, sum.Dropped = sum.Known || got.Known || got.Moved > 0, sum.Moved+got.Moved, sum.Dropped+got.Dropped
	}
	return answer{Says: saysReassigned(sum)}
}

func saysReassigned(r Reassigned) string {
	return fmt.Sprintf("known %t moved %d dropped %d", r.Known, r.Moved, r.Dropped)
}

func (r reassign) expect(m *model, _ stamp) answer {
	list := "g:" + r.From + ":pending"
	_, limited := m.limits[r.From]
	_, weighted := m.weights[r.From]
	got := Reassigned{Known: limited || weighted || m.paused[r.From] || m.waitingIn(r.From)+len(m.runningIn(r.From)) > 0}
	enter := func(j *modelJob) {
		delete(j.text, "group")
		if r.To != "" {
			j.text["group"] = r.To
		}
		got.Moved++
	}
	for _, e := range m.members(list) {
		j := m.jobs[e.id]
		if j == nil || j.list() != list {
			delete(m.ghosts[list], e.id)
			m.counts["orphan"]++
			got.Dropped++
			continue
		}
		enter(j)
		m.ready(j)
	}
	for _, j := range m.jobs {
		if (j.state == "scheduled" || j.state == "dead") && j.lane() == r.From {
			enter(j)
		}
	}
	got.Known = got.Known || got.Moved > 0
	return answer{Says: saysReassigned(got)}
}

func (r reapLane) call(ctx context.Context, s *target) answer {
	total := 0
	var calls rounds
	for cursor := "0"; ; {
		calls.more()
		n, next, grace, err := s.queue.ReapLane(ctx, r.Lane, cursor, r.Budget, 100, r.Lease)
		if err != nil || grace > 0 {
			return says("grace", err)
		}
		total += n
		if cursor = next; cursor == "0" {
			return answer{Says: fmt.Sprint("taken back ", total)}
		}
	}
}

func (r reapLane) expect(m *model, now stamp) answer {
	m.see(now, r.Lease.Milliseconds())
	if m.metaAt["grace"] > now {
		return answer{Says: "grace"}
	}
	var ids []string
	inLane := m.runningIn(r.Lane)
	for _, id := range m.due("active", now, 500) {
		if slices.Contains(inLane, id) {
			ids = append(ids, id)
		}
	}
	return answer{Says: fmt.Sprint("taken back ", m.takeback(ids, r.Budget, now))}
}

func (a audit) call(ctx context.Context, s *target) answer {
	q, dropped := s.queue, 0
	list := func(name, lane string) {
		var calls rounds
		for cursor, more := "0", true; more; {
			calls.more()
			_, n, next, err := q.AuditMembers(ctx, a.Look, name, lane, cursor)
			check(err)
			dropped += n
			cursor, more = next, next != "0"
		}
	}
	for _, name := range AuditedLists {
		list(name, "")
	}
	var rows AuditedRows
	var unique, lanes, lines int
	check(q.Scan(ctx, func(keys []string) error {
		found := q.Sort(keys)
		var err error
		rows, err = q.AuditRows(ctx, a.Look, lease, found.Rows)
		check(err)
		unique, err = q.AuditUnique(ctx, a.Look, found.Uniques)
		check(err)
		for _, lane := range found.Waiting {
			list("waiting", lane)
		}
		for _, lane := range found.Running {
			list("running", lane)
		}
		lanes, err = q.AuditLanes(ctx, a.Look, found.Waiting)
		check(err)
		lines, err = q.AuditSubkeys(ctx, a.Look, found.Subkeys)
		check(err)
		return nil
	}))
	n, next, err := q.AuditRing(ctx, a.Look, "0")
	check(err)
	laned, err := q.AuditLaned(ctx, a.Look)
	check(err)
	if next != "0" {
		failf("a ring of a few lanes has a second page")
	}
	return answer{Says: fmt.Sprintf("rows %+v dropped %d unique %d lanes %d lines %d laned %t", rows, dropped, unique, lanes+n, lines, laned)}
}

func (a audit) expect(m *model, now stamp) answer {
	if a.Look {
		return m.lookedAt(now)
	}
	var rows AuditedRows
	dropped, unique := 0, 0
	drop := func(set, id string, each func(lane string)) {
		lane := ""
		if j := m.jobs[id]; j != nil {
			lane = j.lane()
		}
		each(lane)
		delete(m.ghosts[set], id)
		m.counts["orphan"]++
		dropped++
	}
	for _, set := range []string{"pending", "active", "schedule", "dead", "dead:at", "completed"} {
		for _, id := range slices.Sorted(maps.Keys(m.ghosts[set])) {
			drop(set, id, func(lane string) {
				if set == "active" {
					m.vacate(id, lane, len(m.members("active")))
				}
			})
		}
	}
	rows.Foreign = len(m.spoilt)
	for _, id := range slices.Sorted(maps.Keys(m.jobs)) {
		j := m.jobs[id]
		if !j.unlisted {
			continue
		}
		switch j.state {
		case "pending":
			rows.Pending++
			m.ready(j)
		case "active":
			rows.Active++
			m.move(j, "active", now+millis(lease))
		default:
			failf("no hand has taken %s out of %s", id, j.state)
		}
	}
	for key, l := range m.locks {
		j := m.jobs[l.holder]
		if l.until == 0 && (m.holder(key) == "" || j.state == "dead" || j.state == "completed") {
			delete(m.locks, key)
			unique++
		}
	}
	for _, kind := range []string{"pending", "active"} {
		for _, lane := range m.laneNames() {
			set := "g:" + lane + ":" + kind
			was := m.canServe(lane)
			for _, id := range slices.Sorted(maps.Keys(m.ghosts[set])) {
				drop(set, id, func(string) {})
			}
			m.refresh()
			if kind == "active" && !was && m.canServe(lane) {
				m.wake = true
			}
		}
	}
	lines := 0
	for id := range m.lines {
		if m.jobs[id] == nil && !m.spoilt[id] {
			delete(m.lines, id)
			lines++
		}
	}
	return answer{Says: fmt.Sprintf("rows %+v dropped %d unique %d lanes 0 lines %d laned false", rows, dropped, unique, lines)}
}

// lookedAt is what a dry run says: the same numbers, of a copy that is thrown away.
func (m *model) lookedAt(now stamp) answer {
	return audit{}.expect(m.clone(), now)
}
