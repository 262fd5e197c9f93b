package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
)

// output is what a run prints.
type output struct {
	mu   sync.Mutex
	text strings.Builder
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func play(t *testing.T, ctx context.Context, most int, ds ...drill) (status int, lines []string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	out := &output{}
	status = newRun(settings{seed: 3}, most, out).all(ctx, ds)
	return status, strings.Split(strings.TrimSpace(out.text.String()), "\n")
}

func TestARunCountsAndFailsWithAnyDrill(t *testing.T) {
	good := drill{"good", "nothing", func(st *stage) { st.figure("a figure") }, together}
	bad := drill{"bad", "nothing", func(st *stage) { st.failf("it broke") }, alone}
	panics := drill{"panics", "nothing", func(*stage) { panic("help") }, together}
	needs := drill{"needs", "nothing", func(st *stage) { st.must("find a program", errors.New("it is not there")) }, together}

	status, lines := play(t, t.Context(), 2, good, drill{"other", "nothing", good.run, alone})
	if status != 0 || len(lines) != 4 || !strings.HasPrefix(lines[3], "drills: 2 passed, 0 failed, in ") {
		t.Errorf("two drills that hold: status %d, %q", status, lines)
	}
	status, lines = play(t, t.Context(), 2, good, bad, panics, needs)
	last := lines[len(lines)-1]
	if status != 1 || !strings.HasPrefix(last, "drills: 1 passed, 3 failed, in ") {
		t.Errorf("three drills that do not hold: status %d, %q", status, last)
	}
	if again := lines[len(lines)-2]; !strings.Contains(again, "-seed 3 -only ") {
		t.Errorf("it does not say how to repeat them: %q", again)
	}
	for _, name := range []string{"bad", "panics", "needs"} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, name+" ") && strings.Contains(l, "FAILS") }) {
			t.Errorf("%s has no line that says so: %q", name, lines)
		}
	}
}

func TestADrillLeftInDoubtIsPlayedOnceMore(t *testing.T) {
	for _, c := range []struct {
		name    string
		find    func(st *stage, times int)
		status  int
		times   int
		says    []string
		silent  string
		verdict verdict
	}{
		{name: "slow once", times: 2, says: []string{"the first time: it took 11 ms", "the first time: logs: "}, verdict: holds,
			find: func(st *stage, times int) {
				if times == 1 {
					st.doubtf("it took 11 ms")
				}
			}},
		{name: "slow twice", status: 1, times: 2, says: []string{"the first time: it took 11 ms", "    it took 12 ms"}, verdict: fails,
			find: func(st *stage, times int) { st.doubtf("it took %d ms", 10+times) }},
		{name: "slow, and a job lost", status: 1, times: 1, says: []string{"    it took 11 ms", "    a job is gone"}, silent: "the first time", verdict: fails,
			find: func(st *stage, times int) {
				st.doubtf("it took 11 ms")
				st.failf("a job is gone")
			}},
		{name: "slow, then a job lost", status: 1, times: 2, says: []string{"the first time: it took 11 ms", "    a job is gone"}, verdict: fails,
			find: func(st *stage, times int) {
				if times == 1 {
					st.doubtf("it took 11 ms")
				} else {
					st.failf("a job is gone")
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			times := 0
			status, lines := play(t, t.Context(), 1, drill{"d", "", func(st *stage) {
				times++
				c.find(st, times)
			}, alone})
			text := strings.Join(lines, "\n")
			if status != c.status || times != c.times || !strings.Contains(text, "d                "+string(c.verdict)) {
				t.Errorf("status %d after %d times: %s", status, times, text)
			}
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q: %s", want, text)
				}
			}
			if c.silent != "" && strings.Contains(text, c.silent) {
				t.Errorf("it says %q: %s", c.silent, text)
			}
		})
	}
}

func TestDrillsRunTogetherUpToANumberAndSomeAlone(t *testing.T) {
	const most = 3
	var now, peak, crowded atomic.Int64
	meet := make(chan struct{}, most)
	body := func(lone bool) func(*stage) {
		return func(st *stage) {
			n := now.Add(1)
			defer now.Add(-1)
			for p := peak.Load(); n > p && !peak.CompareAndSwap(p, n); p = peak.Load() {
			}
			if lone && n > 1 {
				crowded.Add(1)
			}
			if !lone { // until so many have met as may
				meet <- struct{}{}
				st.need("others come", 20*time.Second, func() bool { return len(meet) == most || peak.Load() == most })
				<-meet
			}
		}
	}
	var ds []drill
	for i := range 9 {
		ds = append(ds, drill{fmt.Sprint("d", i), "", body(i%3 == 1), i%3 == 1})
	}
	if status, lines := play(t, t.Context(), most, ds...); status != 0 {
		t.Errorf("status %d: %q", status, lines)
	}
	if peak.Load() != most || crowded.Load() > 0 {
		t.Errorf("%d at a time instead of %d; %d that run alone did not", peak.Load(), most, crowded.Load())
	}
}

func TestTheChoicesOfADrillAreItsSeedsAloneAndAmongOthers(t *testing.T) {
	var mu sync.Mutex
	drawn := make(map[string]map[uint64]bool)
	d := func(name string) drill {
		return drill{name, "", func(st *stage) {
			mu.Lock()
			defer mu.Unlock()
			if drawn[name] == nil {
				drawn[name] = make(map[uint64]bool)
			}
			drawn[name][st.rng.Uint64()] = true
		}, together}
	}
	play(t, t.Context(), 1, d("one"))
	play(t, t.Context(), 4, d("three"), d("two"), d("one"))
	if len(drawn["one"]) != 1 || len(drawn) != 3 {
		t.Errorf("drawn: %v", drawn)
	}
}

func TestAnInterruptEndsAllDrillsAndTheirServers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var servers []*redistest.Server
	waits := func(st *stage) {
		s := st.redis()
		mu.Lock()
		servers = append(servers, s)
		n := len(servers)
		mu.Unlock()
		if n == 2 {
			cancel()
		}
		st.reached("what never comes", time.Hour, func() bool { return false })
		st.sleep(time.Hour)
	}
	status, lines := play(t, ctx, 2, drill{"a", "", waits, together}, drill{"b", "", waits, together}, drill{"c", "", waits, together}, drill{"d", "", waits, alone})
	if last := lines[len(lines)-1]; status != 1 || len(lines) != 2 || !strings.HasPrefix(last, "drills: 0 passed, 0 failed, 4 interrupted, in ") {
		t.Errorf("status %d: %q", status, lines)
	}
	for _, s := range servers {
		if _, err := s.Command("PING"); err == nil {
			t.Errorf("the server on port %d still answers", s.Port)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}
