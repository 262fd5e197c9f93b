package scripts

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// lot is what the rules say of one job, whatever the keys say.
type lot struct {
	State   string // as in the row; empty: no job
	Life    int    // how often it was enqueued
	Cur     int    // the token of the last claim
	Past    int    // the last token of the life before
	Fails   int    // attempts that count
	Lapses  int    // leases that ran out
	Handed  int    // times it was handed back or snoozed
	Revived int
	Lapsed  bool // reap took the last claim's lease, and nobody has claimed since
	Cancel  bool
}

type lots [2]lot

func (l lot) over() bool {
	return l.State == "" || l.State == "dead" || l.State == "completed"
}

// move is one message that reaches the server, first or again, or time that passes.
type move struct {
	verb        string
	job         int // which of the jobs, if it is of one
	life, token int // whose message it is; or how many a claim asks for
	call        func() call
	wait        bool // time passes, and there is no call
	lone        bool // also happens when every process that has claimed is dead
	// rule gives what becomes of the jobs by the contract, what is counted, and what the answer must be. The
	// contract leaves to the scripts which jobs a claim brings: said tells. A move that changes nothing may
	// count.
	rule func(l lots, said string) (after lots, counts string, want string)
}

func (m move) name() string {
	switch m.verb {
	case "enqueue", "reprocess", "cancel":
		return m.verb + " " + jobs[m.job]
	case "claim":
		return fmt.Sprint("claim ", m.token)
	case "promote", "reap", "time passes":
		return m.verb
	}
	return fmt.Sprintf("%s %s by %s", m.verb, jobs[m.job], markOf(m.life, m.token))
}

var jobs = [2]string{"JOBlane", "JOBflat"}

const attemptsMax, crashesMax = 2, 2

func markOf(life, token int) string { return fmt.Sprintf("m%d.%d", life, token) }

func span(s stamp) string { return strconv.Itoa(int(s)) }

// moves lists everything that can happen in a state. Whoever was granted a claim is taken to be alive for ever and to
// send each of its messages at any time, any number of times: that covers lost and late ones, and more
// workers than there are claims.
func (x *explorer) moves(all lots, c clock) []move {
	list := []move{{verb: "time passes", wait: true, lone: true, rule: func(l lots, _ string) (lots, string, string) { return l, "", "" }}}
	for i := range jobs {
		list = append(list, x.producer(all, i)...)
		l := all[i]
		for token := 1; token <= l.Past; token++ {
			list = append(list, x.settles(i, l.Life-1, token, "complete", "retry")...)
		}
		for token := 1; token < l.Cur; token++ {
			list = append(list, x.settles(i, l.Life, token, "complete", "retry")...)
		}
		if l.Cur > 0 {
			verbs := []string{"complete", "retry", "kill", "discard"}
			if l.Handed < x.bounds.handed {
				verbs = append(verbs, "snooze", "release")
			}
			list = append(list, x.settles(i, l.Life, l.Cur, verbs...)...)
			list = append(list, x.extend(i, l.Life, l.Cur))
		}
		if l.Cur > 1 {
			list = append(list, x.extend(i, l.Life, l.Cur-1))
		}
		if l.Past > 0 {
			list = append(list, x.extend(i, l.Life-1, l.Past))
		}
	}
	return append(list, x.claim(1), x.claim(2), x.promote(c), x.reap(c))
}

