package scripts

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// bounds make the number of states finite.
type bounds struct {
	handed  int    // snoozes and releases of a job
	lives   [2]int // enqueues of a job under the same id
	revived [2]int // reprocesses of a job
}

// explorer visits every state that its jobs can come to within the bounds, by breadth first, on the real scripts: it puts a state
// back, makes one call, and judges the answer and all keys by the rules. One job is in a lane with a limit, the
// other holds a unique key and is kept when it has completed.
type explorer struct {
	*target
	base        string
	bounds      bounds
	concurrency int
	states      []*explored
	known       map[string]int
	edges       int
}

// explored is a state: the keys, and what the rules say of the jobs.
type explored struct {
	image  image
	lots   lots
	parent int
	by     string
	lone   []int // the states that come here when every process that has claimed is dead
}

func newExplorer(s *target, concurrency int, b bounds) *explorer {
	s.clear()
	for _, sc := range s.queue.scripts {
		s.must("SCRIPT", "LOAD", sc.text)
	}
	x := &explorer{target: s, base: s.queue.keys.Base(), bounds: b, concurrency: concurrency, known: map[string]int{}}
	s.must("HSET", s.key("glimit"), "l", "1")
	if concurrency > 0 {
		s.must("HSET", s.key("meta"), "concurrency", strconv.Itoa(concurrency))
	}
	sp, now := s.dump()
	relative(sp, now)
	x.visit(x.canonical(sp), lots{}, -1, move{})
	return x
}

// visit notes a state, and how it was first come to.
func (x *explorer) visit(i image, l lots, from int, m move) {
	name := fmt.Sprint(i, l)
	at, ok := x.known[name]
	if !ok {
		at = len(x.states)
		x.known[name] = at
		x.states = append(x.states, &explored{image: i, lots: l, parent: from, by: m.name()})
	}
	if m.lone && at != from {
		x.states[at].lone = append(x.states[at].lone, from)
	}
}

// run explores everything; it answers the first fault with the shortest way to it, or nothing.
func (x *explorer) run() string {
	return x.fault(func() {
		for at := 0; at < len(x.states); at++ {
			x.expand(at)
		}
		x.allEnd()
	})
}

// fault is with what f fails.
func (x *explorer) fault(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			text = f.text
		}
	}()
	f()
	return ""
}

// expand makes every move of a state, each from the state put back anew.
func (x *explorer) expand(at int) {
	st := x.states[at]
	moves := x.moves(st.lots, st.image.clock(x.base))
	b := x.client.B()
	var cmds rueidis.Commands
	for _, m := range moves {
		if !m.wait {
			cmds = append(cmds, b.Arbitrary("FLUSHDB").Build(),
				b.Eval().Script(restoreText).Numkeys(0).Arg(st.image.words()...).Build(),
				x.queue.build(m.call()), b.Eval().Script(dumpText).Numkeys(0).Build())
		}
	}
	replies := x.client.DoMulti(context.Background(), cmds...)
	for _, m := range moves {
		x.edges++
		if m.wait {
			x.visit(afterBeat(st.image), st.lots, at, m)
			continue
		}
		check(replies[0].Error())
		check(replies[1].Error())
		sp, now := readDump(replies[3])
		relative(sp, now)
		x.judge(at, m, x.reply(m, replies[2]), sp)
		replies = replies[4:]
	}
}

// judge holds an answer and the keys after it against the rules.
func (x *explorer) judge(at int, m move, said string, sp space) {
	st := x.states[at]
	fail := func(format string, args ...any) {
		failf("%s%s\n%s", x.story(at), m.name(), fmt.Sprintf(format, args...))
	}
	after, counts, want := m.rule(st.lots, said)
	if said != want {
		fail("the answer is %q, want %q", said, want)
	}
	x.rename(sp, after)
	if d := differs(x.expected(st, after), x.seen(sp), 0); d != "" {
		fail("the keys differ (-rules +server):\n%s", d)
	}
	if got := x.counts(sp); got != counts {
		fail("counted is %q, want %q", got, counts)
	}
	now := x.canonical(sp)
	if d := differs(x.ends(st, m, said, after), now.ends(x.base), 0); d != "" {
		fail("the times differ (-rules +server):\n%s", d)
	}
	idle := after == st.lots && (strings.HasPrefix(said, "again") || said == "stale" || said == "gone" || strings.HasPrefix(said, "EMQ"))
	if woken := sp[x.base+"wake"].Type + sp[x.base+"wake:pump"].Type; idle && (now != st.image || woken != "") {
		fail("a call that was refused has changed something:\n%s", differs(st.image.words(), now.words(), 0))
	}
	x.visit(now, after, at, m)
}

