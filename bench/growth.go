package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/perf/benchfmt"
)

// sample is the server's time for one step of one job, at one size of what grows.
type sample struct {
	grows string // pending, scheduled, active, lanes, processes, shards
	step  string // enqueue, claim, ...
	size  int
	us    float64
}

// measureGrowth writes growth.csv and growth.svg into dir. loops is how often each step is measured.
func measureGrowth(ctx context.Context, dir string, loops int) error {
	if f, err := os.Stat(dir); err != nil || !f.IsDir() {
		return fmt.Errorf("-growth %s: it is no directory", dir)
	}
	samples, err := scriptGrowth(ctx, loops)
	if err != nil {
		return err
	}
	workers, err := workerGrowth(ctx)
	if err != nil {
		return err
	}
	shards, err := shardGrowth(ctx)
	if err != nil {
		return err
	}
	samples = slices.Concat(samples, workers, shards)
	if err := writeSamples(filepath.Join(dir, "growth.csv"), samples); err != nil {
		return err
	}
	return drawSamples(filepath.Join(dir, "growth.svg"), samples)
}

// scriptGrowth runs the benchmarks of the scripts, which ask the server for the time that it spent.
func scriptGrowth(ctx context.Context, loops int) ([]sample, error) {
	test := exec.CommandContext(ctx, "go", "test", "github.com/echomq/emq/runtime/scripts", "-run", "xxx", "-timeout", "1h",
		"-bench", "^(BenchmarkGrowth|BenchmarkClaimByLanes)$", "-benchtime", strconv.Itoa(loops)+"x")
	test.Stderr = os.Stderr
	test.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it has built and started ends with it
	test.Cancel = func() error { return syscall.Kill(-test.Process.Pid, syscall.SIGTERM) }
	test.WaitDelay = 5 * time.Second
	out, err := test.Output()
	if err != nil {
		return nil, fmt.Errorf("go test: %w\n%s", err, out)
	}
	samples, err := readGrowth(out)
	if err == nil && len(samples) == 0 {
		err = fmt.Errorf("no benchmark ran:\n%s", out)
	}
	return samples, err
}

// benchName takes the names of the two benchmarks apart; the last number is GOMAXPROCS.
var benchName = regexp.MustCompile(`^(?:Growth/(\w+)=|ClaimBy(Lanes)/)(\d+)(?:-\d+)?$`)

func readGrowth(out []byte) ([]sample, error) {
	var samples []sample
	results := benchfmt.NewReader(bytes.NewReader(out), "go test")
	for results.Scan() {
		r, ok := results.Result().(*benchfmt.Result)
		if !ok {
			continue // a line that is no result
		}
		name := benchName.FindStringSubmatch(string(r.Name))
		if name == nil {
			return nil, fmt.Errorf("unknown benchmark %s", r.Name)
		}
		size, err := strconv.Atoi(name[3])
		if err != nil {
			return nil, err
		}
		for _, v := range r.Values {
			if step, ok := strings.CutSuffix(v.Unit, "-µs/job"); ok {
				samples = append(samples, sample{strings.ToLower(name[1] + name[2]), step, size, v.Value})
			}
		}
	}
	return samples, results.Err()
}

func writeSamples(path string, samples []sample) error {
	slices.SortStableFunc(samples, func(a, b sample) int {
		return cmp.Or(strings.Compare(a.grows, b.grows), strings.Compare(a.step, b.step), cmp.Compare(a.size, b.size))
	})
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	rows := [][]string{{"grows", "step", "size", "server_us_per_job"}}
	for _, s := range samples {
		rows = append(rows, []string{s.grows, s.step, strconv.Itoa(s.size), strconv.FormatFloat(s.us, 'f', 2, 64)})
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
