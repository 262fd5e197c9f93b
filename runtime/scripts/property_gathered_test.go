package scripts

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// queueActions are those over many jobs at once and those of the whole queue: its settings, its end, and what
// is read of it.
func (h *history) queueActions() map[string]func(*rapid.T) {
	job := rapid.SampledFrom(propertyJobs)
	lane := rapid.SampledFrom(propertyLanes[1:])
	return map[string]func(*rapid.T){
		"a batch": h.batch,
		"gathered settles": func(t *rapid.T) {
			h.claim(t)
			h.handful(t)
		},
		"late gathered settles": func(t *rapid.T) {
			h.claim(t)
			h.lapseAll(t)
			h.handful(t)
		},
		"a batch at the limit": func(t *rapid.T) {
			room := rapid.IntRange(0, 2).Draw(t, "room")
			h.do(set("max_len", fmt.Sprint(max(1, len(h.m.members("pending"))+h.m.inLanes()+len(h.m.members("schedule"))+room))))
			h.batch(t)
			h.do(set("max_len", ""))
		},
		"plain work":    h.plainWork,
		"replaced work": h.replacedWork,
		"set":           func(t *rapid.T) { h.do(rapid.SampledFrom(propertySettings()).Draw(t, "setting")) },
		"clear all settings": func(*rapid.T) {
			var none []string
			for _, field := range SettingFields() {
				none = append(none, field, "")
			}
			h.all(setting{none}, settings{})
		},
		"caps of the morgue": func(t *rapid.T) {
			h.claim(t)
			for _, f := range h.lastClaims(3) {
				h.do(kill{f, "poisoned"})
			}
			h.all(rapid.SampledFrom([]setting{set("dead_max", "1"), set("dead_max", "0"), set("dead_ms", ms(3*time.Hour+29*time.Minute))}).Draw(t, "cap"),
				expire{rapid.IntRange(1, 3).Draw(t, "limit")})
		},
		"obliterate": func(t *rapid.T) {
			switch rapid.IntRange(0, 3).Draw(t, "how") {
			case 0:
				h.all(set("paused", "1"), obliterate{true})
			case 1:
				h.all(set("paused", "1"), obliterate{}, set("paused", ""))
			default:
				h.do(obliterate{rapid.Bool().Draw(t, "force")})
			}
		},
		"speak": func(t *rapid.T) {
			if len(h.claims) == 0 {
				return
			}
			f := rapid.SampledFrom(h.claims).Draw(t, "fence")
			if rapid.Bool().Draw(t, "now") {
				f = h.claims[len(h.claims)-1]
			}
			keep := rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "keep")
			for range rapid.IntRange(1, 3).Draw(t, "lines") {
				h.draws++
				h.all(progress{f, fmt.Sprint(h.draws)}, logLine{f, keep, fmt.Sprint(h.draws)})
			}
			h.all(logs{f.ID, -2, 5}, logs{f.ID, rapid.Int64Range(-3, 3).Draw(t, "from"), 2})
		},
		"look": func(t *rapid.T) {
			lists := []string{"pending", "active", "scheduled", "dead", "completed"}
			id, state, up := job.Draw(t, "job"), rapid.SampledFrom(lists).Draw(t, "state"), rapid.Bool().Draw(t, "up")
			h.all(stateOf{id}, detail{id}, pages{state, "", up, rapid.IntRange(1, 3).Draw(t, "page")})
			if rapid.Bool().Draw(t, "the whole queue") {
				in := lane.Draw(t, "lane")
				h.all(pages{"pending", in, up, 2}, next{}, counts{}, settings{}, oneLane{in}, browse{})
			}
		},
	}
}

func propertySettings() []setting {
	return []setting{
		set("paused", "1"), set("paused", ""), set("paused", ""), set("concurrency", "1"), set("concurrency", "3"),
		set("concurrency", ""), rate(1, time.Hour), rate(2, time.Hour), set("rate_max", "", "rate_ms", ""),
		set("max_len", "2"), set("max_len", "5"), set("max_len", ""), set("crash_budget", "1"), set("crash_budget", "0"),
		set("crash_budget", ""), set("events", "1"), set("events", ""),
		set("dead_max", "2"), set("dead_max", ""), set("dead_ms", ms(3*time.Hour+29*time.Minute)), set("dead_max", "", "dead_ms", ""),
	}
}

