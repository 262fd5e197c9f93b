package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// chosen is what the flags ask for.
type chosen struct {
	cases   []benchCase
	systems []string // none: all
	rounds  int
	divide  int
	out     string // empty: no file
}

// flags are those that choose.
type flags struct {
	only, systems, out string
	short              bool
	rounds             int
	rest               []string // what is no flag
}

// wholeFile is what a whole run writes; a part of it has no place there.
const wholeFile = "RESULTS.md"

// choose refuses what no case and no system is called, before anything has run.
func choose(f flags) (chosen, error) {
	c := chosen{rounds: f.rounds, divide: 1, out: f.out}
	if f.short {
		c.rounds, c.divide = 1, 10
	}
	if f.only == "" && f.systems == "" && !f.short && f.out == "" {
		c.out = wholeFile
	}
	switch {
	case len(f.rest) > 0:
		return c, fmt.Errorf("%q is no flag", f.rest[0])
	case c.rounds < 1:
		return c, fmt.Errorf("%d rounds: at least 1", c.rounds)
	}
	var known []string
	for _, one := range cases() {
		known = append(known, one.on...)
		if strings.Contains(one.name, f.only) {
			c.cases = append(c.cases, one)
		}
	}
	if len(c.cases) == 0 {
		return c, fmt.Errorf("no case is called %q; -list shows them", f.only)
	}
	if f.systems != "" {
		for name := range strings.SplitSeq(f.systems, ",") {
			name = strings.TrimSpace(name)
			if !slices.Contains(known, name) {
				slices.Sort(known)
				return c, fmt.Errorf("no system is called %q; there are %s", name, strings.Join(slices.Compact(known), ", "))
			}
			c.systems = append(c.systems, name)
		}
		c.cases = slices.DeleteFunc(c.cases, func(one benchCase) bool { return !slices.ContainsFunc(one.on, c.includes) })
	}
	if len(c.cases) == 0 {
		return c, errors.New("none of these cases is for any of these systems; -list shows which is for which")
	}
	return c, c.writable()
}

func (c chosen) includes(system string) bool {
	return len(c.systems) == 0 || slices.Contains(c.systems, system)
}

// writable finds out now and not after an hour.
func (c chosen) writable() error {
	if c.out == "" {
		return nil
	}
	f, err := os.OpenFile(c.out, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// list is each case, and the systems that it is for.
func list() string {
	var b strings.Builder
	for _, c := range cases() {
		fmt.Fprintf(&b, "%-58s %s\n", c.name, strings.Join(c.on, ", "))
	}
	return b.String()
}
