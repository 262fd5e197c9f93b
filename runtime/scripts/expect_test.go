package scripts

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

func (e enqueue) expect(m *model, now stamp) answer {
	if !strings.HasPrefix(e.ID, "JOB") {
		return answer{Says: "EMQKIND"}
	}
	if m.spoilt[e.ID] {
		return answer{Says: "duplicate"}
	}
	if j := m.jobs[e.ID]; j != nil {
		return answer{Says: "duplicate " + j.text["src"]}
	}
	if e.Unique != "" {
		if id := m.holder(e.Unique); id != "" {
			return answer{Says: e.meets(m, m.jobs[id], now) + " " + id}
		}
	}
	if most, err := strconv.Atoi(m.meta["max_len"]); err == nil &&
		len(m.members("pending"))+m.inLanes()+len(m.members("schedule")) >= most {
		return answer{Says: "EMQFULL"}
	}
	j := &modelJob{id: e.ID, text: e.text()}
	if e.Unique != "" {
		l := modelLock{holder: e.ID}
		if e.Window > 0 {
			l.until = now + millis(e.Window)
		}
		m.locks[e.Unique] = l
	}
	m.jobs[e.ID] = j
	e.list(m, j, now)
	return answer{Says: "enqueued"}
}

// text is what the row says of the job beside its state.
func (e enqueue) text() map[string]string {
	text := map[string]string{"payload": string(e.Payload), "src": e.Src}
	for f := range slices.Chunk(e.Fields, 2) {
		text[f[0]] = f[1]
	}
	if e.Lane != "" {
		text["group"] = e.Lane
	}
	if e.Unique != "" && e.Window == 0 {
		text["unique"] = e.Unique
		if e.UntilStart {
			text["unique_until"] = "start"
		}
	}
	return text
}

// list puts the job where it waits.
func (e enqueue) list(m *model, j *modelJob, now stamp) {
	switch {
	case !e.Later:
		m.ready(j)
		return
	case e.At.IsZero():
		m.park(j, now+millis(e.Delay))
	default:
		m.park(j, stamp(e.At.UnixMilli()))
	}
	m.announce("scheduled", j, -1, "")
}

// meets is an enqueue whose unique key has a holder, which is nil for a window that has outlived its job.
func (e enqueue) meets(m *model, j *modelJob, now stamp) string {
	if !e.Debounce || j == nil {
		return "conflict"
	}
	if j.text["replaced"] == e.ID {
		return "replaced"
	}
	said := e.text()
	if j.state != "pending" && j.state != "scheduled" || j.text["unique"] != e.Unique || j.text["kind"] != said["kind"] {
		return "conflict"
	}
	for _, f := range []string{"v", "headers", "max", "group", "unique_until", "lapsed", "last_error"} {
		delete(j.text, f)
	}
	delete(said, "src")
	maps.Copy(j.text, said)
	j.text["replaced"] = e.ID
	j.forgiven, j.lapses, j.due = j.attempts, 0, 0
	e.list(m, j, now)
	return "replaced"
}

func (c claim) expect(m *model, now stamp) answer {
	wait := never
	nothing := func() answer { return answer{fmt.Sprintf("idle=%t", m.pump.holder == ""), wait} }
	if m.meta["paused"] != "" {
		return nothing()
	}
	headroom := math.MaxInt
	if limit, err := strconv.Atoi(m.meta["concurrency"]); err == nil {
		headroom = limit - len(m.members("active"))
	}
	allowed, tat, spacing := m.allowance(now)
	if allowed == 0 {
		m.metaAt["rate_tat"] = tat
		wait = stamp(math.Ceil(float64(tat - now)))
	}
	n := min(c.N, 500, headroom, allowed)
	if n <= 0 {
		return nothing()
	}
	var b strings.Builder
	b.WriteString("idle=false")
	taken, scanned := 0, 0
	lanes := len(m.ring) > 0
	firstVT, firstFVT := m.meta["vt"], m.meta["fvt"]
	for goOn := true; goOn && taken < n && scanned < 500; {
		var j *modelJob
		var orphans int
		if vt, fvt := m.meta["vt"], m.meta["fvt"]; lanes {
			j, orphans, goOn = m.claimStep(500 - scanned)
		} else { // without lanes there is no virtual time
			j, orphans, goOn = m.claimStep(500 - scanned)
			m.setText("vt", vt)
			m.setText("fvt", fvt)
		}
		scanned += orphans
		if orphans > 0 {
			m.counts["orphan"] += orphans
		}
		if j == nil {
			continue
		}
		taken++
		scanned++
		j.attempts++
		j.text["by"] = c.By
		m.move(j, "active", now+millis(c.Lease))
		if j.text["unique_until"] == "start" {
			m.free(j)
			delete(j.text, "unique")
			delete(j.text, "unique_until")
		}
		m.refresh()
		b.WriteString("; " + j.claimed())
	}
	if taken == 0 {
		m.setText("vt", firstVT)
		m.setText("fvt", firstFVT)
		if scanned == 500 {
			wait = 0
		}
		return nothing()
	}
	if spacing > 0 {
		m.metaAt["rate_tat"] = tat + stamp(taken)*spacing
		if allowed == taken {
			wait = max(stamp(math.Ceil(float64(tat+stamp(taken)*spacing-now))), 1)
		}
	}
	if headroom > taken && allowed > taken && m.servable() {
		m.wake = true
	}
	return answer{b.String(), wait}
}

