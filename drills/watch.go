package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// watchRole is a process that writes down when the processors stand still, for a machine that is shared or
// virtual takes them away for a while, and how long the server with this PID has waited for one.
type watchRole struct{ PID int }

// stood: a processor stood still, or the server waited, for Count ns until now. N is the processor, or -1.
const stood = "stood"

const (
	watchEvery = 10 * time.Millisecond  // the server's wait and its slow log are read so often
	watchStep  = time.Millisecond       // a thread on each processor sleeps so long
	watchLeast = 300 * time.Microsecond // what is noted
)

func (w *watchRole) run(book logbook) error {
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		return fmt.Errorf("read the processors: %w", err)
	}
	failed := make(chan error)
	for n := range 64 * len(cpus) {
		if cpus.IsSet(n) {
			go func() { failed <- watchProcessor(n, book) }()
		}
	}
	book.write(line{What: isUp})
	before, err := waitedFor(w.PID)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for err == nil {
		var now time.Duration
		select {
		case err = <-failed:
		case <-tick.C:
			if now, err = waitedFor(w.PID); err == nil {
				if d := now - before; d >= watchLeast {
					book.write(line{What: stood, N: -1, Count: int(d)})
				}
				before = now
			}
		}
	}
	return err
}

// watchProcessor sleeps on one processor, before all others there if that is permitted, and notes when it
// wakes late. It ends with the process.
func watchProcessor(n int, book logbook) error {
	runtime.LockOSThread()
	var cpu unix.CPUSet
	cpu.Set(n)
	if err := unix.SchedSetaffinity(0, &cpu); err != nil {
		return fmt.Errorf("stay on processor %d: %w", n, err)
	}
	attr := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 2}
	_ = unix.SchedSetAttr(0, &attr, 0) // needs root; the server is not kept ahead then either, and the drill says so
	sleep := unix.NsecToTimespec(int64(watchStep))
	for {
		began := monotonic()
		err := unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &sleep, nil)
		if err != nil && err != unix.EINTR {
			return fmt.Errorf("sleep: %w", err)
		}
		if late := monotonic() - began - int64(watchStep); late >= int64(watchLeast) {
			book.write(line{What: stood, N: n, Count: int(late)})
		}
	}
}

// waitedFor is how long the main thread of a process has waited for a processor since its start.
func waitedFor(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/%d/schedstat is %q", pid, text)
	}
	ns, err := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(ns), err
}

// stalls are what a watch has noted.
type stalls []line

func stallsOf(lines []line) (s stalls) {
	for _, l := range lines {
		if l.What == stood {
			s = append(s, l)
		}
	}
	return s
}

// between is for how long one processor stood still, or the server waited, in a span: the longest of them, as
// one stall is seen by several.
func (s stalls) between(from, to int64) (longest time.Duration) {
	sums := make(map[int]time.Duration)
	for _, l := range s {
		if l.T >= from && l.T <= to {
			sums[l.N] += time.Duration(l.Count)
			longest = max(longest, sums[l.N])
		}
	}
	return longest
}
