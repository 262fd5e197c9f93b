package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
)

// longestCommand is what no command may take.
const longestCommand = 10 * time.Millisecond

// manyCalls are enough to show by more than one of them what a verb costs.
const manyCalls = 1000

// meter measures the commands of a server.
type meter struct {
	st    *stage
	s     *redistest.Server
	raw   node
	log   node // another connection, for the slow log
	watch *process
	rows  []*reading

	seen, polled int64      // the newest entry of the slow log that was read, and when the last reading began
	slow         []slowCall // of what is measured now
}

// reading is what the commands of one verb took.
type reading struct {
	verb    string
	aside   bool // it is not ours, but for comparison
	jobs    int
	took    time.Duration
	mean    float64 // µs of a call
	calls   int     // of scripts; of all commands for comparison
	slow    []slowCall
	longest slowCall // by the clock
	worst   slowCall // by own
	over    int      // calls with more than longestCommand of their own
}

// slowCall is a command in the server's slow log.
type slowCall struct {
	id       int64
	took     time.Duration
	own      time.Duration // without what the processors have stood still for
	from, to int64         // monotonic: it began and ended between them
	what     string
}

// meter also starts the watch over the processors.
func (st *stage) meter(s *redistest.Server) *meter {
	m := &meter{st: st, s: s, raw: st.direct(s), log: st.direct(s), seen: -1, watch: st.start(role{Log: st.log, Watch: &watchRole{PID: st.ahead(s)}})}
	st.need("the watch is up", 20*time.Second, func() bool { return st.count(m.watch, isUp) == 1 })
	st.command(s, "CONFIG", "SET", "slowlog-log-slower-than", "2000", "slowlog-max-len", "10000")
	return m
}

// during measures what one verb does; run answers how many jobs it met.
func (m *meter) during(verb string, run func() (int, error)) { m.read(&reading{verb: verb}, run) }

// aside measures what is not ours, for comparison: it takes what it takes.
func (m *meter) aside(what string, run func() (int, error)) *reading {
	r := &reading{verb: what, aside: true}
	m.read(r, run)
	return r
}

func (m *meter) read(r *reading, run func() (int, error)) {
	st := m.st
	for _, words := range [][]string{{"SLOWLOG", "RESET"}, {"CONFIG", "RESETSTAT"}} {
		st.must(words[0], m.log.do(words...).Error())
	}
	m.poll()
	m.slow = nil // of what came before
	stop := st.every(watchEvery, m.poll)
	began := time.Now()
	jobs, err := run()
	stop()
	r.jobs, r.took = jobs, time.Since(began)
	st.must(r.verb, err)
	m.poll()
	r.slow, m.slow = m.slow, nil
	stats, err := m.s.Info("commandstats")
	st.must("read the command statistics", err)
	usec := 0
	for name, text := range stats {
		if r.aside == strings.HasPrefix(name, "cmdstat_eval") || strings.Contains(name, "slowlog") || strings.Contains(name, "config") {
			continue
		}
		var calls, us int
		_, _ = fmt.Sscanf(text, "calls=%d,usec=%d", &calls, &us) // absent: 0
		r.calls, usec = r.calls+calls, usec+us
	}
	r.mean = float64(usec) / float64(max(r.calls, 1))
	m.rows = append(m.rows, r)
}

// poll reads what is new in the slow log: so it is known within some milliseconds when a command ran.
func (m *meter) poll() {
	sent, next := monotonic(), m.seen+1
	for n := 16; ; n *= 16 {
		slow, err := m.log.do("SLOWLOG", "GET", strconv.Itoa(n)).ToArray() // the newest first
		if err != nil {
			m.st.failf("read the slow log: %v", err)
			return
		}
		oldest := next
		var fresh []slowCall
		for _, entry := range slow {
			c, err := readSlowCall(entry)
			if err != nil {
				m.st.failf("read the slow log: %v", err)
				return
			}
			if oldest = c.id; c.id < next {
				break
			}
			m.seen = max(m.seen, c.id)
			c.from, c.to = m.polled-int64(c.took), monotonic()
			if !strings.HasPrefix(c.what, "SLOWLOG") { // the meter's own
				fresh = append(fresh, c)
			}
		}
		if oldest > next && len(slow) == n {
			continue // there are more
		}
		m.slow, m.polled = append(m.slow, fresh...), sent
		return
	}
}

