package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"
)

// settings are the same for all drills of a run.
type settings struct {
	seed       uint64
	long, keep bool
	soak       time.Duration
}

// run is one run of the program.
type run struct {
	settings
	most  int // drills at a time
	out   io.Writer
	began time.Time

	count int // of the drills

	mu       sync.Mutex // of out, too
	verdicts map[verdict][]string
}

func newRun(s settings, most int, out io.Writer) *run {
	switch {
	case most > 0:
	case s.long:
		most = 1 // the large sizes load the machine
	default:
		most = 4 * runtime.NumCPU()
	}
	return &run{settings: s, most: most, out: out, began: time.Now(), verdicts: make(map[verdict][]string)}
}

// last is how long drills may take to end what they have started when the run is interrupted. After it the
// processes and servers die with this program, as all of them are started to.
const last = 15 * time.Second

// all runs drills, several at a time and then one at a time those that need the machine, and answers the status to
// exit with.
func (r *run) all(ctx context.Context, chosen []drill) int {
	r.count = len(chosen)
	fmt.Fprintf(r.out, "drills: %d to run, up to %d at a time, seed %d\n", r.count, r.most, r.seed)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.some(ctx, chosen, together, r.most)
		r.some(ctx, chosen, alone, 1)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		select {
		case <-done:
		case <-time.After(last):
			r.mu.Lock()
			defer r.mu.Unlock()
			fmt.Fprintf(r.out, "drills: interrupted, and not all of them have ended after %v\n", last)
			return 1
		}
	}
	return r.close()
}

// some runs those that run together, or those that run alone.
func (r *run) some(ctx context.Context, chosen []drill, alone bool, most int) {
	places := make(chan struct{}, most)
	var running sync.WaitGroup
	defer running.Wait()
	for _, d := range chosen {
		if d.alone != alone {
			continue
		}
		places <- struct{}{}
		running.Go(func() {
			r.one(ctx, d)
			<-places
		})
	}
}

// one runs a drill on a stage of its own, once more if it was left in doubt, and prints its lines at once.
func (r *run) one(ctx context.Context, d drill) {
	var st *stage
	var doubts []string
	for st == nil || len(doubts) == 0 && st.doubts() {
		if st != nil {
			doubts = append(st.problems, "logs: "+st.dir)
		}
		if ctx.Err() != nil {
			r.end(d.name, interrupted, "")
			return
		}
		var err error
		if st, err = newStage(ctx, d.name, r.settings); err != nil {
			r.end(d.name, fails, fmt.Sprintf("CANNOT BE SET UP: %v\n", err))
			return
		}
		st.play(d.run)
	}
	v := holds
	switch {
	case len(st.problems) > 0:
		v = fails
	case ctx.Err() != nil:
		v = interrupted
	}
	r.end(d.name, v, st.text(d.what, doubts))
}

// text is what there is to say of a drill: its line, what was doubted the first time, and its problems.
func (st *stage) text(what string, doubts []string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%5.1fs  %s: %s\n", time.Since(st.began).Seconds(), what, strings.Join(st.figures, ", "))
	list(&text, "the first time: ", doubts)
	list(&text, "", st.problems)
	if st.keeps() {
		fmt.Fprintf(&text, "    logs: %s\n", st.dir)
	}
	return text.String()
}

func list(text *strings.Builder, when string, problems []string) {
	for i, p := range problems {
		if i == 20 {
			fmt.Fprintf(text, "    %s... and %d more\n", when, len(problems)-i)
			return
		}
		fmt.Fprintf(text, "    %s%s\n", when, p)
	}
}

// verdict is what a drill came to.
type verdict string

const (
	holds       verdict = "holds"
	fails       verdict = "FAILS"
	interrupted verdict = "interrupted"
)

// end counts a drill and prints what there is to say of it.
func (r *run) end(name string, v verdict, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.verdicts[v] = append(r.verdicts[v], name)
	if v != interrupted {
		fmt.Fprintf(r.out, "%2d/%d %-16s %-6s %s", len(r.verdicts[holds])+len(r.verdicts[fails]), r.count, name, v, text)
	}
}

// close prints the line that counts.
func (r *run) close() int {
	failed := r.verdicts[fails]
	if len(failed) > 0 {
		flags := ""
		if r.long {
			flags = " -long"
		}
		fmt.Fprintf(r.out, "drills: FAILED: %s; again: go run ./drills -seed %d%s -only %s\n", strings.Join(failed, ", "), r.seed, flags, strings.Join(failed, ","))
	}
	stopped := ""
	if n := len(r.verdicts[interrupted]); n > 0 {
		stopped = fmt.Sprintf(", %d interrupted", n)
	}
	fmt.Fprintf(r.out, "drills: %d passed, %d failed%s, in %s, seed %d\n", len(r.verdicts[holds]), len(failed), stopped,
		time.Since(r.began).Round(time.Second), r.seed)
	if len(r.verdicts[holds]) < r.count {
		return 1
	}
	return 0
}