// claimed is what a claim tells of a job.
func (j *modelJob) claimed() string {
	most, _ := strconv.Atoi(j.text["max"]) // 0 without one
	version, _ := strconv.Atoi(j.text["v"])
	headers := map[string]string{}
	if j.text["headers"] != "" {
		headers["trace"] = "abc" // the only one that the tests write
	}
	return fmt.Sprintf("%s#%d by %s: %s %s forgiven %d lapses %d max %d v%d due %.0f headers %v tick %q lane %q",
		j.id, j.attempts, j.text["by"], j.text["kind"], j.text["payload"], j.forgiven, j.lapses, most,
		max(version, 1), float64(j.due), headers, j.text["tick"], j.lane())
}

func (e extend) expect(m *model, now stamp) answer {
	m.see(now, e.Lease.Milliseconds())
	var beats []string
	for _, f := range e.Fences {
		j := m.jobs[f.ID]
		switch {
		case j == nil || j.state != "active" || j.unlisted || !j.fenced(f):
			beats = append(beats, "0")
			continue
		case j.text["cancel"] != "":
			beats = append(beats, "2")
		default:
			beats = append(beats, "1")
		}
		j.when = now + millis(e.Lease)
	}
	return answer{Says: strings.Join(beats, " ")}
}

// see notes that somebody is alive. After a silence of more than half a lease there is a time of
// grace, a third of a lease, for the others to come back too.
func (m *model) see(now stamp, lease int64) {
	grace := m.metaAt["grace"]
	if now-m.metaAt["seen"] > stamp(lease)/2 {
		grace = now + stamp(lease/3)
	}
	if grace > now+stamp(lease) {
		grace = 0
	}
	m.metaAt["seen"], m.metaAt["grace"] = now, grace
}

func (p promote) expect(m *model, now stamp) answer {
	n := 0
	for _, id := range m.due("schedule", now, p.Limit) {
		if j := m.jobs[id]; j != nil && j.state == "scheduled" {
			n++
			j.due = j.when
			m.ready(j)
		} else {
			delete(m.ghosts["schedule"], id)
			m.counts["orphan"]++
		}
	}
	return answer{fmt.Sprintf("moved %d", n), atLeast(m.untilHead("schedule", now))}
}

func atLeast(in stamp) stamp {
	if in < 0 {
		return never
	}
	return in
}

func (r reap) expect(m *model, now stamp) answer {
	m.see(now, r.Lease.Milliseconds())
	if grace := m.metaAt["grace"]; grace > now {
		in := never
		if len(m.members("active")) > 0 {
			in = grace - now
		}
		return answer{"moved 0", in}
	}
	ids := m.due("active", now, r.Limit)
	m.takeback(ids, r.Budget, now)
	return answer{fmt.Sprintf("moved %d", len(ids)), atLeast(m.untilHead("active", now))}
}

// takeback lets jobs wait again whose holders have lost them, and answers how many there were.
func (m *model) takeback(ids []string, budget int, now stamp) int {
	if own, err := strconv.Atoi(m.meta["crash_budget"]); err == nil {
		budget = own
	}
	var lapsed []*modelJob
	running := len(m.members("active"))
	for _, id := range ids {
		lane := ""
		if j := m.jobs[id]; j != nil {
			lane = j.lane()
		}
		m.vacate(id, lane, running)
		running--
		if j := m.jobs[id]; j != nil && j.state == "active" {
			lapsed = append(lapsed, j)
		} else {
			m.counts["orphan"]++
		}
		delete(m.ghosts["active"], id)
	}
	for _, j := range lapsed {
		m.counts["reaped"]++
		j.lapses++
		m.announce("reaped", j, j.counted(), "")
		switch {
		case j.text["cancel"] != "":
			m.end(j, "cancelled", j.counted())
		case budget > 0 && j.lapses >= budget:
			m.bury(j, fmt.Sprintf("lease lapsed %d times", j.lapses), j.counted(), now)
		default:
			j.text["lapsed"] = strconv.Itoa(j.attempts)
			j.forgiven++
			m.ready(j)
		}
	}
	return len(lapsed)
}

