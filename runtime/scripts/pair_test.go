package scripts

import (
	"fmt"
	"strings"
)

// pair is a state of both jobs by the rules alone, and beside it what the answers have told those who asked.
type pair struct {
	lots  lots
	clock clock
	told  [2]told
}

// told is what the world outside knows of a job, from answers and counts, whatever the rules say.
type told struct {
	alive   bool // it was taken, and nobody was told of its end
	life    int  // how often it was taken
	granted int  // the last token that a claim gave of this life
	spent   bool // a settle by that token was accepted
}

// next is the state after a move, with the answer that the rules want.
func (p pair) next(m move, said string) (after pair, counts, want string) {
	after = p
	after.lots, counts, want = m.rule(p.lots, said)
	switch {
	case m.wait:
		after.clock.pass()
	case m.verb == "extend":
		after.clock.alive(leased)
	case m.verb == "reap":
		after.clock.alive(patience)
	}
	for i := range jobs {
		l := after.lots[i]
		beats := m.verb == "extend" && m.job == i && want != "0"
		if l.State != "active" && l.State != "scheduled" || beats || !m.wait && l.State != p.lots[i].State {
			after.clock.over[i] = false
		} else if m.wait {
			after.clock.over[i] = true // no lease and no pause is longer than a beat
		}
	}
	return after, counts, want
}

// pass lets a beat pass, alive is what a heartbeat or a reaper with such a lease leaves.
func (c *clock) pass() {
	if c.seen = max(c.seen-beat, -2*beat); c.seen == -2*beat {
		c.seen = unseen
	}
	c.grace = max(c.grace-beat, 0)
}

func (c *clock) alive(lease stamp) {
	if c.seen < -lease/2 {
		c.grace = stamp(int(lease/3/unit)) * unit
	}
	c.seen = 0
}

// answers are what the scripts may say to a move: the rules leave open only which jobs a claim brings.
func (p pair) answers(m move) []string {
	if m.verb != "claim" {
		_, _, want := m.rule(p.lots, "")
		return []string{want}
	}
	var all []string
	for n := range 4 {
		var words []string
		for i, id := range jobs {
			if n&(1<<i) != 0 {
				words = append(words, fmt.Sprintf("%s#%d", id, p.lots[i].Cur+1))
			}
		}
		said := strings.Join(words, " ")
		if _, _, want := m.rule(p.lots, said); want == said {
			all = append(all, said)
		}
	}
	return all
}

// hear notes what an answer tells, and finds what must never be told. Nothing here looks at how the rules
// came to it.
func (p *pair) hear(m move, said, counts string, before pair, limit int) (fault string) {
	t := &p.told[m.job]
	switch m.verb {
	case "enqueue":
		*t = told{alive: true, life: t.life + 1}
	case "claim":
		for _, word := range strings.Fields(said) {
			for i, id := range jobs {
				token, ok := strings.CutPrefix(word, id+"#")
				if !ok {
					continue
				}
				t := &p.told[i]
				if before.lots[i].State == "active" || token != fmt.Sprint(t.granted+1) || !t.alive {
					return word + " is granted beside another holder, or again"
				}
				t.granted, t.spent = t.granted+1, false
			}
		}
	case "reprocess":
		t.spent = true // whoever held it before has no say in the new attempts
	case "cancel":
		t.alive = t.alive && said != "cancelled"
	case "extend":
		if said != "0" && (m.life != t.life || m.token != t.granted || t.spent) {
			return "a heartbeat of one who is no holder is heard"
		}
	case "complete", "retry", "snooze", "release", "kill", "discard":
		if said == "gone" || said == "stale" || strings.HasPrefix(said, "again") {
			break
		}
		if m.life != t.life || m.token != t.granted || t.spent {
			return "a settle of one who is no holder is accepted: " + said
		}
		t.spent = true
		kept := said == "completed" && m.job == 1
		t.alive = kept || said != "completed" && said != "discarded" && said != "cancelled"
	case "reap":
		for i := range jobs {
			if before.lots[i].Cancel && before.clock.over[i] && strings.Contains(counts, "cancelled") && p.lots[i].State == "" {
				p.told[i].alive = false
			}
		}
	}
	return p.wrong(limit)
}

// wrong finds a state that must never be.
func (p *pair) wrong(limit int) string {
	running := 0
	for i, l := range p.lots {
		switch {
		case p.told[i].alive != (l.State != ""):
			return "a job is lost, or is there after its end was told"
		case l.Fails > attemptsMax || l.Lapses > crashesMax:
			return "a budget is exceeded"
		case l.Fails == attemptsMax && l.State != "dead" && l.State != "completed" && l.State != "":
			return "a job without attempts left is not dead"
		case l.Cur > (attemptsMax-1+crashesMax-1+1)*(l.Revived+1)+l.Handed:
			return "a job was run more often than its budgets allow together"
		}
		if l.State == "active" {
			running++
		}
	}
	if running > limit {
		return "more jobs run than the limit allows"
	}
	return ""
}

