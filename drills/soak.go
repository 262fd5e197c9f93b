package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	emq "github.com/echomq/emq/runtime"
)

func soakDrills() []drill {
	return []drill{{"soak", "every verb again and again, workers stop and die; what is sampled must not grow", soak, together}}
}

// soakFor is how long the soak lasts.
func (s settings) soakFor() time.Duration {
	switch {
	case s.soak > 0:
		return s.soak
	case s.long:
		return time.Hour
	}
	return 22 * time.Second
}

// allowed is by how much a gauge may grow after the warm-up, whatever the length: so much, and a share of what it
// was. Memory comes in larger parts than threads.
var allowed = map[string]struct{ most, share float64 }{
	"goroutines":           {3, 0},
	"descriptors":          {2, 0},
	"heap":                 {512 << 10, 0.03},
	"resident memory":      {6 << 20, 0.1},
	"server's memory":      {256 << 10, 0.05},
	"server's keys":        {40, 0.05},
	"server's connections": {2, 0},
}

func soak(st *stage) {
	s := st.redis()
	gate := filepath.Join(st.dir, "gate")
	steady := st.start(role{URL: s.URL(), Log: st.log, Soak: &soakRole{Until: gate}})
	st.need("the steady process is up", 20*time.Second, func() bool { return st.count(steady, isUp) == 1 })
	began, length := monotonic(), st.soakFor()
	gauges := make(map[string][]point)
	sample := func() {
		gauges["descriptors"] = append(gauges["descriptors"], point{monotonic(), float64(descriptors(st, steady.pid()))})
		gauges["resident memory"] = append(gauges["resident memory"], point{monotonic(), resident(st, steady.pid())})
		for name, from := range map[string][2]string{"server's memory": {"memory", "used_memory"}, "server's connections": {"clients", "connected_clients"}} {
			info, err := s.Info(from[0])
			st.must("ask the server", err)
			n, err := strconv.ParseFloat(info[from[1]], 64)
			st.must("ask the server", err)
			gauges[name] = append(gauges[name], point{monotonic(), n})
		}
		n, err := strconv.ParseFloat(strings.TrimPrefix(st.command(s, "DBSIZE"), ":"), 64)
		st.must("count the keys", err)
		gauges["server's keys"] = append(gauges["server's keys"], point{monotonic(), n})
	}
	restarts := 0
	fleeting := st.start(role{URL: s.URL(), Log: st.log, Soak: &soakRole{}})
	for next := monotonic() + int64(3*time.Second); monotonic()-began < int64(length) && steady.alive(); {
		st.sleep(max(200*time.Millisecond, length/1000))
		sample()
		if monotonic() < next {
			continue
		}
		next = monotonic() + int64(3*time.Second)
		if restarts++; restarts%2 == 0 {
			fleeting.kill()
		} else {
			st.finish(fleeting)
		}
		fleeting = st.start(role{URL: s.URL(), Log: st.log, Soak: &soakRole{}})
	}
	for _, l := range st.lines() {
		if l.What == gauged && l.PID == steady.pid() {
			gauges[l.Text] = append(gauges[l.Text], point{l.T, float64(l.Count)})
		}
	}
	st.flat(gauges, began+int64(length)*2/5)
	st.open(gate)
	st.soakEnds(s.URL(), steady, fleeting)
	produced := 0
	for _, l := range st.lines() {
		if l.What == isDone && l.PID == steady.pid() {
			produced += l.Count
		}
	}
	st.figure("%d jobs, %d restarts", produced, restarts)
	if produced < int(length/time.Second)*5 || restarts < 2 {
		st.doubtf("%d jobs in %v and %d restarts: the drill proves nothing", produced, length, restarts)
	}
}

// flat judges each gauge from a time on.
func (st *stage) flat(gauges map[string][]point, since int64) {
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		t, err := trendOf(settled(gauges[name], since))
		st.must("judge "+name, err)
		most := allowed[name].most + allowed[name].share*t.start
		text := fmt.Sprintf("%s %s %+.0f ± %.0f", name, grouped(t.start), t.growth, t.noise)
		st.figure("%s", text)
		if t.grows(most) {
			st.failf("%s grows: %s after the warm-up; at most %.0f is allowed", name, text, most)
		}
	}
}

// grouped writes large numbers in thousands.
func grouped(f float64) string {
	if f < 1e5 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.0fk", f/1e3)
}

// soakEnds lets everything end, looks at the key space, deletes the queue, and looks again.
func (st *stage) soakEnds(url string, steady, fleeting *process) {
	q := st.client(url).Queue(soaks)
	st.reached("everything has ended", time.Minute, func() bool {
		n, err := q.Counts(st.ctx)
		return err == nil && st.count(steady, isDone) == 1 && n.Pending+n.InLanes+n.Active+n.Scheduled+n.Completed == 0
	})
	st.finish(steady, fleeting)
	look := st.look(url)
	ks, err := readKeyspace(st.ctx, look, soaks)
	st.must("read the key space", err)
	for _, f := range ks.faults() {
		st.failf("%s", f)
	}
	if len(ks.rows) > soakDead {
		st.failf("%d rows are left, at most %d dead letters are kept", len(ks.rows), soakDead)
	}
	st.must("pause", q.Pause(st.ctx))
	_, err = q.Obliterate(st.ctx, emq.ObliterateOptions{})
	st.must("Obliterate", err)
	left, err := scan(st.ctx, look, "*")
	st.must("list the keys", err)
	left = slices.DeleteFunc(left, func(key string) bool {
		return key == "{emq}:version" || strings.HasPrefix(key, "emq:{"+soaks+"}:wake:") || strings.HasSuffix(key, ":pump") // these expire
	})
	if len(left) > 0 {
		st.failf("keys are left when the queue is deleted: %v", left[:min(len(left), 10)])
	}
}

func descriptors(st *stage, pid int) int {
	all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	st.must("count descriptors", err)
	return len(all)
}

func resident(st *stage, pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	st.must("read the memory of a process", err)
	fields := strings.Fields(string(text))
	pages, err := strconv.ParseFloat(fields[1], 64)
	st.must("read the memory of a process", err)
	return pages * float64(os.Getpagesize())
}
