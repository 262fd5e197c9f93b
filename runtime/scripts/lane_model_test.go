package scripts

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// parked is the score of a lane that cannot be served now.
const parkedScore = float64(1<<53 - 1)

// laneModel is what the model knows of lanes beside the jobs in them.
type laneModel struct {
	ring    map[string]float64
	paused  map[string]bool
	limits  map[string]int
	weights map[string]int
}

func newLaneModel() laneModel {
	return laneModel{map[string]float64{}, map[string]bool{}, map[string]int{}, map[string]int{}}
}

func fixedText(f float64) string { return strconv.FormatFloat(f, 'f', 9, 64) }

func fixed(f float64) float64 { return parseFloat(fixedText(f)) }

func parseFloat(s string) float64 {
	if s == "" {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	check(err)
	return f
}

func (m *model) turnOf(lane string) float64 { return 1 / float64(max(m.weights[lane], 1)) }

func (j *modelJob) lane() string { return j.text["group"] }

// list is the set that lists a waiting or ended job.
func (j *modelJob) list() string {
	if j.state == "pending" && j.lane() != "" {
		return "g:" + j.lane() + ":pending"
	}
	return listOf(j.state)
}

// laneNames gives every lane that the model has ever seen and that has a job or a ghost.
func (m *model) laneNames() []string {
	names := map[string]bool{}
	for _, j := range m.jobs {
		names[j.lane()] = true
	}
	for set := range m.ghosts {
		if lane, ok := strings.CutPrefix(set, "g:"); ok {
			names[lane[:strings.LastIndex(lane, ":")]] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

func (m *model) waitingIn(lane string) int { return len(m.members("g:" + lane + ":pending")) }

// runningIn is a lane's active set.
func (m *model) runningIn(lane string) []string {
	ids := maps.Clone(m.ghosts["g:"+lane+":active"])
	if ids == nil {
		ids = map[string]stamp{}
	}
	for id, j := range m.jobs {
		if j.state == "active" && j.lane() == lane && !j.vacated {
			ids[id] = 0
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

func (m *model) blocked(lane string) bool {
	limit, limited := m.limits[lane]
	return m.paused[lane] || limited && len(m.runningIn(lane)) >= limit
}

func (m *model) canServe(lane string) bool {
	score, in := m.ring[lane]
	return in && score < parkedScore
}

// refresh is the rule of the ring: every lane with waiting jobs is in it, parked exactly while it is
// blocked, and comes one turn after the virtual time when it enters or is parked no more.
func (m *model) refresh() {
	names := m.laneNames()
	for lane := range m.ring {
		if !slices.Contains(names, lane) {
			delete(m.ring, lane)
		}
	}
	for _, lane := range names {
		switch {
		case m.waitingIn(lane) == 0:
			delete(m.ring, lane)
		case m.blocked(lane):
			m.ring[lane] = parkedScore
		case !m.canServe(lane):
			m.ring[lane] = fixed(parseFloat(m.meta["vt"]) + m.turnOf(lane))
		}
	}
}

// servable tells whether a claim would find something.
func (m *model) servable() bool {
	if len(m.members("pending")) > 0 {
		return true
	}
	for lane := range m.ring {
		if m.canServe(lane) {
			return true
		}
	}
	return false
}

// inLanes is how many jobs wait in lanes.
func (m *model) inLanes() int {
	n := 0
	for _, lane := range m.laneNames() {
		n += m.waitingIn(lane)
	}
	return n
}

// leaveLane takes a job out of its lane's active set. A lane that was at its limit wakes a worker.
func (m *model) leaveLane(id, lane string) {
	if j := m.jobs[id]; j != nil && j.state == "active" {
		j.vacated = true
	}
	delete(m.ghosts["g:"+lane+":active"], id)
	_, limited := m.limits[lane]
	if was := m.canServe(lane); lane != "" && limited {
		m.refresh()
		if !was && m.canServe(lane) {
			m.wake = true
		}
	}
}

// claimStep takes one job while there are lanes, by the contract's rule one turn at a time, and answers
// it, how many orphans it dropped, and false when nothing can be served.
func (m *model) claimStep(budget int) (j *modelJob, orphans int, goOn bool) {
	vt, fvt := parseFloat(m.meta["vt"]), parseFloat(m.meta["fvt"])
	lane, score := "", parkedScore
	for _, name := range slices.Sorted(maps.Keys(m.ring)) {
		if m.ring[name] < score {
			lane, score = name, m.ring[name]
		}
	}
	list := "g:" + lane + ":pending"
	if flat := max(fvt, vt); len(m.members("pending")) > 0 && flat <= score {
		lane, score, list = "", flat, "pending"
	} else if lane == "" {
		return nil, 0, false
	}
	for _, e := range m.members(list) {
		if orphans == budget {
			break
		}
		if j = m.jobs[e.id]; j != nil && j.state == "pending" && j.list() == list {
			break
		}
		j = nil
		delete(m.ghosts[list], e.id)
		orphans++
	}
	if j == nil {
		if list == "pending" { // a turn that nothing was taken in: its score is written with the next one that is served
			m.meta["fvt"] = fixedText(score)
		}
		m.refresh()
		return nil, orphans, orphans < budget
	}
	next := fixed(score + m.turnOf(lane))
	if lane == "" {
		fvt = next
	} else {
		m.ring[lane] = next
	}
	m.meta["vt"], m.meta["fvt"] = fixedText(score), fixedText(fvt)
	return j, orphans, true
}

func (m *model) renderLanes(put func(string, value)) {
	for _, lane := range m.laneNames() {
		waiting := value{Type: "zset", Text: map[string]string{}}
		for _, e := range m.members("g:" + lane + ":pending") {
			waiting.Text[e.id] = "0"
		}
		put("g:"+lane+":pending", waiting)
		put("g:"+lane+":active", value{Type: "set", Items: m.runningIn(lane)})
	}
	ring := value{Type: "zset", Text: map[string]string{}}
	for lane, score := range m.ring {
		ring.Text[lane] = fixedText(score)
	}
	put("ring", ring)
	put("paused", value{Type: "set", Items: slices.Sorted(maps.Keys(m.paused))})
	for name, controls := range map[string]map[string]int{"glimit": m.limits, "gweight": m.weights} {
		v := value{Type: "hash", Text: map[string]string{}}
		for lane, n := range controls {
			v.Text[lane] = strconv.Itoa(n)
		}
		put(name, v)
	}
}

// tune is a change of a lane's controls.
type tune struct {
	Lane, Verb string
	Value      int
}

func (c tune) call(ctx context.Context, s *target) answer {
	return says("tuned", s.queue.Tune(ctx, c.Lane, c.Verb, c.Value))
}

func (c tune) expect(m *model, _ stamp) answer {
	was := m.canServe(c.Lane)
	switch c.Verb {
	case "pause":
		m.paused[c.Lane] = true
	case "resume":
		delete(m.paused, c.Lane)
	case "limit":
		delete(m.limits, c.Lane)
		if c.Value > 0 {
			m.limits[c.Lane] = c.Value
		}
	case "weight":
		if max(m.weights[c.Lane], 1) != c.Value {
			delete(m.ring, c.Lane)
		}
		delete(m.weights, c.Lane)
		if c.Value != 1 {
			m.weights[c.Lane] = c.Value
		}
	}
	m.refresh()
	if c.Verb != "weight" && !was && m.canServe(c.Lane) {
		m.wake = true
	}
	return answer{Says: "tuned"}
}

// browse reads all lanes, page by page.
type browse struct{}

func (browse) call(ctx context.Context, s *target) answer {
	var lanes []Lane
	var calls rounds
	for at := LanesBegin; at.Stage != ""; {
		calls.more()
		page, next, err := s.queue.Lanes(ctx, at, 100)
		if err != nil {
			return says("", err)
		}
		lanes, at = append(lanes, page...), next
	}
	return saysLanes(lanes)
}

func saysLanes(lanes []Lane) answer {
	slices.SortFunc(lanes, func(a, b Lane) int { return cmp.Compare(a.Name, b.Name) })
	return answer{Says: fmt.Sprint(lanes)}
}

func (browse) expect(m *model, _ stamp) answer {
	names := map[string]bool{}
	for _, lanes := range []map[string]int{m.limits, m.weights} {
		for lane := range lanes {
			names[lane] = true
		}
	}
	for lane := range m.paused {
		names[lane] = true
	}
	for lane := range m.ring {
		names[lane] = true
	}
	delete(names, "")
	var lanes []Lane
	for name := range names {
		lanes = append(lanes, m.laneOf(name))
	}
	return saysLanes(lanes)
}

// laneOf is what an operator is told of a lane.
func (m *model) laneOf(name string) Lane {
	return Lane{
		Name: name, Waiting: int64(m.waitingIn(name)), Active: int64(len(m.runningIn(name))),
		Weight: max(m.weights[name], 1), Limit: m.limits[name], Paused: m.paused[name],
	}
}