// ends is when the lease or the pause of each job must be over: only its own claim or heartbeat begins a lease,
// and only what parks it begins a pause.
func (x *explorer) ends(st *explored, m move, said string, after lots) map[string]stamp {
	want := map[string]stamp{}
	before := st.image.ends(x.base)
	for i, id := range jobs {
		span := map[string]stamp{"active": leased, "scheduled": backoff}[after[i].State]
		beats := m.verb == "extend" && m.job == i && said != "0"
		switch {
		case span == 0:
		case beats || after[i].State != st.lots[i].State:
			want[id] = span
		default:
			want[id] = before[id]
		}
	}
	return want
}

// rename gives the mark of a claim the name by which its holder is known.
func (x *explorer) rename(sp space, after lots) {
	for i, id := range jobs {
		if row := sp[x.base+"job:"+id]; row.Text["by"] == "fresh" {
			row.Text["by"] = markOf(after[i].Life, after[i].Cur)
		}
	}
}

// reply puts an answer in a word.
func (x *explorer) reply(m move, res rueidis.RedisResult) string {
	if err := res.Error(); err != nil {
		word, _, _ := strings.Cut(err.Error(), " ")
		if rest, ok := map[string]string{"EMQSTALE": "stale", "EMQGONE": "gone"}[word]; ok && m.verb != "cancel" {
			return rest
		}
		if !strings.HasPrefix(word, "EMQ") {
			return err.Error()
		}
		return word
	}
	msg, err := res.ToMessage()
	check(err)
	if msg.IsArray() {
		parts, err := msg.ToArray()
		check(err)
		switch {
		case m.verb == "claim":
			var ids []string
			for _, p := range parts[4:] {
				job, err := p.ToArray()
				check(err)
				ids = append(ids, fmt.Sprintf("%s#%d", text(job[0]), number(job[1])))
			}
			return strings.Join(ids, " ")
		case len(parts) == 0:
			return ""
		}
		msg = parts[0]
	}
	word := text(msg)
	if msg.IsInt64() {
		word = strconv.FormatInt(number(msg), 10)
	}
	if m.verb != "complete" {
		return word
	}
	word, _, _ = strings.Cut(word, " ") // complete.lua does not tell in which state the job is
	if known, ok := map[string]string{"0": "gone", "1": "completed", "2": "again"}[word]; ok {
		return known
	}
	return word
}

// expected is where the jobs must be by the rules: each in the one set of its state, with its lane's own sets,
// its unique key, the counts of its row, and the end of its lease.
func (x *explorer) expected(st *explored, after lots) space {
	sp := space{}
	list := func(set, id string) {
		v, ok := sp[set]
		if !ok {
			v = value{Text: map[string]string{}}
			sp[set] = v
		}
		v.Text[id] = ""
	}
	for i, id := range jobs {
		j := after[i]
		if j.State == "" {
			continue
		}
		forgiven := j.Cur - j.Fails
		if j.State == "active" {
			forgiven--
		}
		row := fmt.Sprintf("%s attempts %d forgiven %d lapses %d cancel %t", j.State, j.Cur, forgiven, j.Lapses, j.Cancel)
		if j.Cur > 0 {
			row += " by " + markOf(j.Life, j.Cur)
		}
		list("job:"+id, row)
		switch {
		case j.State == "pending" && i == 0:
			list("g:l:pending", id)
			list("ring", "l")
			list("laned", "1")
		case j.State == "active" && i == 0:
			list("g:l:active", id)
			list("active", id)
		case j.State == "dead":
			list("dead", id)
			list("dead:at", id)
		default:
			list(listOf(j.State), id)
		}
		if i == 1 && j.State != "dead" && j.State != "completed" {
			list("de:u", id)
		}
	}
	return sp
}

