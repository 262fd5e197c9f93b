package scripts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// modelCron is a cron entry.
type modelCron struct {
	def                    CronDef
	rev, last, lastID      string
	next, refreshed        stamp // refreshed is 0 for an entry that no job declares
	older                  []string
	paused                 bool
	fired, skipped, missed int
}

const cronLease = stamp(3_600_000)

// due is when the pump must look at the entry.
func (e *modelCron) due() stamp {
	at := e.next
	if e.paused {
		at = Never
	}
	if e.refreshed != 0 {
		at = min(at, e.refreshed+cronLease)
	}
	return at
}

func (m *model) renderCrons(put func(string, value)) {
	all := value{Type: "zset", At: map[string]stamp{}}
	for name, e := range m.crons {
		all.At[name] = e.due()
		v := value{Type: "hash", Text: map[string]string{"rev": e.rev, "sum": e.def.Sum()}, At: map[string]stamp{"next": e.next}}
		f := append([]string{"spec", e.def.Spec, "tz"}, e.def.fields()[1:]...)
		for p := range slices.Chunk(f, 2) {
			v.Text[p[0]] = p[1]
		}
		for field, n := range map[string]int{"fired": e.fired, "skipped": e.skipped, "missed_ticks": e.missed} {
			if n > 0 {
				v.Text[field] = strconv.Itoa(n)
			}
		}
		if e.last != "" {
			v.Text["last"], v.Text["last_id"] = e.last, e.lastID
		}
		if e.paused {
			v.Text["paused"] = "1"
		}
		if e.refreshed != 0 {
			v.At["refreshed"] = e.refreshed
			v.Text["older"] = strings.Join(e.older, " ")
		}
		put("repeat:"+name, v)
	}
	put("repeat", all)
}

// heed wakes the pump if the entry is the earliest.
func (m *model) heed(name string) {
	for other, e := range m.crons {
		d := m.crons[name].due()
		if e.due() < d || e.due() == d && other < name {
			return
		}
	}
	m.wakeUp = true
}

// cronWord is what a beat of the pump tells of the entries.
func (m *model) cronWord(now stamp) string {
	first := stamp(Never)
	for _, e := range m.crons {
		first = min(first, e.due())
	}
	switch {
	case first == Never:
		return ""
	case first <= now:
		return ", a cron entry is due"
	}
	return ", a cron entry will be due"
}

func saysTick(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMilli(), 10)
}

type (
	cronRefresh struct {
		Name     string
		Declared bool
		Def      CronDef
	}
	cronPut struct {
		Name, Seen, Rev string
		Next            int64
		Declared        bool
		Def             CronDef
	}
	cronFire CronFire
	cronTune struct {
		Name, Verb, Seen string
		Next             int64
	}
	cronDue    struct{ LeaveOut int }
	cronBrowse struct{}
)

func (r cronRefresh) call(ctx context.Context, s *target) answer {
	got, err := s.queue.CronRefresh(ctx, r.Name, r.Declared, r.Def)
	return says(strings.TrimSpace(got.Status+" "+got.Rev), err)
}

func (r cronRefresh) expect(m *model, now stamp) answer {
	e := m.crons[r.Name]
	switch {
	case e == nil:
		return answer{Says: "wanted"}
	case r.Declared != (e.refreshed != 0):
		return answer{Says: "EMQLOCK"}
	case e.def.Sum() == r.Def.Sum():
		if r.Declared {
			e.refreshed = now
		}
		return answer{Says: "kept " + e.rev}
	case r.Declared && now-e.refreshed < 300_000 && (r.Def.Version < e.def.Version || slices.Contains(e.older, r.Def.Sum())):
		return answer{Says: "older " + e.rev}
	}
	return answer{Says: "wanted " + e.rev}
}

func (p cronPut) call(ctx context.Context, s *target) answer {
	put, err := s.queue.CronPut(ctx, p.Name, p.Seen, p.Rev, p.Next, p.Declared, p.Def)
	return says(fmt.Sprint(put), err)
}

func (p cronPut) expect(m *model, now stamp) answer {
	e := m.crons[p.Name]
	if (e == nil) != (p.Seen == "") || e != nil && e.rev != p.Seen {
		return answer{Says: "false"}
	}
	if e == nil {
		e = &modelCron{next: stamp(p.Next)}
		m.crons[p.Name] = e
	}
	if e.def.Spec != p.Def.Spec || e.def.TZ != p.Def.TZ {
		e.next = stamp(p.Next)
	}
	if p.Declared {
		e.refreshed = now
		if e.rev != "" {
			e.older = slices.DeleteFunc(append([]string{e.def.Sum()}, e.older...), func(s string) bool { return s == p.Def.Sum() })
			e.older = e.older[:min(len(e.older), 8)]
		}
	}
	e.def, e.rev = p.Def, p.Rev
	m.heed(p.Name)
	return answer{Says: "true"}
}

func (f cronFire) call(ctx context.Context, s *target) answer {
	return says(s.queue.CronFire(ctx, CronFire(f)))
}

