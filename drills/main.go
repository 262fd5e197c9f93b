// Command drills breaks things on purpose, with real servers, real processes and real signals, and lets
// an auditor, which knows nothing of the runtime, say whether jobs were lost, doubled or stuck.
//
//	go run ./drills [-only name,name] [-long] [-soak 10m] [-seed n] [-together n] [-list] [-keep]
//
// Each drill prints one line when it ends; the exit status is 1 if any did not hold, could not be set up or was
// interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// drill is one fault and what must hold in spite of it.
type drill struct {
	name  string
	what  string // what is done
	run   func(*stage)
	alone bool
}

// Whether others may run beside a drill. Most wait more than they compute; one that judges how fast something is
// wants the machine.
const (
	together = false
	alone    = true
)

// drills in the order in which they begin, but that those which run alone come last.
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
	most := flag.Int("together", 0, "how many run at a time, instead of four for each processor, or one with -long")
	list := flag.Bool("list", false, "list the drills")
	keep := flag.Bool("keep", false, "keep the logs of drills that hold, too")
	flag.Parse()
	chosen, err := choose(drills(), *only)
	switch {
	case err != nil:
	case *most < 0 || *soak < 0:
		err = errors.New("-together and -soak are not negative")
	case *soak > 0 && !slices.ContainsFunc(chosen, func(d drill) bool { return d.name == "soak" }):
		err = errors.New("-soak is of the drill soak, which -only leaves out")
	case flag.NArg() > 0:
		err = fmt.Errorf("%q is no flag: drills are named by -only, joined by commas", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "drills:", err)
		os.Exit(2)
	}
	if *list {
		for _, d := range chosen {
			fmt.Printf("%-16s %s\n", d.name, d.what)
		}
		return
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	r := newRun(settings{seed: *seed, long: *long, keep: *keep, soak: *soak}, *most, os.Stdout)
	status := r.all(ctx, chosen)
	cancel()
	os.Exit(status)
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