// seen is the same, read from the keys. A key that no rule knows shows as itself.
func (x *explorer) seen(sp space) space {
	got := space{}
	for key, v := range sp {
		name := strings.TrimPrefix(key, x.base)
		texts := map[string]string{}
		switch {
		case strings.HasPrefix(name, "metrics:"), name == "wake", name == "wake:pump", name == "glimit":
			continue
		case name == "meta":
			if v.Text["laned"] == "" || v.Text["laned"] == "0" {
				continue
			}
			name, texts[v.Text["laned"]] = "laned", ""
		case strings.HasPrefix(name, "job:"):
			f := v.Text
			num := func(s string) int { n, _ := strconv.Atoi(s); return n }
			row := fmt.Sprintf("%s attempts %d forgiven %d lapses %d cancel %t", f["state"], num(f["attempts"]), num(f["forgiven"]), num(f["lapses"]), f["cancel"] != "")
			if f["by"] != "" {
				row += " by " + f["by"]
			}
			texts[row] = ""
		default:
			for m := range v.Text {
				texts[m] = ""
			}
			for m := range v.At {
				texts[m] = ""
			}
			for _, m := range v.Items {
				texts[m] = ""
			}
		}
		got[name] = value{Text: texts}
	}
	return got
}

func (x *explorer) counts(sp space) string {
	found := map[string]int{}
	for key, v := range sp {
		if name, ok := strings.CutPrefix(key, x.base+"metrics:"); ok {
			found[name], _ = strconv.Atoi(v.Text["count"])
		}
	}
	return counted(found)
}

// story is the shortest way to a state.
func (x *explorer) story(at int) string {
	if at <= 0 {
		return ""
	}
	st := x.states[at]
	return x.story(st.parent) + st.by + "\n"
}

// allEnd tells that nothing is stuck: from every state both jobs can end even if every process that has
// claimed, and will claim, dies.
func (x *explorer) allEnd() {
	ends := make([]bool, len(x.states))
	var todo []int
	for at, st := range x.states {
		if x.over(st.lots, 0) && x.over(st.lots, 1) {
			ends[at] = true
			todo = append(todo, at)
		}
	}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		for _, from := range x.states[at].lone {
			if !ends[from] {
				ends[from] = true
				todo = append(todo, from)
			}
		}
	}
	if at := slices.Index(ends, false); at >= 0 {
		failf("%sfrom here the jobs never end", x.story(at))
	}
}

func (x *explorer) over(l lots, i int) bool {
	return l[i].over() && (l[i].Life > 0 || x.bounds.lives[i] == 0)
}

// TestEveryStateIsExplored explores each job alone, with all its lives, to the end.
func TestEveryStateIsExplored(t *testing.T) {
	t.Parallel()
	for _, b := range []bounds{
		{handed: 0, lives: [2]int{2, 0}},
		{handed: 1, lives: [2]int{1, 0}},
		{handed: 0, lives: [2]int{0, 1}, revived: [2]int{0, 1}},
	} {
		for _, gathered := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v, gathered %t", b, gathered), func(t *testing.T) {
				t.Parallel()
				s := onRedis(t, ownLibrary(t))
				s.gathered = gathered
				x := newExplorer(s, 1, b)
				if fault := x.run(); fault != "" {
					t.Fatal(fault)
				}
				t.Logf("%d states, %d edges", len(x.states), x.edges)
			})
		}
	}
}

// A broken rule is found, with the shortest way to it.
func TestExplorationFindsMutations(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"the fence ignores by", "any waiting job can be settled",
		"release forgives nothing", "reap has no crash budget", "a late settle leaves the job in pending"} {
		i := slices.IndexFunc(mutations, func(m mutation) bool { return m.name == name })
		scripts, _ := mutate(ownLibrary(t), mutations[i].old, mutations[i].new)
		found := ""
		for _, b := range []bounds{{handed: 1, lives: [2]int{1, 0}}, {lives: [2]int{2, 0}}} {
			if found == "" {
				found = newExplorer(onRedis(t, scripts), 0, b).run()
			}
		}
		if found == "" {
			t.Fatalf("%s: nothing found", name)
		}
		t.Logf("%s:\n%s", name, found)
	}
}