func (f cronFire) expect(m *model, now stamp) answer {
	e := m.crons[f.Name]
	switch {
	case e == nil || e.rev != f.Rev || int64(e.next) != f.Seen || e.paused || e.refreshed != 0 && e.refreshed+cronLease <= now:
		return answer{Says: "moved"}
	case stamp(f.Tick) > now || e.next > now:
		return answer{Says: "early"}
	}
	outcome := "missed"
	if f.Tick > 0 {
		if last := m.jobs[e.lastID]; e.def.Overlap == "skip" && last != nil && last.state != "dead" && last.state != "completed" {
			outcome = "overlap"
		} else {
			job := f.NewJob
			job.Fields = append(slices.Clone(job.Fields), "tick", strconv.FormatInt(f.Tick, 10))
			word, _, _ := strings.Cut(enqueue(job).expect(m, now).Says, " ")
			outcome = map[string]string{"enqueued": "fired", "conflict": "conflict", "EMQFULL": "full"}[word]
			if outcome == "" {
				return answer{Says: word}
			}
		}
		if outcome == "fired" {
			e.fired++
			e.last, e.lastID = strconv.FormatInt(f.Tick, 10), f.ID
		} else {
			e.skipped++
		}
	}
	e.next = stamp(f.Next)
	e.missed += f.Missed
	return answer{Says: outcome}
}

func (c cronTune) call(ctx context.Context, s *target) answer {
	return says(s.queue.CronTune(ctx, c.Name, c.Verb, c.Seen, c.Next))
}

func (c cronTune) expect(m *model, now stamp) answer {
	e := m.crons[c.Name]
	switch {
	case e == nil:
		return answer{Says: "EMQGONE"}
	case c.Verb == "pause":
		e.paused = true
		return answer{Says: "done"}
	case c.Verb == "resume" && !e.paused:
		return answer{Says: "done"}
	case c.Verb == "resume" && e.rev != c.Seen:
		return answer{Says: "moved"}
	case c.Verb == "resume":
		e.paused, e.next = false, stamp(c.Next)
		m.heed(c.Name)
		return answer{Says: "done"}
	case c.Verb == "remove" && e.refreshed != 0:
		return answer{Says: "EMQLOCK"}
	case c.Verb != "remove" && (e.refreshed == 0 || c.Verb == "lapse" && e.refreshed+cronLease > now):
		return answer{Says: "kept"}
	}
	delete(m.crons, c.Name)
	return answer{Says: "done"}
}

func (d cronDue) call(ctx context.Context, s *target) answer {
	entries, _, err := s.queue.CronDue(ctx, d.LeaveOut)
	if err != nil {
		return says("", err)
	}
	var words []string
	for _, e := range entries {
		words = append(words, toldOf(e.Name, e.Rev, e.CronDef, e.LastID, e.Paused, e.Fired, e.Skipped, e.Misses))
	}
	return answer{Says: strings.Join(words, "; ")}
}

func toldOf(name, rev string, d CronDef, lastID string, paused bool, counts ...int64) string {
	return fmt.Sprintf("%s %s %+v last %s paused %t %v", name, rev, d, lastID, paused, counts)
}

func (e *modelCron) told(name string) string {
	d := e.def
	d.Version = max(d.Version, 1)
	return toldOf(name, e.rev, d, e.lastID, e.paused, int64(e.fired), int64(e.skipped), int64(e.missed))
}

func (d cronDue) expect(m *model, now stamp) answer {
	var due []string
	for name, e := range m.crons {
		if e.due() <= now {
			due = append(due, name)
		}
	}
	slices.SortFunc(due, func(a, b string) int {
		return int(m.crons[a].due()-m.crons[b].due())*1000 + strings.Compare(a, b)
	})
	due = due[min(d.LeaveOut, len(due)):]
	var words []string
	for _, name := range due[:min(len(due), MaxCronDue)] {
		words = append(words, m.crons[name].told(name))
	}
	return answer{Says: strings.Join(words, "; ")}
}

func (cronBrowse) call(ctx context.Context, s *target) answer {
	var words []string
	var calls rounds
	for cursor, more := "0", true; more; more = cursor != "0" {
		calls.more()
		page, next, err := s.queue.Crons(ctx, cursor, 10)
		if err != nil {
			return says("", err)
		}
		for _, e := range page {
			one, _, err := s.queue.Cron(ctx, e.Name)
			if err != nil || len(e.Payload) > 0 {
				return says("a payload in a page", err)
			}
			words = append(words, toldOf(one.Name, one.Rev, one.CronDef, one.LastID, one.Paused, one.Fired, one.Skipped, one.Misses))
		}
		cursor = next
	}
	slices.Sort(words)
	return answer{Says: strings.Join(words, "; ")}
}

func (cronBrowse) expect(m *model, _ stamp) answer {
	var words []string
	for name, e := range m.crons {
		words = append(words, e.told(name))
	}
	slices.Sort(words)
	return answer{Says: strings.Join(words, "; ")}
}
