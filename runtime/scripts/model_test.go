package scripts

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// model is a queue as the contract describes it. It holds jobs, not keys: which sets list a job
// follows from its state, so a stray member or a missing one shows when the whole key space is
// compared with what the model renders.
type model struct {
	base   string
	jobs   map[string]*modelJob
	spoilt map[string]bool             // rows that somebody overwrote with another type
	ghosts map[string]map[string]stamp // members of sets that have no such job
	locks  map[string]modelLock
	meta   map[string]string
	metaAt map[string]stamp
	counts map[string]int
	wake   bool
	wakeUp bool // wake:pump
	pump   modelLock
	nudges map[string]modelNudge // wake:<tag>, by the tag of a process
	told   []string              // what the step has published
	lines  map[string][]string   // of jobs, the newest first
	laneModel
	crons map[string]*modelCron
}

// modelNudge is the list of a process that waits alone.
type modelNudge struct {
	tokens int
	until  stamp
}

type modelJob struct {
	id                         string
	state                      string
	attempts, forgiven, lapses int
	text                       map[string]string // fields that only some transitions touch
	due, settled               stamp
	when                       stamp // its score
	unlisted                   bool  // somebody took it out of its set
	vacated                    bool  // out of its lane's active set, within a step
}

// modelLock is a key that names its holder, for ever or until a time.
type modelLock struct {
	holder string
	until  stamp
}

func newModel(base string) *model {
	return &model{
		base: base, jobs: map[string]*modelJob{}, spoilt: map[string]bool{}, ghosts: map[string]map[string]stamp{},
		locks: map[string]modelLock{}, meta: map[string]string{}, metaAt: map[string]stamp{}, counts: map[string]int{},
		laneModel: newLaneModel(), crons: map[string]*modelCron{}, lines: map[string][]string{},
		nudges: map[string]modelNudge{},
	}
}

// listOf gives the set that lists the jobs of a state.
func listOf(state string) string {
	if state == "scheduled" {
		return "schedule"
	}
	return state
}

type member struct {
	id    string
	score stamp
}

// members lists a set in the server's order.
func (m *model) members(set string) []member {
	var all []member
	for _, j := range m.jobs {
		if j.list() == set && !j.unlisted {
			all = append(all, member{j.id, j.when})
		}
		if set == "dead:at" && j.state == "dead" && !j.unlisted {
			all = append(all, member{j.id, j.settled})
		}
	}
	for id, score := range m.ghosts[set] {
		all = append(all, member{id, score})
	}
	slices.SortFunc(all, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.score, b.score), strings.Compare(a.id, b.id))
	})
	return all
}