// batch enqueues several jobs at once, most of them plain ones, and some on the queues beside this one.
func (h *history) batch(t *rapid.T) {
	plain := func(id string) enqueue {
		h.draws++
		e := enter(id)
		e.Src = fmt.Sprintf("src%05d", h.draws)
		return e
	}
	id := rapid.SampledFrom(append([]string{jobN(4), jobN(5), jobN(6), "USR0KHTOWnGLuA"}, propertyJobs...))
	var b batch
	for range rapid.IntRange(2, 6).Draw(t, "size") {
		e := plain(id.Draw(t, "job"))
		if rapid.IntRange(0, 3).Draw(t, "not plain") == 0 {
			e = newJob(t, e.ID)
		}
		if _, stray := h.m.ghosts["pending"][e.ID]; stray && h.m.meta["max_len"] != "" {
			continue // it waits already by the count of the list, and once more by the count of a gathered call
		}
		b.Jobs = append(b.Jobs, e)
	}
	if len(b.Jobs) == 0 {
		return
	}
	for _, on := range h.beside {
		if rapid.Bool().Draw(t, "beside") {
			b.Beside = append(b.Beside, elsewhere{on, plain(jobN(7))}, elsewhere{on, plain(jobN(8))})
		}
	}
	h.do(b)
}

// lastClaims are the fences given last.
func (h *history) lastClaims(n int) []Fence { return h.claims[max(0, len(h.claims)-n):] }

// handful settles several claims in one call: the last ones, and some at random.
func (h *history) handful(t *rapid.T) {
	if len(h.claims) == 0 {
		return
	}
	var all []settled
	for _, f := range h.lastClaims(rapid.IntRange(0, 3).Draw(t, "completed")) {
		all = append(all, complete{Fence: f})
	}
	for range rapid.IntRange(1, 3).Draw(t, "others") {
		st := h.oneSettle(t)
		at := rapid.IntRange(0, len(all)).Draw(t, "place")
		all = append(all[:at:at], append([]settled{st}, all[at:]...)...)
	}
	h.send(all)
}

// send settles in one call, and accounts for each.
func (h *history) send(all []settled) {
	got := h.do(handful{all})
	for i, said := range strings.Split(got.Says, between) {
		h.sent = append(h.sent, all[i])
		if f := fenceIn(all[i]); f.By != "" {
			h.accounts(f, said)
		}
	}
}

// plainWork is a claim of jobs that own nothing but their rows, which are completed in one call, some of them
// twice, and some under another claim's fence.
func (h *history) plainWork(t *rapid.T) {
	h.all(set("events", ""), batch{Jobs: []enqueue{enter(jobN(4)), enter(jobN(5)), enter(jobN(6))}})
	before := len(h.claims)
	if rapid.Bool().Draw(t, "at the limit") {
		h.do(set("concurrency", fmt.Sprint(len(h.m.members("active"))+2)))
	}
	h.claim(t)
	h.do(popWake())
	var all []settled
	for _, f := range h.claims[before:] {
		switch rapid.IntRange(0, 4).Draw(t, "fence") {
		case 0:
			all = append(all, complete{Fence: Fence{f.ID, f.Attempts, "other001"}})
		case 1:
			all = append(all, complete{Fence: Fence{f.ID, f.Attempts + 1, f.By}})
		case 2:
			all = append(all, complete{Fence: f})
		}
		all = append(all, complete{Fence: f})
	}
	if len(all) > 0 {
		h.send(all)
	}
}

// replacedWork is a job that lapses, or not, before another one takes its place in the queue.
func (h *history) replacedWork(t *rapid.T) {
	e := newJob(t, jobN(9))
	e.Unique, e.Window, e.Debounce = uniqueKeyName, 0, false
	h.do(e)
	h.claim(t)
	if rapid.Bool().Draw(t, "lapsed") {
		h.lapseAll(t)
	}
	h.draws++
	by := newJob(t, jobN(100+h.draws))
	by.Unique, by.Window, by.Debounce, by.Payload = uniqueKeyName, 0, true, []byte("debounced "+by.ID)
	if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
		by.Fields[1] = "other"
	}
	h.all(by, by)
	h.settleAny(t)
}
