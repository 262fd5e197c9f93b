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
			}
			h.all(c, cronBrowse{})
		},
		"update": func(t *rapid.T) {
			h.do(update{ID: job.Draw(t, "job"), Payload: []byte("anew"), Version: 1, Kinds: []string{"alias", "mail.send"}})
		},
		"expire":   func(t *rapid.T) { h.do(expire{rapid.IntRange(1, 3).Draw(t, "limit")}) },
		"handover": func(*rapid.T) { h.do(handover{"process1"}) },
		"wake":     func(*rapid.T) { h.all(wakeOne{}, nudge{"process1"}) },
	}
}

// define registers an entry as a process does: it asks first, and writes where it is wanted.
func (h *history) define(t *rapid.T, name string) {
	d := nightly(rapid.SampledFrom([]string{"{}", "[]"}).Draw(t, "payload"))
	d.Overlap = rapid.SampledFrom([]string{"allow", "skip"}).Draw(t, "overlap")
	d.Lane = rapid.SampledFrom(propertyLanes).Draw(t, "lane")
	declared := name == "day"
	got := h.do(cronRefresh{name, declared, d})
	word, seen, _ := strings.Cut(got.Says, " ")
	if word == "wanted" {
		h.draws++
		h.do(cronPut{name, seen, fmt.Sprintf("rev%05d", h.draws), h.in(41 * time.Minute), declared, d})
	}
}
