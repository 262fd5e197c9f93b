package main

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	emq "github.com/echomq/emq/runtime"

	"github.com/echomq/emq/internal/redistest"
)

func networkDrills() []drill {
	return []drill{
		{"replies", "a proxy loses, delays, cuts and half-closes around enqueues, claims and settles", lostReplies, together},
		{"refused", "the server refuses every script for 1.5 s, just as handlers succeed", refusedScripts, together},
		{"replays", "each settle is sent again at later moments, under load and after it", replays, together},
		{"partition", "a worker is cut off for three leases without a connection closing, a second one works on", partition, together},
		{"away", "the server is away for three leases, twice, with 200 jobs running", away, together},
	}
}

// isScript tells a call of a script.
func isScript(words []string) bool {
	return len(words) > 3 && strings.HasPrefix(strings.ToUpper(words[0]), "EVAL")
}

// scriptParts are the keys and the arguments of a script's call.
func scriptParts(words []string) (keys, args []string) {
	n, err := strconv.Atoi(words[2])
	if err != nil || n < 0 || 3+n > len(words) {
		return nil, nil
	}
	return words[3 : 3+n], words[3+n:]
}

// isAdmission tells a script that takes a job in: its first key is the row.
func isAdmission(words []string) bool {
	keys, _ := scriptParts(words)
	return len(keys) > 0 && strings.Contains(keys[0], ":job:")
}

// isSettle tells a script that ends runs: it names a job and a token.
func isSettle(words []string) bool {
	_, args := scriptParts(words)
	if len(args) > 4 && slices.Contains([]string{"complete", "retry", "snooze", "release", "kill", "discard"}, args[1]) {
		return true // of many jobs, the first of them with its verb
	}
	if len(args) < 2 || !strings.HasPrefix(args[0], "JOB") {
		return false
	}
	_, err := strconv.Atoi(args[1])
	return err == nil && !isAdmission(words)
}

func lostReplies(st *stage) {
	const lease = 2 * time.Second
	s := st.redis()
	proxy := st.proxy(s)
	a := st.audit(s.URL(), lease)
	a.resends = true
	rng := rand.New(rand.NewPCG(st.seed, 1)) // the proxy's own: its order is the network's
	proxy.Judge(func(words []string) redistest.Fate {
		if !isScript(words) || rng.IntN(60) > 0 {
			return redistest.Pass
		}
		return []redistest.Fate{redistest.Lose, redistest.Cut, redistest.HalfClose, redistest.Late}[rng.IntN(4)]
	})
	workers := st.workers(2, proxy.URL(), workRole{Lease: lease, Concurrency: 20})
	jobs := st.size(1200, 40000)
	producer := st.producer(proxy.URL(), produceRole{Count: jobs, Batch: 6, Pause: 10 * time.Millisecond, Longest: 40 * time.Millisecond})
	st.produced(5*time.Minute, producer)
	a.drained(time.Minute)
	st.finish(workers...)
	a.judge()
	st.figure("%d replies lost, %d connections cut, %d half-closed, %d replies late, %d settles sent again", proxy.Count(redistest.Lose),
		proxy.Count(redistest.Cut), proxy.Count(redistest.HalfClose), proxy.Count(redistest.Late), st.events(emq.EventResent))
	if st.events(emq.EventResent) == 0 {
		st.doubtf("no settle lost its reply: the drill proves nothing")
	}
}

func refusedScripts(st *stage) {
	const lease = 3 * time.Second
	s := st.redis()
	proxy := st.proxy(s)
	a := st.audit(s.URL(), lease)
	w := st.worker(proxy.URL(), workRole{Lease: lease, Concurrency: 20})
	gate := filepath.Join(st.dir, "gate")
	const jobs = 20
	all := make([]emq.Job, jobs)
	for i := range all {
		all[i] = emq.New(kept{N: i, Do: atGate, Gate: gate})
	}
	st.put(s.URL(), keeps, 0, all...)
	st.need("the jobs run", 20*time.Second, func() bool { return st.count(w, begins) == jobs })
	proxy.Judge(func(words []string) redistest.Fate {
		if isScript(words) {
			return redistest.Refuse
		}
		return redistest.Pass
	})
	st.open(gate)
	st.sleep(1500 * time.Millisecond)
	proxy.Judge(nil)
	a.drained(10 * time.Second)
	st.finish(w)
	a.judge()
	runs := st.count(nil, begins)
	st.figure("%d calls refused, %d runs of %d jobs", proxy.Count(redistest.Refuse), runs, jobs)
	if runs != jobs || proxy.Count(redistest.Refuse) < jobs {
		st.failf("each job should have run once, and each settle have been refused")
	}
}

