// Command drills breaks things on purpose, with real servers, real processes and real signals, and lets
// an auditor, which knows nothing of the runtime, say whether jobs were lost, doubled or stuck.
//
//	go run ./drills [-only name,name] [-long] [-soak 10m] [-seed n] [-list] [-keep]
//
// Each drill prints one line; the exit status is 1 if any did not hold or could not be set up.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// drill is one fault and what must hold in spite of it.
type drill struct {
	name string
	what string // what is done
	run  func(*stage)
}

// drills in the order in which they run.
func drills() []drill {
	return slices.Concat(crashDrills(), networkDrills(), serverDrills(), clusterDrills(), stopDrills(), keyDrills(), scaleDrills(), pickupDrills(), soakDrills())
}

func main() {
	if text := os.Getenv(roleVariable); text != "" {
		os.Exit(playRole(text))
	}
	only := flag.String("only", "", "run only these drills, by comma")
	long := flag.Bool("long", false, "run the large sizes: about an hour")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano())%1_000_000, "replay the choices of a run")
	soak := flag.Duration("soak", 0, "how long the soak lasts, instead of 22 s, or an hour with -long")
	list := flag.Bool("list", false, "list the drills")
	keep := flag.Bool("keep", false, "keep the logs of drills that hold, too")
	flag.Parse()
	chosen, err := choose(drills(), *only)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "drills:", err, flag.Args())
		os.Exit(2)
	}
	if *list {
		for _, d := range chosen {
			fmt.Printf("%-16s %s\n", d.name, d.what)
		}
		return
	}
	os.Exit(runAll(chosen, settings{seed: *seed, long: *long, keep: *keep, soak: *soak}))
}

func choose(all []drill, only string) ([]drill, error) {
	if only == "" {
		return all, nil
	}
	var chosen []drill
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(d drill) bool { return d.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no drill %q; -list shows them", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// settings are the same for all drills of a run.
type settings struct {
	seed       uint64
	long, keep bool
	soak       time.Duration
}

// runAll runs drills one after another, as each may load the whole machine.
func runAll(chosen []drill, s settings) int {
	began := time.Now()
	fmt.Printf("drills: %d to run, seed %d\n", len(chosen), s.seed)
	var failed []string
	for i, d := range chosen {
		fmt.Printf("%2d/%d ", i+1, len(chosen))
		if !runOne(d, s) {
			failed = append(failed, d.name)
		}
	}
	if len(failed) > 0 {
		flags := ""
		if s.long {
			flags = " -long"
		}
		fmt.Printf("drills: FAILED: %s; again: go run ./drills -seed %d%s -only %s\n", strings.Join(failed, ", "), s.seed, flags, strings.Join(failed, ","))
	}
	fmt.Printf("drills: %d passed, %d failed, in %s, seed %d\n", len(chosen)-len(failed), len(failed), time.Since(began).Round(time.Second), s.seed)
	return min(1, len(failed))
}

// runOne runs a drill on a stage of its own and prints its line.
func runOne(d drill, s settings) bool {
	st, err := newStage(d.name, s)
	if err != nil {
		fmt.Printf("%-16s CANNOT BE SET UP: %v\n", d.name, err)
		return false
	}
	st.play(d.run)
	verdict := "holds"
	if len(st.problems) > 0 {
		verdict = "FAILS"
	}
	fmt.Printf("%-16s %-6s %5.1fs  %s: %s\n", d.name, verdict, time.Since(st.began).Seconds(), d.what, strings.Join(st.figures, ", "))
	for i, p := range st.problems {
		if i == 20 {
			fmt.Printf("    ... and %d more\n", len(st.problems)-i)
			break
		}
		fmt.Printf("    %s\n", p)
	}
	if len(st.problems) > 0 || s.keep {
		fmt.Printf("    logs: %s\n", st.dir)
	}
	return len(st.problems) == 0
}