func (x *explorer) producer(now lots, i int) []move {
	l, id, q := now[i], jobs[i], x.queue
	var all []move
	if l.State == "" && l.Life < x.bounds.lives[i] {
		call := func() call {
			job := NewJob{ID: id, Payload: []byte("p"), Src: "s", Fields: []string{"kind", "job"}}
			if i == 0 {
				job.Lane = "l"
			} else {
				job.Unique = "u"
			}
			return q.admission(&job)
		}
		all = append(all, move{verb: "enqueue", job: i, call: call, lone: true, rule: func(l lots, _ string) (lots, string, string) {
			l[i] = lot{State: "pending", Life: l[i].Life + 1, Past: l[i].Cur}
			return l, "", "enqueued"
		}})
	}
	if l.State == "dead" && l.Revived < x.bounds.revived[i] {
		all = append(all, move{verb: "reprocess", job: i, call: func() call { return q.prepare("reprocess", id, "", id, q.keys.Base()) }, rule: func(l lots, _ string) (lots, string, string) {
			j := &l[i]
			j.State, j.Fails, j.Lapses, j.Lapsed, j.Revived = "pending", 0, 0, false, j.Revived+1
			return l, "", "1"
		}})
	}
	if l.Life > 0 {
		all = append(all, move{verb: "cancel", job: i, call: func() call { return q.prepare("cancel", id, "", id, q.keys.Base()) }, rule: func(l lots, _ string) (lots, string, string) {
			switch j := &l[i]; j.State {
			case "":
				return l, "", "EMQGONE"
			case "active":
				j.Cancel = true
				return l, "", "cancelling"
			case "pending", "scheduled":
				j.end()
				return l, "cancelled 1", "cancelled"
			}
			return l, "", "EMQSTATE"
		}})
	}
	return all
}

// end keeps of a job only which tokens were granted.
func (j *lot) end() {
	*j = lot{Life: j.Life, Cur: j.Cur, Past: j.Past, Handed: j.Handed, Revived: j.Revived}
}

func (x *explorer) settles(i, life, token int, verbs ...string) []move {
	var all []move
	for _, verb := range verbs {
		all = append(all, move{
			verb: verb, job: i, life: life, token: token,
			call: func() call { return x.settling(settleOf(verb, i, life, token)) },
			rule: func(l lots, _ string) (lots, string, string) {
				want, counts := l[i].settle(verb, life, token, i == 1)
				return l, counts, want
			},
		})
	}
	return all
}

func settleOf(verb string, i, life, token int) Settle {
	f := Fence{jobs[i], int64(token), markOf(life, token)}
	wait := time.Duration(backoff) * time.Millisecond
	switch verb {
	case "complete":
		var retain time.Duration
		if i == 1 {
			retain = time.Duration(leased) * time.Millisecond
		}
		return Completion(f, retain, []byte("r"))
	case "retry":
		return Failure(f, wait, attemptsMax, "e")
	case "snooze":
		return Pause(f, wait)
	case "release":
		return HandBack(f, 0)
	case "kill":
		return Burial(f, "e")
	}
	return Disposal(f)
}

// settling is the call of one settle, by its own script or in a gathered one.
func (x *explorer) settling(s Settle) call {
	base := x.queue.keys.Base()
	if x.gathered {
		args := append([]string{base, s.verb, s.ID, s.token(), s.By, strconv.Itoa(len(s.args))}, s.args...)
		return x.queue.prepare("settle", "", "", args...)
	}
	if s.verb == "complete" {
		return x.queue.prepare(s.verb, s.ID, "", append([]string{s.ID, s.token(), base, s.By}, s.args...)...)
	}
	args := append([]string{s.ID, s.token()}, s.args...)
	return x.queue.prepare(s.verb, s.ID, "", append(args, base, s.By)...)
}

// settle is the contract of every settle.
func (j *lot) settle(verb string, life, token int, kept bool) (answer, counts string) {
	current := life == j.Life && token == j.Cur
	switch {
	case j.State == "":
		return "gone", ""
	case !current:
		return "stale", "stale 1"
	case j.State != "active" && !j.Lapsed:
		if verb == "complete" {
			return "again", ""
		}
		return "again " + j.State, ""
	case j.Cancel && verb != "complete":
		j.end()
		return "cancelled", "cancelled 1"
	}
	j.Lapsed = false
	switch verb {
	case "snooze":
		j.State, j.Handed = "scheduled", j.Handed+1
		return "scheduled", "snoozed 1"
	case "release":
		j.State, j.Handed = "pending", j.Handed+1
		return "pending", "released 1"
	case "discard":
		j.end()
		return "discarded", "discarded 1"
	}
	j.Fails++
	switch {
	case verb == "complete" && kept:
		j.State = "completed"
		return "completed", "completed 1"
	case verb == "complete":
		j.end()
		return "completed", "completed 1"
	case verb == "kill" || j.Fails >= attemptsMax:
		j.State = "dead"
		return "dead", "failed 1"
	}
	j.State = "scheduled"
	return "scheduled", "retried 1"
}

