package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

func diskFull(st *stage) {
	const lease = 3 * time.Second
	s, full, room := st.smallDisk("--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	a := st.audit(s.URL(), lease)
	workers, producers := st.load(s.URL(), lease, plenty)
	gate := filepath.Join(st.dir, "gate")
	held := make([]emq.Job, 10)
	for i := range held {
		held[i] = emq.New(kept{N: 5*plenty + i, Do: atGate, Gate: gate})
	}
	st.put(s.URL(), keeps, 5*plenty, held...)
	st.sleep(time.Second)
	filled := monotonic()
	full()
	st.need("the server refuses writes", 20*time.Second, func() bool {
		info, err := s.Info("persistence")
		return err == nil && info["aof_last_write_status"] == "err"
	})
	refusing := monotonic()
	st.open(gate)
	st.sleep(time.Duration(st.size(3, 30)) * time.Second)
	room()
	st.need("the server takes writes again", 20*time.Second, func() bool {
		info, err := s.Info("persistence")
		return err == nil && info["aof_last_write_status"] == "ok"
	})
	back := monotonic()
	a.away = append(a.away, window{filled, back})
	var slowest time.Duration
	for _, q := range allQueues() {
		slowest = max(slowest, st.resumed(q, back, 5*time.Second))
	}
	st.endLoad(a, workers, producers)
	st.figure("writes refused for %.1f s, consuming again within %.2f s, %d leases reaped", time.Duration(back-refusing).Seconds(), slowest.Seconds(), a.total("reaped"))
	for n := range held {
		if runs := a.stints[keeps+"/"+strconv.Itoa(5*plenty+n)]; len(runs) != 1 {
			st.failf("a job that ended while the disk was full ran %d times: %v", len(runs), runs)
		}
	}
}

// smallDisk starts a server on a disk of its own, which full fills and room empties. Where nothing may be mounted
// the server's files may not grow instead: its writes are cut short and refused in the same way.
func (st *stage) smallDisk(args ...string) (s *redistest.Server, full, room func()) {
	dir := filepath.Join(st.dir, "disk")
	st.must("make a directory", os.Mkdir(dir, 0o700))
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=16m")
	if errors.Is(err, syscall.EPERM) {
		return st.shortFiles(dir, args...)
	}
	st.must("mount a small tmpfs", err)
	st.cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			st.failf("unmount %s: %v", dir, err)
		}
	})
	filler := filepath.Join(dir, "filler")
	full = func() {
		if err := fill(filler); err == nil {
			st.must("fill the disk", fmt.Errorf("it took everything"))
		}
	}
	return st.redisIn(dir, args...), full, func() { st.must("make room", os.Remove(filler)) }
}

func (st *stage) shortFiles(dir string, args ...string) (s *redistest.Server, full, room func()) {
	st.figure("no disk may be mounted here: the server's files may not grow")
	signal.Ignore(unix.SIGXFSZ) // and so in the server, which it would kill
	s = st.redisIn(dir, args...)
	pid := st.pidOf(s)
	var before unix.Rlimit
	st.must("read the server's limits", unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &before))
	full = func() {
		st.must("limit the server's files", unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 1, Max: before.Max}, nil))
	}
	return s, full, func() { st.must("make room", unix.Prlimit(pid, unix.RLIMIT_FSIZE, &before, nil)) }
}

// fill writes until there is no room; the error says so.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	block := []byte(strings.Repeat("x", 1<<16))
	for range 1 << 10 {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return nil
}
