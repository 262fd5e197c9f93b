// Command bench measures emq beside asynq and River, and beside the limit that its own scripts set, on the
// same work, in turn, on servers of its own.
//
//	go run .            five rounds; writes RESULTS.md
//	go run . -short     one short round, under two minutes
//	go run . -growth ../docs   the server's time for each step while jobs, lanes, processes and shards grow, as data and picture
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	short := flag.Bool("short", false, "one round of a tenth of the jobs; writes no file")
	rounds := flag.Int("rounds", 5, "rounds; the systems take turns in each")
	only := flag.String("only", "", "run only the cases whose name contains this")
	systems := flag.String("systems", "", "run only these systems, joined by commas")
	out := flag.String("out", "", "the file to write; "+wholeFile+" by default, but none with -short, -only or -systems")
	names := flag.Bool("list", false, "list the cases and their systems")
	profile := flag.String("cpuprofile", "", "write a CPU profile of this process, which is the client of all systems that run")
	growth := flag.String("growth", "", "measure how the cost grows instead, and write growth.csv and growth.svg into this directory")
	loops := flag.Int("loops", 20, "with -growth, how often each step is measured")
	worker := flag.String("worker", "", "work for the server of this URL until an interrupt; what -growth starts")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *names {
		fmt.Print(list())
		return
	}
	if *worker != "" || *growth != "" {
		if err := grow(ctx, *worker, *growth, *loops); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	c, err := choose(flags{*only, *systems, *out, *short, *rounds, flag.Args()})
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	stopProfile, err := profiled(*profile)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	err = c.run(ctx)
	stopProfile()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func grow(ctx context.Context, worker, dir string, loops int) error {
	if worker != "" {
		return workUntilInterrupt(worker)
	}
	if loops < 1 {
		return fmt.Errorf("%d loops: at least 1", loops)
	}
	return measureGrowth(ctx, dir, loops)
}

// profiled begins a profile and answers how to end it.
func profiled(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, pprof.StartCPUProfile(f)
}

func (c chosen) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "emq-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	f, err := newFleet(ctx, dir)
	defer f.stop()
	if err != nil {
		return err
	}
	var report report
	for _, one := range c.cases {
		results, err := c.measure(ctx, f, one)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		table := report.add(one, results)
		fmt.Println(table)
	}
	if c.out == "" {
		return nil
	}
	return os.WriteFile(c.out, []byte(report.text(c.rounds)), 0o644)
}

// measure runs the rounds of a case: the systems take turns, so that a slow minute of the machine hits all.
func (c chosen) measure(ctx context.Context, f *fleet, one benchCase) (map[string][]result, error) {
	results := make(map[string][]result)
	for range c.rounds {
		for _, name := range one.on {
			if !c.includes(name) {
				continue
			}
			s := f.systems[name]
			n := max(jobsFor(name, one)/c.divide, 1)
			for _, size := range []int{max(n/50, 1), n} { // a short one first, to warm up
				if err := s.reset(ctx); err != nil {
					return nil, err
				}
				limited, cancel := context.WithTimeout(ctx, 5*time.Minute)
				r, err := one.run(limited, s, size)
				cancel()
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				if size == n {
					results[name] = append(results[name], r)
				}
			}
		}
	}
	return results, nil
}

// jobsFor gives slower systems fewer jobs, so that a round takes seconds and not minutes.
func jobsFor(system string, c benchCase) int {
	switch {
	case c.n <= 10_000:
		return c.n
	case system == "river" && strings.Contains(c.name, "concurrency"): // its cooldown of 100 ms allows ten fetches a second
		return c.n / 50
	case strings.HasPrefix(system, "river"):
		return c.n / 10
	case strings.HasPrefix(system, "asynq"):
		return c.n / 4
	}
	return c.n
}

// fleet is every system on its server.
type fleet struct {
	systems map[string]system
	stops   []func()
}

func newFleet(ctx context.Context, dir string) (*fleet, error) {
	f := &fleet{systems: make(map[string]system)}
	for _, server := range []struct {
		suffix string
		args   []string
	}{{"", nil}, {" everysec", []string{"--appendonly", "yes", "--appendfsync", "everysec"}}} {
		if err := f.addRedis(ctx, filepath.Join(dir, "redis"+strings.TrimSpace(server.suffix)), server.suffix, server.args); err != nil {
			return f, err
		}
	}
	at := filepath.Join(dir, "postgres")
	if err := os.Mkdir(at, 0o755); err != nil {
		return f, err
	}
	postgres, err := startPostgres(at)
	if err != nil {
		return f, err
	}
	f.stops = append(f.stops, postgres.stop)
	for name, tuned := range map[string]bool{"river": false, "river1ms": true} {
		r, err := newRiver(ctx, postgres, tuned)
		if err != nil {
			return f, err
		}
		f.systems[name] = r
		f.stops = append(f.stops, r.pool.Close)
	}
	return f, nil
}

func (f *fleet) addRedis(ctx context.Context, dir, suffix string, args []string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	redis, err := startRedis(dir, args...)
	if err != nil {
		return err
	}
	f.stops = append(f.stops, redis.stop)
	f.systems["asynq"+suffix] = newAsynq(redis)
	for name, limits := range map[string]bool{"": false, " lanes": false, " unique": false, " limits": true} {
		variant := map[string]string{" lanes": "laned", " unique": "unique"}[name]
		e, err := newEmq(ctx, redis, variant, limits)
		if err != nil {
			return err
		}
		f.systems["emq"+name+suffix] = e
		f.stops = append(f.stops, e.client.Close)
		if name != "" || suffix != "" {
			continue
		}
		bare, err := newBare(e)
		if err != nil {
			return err
		}
		f.systems["bare"] = bare
		f.stops = append(f.stops, bare.raw.Close)
	}
	return nil
}

func (f *fleet) stop() {
	for _, stop := range slices.Backward(f.stops) {
		stop()
	}
}
