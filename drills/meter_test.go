package main

import (
	"testing"
	"time"
)

func TestACommandIsSlowByWhatNeitherTheProcessorsNorPlainCommandsExplain(t *testing.T) {
	const ms = time.Millisecond
	at := func(d time.Duration) int64 { return int64(d) }
	still := stallsOf([]line{
		{What: stood, T: at(1000 * ms), N: 0, Count: int(4 * ms)},
		{What: stood, T: at(1003 * ms), N: 0, Count: int(3 * ms)},
		{What: stood, T: at(1002 * ms), N: 1, Count: int(5 * ms)},
		{What: begins, T: at(1002 * ms), Count: int(99 * ms)},
		{What: stood, T: at(2000 * ms), N: -1, Count: int(20 * ms)},
	})
	for _, c := range []struct {
		took, from, to time.Duration
		own, plain     time.Duration
		calls          int
		fails          bool
	}{
		{took: 12 * ms, from: 500 * ms, to: 520 * ms, own: 12 * ms, fails: true},
		{took: 12 * ms, from: 500 * ms, to: 520 * ms, own: 12 * ms, plain: 12 * ms},
		{took: 12 * ms, from: 500 * ms, to: 520 * ms, own: 12 * ms, plain: 9 * ms, fails: true},
		{took: 17 * ms, from: 990 * ms, to: 1010 * ms, own: 10 * ms}, // the longer of the processors, not their sum
		{took: 18 * ms, from: 990 * ms, to: 1010 * ms, own: 11 * ms, fails: true},
		{took: 18 * ms, from: 1990 * ms, to: 2010 * ms},
		{took: 9 * ms, from: 500 * ms, to: 520 * ms, own: 9 * ms},
		{took: 12 * ms, from: 500 * ms, to: 520 * ms, own: 12 * ms, calls: 999, fails: true},
		{took: 12 * ms, from: 500 * ms, to: 520 * ms, own: 12 * ms, calls: 1000}, // the only one of so many
	} {
		r := &reading{calls: c.calls, slow: []slowCall{{took: 3 * ms, from: at(c.from), to: at(c.to)}, {took: c.took, from: at(c.from), to: at(c.to)}}}
		r.weigh(still)
		if r.worst.own != c.own || r.longest.took != c.took || r.tooSlow(c.plain) != c.fails {
			t.Errorf("%+v: own %v, longest %v, fails %v", c, r.worst.own, r.longest.took, r.tooSlow(c.plain))
		}
	}
	r := &reading{calls: 1000, slow: []slowCall{{took: 12 * ms}, {took: 11 * ms}}}
	r.weigh(nil)
	if !r.tooSlow(0) {
		t.Error("two of a thousand pass")
	}
}
