package scripts

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// otherActions are those of cron entries, of payloads and of the pump's parts by themselves.
func (h *history) otherActions() map[string]func(*rapid.T) {
	job := rapid.SampledFrom(propertyJobs)
	entry := rapid.SampledFrom([]string{"night", "day"})
	return map[string]func(*rapid.T){
		"define a cron entry": func(t *rapid.T) { h.define(t, entry.Draw(t, "entry")) },
		"a tick": func(t *rapid.T) {
			name := entry.Draw(t, "entry")
			if h.m.crons[name] == nil {
				return
			}
			h.draws++
			fire := h.fire(name, jobN(300+h.draws))
			if rapid.IntRange(0, 3).Draw(t, "missed") == 0 {
				fire.Tick, fire.Missed = 0, 2
			}
			if rapid.IntRange(0, 4).Draw(t, "of another definition") == 0 {
				fire.Rev = "rev00000"
			}
			h.all(fire, fire, cronDue{})
		},
		"tune a cron entry": func(t *rapid.T) {
			name := entry.Draw(t, "entry")
			c := cronTune{Name: name, Verb: rapid.SampledFrom([]string{"pause", "resume", "lapse", "retire", "remove"}).Draw(t, "verb")}
			if e := h.m.crons[name]; e != nil {
				c.Seen = e.rev
			}
			if c.Verb == "resume" {
				c.Next = h.in(41 * time.Minute)
				if rapid.IntRange(0, 2).Draw(t, "not seen") == 0 {
					c.Seen = "rev00000"
				}
			}
			h.all(c, cronBrowse{})
		},
		"a refresh": func(t *rapid.T) {
			name := entry.Draw(t, "entry")
			if e := h.m.crons[name]; e != nil {
				h.pass(67 * time.Second)
				h.do(cronRefresh{name, e.refreshed != 0, e.def})
			}
		},
		"a pause of a cron entry": func(t *rapid.T) {
			name := entry.Draw(t, "entry")
			h.define(t, name)
			if e := h.m.crons[name]; e != nil {
				seen := rapid.SampledFrom([]string{e.rev, "rev00000"}).Draw(t, "seen")
				h.all(cronTune{Name: name, Verb: "pause"}, cronTune{name, "resume", seen, h.in(41 * time.Minute)})
			}
		},
		"ticks": func(t *rapid.T) {
			name := entry.Draw(t, "entry")
			h.define(t, name)
			for range rapid.IntRange(1, 3).Draw(t, "ticks") {
				h.pass(44 * time.Minute)
				if h.m.crons[name] != nil {
					h.draws++
					h.all(h.fire(name, jobN(300+h.draws)), cronDue{})
				}
			}
		},
		"update": func(t *rapid.T) {
			u := update{ID: job.Draw(t, "job"), Payload: []byte("anew"), Version: rapid.IntRange(1, 2).Draw(t, "version"), Kinds: []string{"alias", "mail.send"}}
			switch rapid.IntRange(0, 5).Draw(t, "of another") {
			case 0:
				u.Kinds = []string{"other"}
			case 1:
				lane := rapid.SampledFrom(propertyLanes).Draw(t, "lane")
				u.Lane = &lane
			case 2:
				u.Unique = uniqueKeyName
			}
			h.do(u)
		},
		"another pump": func(*rapid.T) { h.do(pump{Tag: "process2", Budget: 2, Limit: 1, Lease: lease}) },
		"expire":       func(t *rapid.T) { h.do(expire{rapid.IntRange(1, 3).Draw(t, "limit")}) },
		"handover":     func(*rapid.T) { h.do(handover{"process1"}) },
		"wake":         func(*rapid.T) { h.all(wakeOne{}, nudge{"process1"}) },
	}
}

// define registers an entry as a process does: it asks first, and writes where it is wanted.
func (h *history) define(t *rapid.T, name string) {
	d := nightly(rapid.SampledFrom([]string{"{}", "[]"}).Draw(t, "payload"))
	d.Overlap = rapid.SampledFrom([]string{"allow", "skip"}).Draw(t, "overlap")
	d.Lane = rapid.SampledFrom(propertyLanes).Draw(t, "lane")
	d.Version = rapid.IntRange(1, 2).Draw(t, "version")
	d.Spec = rapid.SampledFrom([]string{"0 2 * * *", "0 3 * * *"}).Draw(t, "spec")
	if rapid.IntRange(0, 2).Draw(t, "unique") == 0 {
		d.Unique = uniqueKeyName
	}
	declared := (name == "day") != (rapid.IntRange(0, 5).Draw(t, "the other sort") == 0)
	got := h.do(cronRefresh{name, declared, d})
	word, seen, _ := strings.Cut(got.Says, " ")
	if word == "wanted" {
		h.draws++
		if rapid.IntRange(0, 5).Draw(t, "not seen") == 0 {
			seen = "rev00000"
		}
		h.do(cronPut{name, seen, fmt.Sprintf("rev%05d", h.draws), h.in(41 * time.Minute), declared, d})
	}
}