// due lists the members whose time has come, up to a limit.
func (m *model) due(set string, now stamp, limit int) []string {
	var ids []string
	for _, e := range m.members(set) {
		if e.score <= now && len(ids) < min(max(limit, 0), 500) {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// untilHead is the time until a set's first member is due, or -1.
func (m *model) untilHead(set string, now stamp) stamp {
	all := m.members(set)
	if len(all) == 0 {
		return -1
	}
	return max(all[0].score-now, 0)
}

// move lists a job under a state.
func (m *model) move(j *modelJob, state string, when stamp) {
	j.state, j.when, j.unlisted, j.vacated = state, when, false, false
	delete(m.ghosts[j.list()], j.id)
	if state == "active" {
		delete(m.ghosts["g:"+j.lane()+":active"], j.id)
	}
	if state == "dead" {
		delete(m.ghosts["dead:at"], j.id)
	}
}

// ready makes a job claimable, and park makes it wait, for the pump to know when it is the earliest.
func (m *model) ready(j *modelJob) {
	m.move(j, "pending", 0)
	m.wake = true
}

func (m *model) park(j *modelJob, due stamp) {
	m.move(j, "scheduled", due)
	if m.members("schedule")[0].id == j.id {
		m.wakeUp = true
	}
}

// vacate counts a slot as free: a worker that waits at the limit is woken if there is work.
func (m *model) vacate(id, lane string, wasActive int) {
	m.leaveLane(id, lane)
	limit, err := strconv.Atoi(m.meta["concurrency"])
	if err == nil && wasActive == limit && m.servable() {
		m.wake = true
	}
}

func (m *model) holds(j *modelJob) bool {
	key, ok := j.text["unique"]
	return ok && m.locks[key].holder == j.id
}

// free gives up the job's unique key if it still is the job's.
func (m *model) free(j *modelJob) {
	if m.holds(j) {
		delete(m.locks, j.text["unique"])
	}
}

// holder is the job that rightly holds a key; empty if none does.
func (m *model) holder(key string) string {
	l := m.locks[key]
	if l.until > 0 {
		return l.holder
	}
	if j := m.jobs[l.holder]; j != nil && j.text["unique"] == key {
		return l.holder
	}
	return ""
}

func (m *model) end(j *modelJob, count string, attempt int) {
	m.announce(count, j, attempt, "")
	m.free(j)
	m.erase(j)
	m.counts[count]++
}

// erase deletes a job with its log lines, if it knows of any.
func (m *model) erase(j *modelJob) {
	delete(m.jobs, j.id)
	if j.text["logs"] != "" {
		delete(m.lines, j.id)
	}
}

func (m *model) bury(j *modelJob, reason string, attempt int, now stamp) {
	m.announce("dead", j, attempt, reason)
	m.free(j)
	j.text["last_error"] = reason
	j.settled = now
	m.move(j, "dead", 0)
	m.counts["failed"]++
}

// pass lets the keys expire whose time is over.
func (m *model) pass(now stamp) {
	maps.DeleteFunc(m.locks, func(_ string, l modelLock) bool { return l.until > 0 && l.until <= now })
	maps.DeleteFunc(m.nudges, func(_ string, l modelNudge) bool { return l.until <= now })
	if m.pump.until > 0 && m.pump.until <= now {
		m.pump = modelLock{}
	}
}

// shift moves every time into the past.
func (m *model) shift(d stamp) {
	move := func(t *stamp) {
		if *t != 0 {
			*t -= d
		}
	}
	for _, j := range m.jobs {
		move(&j.due)
		move(&j.settled)
		move(&j.when)
	}
	for set, members := range m.ghosts {
		for id := range members {
			if timeSets[set] {
				members[id] -= d
			}
		}
	}
	for k, l := range m.locks {
		move(&l.until)
		m.locks[k] = l
	}
	for k, l := range m.nudges {
		move(&l.until)
		m.nudges[k] = l
	}
	for k, t := range m.metaAt {
		move(&t)
		m.metaAt[k] = t
	}
	move(&m.pump.until)
	for _, e := range m.crons {
		if e.next < Never {
			move(&e.next)
		}
		move(&e.refreshed)
	}
}

// render writes the model down as the keys of wire.md.
func (m *model) render() space {
	sp := space{}
	put := func(name string, v value) {
		if len(v.Text)+len(v.At)+len(v.Items) > 0 {
			sp[m.base+name] = v
		}
	}
	for _, set := range []string{"pending", "active", "schedule", "dead", "dead:at", "completed"} {
		v := value{Type: "zset", Text: map[string]string{}, At: map[string]stamp{}}
		for _, e := range m.members(set) {
			if timeSets[set] {
				v.At[e.id] = e.score
			} else {
				v.Text[e.id] = strconv.FormatFloat(float64(e.score), 'f', -1, 64)
			}
		}
		put(set, v)
	}
	for id, j := range m.jobs {
		put("job:"+id, j.render())
	}
	for id, lines := range m.lines {
		put("job:"+id+":logs", value{Type: "list", Items: lines})
	}
	for id := range m.spoilt {
		put("job:"+id, value{Type: "string", Items: []string{"spoilt"}})
	}
	for key, l := range m.locks {
		put("de:"+key, value{Type: "string", Items: []string{l.holder}, Ends: l.until})
	}
	for name, n := range m.counts {
		put("metrics:"+name, value{Type: "hash", Text: map[string]string{"count": strconv.Itoa(n)}})
	}
	m.renderLanes(put)
	m.renderCrons(put)
	meta := maps.Clone(m.meta)
	if n := m.inLanes(); n > 0 {
		meta["laned"] = strconv.Itoa(n)
	}
	put("meta", value{Type: "hash", Text: meta, At: m.metaAt})
	if m.wake {
		put("wake", value{Type: "list", Items: []string{"1"}})
	}
	if m.wakeUp {
		put("wake:pump", value{Type: "list", Items: []string{"1"}})
	}
	for tag, l := range m.nudges {
		put("wake:"+tag, value{Type: "list", Items: slices.Repeat([]string{"1"}, l.tokens), Ends: l.until})
	}
	if m.pump.holder != "" {
		put("pump", value{Type: "string", Items: []string{m.pump.holder}, Ends: m.pump.until})
	}
	return sp
}

func (j *modelJob) render() value {
	v := value{Type: "hash", Text: maps.Clone(j.text), At: map[string]stamp{}}
	v.Text["state"] = j.state
	v.Text["attempts"] = strconv.Itoa(j.attempts)
	if j.forgiven != 0 {
		v.Text["forgiven"] = strconv.Itoa(j.forgiven)
	}
	if j.lapses != 0 {
		v.Text["lapses"] = strconv.Itoa(j.lapses)
	}
	if j.due != 0 {
		v.At["due"] = j.due
	}
	if j.settled != 0 {
		v.At["settled_at"] = j.settled
	}
	return v
}

// adopt takes over the exact times of a key space that is equal within the slop, so that errors of
// measurement do not add up.
func (m *model) adopt(sp space) {
	for id, j := range m.jobs {
		row := sp[m.base+"job:"+id].At
		j.due, j.settled = row["due"], row["settled_at"]
		if set := listOf(j.state); timeSets[set] && !j.unlisted {
			j.when = sp[m.base+set].At[id]
		}
	}
	for k, l := range m.locks {
		l.until = sp[m.base+"de:"+k].Ends
		m.locks[k] = l
	}
	for tag, l := range m.nudges {
		l.until = sp[m.base+"wake:"+tag].Ends
		m.nudges[tag] = l
	}
	for name, e := range m.crons {
		at := sp[m.base+"repeat:"+name].At
		e.next, e.refreshed = at["next"], at["refreshed"]
	}
	m.metaAt = maps.Clone(sp[m.base+"meta"].At)
	if m.metaAt == nil {
		m.metaAt = map[string]stamp{}
	}
	m.pump.until = sp[m.base+"pump"].Ends
}

// allowance is how many jobs the rate allows now: with a spacing of (period + slack) / max, one job
// when the theoretical time has come, and more for unused time, up to a slack of a twentieth.
func (m *model) allowance(now stamp) (n int, tat, spacing stamp) {
	most, err := strconv.Atoi(m.meta["rate_max"])
	if err != nil {
		return math.MaxInt, 0, 0
	}
	period := parseStamp(m.meta["rate_ms"])
	slack := period / 20
	spacing = (period + slack) / stamp(most)
	tat = max(min(m.metaAt["rate_tat"], now+spacing), now-slack)
	if tat > now {
		return 0, tat, spacing
	}
	return int((now-tat)/spacing) + 1, tat, spacing
}
