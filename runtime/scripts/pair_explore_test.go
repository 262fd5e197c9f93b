package scripts

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

// pairs explores what the rules allow two jobs to come to, and holds the scripts against the rules.
type pairs struct {
	*explorer
	known  map[pair]int32
	states []pair
	from   []int32
	by     []string
	lone   [][]int32 // the states that a state comes to although every process that has claimed is dead
	edges  int
	kinds  map[kind]bool
	// those of the edges that are held against the scripts: each kind, and some by chance
	picked []edge
	chance *rand.Rand
}

// kind is what of an edge can make a difference to a script.
type kind struct {
	verb, said       string
	job, life, token int
	lots             lots
	clock            clock
}

type edge struct {
	from int32
	move move
}

func newPairs(s *target, concurrency int, b bounds) *pairs {
	x := newExplorer(s, concurrency, b)
	p := &pairs{explorer: x, known: map[pair]int32{}, kinds: map[kind]bool{}, chance: rand.New(rand.NewPCG(1, 2))}
	p.visit(pair{clock: clock{seen: unseen}}, -1, "")
	return p
}

func (x *pairs) visit(p pair, from int32, by string) int32 {
	at, ok := x.known[p]
	if !ok {
		at = int32(len(x.states))
		x.known[p] = at
		x.states, x.from, x.by, x.lone = append(x.states, p), append(x.from, from), append(x.by, by), append(x.lone, nil)
	}
	return at
}

func (x *pairs) story(at int32) string {
	if at <= 0 {
		return ""
	}
	return x.story(x.from[at]) + x.by[at] + "\n"
}

// explore visits every state of the rules, breadth first, or the first ones.
func (x *pairs) explore(most int) {
	for at := int32(0); int(at) < len(x.states); at++ {
		if int(at) == most {
			return
		}
		p := x.states[at]
		for _, m := range x.moves(p.lots, p.clock) {
			for _, said := range p.answers(m) {
				x.edges++
				after, counts, _ := p.next(m, said)
				if fault := after.hear(m, said, counts, p, x.concurrency); fault != "" {
					failf("%s%s: %s\n%s", x.story(at), m.name(), said, fault)
				}
				to := x.visit(after, at, "")
				if int(to) == len(x.states)-1 && x.by[to] == "" {
					x.by[to] = m.name()
				}
				if m.lone && to != at {
					x.lone[at] = append(x.lone[at], to)
				}
				x.pick(at, m, said)
			}
		}
	}
	x.allEnd()
}

// pick takes the first edge of each kind: a move, its answer, and all of the jobs that it can touch; and one of a
// thousand of the others.
func (x *pairs) pick(at int32, m move, said string) {
	if m.wait {
		return
	}
	p := x.states[at]
	k := kind{verb: m.verb, job: m.job, life: m.life, token: m.token}
	switch m.verb {
	case "claim", "promote", "reap":
		k.said, k.lots, k.clock = said, lots{p.lots[0].touched(), p.lots[1].touched()}, p.clock
	case "extend":
		k.lots[0], k.clock = p.lots[m.job], p.clock
	default:
		k.lots[0], k.clock.over[0] = p.lots[m.job], p.clock.over[m.job]
	}
	if x.kinds[k] && x.chance.IntN(1000) > 0 {
		return
	}
	x.kinds[k] = true
	x.picked = append(x.picked, edge{at, m})
}

// touched is what of a job a claim, a promotion or a reaper can look at.
func (l lot) touched() lot {
	return lot{State: l.State, Lapses: l.Lapses, Lapsed: l.Lapsed, Cancel: l.Cancel}
}

// allEnd tells that nothing is stuck: from every state both jobs can end even if every process that has
// claimed, and will claim, dies.
func (x *pairs) allEnd() {
	ends := make([]bool, len(x.states))
	for again := true; again; {
		again = false
		for at := len(x.states) - 1; at >= 0; at-- {
			if ends[at] {
				continue
			}
			p := x.states[at]
			ok := x.over(p.lots, 0) && x.over(p.lots, 1)
			for _, to := range x.lone[at] {
				ok = ok || ends[to]
			}
			ends[at], again = ok, again || ok
		}
	}
	for at, ok := range ends {
		if !ok {
			failf("%sfrom here the jobs never end", x.story(int32(at)))
		}
	}
}

// replay holds the picked edges against the scripts: each from its state, put back as keys.
func (x *pairs) replay() {
	const part = 100
	for from := 0; from < len(x.picked); from += part {
		edges := x.picked[from:min(from+part, len(x.picked))]
		b := x.client.B()
		var cmds rueidis.Commands
		for i, e := range edges {
			words := imageOf(x.render(x.states[e.from], (from+i)%2)).words()
			cmds = append(cmds, b.Arbitrary("FLUSHDB").Build(), b.Eval().Script(restoreText).Numkeys(0).Arg(words...).Build(),
				x.queue.build(e.move.call()), b.Eval().Script(dumpText).Numkeys(0).Build())
		}
		replies := x.client.DoMulti(context.Background(), cmds...)
		for i, e := range edges {
			check(replies[4*i].Error())
			check(replies[4*i+1].Error())
			sp, now := readDump(replies[4*i+3])
			relative(sp, now)
			x.compare(x.states[e.from], e.move, x.reply(e.move, replies[4*i+2]), sp, func() string { return x.story(e.from) })
		}
	}
}