func (e expire) expect(m *model, now stamp) answer {
	n := 0
	for _, id := range m.due("completed", now, e.Limit) {
		n++
		m.forget(id, "completed")
	}
	old := stamp(90 * 24 * 3600 * 1000)
	if own, ok := m.meta["dead_ms"]; ok {
		old = parseStamp(own)
	}
	aged := m.due("dead:at", now-old, e.Limit)
	for _, id := range aged {
		n++
		m.forget(id, "dead")
	}
	most := 10000
	if own, err := strconv.Atoi(m.meta["dead_max"]); err == nil {
		most = own
	}
	dead := m.members("dead:at")
	for _, d := range dead[:max(0, min(len(dead)-most, e.Limit))] {
		n++
		m.forget(d.id, "dead")
	}
	in := atLeast(m.untilHead("completed", now))
	if e.Limit > 0 && (len(aged) == e.Limit || len(dead)-most > e.Limit) {
		in = 0
	}
	return answer{fmt.Sprintf("moved %d", n), in}
}

// forget deletes a job that is kept no longer, or a member that has no such job.
func (m *model) forget(id, state string) {
	if j := m.jobs[id]; j != nil && j.state == state {
		m.erase(j)
	}
	delete(m.ghosts[state], id)
	if state == "dead" {
		delete(m.ghosts["dead:at"], id)
	}
}

func (p pump) expect(m *model, now stamp) answer {
	if m.pump.holder != "" && m.pump.holder != p.Tag {
		return answer{"another pumps", never}
	}
	m.pump = modelLock{p.Tag, now + 3000}
	promoted := promote{p.Limit}.expect(m, now)
	n := 0
	if _, err := fmt.Sscanf(promoted.Says, "moved %d", &n); err != nil {
		failf("promote says %q", promoted.Says)
	}
	rest := int(math.Ceil(max(float64(p.Limit-n), float64(p.Limit)/4) / 2))
	reaped := reap{p.Budget, rest, p.Lease}.expect(m, now)
	expired := expire{rest}.expect(m, now)
	in := never
	for _, a := range []answer{promoted, reaped, expired} {
		if a.In >= 0 && (in < 0 || a.In < in) {
			in = a.In
		}
	}
	return answer{strings.ReplaceAll(
		"pumped"+promoted.Says[len("moved"):]+reaped.Says[len("moved"):]+expired.Says[len("moved"):], "  ", " ") + m.cronWord(now), in}
}

func (h handover) expect(m *model, _ stamp) answer {
	if m.pump.holder == h.Tag && h.Tag != "" {
		m.pump = modelLock{}
		m.wakeUp = true
	}
	m.wake = true
	delete(m.nudges, h.Tag)
	return answer{Says: "left"}
}

func (n nudge) expect(m *model, now stamp) answer {
	l := m.nudges[n.Tag]
	m.nudges[n.Tag] = modelNudge{l.tokens + 1, now + 60_000}
	return answer{Says: "nudged"}
}

func (wakeOne) expect(m *model, _ stamp) answer {
	m.wake = true
	return answer{Says: "woke"}
}

func (r reprocess) expect(m *model, _ stamp) answer {
	j := m.jobs[r.ID]
	if j == nil {
		return answer{Says: "EMQGONE"}
	}
	if j.state != "dead" {
		return answer{Says: "EMQSTATE"}
	}
	if key, ok := j.text["unique"]; ok {
		if other := m.holder(key); other != "" && other != j.id {
			return answer{Says: "EMQLOCK"}
		}
		m.locks[key] = modelLock{holder: j.id}
	}
	maps.DeleteFunc(j.text, func(f, _ string) bool { return f == "last_error" || f == "lapsed" || f == "cancel" })
	j.forgiven, j.lapses, j.settled = j.attempts, 0, 0
	m.ready(j)
	m.announce("reprocessed", j, -1, "")
	return answer{Says: "revived"}
}

func (c cancel) expect(m *model, _ stamp) answer {
	j := m.jobs[c.ID]
	if j == nil {
		return answer{Says: "EMQGONE"}
	}
	switch j.state {
	case "active":
		j.text["cancel"] = "1"
		m.told = append(m.told, "cancel "+j.id)
		return answer{Says: "cancelling"}
	case "pending", "scheduled":
		m.end(j, "cancelled", -1)
		return answer{Says: "cancelled"}
	}
	return answer{Says: "EMQSTATE"}
}

func (m *model) setText(field, was string) {
	delete(m.meta, field)
	if was != "" {
		m.meta[field] = was
	}
}
