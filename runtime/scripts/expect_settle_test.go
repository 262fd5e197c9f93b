package scripts

import "strconv"

// fenced tells whether a fence is the job's present one. A caller of the published protocol passes
// no by.
func (j *modelJob) fenced(f Fence) bool {
	return int64(j.attempts) == f.Attempts && (f.By == "" || f.By == j.text["by"])
}

// take is the first step of every settle: an empty answer means that the caller's claim is over and
// the job is its to place.
func (m *model) take(f Fence) (*modelJob, answer) {
	j := m.jobs[f.ID]
	switch {
	case j == nil:
		return nil, answer{Says: "EMQGONE"}
	case !j.fenced(f):
		m.counts["stale"]++
		return nil, answer{Says: "EMQSTALE"}
	case j.state == "active":
		if j.unlisted {
			m.leaveLane(j.id, j.lane())
		} else {
			m.vacate(j.id, j.lane(), len(m.members("active")))
		}
	case j.state == "pending" && j.text["lapsed"] == strconv.Itoa(j.attempts):
		delete(j.text, "lapsed")
		j.forgiven--
		j.unlisted = true // until it is placed: its lane may leave the ring and enter again
		m.refresh()
	default:
		return nil, answer{Says: "again " + j.state}
	}
	return j, answer{}
}

// takeUncancelled ends a job that was cancelled instead of letting it wait again.
func (m *model) takeUncancelled(f Fence) (*modelJob, answer) {
	j, refusal := m.take(f)
	if j != nil && j.text["cancel"] != "" {
		m.end(j, "cancelled", j.counted())
		return nil, answer{Says: "cancelled"}
	}
	return j, refusal
}

func (c complete) expect(m *model, now stamp) answer {
	j, refusal := m.take(c.Fence)
	if j == nil {
		if len(refusal.Says) > 5 && refusal.Says[:5] == "again" {
			refusal.Says = "again" // complete does not say the state
		}
		return refusal
	}
	if c.Retain <= 0 {
		m.end(j, "completed", j.counted())
		return answer{Says: "completed"}
	}
	m.announce("completed", j, j.counted(), "")
	m.free(j)
	j.settled = now
	if c.Result != "" {
		j.text["result"] = c.Result
	}
	m.move(j, "completed", now+millis(c.Retain))
	m.counts["completed"]++
	return answer{Says: "completed"}
}

func (r retry) expect(m *model, now stamp) answer {
	j, refusal := m.takeUncancelled(r.Fence)
	if j == nil {
		return refusal
	}
	most := r.Limit
	if own, err := strconv.Atoi(j.text["max"]); err == nil {
		most = own
	}
	m.announce("failed", j, j.counted(), r.Reason)
	if j.counted() >= most {
		m.bury(j, r.Reason, j.counted(), now)
		return answer{Says: "dead"}
	}
	m.announce("retried", j, j.counted(), "")
	j.text["last_error"] = r.Reason
	m.counts["retried"]++
	m.park(j, now+millis(r.Delay))
	return answer{Says: "scheduled"}
}

func (z snooze) expect(m *model, now stamp) answer {
	j, refusal := m.takeUncancelled(z.Fence)
	if j == nil {
		return refusal
	}
	m.announce("snoozed", j, j.counted(), "")
	j.forgiven++
	m.counts["snoozed"]++
	m.park(j, now+millis(z.Delay))
	return answer{Says: "scheduled"}
}

func (r release) expect(m *model, now stamp) answer {
	j, refusal := m.takeUncancelled(r.Fence)
	if j == nil {
		return refusal
	}
	m.announce("released", j, j.counted(), "")
	j.forgiven++
	m.counts["released"]++
	if r.Delay > 0 {
		m.park(j, now+millis(r.Delay))
		return answer{Says: "scheduled"}
	}
	m.ready(j)
	return answer{Says: "pending"}
}

func (k kill) expect(m *model, now stamp) answer {
	j, refusal := m.takeUncancelled(k.Fence)
	if j == nil {
		return refusal
	}
	m.bury(j, k.Reason, j.counted(), now)
	return answer{Says: "dead"}
}

func (d discard) expect(m *model, _ stamp) answer {
	j, refusal := m.takeUncancelled(d.Fence)
	if j == nil {
		return refusal
	}
	m.end(j, "discarded", j.counted())
	return answer{Says: "discarded"}
}