func (x *explorer) claim(n int) move {
	call := func() call {
		return x.queue.prepare("claim", "", "", x.queue.keys.Base(), span(leased), strconv.Itoa(n), "fresh")
	}
	return move{verb: "claim", token: n, call: call, lone: true,
		rule: func(l lots, said string) (lots, string, string) {
			room := n
			if x.concurrency > 0 {
				room = min(n, x.concurrency-l.count("active"))
			}
			want, got := min(room, l.count("pending")), strings.Fields(said)
			for _, word := range got {
				i := slices.IndexFunc(jobs[:], func(id string) bool { return strings.HasPrefix(word, id+"#") })
				if i < 0 || l[i].State != "pending" || word != fmt.Sprintf("%s#%d", jobs[i], l[i].Cur+1) {
					return l, "", "no " + word
				}
				l[i].State, l[i].Cur, l[i].Lapsed = "active", l[i].Cur+1, false
			}
			if len(got) != want {
				return l, "", fmt.Sprintf("%d jobs", want)
			}
			return l, "", said
		}}
}

func (l lots) count(state string) int {
	n := 0
	for _, j := range l {
		if j.State == state {
			n++
		}
	}
	return n
}

func (x *explorer) extend(i, life, token int) move {
	call := func() call {
		return x.queue.prepare("extend", "", "", x.queue.keys.Base(), span(leased), jobs[i], strconv.Itoa(token), markOf(life, token))
	}
	return move{verb: "extend", job: i, life: life, token: token, call: call, rule: func(l lots, _ string) (lots, string, string) {
		want := "0"
		if j := l[i]; j.State == "active" && j.Life == life && j.Cur == token {
			want = "1"
			if j.Cancel {
				want = "2"
			}
		}
		return l, "", want
	}}
}

// clock is what the times of a state say: whose lease or pause is over, when somebody was last seen alive,
// and how long nobody is to be reaped.
type clock struct {
	over        [2]bool
	seen, grace stamp // relative to now; unseen: nobody was
}

func (x *explorer) promote(c clock) move {
	call := func() call { return x.queue.prepare("promote", "", "", x.queue.keys.Base(), "10") }
	return move{verb: "promote", lone: true, call: call,
		rule: func(l lots, _ string) (lots, string, string) {
			n := 0
			for i := range l {
				if l[i].State == "scheduled" && c.over[i] {
					l[i].State, n = "pending", n+1
				}
			}
			return l, "", strconv.Itoa(n)
		}}
}

func (x *explorer) reap(c clock) move {
	call := func() call {
		return x.queue.prepare("reap", "", "", x.queue.keys.Base(), strconv.Itoa(crashesMax), "10", span(patience))
	}
	grace := c.seen < -patience/2 || c.grace > 0
	return move{verb: "reap", lone: true, call: call,
		rule: func(l lots, _ string) (lots, string, string) {
			n, lost := 0, map[string]int{}
			for i := range l {
				j := &l[i]
				if j.State != "active" || !c.over[i] || grace {
					continue
				}
				n, j.Lapses = n+1, j.Lapses+1
				switch {
				case j.Cancel:
					j.end()
					lost["cancelled"]++
				case j.Lapses >= crashesMax:
					j.State, j.Fails = "dead", j.Fails+1
					lost["failed"]++
				default:
					j.State, j.Lapsed = "pending", true
				}
			}
			lost["reaped"] = n
			return l, counted(lost), strconv.Itoa(n)
		}}
}

func counted(counts map[string]int) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] != 0 {
			words = append(words, fmt.Sprintf("%s %d", name, counts[name]))
		}
	}
	return strings.Join(words, " ")
}
