package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

func scaleDrills() []drill {
	return []drill{
		{"pumps", "strangers take the pumps of all queues all the time, the workers' own calls come late, workers die", manyPumps},
		{"flood", "very many jobs are due at one instant", flood},
		{"endings", "very many jobs end in every way, and then the queue is idle", allEndings},
		{"crowd", "very many jobs in each state, and every verb", crowded},
	}
}

// ahead lets a server have a processor whenever it wants one, so that what a command takes by the clock is its
// own time. It needs root; without it meter takes off what the server has waited.
func (st *stage) ahead(s *redistest.Server) (pid int) {
	info, err := s.Info("server")
	st.must("find the server's process", err)
	pid, err = strconv.Atoi(info["process_id"])
	st.must("find the server's process", err)
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1} // a nice value counts only within its group
	if err := unix.SchedSetAttr(pid, &attr, 0); err != nil {
		st.figure("the server is not kept ahead of others: %v", err)
	}
	return pid
}

// longestCommand is what no command may take.
const longestCommand = 10 * time.Millisecond

// meter measures the commands of a server.
type meter struct {
	st   *stage
	s    *redistest.Server
	raw  node
	pid  int
	rows []reading
}

// reading is what the commands of one verb took.
type reading struct {
	verb           string
	jobs           int
	took, longest  time.Duration
	mean           float64 // µs of a script call
	calls, over    int     // over the longest that is allowed, by the clock
	excess, waited time.Duration
	what           string // the beginning of the longest
}

func (st *stage) meter(s *redistest.Server) *meter {
	m := &meter{st: st, s: s, raw: st.direct(s), pid: st.ahead(s)}
	st.command(s, "CONFIG", "SET", "slowlog-log-slower-than", "2000", "slowlog-max-len", "100000")
	return m
}

// during measures what one verb does; run answers how many jobs it met.
func (m *meter) during(verb string, run func() (int, error)) {
	r := m.aside(verb, run)
	if r.excess > r.waited {
		m.st.failf("%s: %d commands over %v, the longest %v; the server waited %v for a processor in all", verb, r.over, longestCommand, r.longest, r.waited)
	}
}

// aside measures what is not ours, for comparison: it takes what it takes.
func (m *meter) aside(verb string, run func() (int, error)) reading {
	st := m.st
	for _, words := range [][]string{{"SLOWLOG", "RESET"}, {"CONFIG", "RESETSTAT"}} {
		st.must(words[0], m.raw.do(words...).Error())
	}
	waited, began := m.waited(), time.Now()
	jobs, err := run()
	r := reading{verb: verb, jobs: jobs, took: time.Since(began)}
	st.must(verb, err)
	r.waited = m.waited() - waited
	slow, err := m.raw.do("SLOWLOG", "GET", "-1").ToArray()
	st.must("read the slow log", err)
	for _, entry := range slow {
		parts, err := entry.ToArray()
		st.must("read the slow log", err)
		words, err := parts[3].AsStrSlice()
		st.must("read the slow log", err)
		if words[0] == "SLOWLOG" {
			continue // the meter's own
		}
		usec, err := parts[2].AsInt64()
		st.must("read the slow log", err)
		took := time.Duration(usec) * time.Microsecond
		if took > r.longest {
			r.longest, r.what = took, strings.Join(words[:min(4, len(words))], " ")
		}
		if took > longestCommand {
			r.over++
			r.excess += took - longestCommand
		}
	}
	stats, err := m.s.Info("commandstats")
	st.must("read the command statistics", err)
	usec := 0
	for _, name := range []string{"cmdstat_evalsha", "cmdstat_eval"} {
		var calls, us int
		_, _ = fmt.Sscanf(stats[name], "calls=%d,usec=%d", &calls, &us) // absent: 0
		r.calls, usec = r.calls+calls, usec+us
	}
	r.mean = float64(usec) / float64(max(r.calls, 1))
	m.rows = append(m.rows, r)
	m.write()
	return r
}

// waited is how long the server's main thread has waited for a processor since its start.
func (m *meter) waited() time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", m.pid))
	m.st.must("read what the server has waited", err)
	fields := strings.Fields(string(text))
	ns, err := strconv.ParseInt(fields[1], 10, 64)
	m.st.must("read what the server has waited", err)
	return time.Duration(ns)
}