// compare holds what a script answered and left behind against the rules.
func (x *pairs) compare(p pair, m move, said string, sp space, story func() string) pair {
	after, counts, want := p.next(m, said)
	fail := func(format string, args ...any) {
		failf("%s%s\n%s", story(), m.name(), fmt.Sprintf(format, args...))
	}
	if said != want {
		fail("the answer is %q, want %q", said, want)
	}
	x.rename(sp, after.lots)
	if got := x.counts(sp); got != counts {
		fail("counted is %q, want %q", got, counts)
	}
	if d := differs(plain(x.base, x.render(after, 0)), x.bare(sp), 0); d != "" {
		fail("the keys differ (-rules +server):\n%s", d)
	}
	return after
}

// imageOf is the image of a key space that holds nothing but texts.
func imageOf(sp space) image {
	var words []string
	for key, v := range sp {
		words = append(words, key, v.Type, strconv.Itoa(len(v.Text)))
		for field, text := range v.Text {
			words = append(words, field, text)
		}
	}
	return image(strings.Join(words, "\x00"))
}

// plain is a rendered key space as bare leaves one.
func plain(base string, sp space) space {
	out := space{}
	for key, v := range sp {
		name := strings.TrimPrefix(key, base)
		for field, text := range v.Text {
			if name == "ring" {
				v.Text[field] = ""
			} else if strings.HasPrefix(text, "@-") && field != "seen" {
				v.Text[field] = "over"
			}
		}
		out[name] = v
	}
	return out
}

// trace makes moves by chance one after another on the scripts; the keys stay as the scripts leave them.
func (x *pairs) trace(steps int) {
	p := pair{clock: clock{seen: unseen}}
	now := imageOf(x.render(p, 0))
	var story strings.Builder
	for range steps {
		all := x.moves(p.lots, p.clock)
		m := all[x.chance.IntN(len(all))]
		if x.chance.IntN(2) == 0 { // half of them are what goes on anyway: time, claims, the pump
			for !m.lone {
				m = all[x.chance.IntN(len(all))]
			}
		}
		if m.wait {
			p, _, _ = p.next(m, "")
			now = afterBeat(now)
		} else {
			b := x.client.B()
			replies := x.client.DoMulti(context.Background(), b.Arbitrary("FLUSHDB").Build(),
				b.Eval().Script(restoreText).Numkeys(0).Arg(now.words()...).Build(), x.queue.build(m.call()), b.Eval().Script(dumpText).Numkeys(0).Build())
			check(replies[0].Error())
			check(replies[1].Error())
			sp, at := readDump(replies[3])
			relative(sp, at)
			said := x.reply(m, replies[2])
			before := p
			p = x.compare(before, m, said, sp, story.String)
			if fault := p.hear(m, said, x.counts(sp), before, x.concurrency); fault != "" {
				failf("%s%s: %s\n%s", story.String(), m.name(), said, fault)
			}
			now = x.canonical(sp)
		}
		fmt.Fprintln(&story, m.name())
	}
}

// pairsVariable asks for the long exploration.
const pairsVariable = "EMQ_TEST_PAIRS"

// check explores the rules to the end and holds the scripts against them, at the end with traces that go
// beyond the bounds.
func (x *pairs) check(t *testing.T, most, traces int) string {
	return x.fault(func() {
		x.explore(most)
		x.replay()
		x.bounds = bounds{handed: 3, lives: [2]int{3, 3}, revived: [2]int{2, 2}}
		for range traces {
			x.trace(60)
		}
		t.Logf("%d states, %d edges by the rules; on the scripts %d edges, %d of them the first of a kind, and %d traces of 60 moves",
			len(x.states), x.edges, len(x.picked), len(x.kinds), traces)
	})
}

func TestEveryStateOfTwoJobsIsExplored(t *testing.T) {
	t.Parallel()
	b, some, traces := bounds{lives: [2]int{1, 1}}, 2000, 30
	if os.Getenv(pairsVariable) == "long" {
		b, some, traces = bounds{handed: 1, lives: [2]int{1, 1}}, math.MaxInt, 2000
	}
	// one at a time with calls of their own, both at once with gathered ones
	for concurrency, gathered := range map[int]bool{1: false, 2: true} {
		t.Run(fmt.Sprintf("concurrency %d, gathered %t", concurrency, gathered), func(t *testing.T) {
			t.Parallel()
			s := onRedis(t, ownLibrary(t))
			s.gathered = gathered
			most := math.MaxInt
			if gathered {
				most = some
			}
			if fault := newPairs(s, concurrency, b).check(t, most, traces); fault != "" {
				t.Fatal(fault)
			}
		})
	}
}

// A rule that the scripts break is found.
func TestExplorationOfTwoJobsFindsMutations(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		name, old, new string
		bounds         bounds
	}{
		{"the fence ignores by", "(by ~= '' and r[3] ~= by)", "false", bounds{lives: [2]int{2, 0}}},
		{"reap compares no time", "redis.call('ZRANGE', active, '-inf', t, 'BYSCORE', 'LIMIT', 0, limit)",
			"redis.call('ZRANGE', active, '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, limit)", bounds{lives: [2]int{1, 1}}},
		{"release forgives nothing", "redis.call('HSET', row, 'state', state, 'forgiven', job.forgiven + 1)",
			"redis.call('HSET', row, 'state', state)", bounds{handed: 1, lives: [2]int{1, 0}}},
		{"a claim ignores the concurrency", "headroom = tonumber(m[2]) - redis.call('ZCARD', active)",
			"headroom = tonumber(m[2])", bounds{lives: [2]int{1, 1}}},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			scripts, found := mutate(ownLibrary(t), m.old, m.new)
			if found == 0 {
				t.Fatal("no script has the text")
			}
			fault := newPairs(onRedis(t, scripts), 1, m.bounds).check(t, 600, 0)
			if fault == "" {
				t.Fatal("nothing found")
			}
			t.Log(fault)
		})
	}
}