func replays(st *stage) {
	const lease = time.Second
	s := st.redis()
	proxy := st.proxy(s)
	a := st.audit(s.URL(), lease)
	var mu sync.Mutex
	var settles [][]string
	proxy.Judge(func(words []string) redistest.Fate {
		if isScript(words) && isSettle(words) {
			mu.Lock()
			settles = append(settles, slices.Clone(words))
			mu.Unlock()
		}
		return redistest.Pass
	})
	workers := st.workers(2, proxy.URL(), workRole{Lease: lease, Concurrency: 10})
	producer := st.producer(proxy.URL(), produceRole{Count: st.size(1500, 20000), Batch: 10, Pause: 25 * time.Millisecond, Longest: 60 * time.Millisecond})
	raw := st.direct(s)
	sent := 0
	for producer.alive() {
		mu.Lock()
		n := len(settles)
		var words []string
		if n > 0 {
			words = settles[max(0, n-1-st.rng.IntN(200))] // of those just sent, and of some time ago
		}
		mu.Unlock()
		if words == nil {
			st.sleep(10 * time.Millisecond)
			continue
		}
		_ = raw.do(words...).Error() // whatever it answers: it must change nothing
		if sent++; sent%20 == 0 {
			// a crash now and then, so that there are stale tokens
			if sent%400 == 0 {
				i := st.rng.IntN(len(workers))
				workers[i].kill()
				workers[i] = st.worker(proxy.URL(), workRole{Lease: lease, Concurrency: 10})
			}
			st.sleep(time.Millisecond)
		}
	}
	st.produced(time.Minute, producer)
	a.drained(time.Minute)
	st.finish(workers...)
	for _, q := range allQueues() {
		before, err := readKeyspace(st.ctx, a.look, q)
		st.must("read the key space", err)
		for _, words := range settles {
			if strings.Contains(words[3], "{"+q+"}") {
				_ = raw.do(words...).Error()
				sent++
			}
		}
		after, err := readKeyspace(st.ctx, a.look, q)
		st.must("read the key space", err)
		for _, ks := range []*keyspace{before, after} {
			delete(ks.sets, "metrics:stale") // what they may count
			delete(ks.texts, "pump")
		}
		if !maps.EqualFunc(before.rows, after.rows, maps.Equal) || !maps.EqualFunc(before.sets, after.sets, maps.Equal) || !maps.Equal(before.texts, after.texts) {
			st.failf("queue %s: a settle that was sent again changed something", q)
		}
	}
	a.judge()
	st.figure("%d settles, sent again %d times", len(settles), sent)
	if len(settles) == 0 {
		st.doubtf("no settle was seen: the drill proves nothing")
	}
}

func partition(st *stage) {
	// longer than it takes another process to find that nobody pumps: 3 s and two thirds of a lease
	const lease, cut = 2 * time.Second, 3 * 2 * time.Second
	s := st.redis()
	proxy := st.proxy(s)
	a := st.audit(s.URL(), lease)
	part := workRole{Lease: lease, Concurrency: 20}
	cutOff := st.worker(proxy.URL(), part)
	next := 0
	var took []time.Duration
	var second *process
	for range st.size(1, 20) {
		jobs := make([]emq.Job, 10)
		for i := range jobs {
			jobs[i] = emq.New(kept{N: next + i, For: st.between(time.Second, 8*time.Second)})
		}
		want := st.count(nil, begins) + len(jobs)
		st.put(s.URL(), keeps, next, jobs...)
		next += len(jobs)
		st.need("the jobs run", 20*time.Second, func() bool { return st.count(nil, begins) >= want })
		began := monotonic()
		cutOff.outOfReach(true)
		proxy.Hole(true)
		if second == nil {
			second = st.worker(s.URL(), part)
		}
		st.sleep(cut)
		proxy.Hole(false)
		cutOff.outOfReach(false)
		a.drained(20 * time.Second)
		took = append(took, time.Duration(monotonic()-began))
	}
	st.need("the handlers return", 10*time.Second, func() bool { return st.count(nil, begins) == st.count(nil, ends) })
	st.finish(cutOff, second)
	a.judge()
	st.figure("all done %.1f s after a cut of 6 s, %d leases found lost, %d settles refused", slices.Max(took).Seconds(), st.events(emq.EventLost), st.events(emq.EventStale))
	if st.events(emq.EventLost) == 0 || st.events(emq.EventStale) == 0 {
		st.doubtf("nobody lost a lease, or no settle of one who had was refused: the drill proves nothing")
	}
}

func away(st *stage) {
	const lease, jobs = 2 * time.Second, 200
	s := st.redis("--appendonly", "yes", "--appendfsync", "always")
	a := st.audit(s.URL(), lease)
	gate := filepath.Join(st.dir, "gate")
	all := make([]emq.Job, jobs)
	for i := range all {
		all[i] = emq.New(kept{N: i, Do: atGate, Gate: gate})
	}
	st.put(s.URL(), keeps, 0, all...)
	workers := st.workers(2, s.URL(), workRole{Lease: lease, Concurrency: 150})
	st.need("the jobs run", 20*time.Second, func() bool { return st.count(nil, begins) == jobs })
	for range 2 {
		st.sleep(st.between(0, lease))
		s.Kill()
		st.sleep(3 * lease)
		st.must("start the server again", s.Run())
	}
	st.sleep(2 * lease) // nobody may take a lease back now
	st.open(gate)
	a.drained(20 * time.Second)
	st.finish(workers...)
	a.judge()
	runs := st.count(nil, begins)
	st.figure("%d runs, %d leases reaped", runs, a.total("reaped"))
	if runs != jobs || a.total("reaped") != 0 || st.events(emq.EventLost) != 0 {
		st.failf("each job should have run once and no lease been lost; %d were found lost", st.events(emq.EventLost))
	}
}
