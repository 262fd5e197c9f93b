package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	emq "github.com/echomq/emq/runtime"

	"github.com/echomq/emq/internal/redistest"
)

func serverDrills() []drill {
	return []drill{
		{"restart-always", "kill -9 and restart of a server with AOF always, under load", restartAlways, together},
		{"restart-second", "power loss of a server with AOF everysec under load: its last second is gone", restartSecond, together},
		{"outage", "the server is away for long, workers and a producer wait", outage, together},
		{"memory", "the server at its maxmemory under load", memory, together},
		{"scripts", "SCRIPT FLUSH every 50 ms under load", scriptFlush, together},
		{"clients", "CLIENT KILL and CLIENT PAUSE under load", clientKill, together},
		{"disk", "the disk of the server's AOF is full under load, and has room again", diskFull, together},
	}
}

func restartAlways(st *stage) {
	const lease = 2 * time.Second
	s := st.redis("--appendonly", "yes", "--appendfsync", "always")
	a := st.audit(s.URL(), lease)
	workers, producers := st.load(s.URL(), lease, plenty)
	var slowest time.Duration
	rounds := st.size(3, 60)
	for range rounds {
		st.sleep(st.between(500*time.Millisecond, time.Second))
		s.Kill()
		st.sleep(st.between(0, 1500*time.Millisecond))
		st.must("start the server again", s.Run())
		back := monotonic()
		for _, q := range allQueues() {
			slowest = max(slowest, st.resumed(q, back, 5*time.Second))
		}
	}
	a.resends = true
	st.endLoad(a, workers, producers)
	st.figure("%d restarts, consuming again within %.2f s", rounds, slowest.Seconds())
}

// restartSecond cuts the end off the server's append-only file, as a machine without power does; a
// process that is only killed has handed everything to its system.
func restartSecond(st *stage) {
	const lease = 2 * time.Second
	s := st.redis("--appendonly", "yes", "--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0")
	a := st.audit(s.URL(), lease)
	workers, producers := st.load(s.URL(), lease, plenty)
	var slowest time.Duration
	rounds := st.size(2, 40)
	for round := range rounds {
		st.sleep(st.between(300*time.Millisecond, 800*time.Millisecond))
		gate := filepath.Join(st.dir, fmt.Sprint("gate", round))
		// They are kept by the store, and what it forgets is their claim. So each may run twice at once: together
		// they must leave slots to the other queues.
		held := make([]emq.Job, 12)
		for i := range held {
			held[i] = emq.New(kept{N: 5*plenty + len(held)*round + i, Do: atGate, Gate: gate}, emq.In(500*time.Millisecond))
		}
		st.put(s.URL(), keeps, 5*plenty+len(held)*round, held...)
		safe := monotonic()
		file, size := st.written(s, fmt.Sprint("mark-", round))
		st.sleep(time.Second)
		s.Kill()
		st.must("lose the last second", os.Truncate(file, size))
		st.must("start the server again", s.Run())
		back := monotonic()
		// an answer of the server that died may be read after its death, on a machine that is busy
		a.forgot = append(a.forgot, window{safe, back})
		for _, q := range allQueues() {
			slowest = max(slowest, st.resumed(q, back, 5*time.Second))
		}
		st.open(gate)
	}
	st.endLoad(a, workers, producers)
	st.figure("%d power losses, consuming again within %.2f s, %d settles refused", rounds, slowest.Seconds(), st.events(emq.EventStale))
	if st.events(emq.EventStale) == 0 {
		st.doubtf("no settle was refused: the drill proves nothing")
	}
}

// written is the file that the server appends to, and a size of it that holds all that the server acknowledged before
// the call: everysec does not write while the disk is busy, for two seconds at worst.
func (st *stage) written(s *redistest.Server, mark string) (string, int64) {
	files, err := filepath.Glob(filepath.Join(s.Dir, "appendonlydir", "*.incr.aof"))
	if err == nil && len(files) != 1 {
		err = fmt.Errorf("found %v; it needs a server that keeps its AOF in parts, Redis 7.0 or later", files)
	}
	st.must("find the append-only file", err)
	file, err := os.Open(files[0])
	st.must("open the append-only file", err)
	defer file.Close()
	at, err := file.Seek(0, io.SeekEnd)
	st.must("look at the append-only file", err)
	_, err = s.Command("SET", "drill:mark", mark, "PX", "1")
	st.must("leave a mark", err)
	var tail []byte
	st.need("the mark is in the append-only file", 20*time.Second, func() bool {
		more, err := io.ReadAll(file)
		st.must("read the append-only file", err)
		tail = append(tail, more...)
		return bytes.Contains(tail, []byte(mark))
	})
	return files[0], at + int64(len(tail))
}

