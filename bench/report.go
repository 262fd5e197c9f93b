package main

import (
	"fmt"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// report gathers the tables.
type report struct{ tables []string }

// add makes the table of one case, in Markdown.
func (r *report) add(c benchCase, results map[string][]result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n", c.name)
	var base, kind result // what the others are compared with, and any of them: it has what this case measures
	for _, name := range slices.Backward(c.on) {
		if rounds := results[name]; len(rounds) > 0 {
			kind = medianOf(rounds)
		}
	}
	if own := results[c.on[0]]; len(own) > 0 {
		base = medianOf(own)
	}
	switch {
	case kind.bytes != 0:
		b.WriteString("| system | bytes a job |\n| --- | ---: |\n")
	case kind.p50 != 0:
		b.WriteString("| system | p50 | p99 | emq is shorter (p50) |\n| --- | ---: | ---: | ---: |\n")
	default:
		b.WriteString("| system | jobs a second | lowest to highest | emq is faster | server CPU a job | client CPU a job |\n| --- | ---: | ---: | ---: | ---: | ---: |\n")
	}
	for _, name := range c.on {
		rounds := results[name]
		if len(rounds) == 0 {
			continue
		}
		m := medianOf(rounds)
		switch {
		case kind.bytes != 0:
			fmt.Fprintf(&b, "| %s | %.0f |\n", name, m.bytes)
		case kind.p50 != 0:
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, ms(m.p50), ms(m.p99), times(float64(m.p50), float64(base.p50)))
		default:
			low, high := spread(rounds)
			fmt.Fprintf(&b, "| %s | %s | %s to %s | %s | %.1f µs | %.1f µs |\n", name, thousands(m.rate), thousands(low), thousands(high),
				times(base.rate, m.rate), float64(m.server)/1e3, float64(m.client)/1e3)
		}
	}
	r.tables = append(r.tables, b.String())
	return b.String()
}

func (r *report) text(rounds int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Results\n\nOf %s on %s, by `make bench` with %d rounds; the systems took turns in each. Medians.\n\n",
		time.Now().Format("2 January 2006"), machine(), rounds)
	b.WriteString(`Client and servers share the machine. The servers are on the same disk with their default settings: Redis without
persistence unless the table says everysec, PostgreSQL with fsync, so that a River insert is on disk when it returns, an emq
or asynq enqueue with everysec within about a second, and without persistence never. "emq is faster" is the ratio of the
medians. A process case ends when the last handler has begun to return; that nothing is lost or doubled is checked after each
round. "bare loop" is a loop over emq's own scripts without a worker around it.

`)
	for _, t := range r.tables {
		b.WriteString(t + "\n")
	}
	return b.String()
}

// machine says on what was measured.
func machine() string {
	parts := []string{fmt.Sprintf("%d CPUs", runtime.NumCPU()), runtime.Version()}
	for _, program := range []string{"redis-server", "postgres"} {
		if out, err := exec.Command(program, "--version").Output(); err == nil {
			parts = append(parts, strings.TrimSpace(string(out)))
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if strings.HasSuffix(dep.Path, "/asynq") || strings.HasSuffix(dep.Path, "/river") || strings.HasSuffix(dep.Path, "/rueidis") {
				parts = append(parts, dep.Path[strings.LastIndex(dep.Path, "/")+1:]+" "+dep.Version)
			}
		}
	}
	return strings.Join(parts, ", ")
}

func medianOf(rounds []result) result {
	pick := func(of func(result) float64) float64 {
		values := make([]float64, len(rounds))
		for i, r := range rounds {
			values[i] = of(r)
		}
		slices.Sort(values)
		return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	}
	return result{
		rate:   pick(func(r result) float64 { return r.rate }),
		server: time.Duration(pick(func(r result) float64 { return float64(r.server) })),
		client: time.Duration(pick(func(r result) float64 { return float64(r.client) })),
		p50:    time.Duration(pick(func(r result) float64 { return float64(r.p50) })),
		p99:    time.Duration(pick(func(r result) float64 { return float64(r.p99) })),
		bytes:  pick(func(r result) float64 { return r.bytes }),
	}
}

func spread(rounds []result) (low, high float64) {
	low = rounds[0].rate
	for _, r := range rounds {
		low, high = min(low, r.rate), max(high, r.rate)
	}
	return low, high
}

func times(a, b float64) string {
	if a == 0 || b == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f x", a/b)
}

func thousands(rate float64) string { return fmt.Sprintf("%.1f k", rate/1e3) }

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