// render writes a state down as the keys of wire.md. Which lane comes first is in no rule: turn says it.
func (x *explorer) render(p pair, turn int) space {
	sp := space{}
	put := func(name, kind, item, text string) {
		v, ok := sp[x.base+name]
		if !ok {
			v = value{Type: kind, Text: map[string]string{}}
			sp[x.base+name] = v
		}
		v.Text[item] = text
	}
	at := func(s stamp) string { return fmt.Sprintf("@%.0f", s) }
	put("glimit", "hash", "l", "1")
	put("meta", "hash", "concurrency", fmt.Sprint(x.concurrency))
	if p.clock.seen > unseen {
		put("meta", "hash", "seen", at(p.clock.seen))
	}
	if p.clock.grace > 0 {
		put("meta", "hash", "grace", at(p.clock.grace))
	}
	for i, id := range jobs {
		l := p.lots[i]
		if l.State == "" {
			continue
		}
		for field, text := range rowOf(i, l) {
			put("job:"+id, "hash", field, text)
		}
		ends := map[string]stamp{"active": leased, "scheduled": backoff}[l.State]
		if p.clock.over[i] {
			ends -= beat
		}
		switch l.State {
		case "active", "scheduled":
			put(listOf(l.State), "zset", id, at(ends))
			if i == 0 && l.State == "active" {
				put("g:l:active", "set", id, id)
			}
		case "dead":
			put("dead", "zset", id, "0")
			put("dead:at", "zset", id, at(0))
		case "completed":
			put("completed", "zset", id, at(0))
		case "pending":
			if i == 1 {
				put("pending", "zset", id, "0")
				break
			}
			put("g:l:pending", "zset", id, "0")
			put("ring", "zset", "l", fmt.Sprintf("%d.000000000", turn+1))
			put("meta", "hash", "laned", "1")
		}
		if i == 1 && l.State != "dead" && l.State != "completed" {
			put("de:u", "string", id, id)
		}
	}
	return sp
}

// rowOf is the row of a job.
func rowOf(i int, l lot) map[string]string {
	row := map[string]string{"state": l.State, "kind": "job", "payload": "p", "src": "s", "attempts": fmt.Sprint(l.Cur)}
	if i == 0 {
		row["group"] = "l"
	} else {
		row["unique"] = "u"
	}
	forgiven := l.Cur - l.Fails
	if l.State == "active" {
		forgiven--
	}
	for field, n := range map[string]int{"forgiven": forgiven, "lapses": l.Lapses} {
		if n != 0 {
			row[field] = fmt.Sprint(n)
		}
	}
	if l.Cur > 0 {
		row["by"] = markOf(l.Life, l.Cur)
	}
	if l.Lapsed {
		row["lapsed"] = fmt.Sprint(l.Cur)
	}
	if l.Cancel {
		row["cancel"] = "1"
	}
	failed := l.Fails
	switch l.State {
	case "completed":
		row["result"], row["settled_at"] = "r", "@0"
		failed-- // the last one did not
	case "dead":
		row["settled_at"] = "@0"
	}
	switch {
	case l.State == "dead" && l.Lapses >= crashesMax:
		row["last_error"] = fmt.Sprintf("lease lapsed %d times", l.Lapses)
	case failed > 0:
		row["last_error"] = "e"
	}
	return row
}

// bare takes out of a key space what no rule of the pair says: whose turn it is among the lanes, when a job was due
// that no longer waits for it, zeros, and times that are over.
func (x *explorer) bare(sp space) space {
	words, out := x.canonical(sp).words(), space{}
	for at := 0; at+2 < len(words); {
		key, kind := strings.TrimPrefix(words[at], x.base), words[at+1]
		var n int
		_, err := fmt.Sscan(words[at+2], &n)
		check(err)
		v := value{Type: kind, Text: map[string]string{}}
		for at += 3; n > 0; n, at = n-1, at+2 {
			field, text := words[at], words[at+1]
			switch {
			case key == "meta" && (field == "vt" || field == "fvt"), field == "due",
				(field == "forgiven" || field == "lapses") && text == "0",
				field == "seen" && parseStamp(strings.TrimPrefix(text, "@")) <= -2*beat:
				continue
			case key == "ring":
				text = ""
			case strings.HasPrefix(text, "@-") && field != "seen":
				text = "over"
			}
			v.Text[field] = text
		}
		out[key] = v
	}
	return out
}