func readSlowCall(entry rueidis.RedisMessage) (c slowCall, err error) {
	parts, err := entry.ToArray()
	if err != nil || len(parts) < 4 {
		return c, fmt.Errorf("an entry of %d parts: %w", len(parts), err)
	}
	usec, err := parts[2].AsInt64()
	c.took = time.Duration(usec) * time.Microsecond
	words, failed := parts[3].AsStrSlice()
	var unknown error
	c.id, unknown = parts[0].AsInt64()
	c.what = strings.Join(words[:min(4, len(words))], " ")
	return c, errors.Join(err, failed, unknown)
}

// judge takes off each slow call what the processors have stood still for. What is left may be over the longest
// that is allowed only where plain commands, that were read for comparison, take as long.
func (m *meter) judge(control ...*reading) {
	st := m.st
	st.sleep(200 * time.Millisecond) // until the watch has written down what was
	if !m.watch.alive() {
		st.failf("the watch over the processors has ended: %s", tail(m.watch.output()))
	}
	still := stallsOf(st.lines())
	for _, r := range m.rows {
		r.weigh(still)
	}
	plain := time.Duration(0)
	for _, r := range control {
		plain = max(plain, r.worst.own)
	}
	for _, r := range m.rows {
		if r.tooSlow(plain) {
			st.doubtf("%s: a command took %.1f ms, %.1f ms of its own, and plain commands at most %.1f ms: %s", r.verb, ms(r.worst.took), ms(r.worst.own), ms(plain), r.worst.what)
		}
	}
	m.write()
	m.report(control)
}

// weigh takes off what the processors have stood still for.
func (r *reading) weigh(still stalls) {
	for _, c := range r.slow {
		c.own = max(0, c.took-still.between(c.from, c.to))
		if c.took > r.longest.took {
			r.longest = c
		}
		if c.own > r.worst.own {
			r.worst = c
		}
		if c.own > longestCommand {
			r.over++
		}
	}
}

// tooSlow tells whether a verb has a call over the longest that is allowed, and longer than plain ones. A single one
// among very many of the same verb is not the verb's: the watch does not see all that a shared machine does.
func (r *reading) tooSlow(plain time.Duration) bool {
	single := r.over == 1 && r.calls >= manyCalls
	return !r.aside && !single && r.worst.own > max(longestCommand, plain)
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// write writes the table, a file beside the logs.
func (m *meter) write() {
	var text strings.Builder
	for _, r := range m.rows {
		fmt.Fprintf(&text, "%-50s %8d jobs in %7.2f s; %8d calls of %6.0f µs; the longest %5.1f ms, %5.1f ms of its own; the most of one's own %5.1f ms, %d over 10 ms %s\n",
			r.verb, r.jobs, r.took.Seconds(), r.calls, r.mean, ms(r.longest.took), ms(r.longest.own), ms(r.worst.own), r.over, r.longest.what)
	}
	m.st.must("write the table", os.WriteFile(filepath.Join(m.st.dir, "verbs"), []byte(text.String()), 0o600))
}

// report adds the longest commands to the drill's line, and those that they are compared with.
func (m *meter) report(control []*reading) {
	ours := slices.DeleteFunc(slices.Clone(m.rows), func(r *reading) bool { return r.aside })
	slices.SortFunc(ours, func(a, b *reading) int { return cmp.Compare(b.longest.took, a.longest.took) })
	calls, over := 0, 0
	worst := ours[0]
	for _, r := range ours {
		calls, over = calls+r.calls, over+r.over
		if r.worst.own > worst.worst.own {
			worst = r
		}
	}
	for _, r := range ours[:min(2, len(ours))] {
		m.st.figure("%s: at most %.1f ms", r.verb, ms(r.longest.took))
	}
	m.st.figure("without what the processors stood still for at most %.1f ms (%s), %d of %d script calls over 10 ms", ms(worst.worst.own), worst.verb, over, calls)
	for _, r := range m.rows {
		if r.aside {
			m.st.figure("%s: at most %.1f ms, %.1f ms without, %d of %d over 10 ms", r.verb, ms(r.longest.took), ms(r.worst.own), r.over, r.calls)
		}
	}
}
