package scripts

import (
	"fmt"

	"pgregory.net/rapid"
)

// handActions are what goes wrong by hand, or nearly: jobs that stand where they do not belong.
func (h *history) handActions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"a row is made anew": h.rowAnew,
		"a key passes on":    h.keyPassesOn,
		"a lease that nothing lists": func(t *rapid.T) {
			h.claim(t)
			for _, f := range h.lastClaims(1) {
				h.all(unlist(f.ID, "active"), extend{lease, []Fence{f}})
				if rapid.Bool().Draw(t, "audited") {
					h.do(audit{})
				}
			}
		},
		"a pause of a lane": func(t *rapid.T) {
			e := newJob(t, jobN(0))
			e.Lane = rapid.SampledFrom(propertyLanes[1:]).Draw(t, "of")
			h.all(e, tune{e.Lane, "pause", 0})
			if rapid.Bool().Draw(t, "claimed meanwhile") {
				h.claim(t)
			}
			h.all(popWake(), tune{e.Lane, "resume", 0})
		},
	}
}

// rowAnew is a row that a hand deletes, and another job of the same id: it can stand in two lists then.
func (h *history) rowAnew(t *rapid.T) {
	own := func() enqueue {
		e := newJob(t, jobN(0)) // the first of its list
		e.Unique, e.Window, e.Debounce = "", 0, false
		return e
	}
	first := own()
	h.do(first)
	if rapid.Bool().Draw(t, "with lines") {
		h.claim(t)
		h.lines(1)
	}
	h.all(deleteRow(first.ID), own())
	switch rapid.IntRange(0, 2).Draw(t, "then") {
	case 0:
		list := "pending"
		if first.Lane != "" {
			list = "lane"
		}
		h.do(drain{List: list, Lane: first.Lane, Limit: 1, Guard: Unguarded})
	case 1:
		h.claim(t)
		h.lines(3)
	case 2:
		h.all(audit{Look: true}, audit{})
	}
}

// lines writes a line to each of the jobs claimed last.
func (h *history) lines(n int) {
	for _, f := range h.lastClaims(n) {
		h.draws++
		h.all(logLine{f, 3, fmt.Sprint(h.draws)}, logs{f.ID, -2, 5})
	}
}

// keyPassesOn is a unique key whose holder has lost it, by its death or by a hand, to another job.
func (h *history) keyPassesOn(t *rapid.T) {
	own := func(id string) enqueue {
		e := newJob(t, id)
		e.Unique, e.Window, e.Debounce = uniqueKeyName, 0, false
		return e
	}
	first := own(jobN(0))
	h.do(first)
	if rapid.Bool().Draw(t, "by a hand") {
		h.do(loseKey(uniqueKeyName))
	} else {
		h.claim(t)
		for _, f := range h.lastClaims(3) {
			h.do(kill{f, "poisoned"})
		}
	}
	h.draws++
	h.do(own(jobN(100 + h.draws)))
	h.do(rapid.SampledFrom([]step{
		remove{first.ID}, reprocess{first.ID}, cancel{first.ID}, revive{"", 2, 0},
		drain{List: "dead", Limit: 2, Guard: Unguarded},
	}).Draw(t, "then"))
	h.claim(t)
}

func loseKey(key string) step {
	return byHand{"take the key " + key + " away",
		func(s *target) []string { return []string{"DEL", s.queue.keys.Base() + "de:" + key} },
		func(m *model) { delete(m.locks, key) }}
}