func outage(st *stage) {
	const lease = 2 * time.Second
	s := st.redis("--appendonly", "yes", "--appendfsync", "always")
	a := st.audit(s.URL(), lease)
	workers, producers := st.load(s.URL(), lease, plenty)
	goroutines := func(since int64) (most int) {
		for _, l := range st.lines() {
			if l.What == sampled && l.T > since && l.PID == workers[0].pid() {
				most = max(most, l.Count)
			}
		}
		return most
	}
	for _, p := range producers {
		p.terminate()
	}
	st.produced(time.Minute, producers...)
	a.drained(20 * time.Second)
	before, printed := goroutines(0), len(workers[0].output())
	s.Kill()
	down := monotonic()
	st.sleep(2 * time.Second)
	used, err := workers[0].cpu()
	st.must("read the processor time", err)
	length := time.Duration(st.size(10, 300)) * time.Second
	st.sleep(length)
	now, err := workers[0].cpu()
	st.must("read the processor time", err)
	most, bytes := goroutines(down), len(workers[0].output())-printed
	st.must("start the server again", s.Run())
	back := monotonic()
	share := 100 * float64(now-used) / float64(length)
	st.put(s.URL(), keeps, 9*plenty, emq.New(kept{N: 9 * plenty}))
	took := st.resumed(keeps, back, 5*time.Second)
	a.away = append(a.away, window{down, back})
	a.drained(10 * time.Second)
	st.wakes(a)
	st.finish(workers...)
	a.judge()
	st.figure("%v away: CPU %.1f %%, %d bytes of log, at most %d goroutines (%d before), consuming again after %.2f s", length, share, bytes, most, before, took.Seconds())
	if share > 5 || bytes > 64<<10 || most > before+20 {
		st.failf("an outage must cost next to nothing")
	}
}

func memory(st *stage) {
	const lease = 2 * time.Second
	s := st.redis("--maxmemory-policy", "noeviction")
	a := st.audit(s.URL(), lease)
	workers, producers := st.load(s.URL(), lease, plenty)
	st.sleep(time.Second)
	// long jobs, whose leases must live on
	long := make([]emq.Job, 20)
	for i := range long {
		long[i] = emq.New(kept{N: 5*plenty + i, For: 3 * lease})
	}
	st.put(s.URL(), keeps, 5*plenty, long...)
	st.sleep(300 * time.Millisecond)
	st.command(s, "CONFIG", "SET", "maxmemory", "1")
	full := monotonic()
	st.sleep(time.Duration(st.size(6, 60)) * time.Second)
	c, err := a.census()
	st.must("count", err)
	st.reached("the queue drains", 20*time.Second, func() bool {
		c, err = a.census()
		return err == nil && c.unfinished() == 0
	})
	refused := st.count(nil, wasRefused)
	st.command(s, "CONFIG", "SET", "maxmemory", "0")
	back := monotonic()
	for _, q := range allQueues() {
		st.resumed(q, back, 5*time.Second)
	}
	st.endLoad(a, workers, producers)
	for _, l := range st.lines() {
		if (l.What == wasRefused && l.Text != "full" || l.What == isUnknown) && l.T > full {
			st.failf("an enqueue at maxmemory was %s: %s", l.What, l.Text)
			break
		}
	}
	st.figure("%d refused as full, %d leases reaped", refused, a.total("reaped"))
	if refused == 0 || a.total("reaped") != 0 || st.events(emq.EventLost) != 0 {
		st.failf("want refusals and no lease lost")
	}
}

// every does something again and again until the drill ends it.
func (st *stage) every(d time.Duration, do func()) (stop func()) {
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(d)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				do()
			case <-over:
				return
			case <-st.ctx.Done():
				return
			}
		}
	}()
	return func() { close(over); <-ended }
}

// try is a control command while things break; what it answers is of no interest.
func try(s *redistest.Server, words ...string) { _, _ = s.Command(words...) }

func scriptFlush(st *stage) {
	const lease = 2 * time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	flushes := 0
	stop := st.every(50*time.Millisecond, func() { try(s, "SCRIPT", "FLUSH"); flushes++ })
	workers, producers := st.load(s.URL(), lease, plenty)
	producers = append(producers, st.producer(s.URL(), produceRole{First: 6 * plenty, Count: plenty, Batch: 200, Pause: 200 * time.Millisecond, Longest: 10 * time.Millisecond}))
	st.sleep(time.Duration(st.size(4, 120)) * time.Second)
	st.endLoad(a, workers, producers)
	stop()
	st.figure("%d flushes", flushes)
	if len(a.fates) > 0 || a.total("reaped") > 0 {
		st.failf("%d enqueues were not acknowledged, %d leases reaped", len(a.fates), a.total("reaped"))
	}
	for _, l := range st.lines() {
		if l.What == observed && l.Text != string(emq.EventRetried) {
			st.failf("a worker met %s", l.Text)
			break
		}
	}
}

func clientKill(st *stage) {
	const lease = 2 * time.Second
	s := st.redis()
	a := st.audit(s.URL(), lease)
	workers, producers := st.load(s.URL(), lease, plenty)
	kills := 0
	stop := st.every(300*time.Millisecond, func() { try(s, "CLIENT", "KILL", "TYPE", "normal"); kills++ })
	stopPause := st.every(1100*time.Millisecond, func() { try(s, "CLIENT", "PAUSE", "250", []string{"ALL", "WRITE"}[kills%2]) })
	st.sleep(time.Duration(st.size(5, 120)) * time.Second)
	stop()
	stopPause()
	a.resends = true
	st.endLoad(a, workers, producers)
	st.figure("%d times all connections killed, %d settles sent again", kills, st.events(emq.EventResent))
}
