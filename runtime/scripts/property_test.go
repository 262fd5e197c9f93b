package scripts

import (
	"flag"
	"fmt"
	"maps"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// history is what several workers have done to a few jobs, each step chosen at random.
type history struct {
	*scene
	claims []Fence       // every fence that a claim ever gave
	sent   []step        // every settle that was ever sent
	used   map[Fence]int // how often a settle under this fence was accepted
	draws  int
}

var (
	propertyJobs  = []string{jobA, jobB, jobC, jobN(1), jobN(2), jobN(3)}
	propertyLanes = []string{"", "a", "b"}
)

// Times of the histories. No sum or difference of a few of them is close to another.
var (
	propertyDelays  = []time.Duration{0, 61 * time.Minute, 7*time.Hour + 13*time.Minute}
	propertyAdvance = []time.Duration{time.Minute + 7*time.Second, 4*time.Minute + 31*time.Second, 23 * time.Minute, 9 * time.Hour}
)

func (h *history) settle(st step, f Fence) {
	h.accounts(f, h.do(st).Says)
}

// accounts notes what a settle has answered.
func (h *history) accounts(f Fence, said string) {
	switch said {
	case "completed", "scheduled", "pending", "dead", "cancelled", "discarded":
		h.used[f]++
		if h.used[f] > 1 {
			failf("after %s\nthe fence %v was accepted twice", h.story(), f)
		}
	}
}

// resend sends a settle once more, byte for byte. If its fence was used, nothing but a count changes.
func (h *history) resend(st step) {
	f := fenceIn(st)
	if f.By == "" {
		h.do(st) // fenced by attempts alone: those may repeat when a row is made anew
		return
	}
	if h.used[f] > 0 {
		h.leaves(st)
		return
	}
	h.settle(st, f)
}

func fenceIn(st step) Fence {
	switch st := st.(type) {
	case complete:
		return st.Fence
	case retry:
		return st.Fence
	case snooze:
		return st.Fence
	case release:
		return st.Fence
	case kill:
		return st.Fence
	case discard:
		return st.Fence
	}
	panic(fmt.Sprintf("%T is no settle", st))
}

// property plays one random history, on one queue or on several of one server.
func property(open func() []*target) func(*rapid.T) {
	return func(t *rapid.T) {
		defer func() {
			if p := recover(); p != nil {
				f, ok := p.(failure)
				if !ok {
					panic(p)
				}
				t.Fatalf("%s", f.text)
			}
		}()
		var all []*history
		for _, s := range newScenes(open()) {
			h := &history{scene: s, used: map[Fence]int{}}
			h.settings(t)
			all = append(all, h)
		}
		t.Repeat(interleaved(all))
		for _, h := range all {
			for _, st := range h.sent {
				h.resend(st)
			}
		}
	}
}

// interleaved gives the actions of all histories; each time the queue is drawn that takes the action.
func interleaved(all []*history) map[string]func(*rapid.T) {
	actions := map[string]func(*rapid.T){}
	for name, act := range all[0].actions() {
		takers := []func(*rapid.T){act}
		for _, h := range all[1:] {
			takers = append(takers, h.actions()[name])
		}
		actions[name] = func(t *rapid.T) {
			if len(takers) == 1 {
				act(t)
				return
			}
			takers[rapid.IntRange(0, len(takers)-1).Draw(t, "queue")](t)
		}
	}
	return actions
}

// settings draws what the queue has from the start.
func (h *history) settings(t *rapid.T) {
	if rapid.Bool().Draw(t, "limited") {
		h.do(setMeta("concurrency", rapid.SampledFrom([]string{"1", "2"}).Draw(t, "concurrency")))
	}
	if rapid.Bool().Draw(t, "budgeted") {
		h.do(setMeta("crash_budget", rapid.SampledFrom([]string{"0", "1", "3"}).Draw(t, "crash budget")))
	}
	if rapid.Bool().Draw(t, "events") {
		h.do(setMeta("events", "1"))
	}
	if rapid.Bool().Draw(t, "limited lane") {
		h.all(tune{"a", "limit", 1}, tune{"b", "weight", 3})
	}
}

func (h *history) actions() map[string]func(*rapid.T) {
	all := h.jobActions()
	maps.Copy(all, h.otherActions())
	maps.Copy(all, h.queueActions())
	maps.Copy(all, h.handActions())
	return all
}

func (h *history) jobActions() map[string]func(*rapid.T) {
	job := rapid.SampledFrom(propertyJobs)
	wait := rapid.SampledFrom(propertyDelays)
	return map[string]func(*rapid.T){
		"enqueue": func(t *rapid.T) { h.do(newJob(t, job.Draw(t, "job"))) },
		"claim":   h.claim, "claim again": h.claim,
		"settle": h.settleAny, "settle again": h.settleAny,
		"resend": func(t *rapid.T) {
			if len(h.sent) > 0 {
				h.resend(rapid.SampledFrom(h.sent).Draw(t, "settle"))
			}
		},
		"extend": func(t *rapid.T) {
			var fences []Fence
			for range min(len(h.claims), 3) {
				fences = append(fences, rapid.SampledFrom(h.claims).Draw(t, "fence"))
			}
			h.do(extend{lease, append(fences, h.lastClaims(2)...)})
		},
		"beat": func(t *rapid.T) {
			h.do(pump{Tag: "process1", Budget: 2, Limit: rapid.IntRange(1, 3).Draw(t, "limit"), Lease: lease})
		},
		"lapse": h.lapseAll,
		"late settle": func(t *rapid.T) {
			h.claim(t)
			h.lapseAll(t)
			h.settleAny(t)
		},
		"tune": func(t *rapid.T) {
			lane := rapid.SampledFrom(propertyLanes[1:]).Draw(t, "lane")
			switch rapid.IntRange(0, 5).Draw(t, "control") {
			case 0:
				h.all(tune{lane, "pause", 0}, browse{})
			case 1:
				h.do(tune{lane, "resume", 0})
			case 2:
				h.do(tune{lane, "limit", rapid.IntRange(0, 2).Draw(t, "limit")})
			case 3:
				h.do(tune{lane, "weight", rapid.IntRange(1, 10).Draw(t, "weight")})
			case 4:
				h.do(tune{"", "weight", rapid.IntRange(1, 3).Draw(t, "weight")})
			case 5:
				h.do(tune{lane, "weight", max(h.m.weights[lane], 1)}) // the same again
			}
		},
		"await":        func(t *rapid.T) { h.do(await{job.Draw(t, "job")}) },
		"promote":      func(*rapid.T) { h.do(promote{100}) },
		"time passes":  func(t *rapid.T) { h.pass(rapid.SampledFrom(propertyAdvance).Draw(t, "how long")) },
		"reprocess":    func(t *rapid.T) { h.do(reprocess{job.Draw(t, "job")}) },
		"cancel":       func(t *rapid.T) { h.do(cancel{job.Draw(t, "job")}) },
		"a token pops": func(*rapid.T) { h.all(popWake(), popPump()) },
		"a hand slips": func(t *rapid.T) {
			id := job.Draw(t, "job")
			if h.m.spoilt[id] {
				h.do(deleteRow(id))
				return
			}
			if rapid.IntRange(0, 3).Draw(t, "slips") == 0 {
				h.do(rapid.SampledFrom([]step{deleteRow(id), spoilRow(id), unlist(id, "active"), unlist(id, "pending")}).Draw(t, "how"))
			}
		},
		"remove": func(t *rapid.T) { h.do(remove{job.Draw(t, "job")}) },
		"revive": func(t *rapid.T) {
			h.do(revive{rapid.SampledFrom([]string{"", "mail.send", "other"}).Draw(t, "kind"), rapid.IntRange(1, 3).Draw(t, "look"), rapid.IntRange(0, 2).Draw(t, "up")})
		},
		"drain": func(t *rapid.T) {
			list := rapid.SampledFrom([]string{"pending", "lane", "lanes", "schedule", "dead", "completed", "active"}).Draw(t, "list")
			h.do(drain{list, rapid.SampledFrom(propertyLanes[1:]).Draw(t, "lane"), rapid.IntRange(1, 2).Draw(t, "limit"), Unguarded, ""})
		},
		"reassign": func(t *rapid.T) {
			lanes := rapid.SampledFrom([][2]string{{"a", "b"}, {"b", "a"}, {"a", ""}, {"b", ""}}).Draw(t, "lanes")
			h.do(reassign{lanes[0], lanes[1], rapid.IntRange(1, 3).Draw(t, "limit")})
		},
		"reap a lane": func(t *rapid.T) {
			r := reapLane{rapid.SampledFrom(propertyLanes[1:]).Draw(t, "lane"), 2, lease}
			h.pass(lease + 17*time.Second)
			h.do(r)
			if rapid.Bool().Draw(t, "claimed meanwhile") {
				h.claim(t)
			}
			h.pass(lease/3 + 11*time.Second)
			h.do(r)
		},
		"audit": func(*rapid.T) { h.all(audit{Look: true}, audit{}) },
		"snoozed work": func(t *rapid.T) {
			h.claim(t)
			if len(h.claims) > 0 {
				f := h.claims[len(h.claims)-1]
				st := snooze{f, wait.Draw(t, "delay")}
				h.sent = append(h.sent, st)
				h.resend(st)
			}
		},
	}
}

// newJob draws what an enqueue of an id asks for.
func newJob(t *rapid.T, id string) enqueue {
	e := inLane(id, rapid.SampledFrom(propertyLanes).Draw(t, "lane"))
	switch rapid.IntRange(0, 5).Draw(t, "unique") {
	case 0:
		e.Unique = uniqueKeyName
	case 1:
		e.Unique, e.UntilStart = uniqueKeyName, true
	case 5:
		e.Unique, e.Debounce, e.Payload = uniqueKeyName, true, []byte("debounced "+e.ID)
		e.UntilStart = rapid.Bool().Draw(t, "until start")
	case 2:
		e.Unique, e.Window = uniqueKeyName, 2*time.Hour+3*time.Minute
	}
	if rapid.IntRange(0, 3).Draw(t, "own max") == 0 {
		e.Fields = append(e.Fields, "max", rapid.SampledFrom([]string{"2", "4"}).Draw(t, "max"))
	}
	if rapid.IntRange(0, 3).Draw(t, "version") == 0 {
		e.Fields = append(e.Fields, "v", "2")
	}
	if rapid.IntRange(0, 2).Draw(t, "later") == 0 {
		e = e.parked()
	}
	return e
}

func (h *history) claim(t *rapid.T) {
	h.draws++
	c := claim{Lease: lease, N: rapid.IntRange(1, 3).Draw(t, "n"), By: fmt.Sprintf("by%06d", h.draws)}
	h.do(c)
	for _, j := range h.m.jobs {
		if j.state == "active" && j.text["by"] == c.By {
			h.claims = append(h.claims, Fence{j.id, int64(j.attempts), c.By})
		}
	}
}

func (h *history) lapseAll(*rapid.T) {
	h.pass(lease + 17*time.Second)
	h.do(reap{2, 100, lease})
	h.pass(lease/3 + 11*time.Second)
	h.do(reap{2, 100, lease})
}

func (h *history) settleAny(t *rapid.T) {
	if len(h.claims) == 0 {
		return
	}
	st := h.oneSettle(t)
	h.sent = append(h.sent, st)
	if rapid.IntRange(0, 2).Draw(t, "a token pops") == 0 {
		h.do(popWake())
	}
	h.resend(st)
}

// oneSettle draws a settle of a claim, mostly the last one.
func (h *history) oneSettle(t *rapid.T) settled {
	f := h.claims[len(h.claims)-1]
	if rapid.IntRange(0, 2).Draw(t, "old") == 0 {
		f = rapid.SampledFrom(h.claims).Draw(t, "fence")
	}
	if rapid.IntRange(0, 5).Draw(t, "published") == 0 {
		f.By = ""
	}
	wait := rapid.SampledFrom(propertyDelays).Draw(t, "delay")
	return rapid.SampledFrom([]settled{
		complete{Fence: f}, complete{Fence: f, Retain: 5 * time.Hour, Result: "42"},
		retry{f, wait, 2, "broken"}, retry{f, wait, 1, "broken"},
		snooze{f, wait}, release{f, 0}, release{f, wait}, kill{f, "poisoned"}, discard{f},
	}).Draw(t, "settle")
}

// checks sets how many histories are played, unless the command line says so.
func checks(t testing.TB, n string) {
	t.Helper()
	own := false
	flag.Visit(func(f *flag.Flag) { own = own || f.Name == "rapid.checks" })
	if !own {
		old := flag.Lookup("rapid.checks").Value.String()
		if err := flag.Lookup("rapid.checks").Value.Set(n); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = flag.Lookup("rapid.checks").Value.Set(old) })
	}
}

func TestRandomHistoriesOnMiniredis(t *testing.T) {
	checks(t, "60")
	drawsAll(t, onMini(t, ownLibrary(t)))
}

func TestRandomHistoriesOnRedis(t *testing.T) {
	checks(t, "20")
	s := onRedis(t, ownLibrary(t))
	rapid.Check(t, property(func() []*target { return []*target{s} }))
}

func TestRandomHistoriesWithGatheredSettles(t *testing.T) {
	checks(t, "20")
	s := onRedisGathered(t, ownLibrary(t))
	rapid.Check(t, property(func() []*target { return []*target{s} }))
}
