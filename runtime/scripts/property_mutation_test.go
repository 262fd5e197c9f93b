package scripts

import (
	"flag"
	"maps"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// silent is a test that only remembers whether it failed.
type silent struct {
	testing.TB
	failed bool
}

func (s *silent) Helper()               {}
func (s *silent) Log(...any)            {}
func (s *silent) Logf(string, ...any)   {}
func (s *silent) Error(...any)          { s.failed = true }
func (s *silent) Errorf(string, ...any) { s.failed = true }
func (s *silent) Fail()                 { s.failed = true }
func (s *silent) Failed() bool          { return s.failed }

func (s *silent) Fatal(...any)          { s.FailNow() }
func (s *silent) Fatalf(string, ...any) { s.FailNow() }
func (s *silent) FailNow() {
	s.failed = true
	runtime.Goexit()
}

// core are the mutations that prove the property test: the rules of the fence, of the lapse and of the
// count of attempts. Not those that only rare histories find, which take minutes on a slow machine: the conformance
// suite has them too.
var core = []string{
	"the fence ignores by", "the fence ignores attempts", "a lapsed claim cannot settle late",
	"any waiting job can be settled", "a late settle leaves the job in pending",
	"a late settle keeps the attempt forgiven", "a used token is used again",
	"take leaves the job in the active set", "an ended job keeps its key", "a claim counts no attempt",
	"snooze forgives nothing", "release forgives nothing", "reap forgives nothing",
	"reap forgets whose lease it took", "reap has no grace",
	"promote leaves the jobs in the schedule",
	"a settled job stays in its lane's active set", "a lane enters without its turn",
	"a cancelled job in a lane is still counted", "a released job leaves its lane", "weights are not heard",
	"what a drain takes from lanes is still counted", "remove leaves the time of death",
	"a gathered duplicate overwrites the row", "a gathered call wakes nobody", "gathered jobs are not counted against the limit",
	"gathered completions ignore by", "gathered completions keep what a job owns", "a gathered job is completed twice",
	"a debounced job stays in the schedule", "a resent debounce replaces again", "a paused entry fires",
	"what is drained is not counted", "a guard lets running jobs through", "what is scheduled keeps the old lane",
	"a lane is reaped without grace", "an audit frees the keys of living jobs", "a setting is not taken away",
}

// held are the mutations that no history is expected to find, each with what finds it.
var held = map[string]string{
	"a clock that steps back shuts the rate":         "no history sets the clock back; limits does",
	"a step back is forgotten":                       "no history sets the clock back; limits does",
	"a grace outlives a step back of the clock":      "no history sets the clock back; reap does",
	"more orphans than one claim sees hide the jobs": "no history has hundreds of orphans; orphans does",
	"a spoilt lane stops the others":                 "no hand overwrites a lane's list; lanes does",
	"the memory of definitions grows":                "no history defines an entry ten times without a removal; cron does",
	"a spoilt place stays":                           "no hand changes an entry's score; cron does",
}

// TestRandomHistoriesCatchMutations breaks one rule after another: random histories tell. In full it is every
// mutation that is not held by other tests.
func TestRandomHistoriesCatchMutations(t *testing.T) {
	checks(t, "400")
	shrink := flag.Lookup("rapid.shrinktime").Value
	old := shrink.String()
	if err := shrink.Set("0s"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = shrink.Set(old) })
	t.Run("nothing", func(t *testing.T) { // or all that follows is found for a wrong reason
		if !full() {
			return // TestRandomHistoriesOnRedis has played them
		}
		t.Parallel()
		s := onRedis(t, ownLibrary(t))
		rapid.Check(t, property(func() []*target { return []*target{s} }))
	})
	all := slices.Concat(mutations, cronMutations)
	for _, m := range all {
		if held[m.name] != "" || harmless[m.name] != "" || !full() && !slices.Contains(core, m.name) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			scripts, _ := mutate(ownLibrary(t), m.old, m.new)
			s := onRedis(t, scripts)
			for round := 0; !failsIn(t, s); round++ {
				if round == 2 { // histories are drawn anew, and one may lie far out
					t.Fatal("no history fails")
				}
			}
			t.Log("found")
		})
	}
	for _, name := range slices.Concat(core, slices.Collect(maps.Keys(held))) {
		if !slices.ContainsFunc(all, func(m mutation) bool { return m.name == name }) {
			t.Errorf("there is no mutation %q", name)
		}
	}
}

// failsIn tells whether a round of random histories finds what is wrong with the scripts of s.
func failsIn(t *testing.T, s *target) bool {
	play := &silent{TB: t}
	done := make(chan struct{})
	go func() { // a failure ends its goroutine
		defer close(done)
		rapid.Check(play, property(func() []*target { return []*target{s} }))
	}()
	<-done
	return play.failed
}
