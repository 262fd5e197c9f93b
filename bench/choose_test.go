package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWhatTheFlagsAskForIsRefusedBeforeAnythingRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		flags flags
		says  string // the error; empty: none
		cases int
		out   string
	}{
		{flags{rounds: 5}, "", len(cases()), wholeFile},
		{flags{rounds: 5, out: "mine.md"}, "", len(cases()), "mine.md"},
		{flags{rounds: 5, short: true}, "", len(cases()), ""},
		{flags{rounds: 0, short: true, out: "mine.md"}, "", len(cases()), "mine.md"},
		{flags{rounds: 5, only: "bulk"}, "", 1, ""},
		{flags{rounds: 5, systems: "emq, bare"}, "", len(cases()) - 2, ""}, // but for those of everysec
		{flags{rounds: 5, systems: "bare"}, "", 3, ""},
		{flags{rounds: 5, only: "bulk", out: "mine.md"}, "", 1, "mine.md"},
		{flags{rounds: 0}, "0 rounds: at least 1", 0, ""},
		{flags{rounds: 5, rest: []string{"short"}}, `"short" is no flag`, 0, ""},
		{flags{rounds: 5, only: "nosuch"}, `no case is called "nosuch"; -list shows them`, 0, ""},
		{flags{rounds: 5, systems: "emgq"}, `no system is called "emgq"; there are asynq, asynq everysec, bare, emq, emq everysec, emq lanes`, 0, ""},
		{flags{rounds: 5, only: "bytes", systems: "bare"}, "none of these cases is for any of these systems", 0, ""},
		{flags{rounds: 5, out: filepath.Join("not", "there.md")}, "no such file or directory", 0, ""},
	} {
		got, err := choose(c.flags)
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: %v, want %q", c.flags, err, c.says)
			}
			continue
		}
		if err != nil || len(got.cases) != c.cases || got.out != c.out {
			t.Errorf("%+v: %d cases, %q, %v; want %d, %q", c.flags, len(got.cases), got.out, err, c.cases, c.out)
		}
	}
}

func TestAFileThatIsThereIsKeptUntilThereIsAnotherToTakeItsPlace(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(wholeFile, []byte("measured"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := choose(flags{rounds: 5}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(wholeFile); err != nil || string(text) != "measured" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestMediansAndQuantilesAreOfTheRightRank(t *testing.T) {
	sorted := make([]int, 100)
	for i := range sorted {
		sorted[i] = i + 1
	}
	if p50, p99 := quantile(sorted, 50), quantile(sorted, 99); p50 != 50 || p99 != 99 {
		t.Errorf("of 1 to 100: %d and %d", p50, p99)
	}
	if p50, p99 := quantile(sorted[:10], 50), quantile(sorted[:10], 99); p50 != 5 || p99 != 10 {
		t.Errorf("of 1 to 10: %d and %d", p50, p99)
	}
	for want, rates := range map[float64][]float64{2: {3, 1, 2}, 2.5: {4, 1, 2, 3}, 7: {7}} {
		var rounds []result
		for _, r := range rates {
			rounds = append(rounds, result{rate: r})
		}
		if m := medianOf(rounds); m.rate != want {
			t.Errorf("of %v: %v", rates, m.rate)
		}
	}
}

// Whichever systems have run, a table has what its case measures.
func TestATableHasWhatItsCaseMeasures(t *testing.T) {
	c := benchCase{name: "pickup", on: []string{"emq", "asynq"}}
	var r report
	if text := r.add(c, map[string][]result{"asynq": {{p50: 980e6, p99: 990e6}}}); !strings.Contains(text, "| asynq | 980.00 ms | 990.00 ms |  |") {
		t.Error(text)
	}
	if text := r.add(c, map[string][]result{"asynq": {{bytes: 596}}}); !strings.Contains(text, "| asynq | 596 |") {
		t.Error(text)
	}
}