// write writes the table, a file beside the logs.
func (m *meter) write() {
	var text strings.Builder
	for _, r := range m.rows {
		fmt.Fprintf(&text, "%-40s %8d jobs in %7.2f s; %6d calls of %6.0f µs; the longest command %5.1f ms, %d over 10 ms; the server waited %.1f ms %s\n",
			r.verb, r.jobs, r.took.Seconds(), r.calls, r.mean, float64(r.longest.Microseconds())/1000, r.over, float64(r.waited.Microseconds())/1000, r.what)
	}
	m.st.must("write the table", os.WriteFile(filepath.Join(m.st.dir, "verbs"), []byte(text.String()), 0o600))
}

// report adds the longest commands to the drill's line.
func (m *meter) report() {
	longest := slices.SortedFunc(slices.Values(m.rows), func(a, b reading) int { return cmp.Compare(b.longest, a.longest) })
	for _, r := range longest[:min(3, len(longest))] {
		m.st.figure("%s: at most %.1f ms", r.verb, float64(r.longest.Microseconds())/1000)
	}
}

// fillText writes rows of a state, and lists them: KEYS base; ARGV state, list (” for lanes), from, to, lanes,
// the first and the step of the scores (the second moves on by one each 100 jobs), the ids' beginning.
const fillText = `
local base, digits = KEYS[1], '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
local state, list, lanes, score, step = ARGV[1], ARGV[2], tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
for i = tonumber(ARGV[3]), tonumber(ARGV[4]) - 1 do
  local n, id = i, ''
  for _ = 1, 6 do
    id = string.sub(digits, n % 62 + 1, n % 62 + 1) .. id
    n = math.floor(n / 62)
  end
  id = 'JOB' .. ARGV[8] .. id
  local row = base .. 'job:' .. id
  redis.call('HSET', row, 'state', state, 'attempts', state == 'pending' and 0 or 1, 'payload', '{"n":' .. i .. '}', 'src', 'src00001', 'kind', 'parcel',
    'unique', ARGV[8] .. i)
  if state == 'dead' or state == 'completed' then
    redis.call('HSET', row, 'settled_at', score, 'last_error', 'the disk is full, as it was yesterday')
  else
    redis.call('SET', base .. 'de:' .. ARGV[8] .. i, id)
  end
  if lanes > 0 then
    redis.call('HSET', row, 'group', 'lane ' .. i % lanes)
  end
  local at = score + step * math.floor(i / 100)
  if lanes > 0 and state == 'pending' then
    redis.call('ZADD', base .. 'g:lane ' .. i % lanes .. ':pending', 0, id)
    redis.call('ZADD', base .. 'ring', 'NX', 1, 'lane ' .. i % lanes)
    redis.call('HINCRBY', base .. 'meta', 'laned', 1)
  elseif lanes > 0 and state == 'active' then
    redis.call('SADD', base .. 'g:lane ' .. i % lanes .. ':active', id)
  end
  if state == 'dead' then
    redis.call('ZADD', base .. 'dead:at', at, id)
    at = 0
  end
  if list ~= '' then
    redis.call('ZADD', base .. list, at, id)
  end
end
return 1`

// batch is what fill writes.
type batch struct {
	state, list, ids string
	n, lanes         int
	score            time.Time // zero: 0 for all
	step             int       // ms of score each 100 jobs
}

// fill writes rows as the transitions leave them, by a script: faster than any client could enqueue.
func (st *stage) fill(raw node, queue string, b batch) {
	score := int64(0)
	if !b.score.IsZero() {
		score = b.score.UnixMilli()
	}
	const part = 1000
	for from := 0; from < b.n; from += part {
		st.must("fill the queue", raw.do("EVAL", fillText, "1", "emq:{"+queue+"}:", b.state, b.list, strconv.Itoa(from), strconv.Itoa(min(from+part, b.n)),
			strconv.Itoa(b.lanes), strconv.FormatInt(score, 10), strconv.Itoa(b.step), b.ids).Error())
		st.must("the drill", st.ctx.Err())
	}
}

// memory is what a server uses, in bytes.
func (st *stage) memory(s *redistest.Server) int {
	info, err := s.Info("memory")
	st.must("read the server's memory", err)
	n, err := strconv.Atoi(info["used_memory"])
	st.must("read the server's memory", err)
	return n
}

// counts are a queue's.
func (st *stage) counts(c *emq.Client, queue string) emq.Counts {
	n, err := c.Queue(queue).Counts(st.ctx)
	st.must("Counts", err)
	return n
}
