package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	second    = int64(time.Second)
	testLease = 2 * time.Second
)

// world is what an auditor sees: a log and key spaces, at first of a run in which all went well.
type world struct {
	*audit
	lines []line
	run   int64
}

func newWorld() *world {
	st := &stage{run: context.Background(), procs: []*process{madeUp(1), madeUp(2)}}
	w := &world{audit: &audit{st: st, lease: testLease, spaces: make(map[string]*keyspace)}}
	for _, q := range allQueues() {
		w.spaces[q] = &keyspace{q, make(map[string]map[string]string), make(map[string]map[string]string), make(map[string]int64), make(map[string]string)}
	}
	for n, q := range allQueues() { // one job of each queue ends well
		w.acked(q, n)
		w.ran(q, n, 1, 1, int64(n)*second, "ok")
		if q == tasks {
			w.add(q, "metrics:completed", "count", "1")
		} else {
			w.completes(q, n, 1, w.run)
		}
	}
	return w
}

// madeUp is a process that lives.
func madeUp(pid int) *process { return &process{cmd: &exec.Cmd{Process: &os.Process{Pid: pid}}} }

func idOf(queue string, n int) string { return fmt.Sprintf("JOB-%s-%d", queue, n) }

func (w *world) acked(queue string, n int) {
	w.acknowledge(queue, n, 0, 1)
}

func (w *world) acknowledge(queue string, n int, sent, at int64) {
	w.lines = append(w.lines, line{What: wasAcked, Queue: queue, ID: idOf(queue, n), N: n, Sent: sent, T: at})
}

// ran is a run of a second; one without a result has no end.
func (w *world) ran(queue string, n, try, pid int, from int64, result string) {
	w.run++
	l := line{What: begins, Queue: queue, ID: idOf(queue, n), N: n, Try: try, PID: pid, Run: w.run, T: from + 2}
	w.lines = append(w.lines, l)
	if result != "" {
		l.What, l.Text, l.T = ends, result, l.T+second
		w.lines = append(w.lines, l)
	}
}

func (w *world) add(queue, set, member, value string) {
	if w.spaces[queue].sets[set] == nil {
		w.spaces[queue].sets[set] = make(map[string]string)
	}
	w.spaces[queue].sets[set][member] = value
}

func (w *world) row(queue string, n int, fields ...string) {
	row := make(map[string]string)
	for i := 0; i < len(fields); i += 2 {
		row[fields[i]] = fields[i+1]
	}
	w.spaces[queue].rows[idOf(queue, n)] = row
}

// completes keeps a job as completed, and counts it.
func (w *world) completes(queue string, n, pid int, run int64) {
	w.row(queue, n, "state", "completed", "result", fmt.Sprintf(`{"pid":%d,"run":%d}`, pid, run))
	w.add(queue, "completed", idOf(queue, n), "9")
	w.add(queue, "metrics:completed", "count", fmt.Sprint(len(w.spaces[queue].sets["completed"])))
}

// waits lists a job of the queue of parcels.
func (w *world) waits(n int, lane string) {
	w.acked(parcels, n)
	if lane == "" {
		w.row(parcels, n, "state", "pending")
		w.add(parcels, "pending", idOf(parcels, n), "0")
		return
	}
	w.row(parcels, n, "state", "pending", "group", lane)
	w.add(parcels, "g:"+lane+":pending", idOf(parcels, n), "0")
	w.add(parcels, "ring", lane, "1")
	w.add(parcels, "meta", "laned", "1")
}

// takesPlace is a job that runs in a lane.
func (w *world) takesPlace(n int, lane string) {
	w.acked(parcels, n)
	w.row(parcels, n, "state", "active", "group", lane)
	w.add(parcels, "active", idOf(parcels, n), "1")
	w.add(parcels, "g:"+lane+":active", idOf(parcels, n), "")
}

func (w *world) problems() []string {
	w.weigh(w.lines)
	return w.st.problems
}

func dies(p *process, at int64) {
	p.died, p.err = at, os.ErrProcessDone
}

// Everything that a fault excuses, and all that may be in a key space: nothing is found.
func TestTheAuditorFindsNothingWhereAllIsWell(t *testing.T) {
	t.Parallel()
	twice := func(w *world, first string, from, again int64) {
		w.acked(keeps, 7)
		w.ran(keeps, 7, 1, 1, from, first)
		w.ran(keeps, 7, 1, 2, again, "ok")
		w.completes(keeps, 7, 2, w.run)
	}
	for name, make := range map[string]func(*world){
		"nothing more": func(*world) {},
		"jobs wait, in lanes too, and hold their keys": func(w *world) {
			w.waits(10, "")
			w.waits(11, "red")
			w.takesPlace(12, "blue")
			w.spaces[parcels].rows[idOf(parcels, 10)]["unique"] = "k"
			w.spaces[parcels].texts["de:k"] = idOf(parcels, 10)
			w.spaces[parcels].lists["wake"] = 1
			w.spaces[parcels].lists["job:"+idOf(parcels, 10)+":logs"] = 3
		},
		"a failure and its retry": func(w *world) {
			w.acked(keeps, 7)
			w.ran(keeps, 7, 1, 1, 0, "failed")
			w.ran(keeps, 7, 2, 2, 5*second, "ok")
			w.completes(keeps, 7, 2, w.run)
		},
		"a process died in mid-job, and half a lease went by": func(w *world) {
			dies(w.st.procs[0], second/2)
			twice(w, "", 0, second/2+second)
		},
		"a process was frozen, and its run ended late": func(w *world) {
			w.st.procs[0].frozen = []window{{second / 2, 9 * second}}
			twice(w, "ok", 0, 5*second)
		},
		"the server was away":       func(w *world) { w.away = []window{{0, 3 * second}}; twice(w, "ok", 0, 4*second) },
		"the server forgot a claim": func(w *world) { w.forgot = []window{{0, 3 * second}}; twice(w, "ok", 0, 2*second) },
		"the server forgot an enqueue": func(w *world) {
			w.forgot = []window{{0, 3 * second}}
			w.acked(keeps, 8)
		},
		"the server forgot an enqueue, and its answer was read late": func(w *world) {
			w.forgot = []window{{second, 2 * second}}
			w.acknowledge(keeps, 8, second/2, 3*second)
		},
		"an enqueue was sent again after its task had ended": func(w *world) {
			w.resends = true
			w.acked(tasks, 9)
			w.ran(tasks, 9, 1, 1, 0, "ok")
			w.ran(tasks, 9, 1, 1, 5*second, "ok")
			w.add(tasks, "metrics:completed", "count", "3")
		},
		"a job of an unknown fate ran": func(w *world) {
			w.lines = append(w.lines, line{What: isUnknown, Queue: tasks, N: 6})
			w.ran(tasks, 6, 1, 1, 0, "ok")
			w.add(tasks, "metrics:completed", "count", "2")
		},
		"a job was refused": func(w *world) { w.lines = append(w.lines, line{What: wasRefused, Queue: tasks, N: 6}) },
		"a dead letter was expected": func(w *world) {
			w.mayDie = func(n int) bool { return n == 5 }
			w.acked(keeps, 5)
			w.row(keeps, 5, "state", "dead")
			w.add(keeps, "dead", idOf(keeps, 5), "0")
			w.add(keeps, "dead:at", idOf(keeps, 5), "7")
		},
		"a row was deleted by hand": func(w *world) {
			w.lostByHand = map[string]bool{idOf(keeps, 4): true}
			w.acked(keeps, 4)
		},
	} {
		w := newWorld()
		make(w)
		if got := w.problems(); len(got) > 0 {
			t.Errorf("%s: found %q", name, got)
		}
	}
}

// Each fault is found, and its finding names it and its job.
func TestTheAuditorFindsEachFault(t *testing.T) {
	t.Parallel()
	for want, make := range map[string]func(*world){
		// the log
		"job kept/7 (JOB-kept-7) is gone":   func(w *world) { w.acked(keeps, 7) },
		"job tasks/7 (JOB-tasks-7) is gone": func(w *world) { w.acked(tasks, 7) },
		"job kept/8 (JOB-kept-8) is gone": func(w *world) { // sent after the server had forgotten what it forgot
			w.forgot = []window{{second, 2 * second}}
			w.acknowledge(keeps, 8, 3*second, 4*second)
		},
		"job kept/9 (JOB-kept-9) is gone": func(w *world) { // acknowledged before
			w.forgot = []window{{second, 2 * second}}
			w.acknowledge(keeps, 9, 0, second/2)
		},
		"ran again after a success: job 1 ": func(w *world) { w.ran(keeps, 1, 1, 2, 5*second, "ok") },
		"ran again after a success: job 0 ": func(w *world) { // of a task, too, whose enqueue was sent once
			w.ran(tasks, 0, 1, 2, 5*second, "ok")
		},
		"began while another run had the job: job 1 ": func(w *world) { w.ran(keeps, 1, 1, 2, second+second/2, "ok") },
		"began while another run had the job: job 7 ": func(w *world) { // the first holder lives on
			w.acked(keeps, 7)
			w.ran(keeps, 7, 1, 1, 0, "")
			w.ran(keeps, 7, 1, 2, 60*second, "ok")
			w.completes(keeps, 7, 2, w.run)
		},
		"job 7 (kept/JOB-kept-7) attempt 1 in process 2, 3.": func(w *world) { // the holder died just now: its lease holds
			dies(w.st.procs[0], 3*second-second/2)
			w.acked(keeps, 7)
			w.ran(keeps, 7, 1, 1, 0, "")
			w.ran(keeps, 7, 1, 2, 3*second, "ok")
			w.completes(keeps, 7, 2, w.run)
		},
		"ran again after a success: job 8 ": func(w *world) { // the holder had ended in order
			w.st.procs[0].died = 2 * second
			w.acked(keeps, 8)
			w.ran(keeps, 8, 1, 1, 0, "ok")
			w.ran(keeps, 8, 1, 2, 60*second, "ok")
			w.completes(keeps, 8, 2, w.run)
		},
		"ran again after a success: job 9 ": func(w *world) { // frozen for too short a time
			w.st.procs[0].frozen = []window{{second / 2, second}}
			w.acked(keeps, 9)
			w.ran(keeps, 9, 1, 1, 0, "ok")
			w.ran(keeps, 9, 1, 2, 60*second, "ok")
			w.completes(keeps, 9, 2, w.run)
		},
		"ran again after a success: job 11 ": func(w *world) { // the server was away later
			w.away = []window{{70 * second, 90 * second}}
			w.acked(keeps, 11)
			w.ran(keeps, 11, 1, 1, 0, "ok")
			w.ran(keeps, 11, 1, 2, 60*second, "ok")
			w.completes(keeps, 11, 2, w.run)
		},
		"ran again after a success: job 12 ": func(w *world) { // the server was away before
			w.away = []window{{0, 9 * second}}
			w.acked(keeps, 12)
			w.ran(keeps, 12, 1, 1, 10*second, "ok")
			w.ran(keeps, 12, 1, 2, 60*second, "ok")
			w.completes(keeps, 12, 2, w.run)
		},
		`it was never enqueued ("refused")`: func(w *world) {
			w.lines = append(w.lines, line{What: wasRefused, Queue: tasks, N: 6})
			w.ran(tasks, 6, 1, 1, 0, "ok")
			w.add(tasks, "metrics:completed", "count", "2")
		},
		`it was never enqueued ("")`: func(w *world) {
			w.ran(tasks, 6, 1, 1, 0, "ok")
			w.add(tasks, "metrics:completed", "count", "2")
		},
		"it was acknowledged as JOB-kept-7": func(w *world) {
			w.acked(keeps, 7)
			w.ran(keeps, 7, 1, 1, 0, "ok")
			w.completes(keeps, 7, 1, w.run)
			w.lines[len(w.lines)-2].ID = "JOB-other"
		},
		"was acknowledged for kept/1 and for kept/9": func(w *world) {
			w.lines = append(w.lines, line{What: wasAcked, Queue: keeps, ID: idOf(keeps, 1), N: 9, T: 2})
		},
		"only 0 runs had failed": func(w *world) {
			w.acked(keeps, 7)
			w.ran(keeps, 7, 2, 1, 0, "ok")
			w.completes(keeps, 7, 1, w.run)
		},
		"ended (ok) and had not begun": func(w *world) {
			w.lines = append(w.lines, line{What: ends, Queue: keeps, N: 1, PID: 1, Run: 99, Text: "ok"})
		},
		// the log and what is kept
		"is completed, but no run of it ended well": func(w *world) {
			w.acked(keeps, 7)
			w.ran(keeps, 7, 1, 1, 0, "failed")
			w.completes(keeps, 7, 1, w.run)
		},
		"its result is of run 77 in process 2": func(w *world) { w.completes(keeps, 1, 2, 77) },
		`its result "nonsense"`:                func(w *world) { w.spaces[keeps].rows[idOf(keeps, 1)]["result"] = "nonsense" },
		"job kept/7 (JOB-kept-7) is dead": func(w *world) {
			w.acked(keeps, 7)
			w.row(keeps, 7, "state", "dead")
			w.add(keeps, "dead", idOf(keeps, 7), "0")
			w.add(keeps, "dead:at", idOf(keeps, 7), "7")
		},
		"queue kept: metrics:completed is 2, and 1 jobs":  func(w *world) { w.add(keeps, "metrics:completed", "count", "2") },
		"queue kept: metrics:completed is 0, and 1 jobs":  func(w *world) { delete(w.spaces[keeps].sets, "metrics:completed") },
		"queue tasks: metrics:completed is 2, and 1 jobs": func(w *world) { w.add(tasks, "metrics:completed", "count", "2") },
		// the key space against itself
		"is listed in [completed pending]":              func(w *world) { w.add(keeps, "pending", idOf(keeps, 1), "0") },
		`has the state "completed" and is listed in []`: func(w *world) { delete(w.spaces[keeps].sets["completed"], idOf(keeps, 1)) },
		`has the state "active" and is listed in [schedule]`: func(w *world) {
			w.acked(keeps, 7)
			w.row(keeps, 7, "state", "active")
			w.add(keeps, "schedule", idOf(keeps, 7), "0")
		},
		`has the state "" and is listed in []`:                func(w *world) { w.row(keeps, 7) },
		"job JOB-kept-7 is listed in [active] and has no row": func(w *world) { w.add(keeps, "active", idOf(keeps, 7), "0") },
		`has the state "pending" and is listed in [pending]`: func(w *world) { // it is of a lane
			w.waits(10, "")
			w.spaces[parcels].rows[idOf(parcels, 10)]["group"] = "red"
		},
		`wait in the lane "red", which is not in the ring`:                 func(w *world) { w.waits(10, "red"); delete(w.spaces[parcels].sets, "ring") },
		`the lane "red" is in the ring and no job waits in it`:             func(w *world) { w.add(parcels, "ring", "red", "1") },
		`meta.laned is "2", and 1 jobs wait in lanes`:                      func(w *world) { w.waits(10, "red"); w.add(parcels, "meta", "laned", "2") },
		`meta.laned is "", and 1 jobs wait in lanes`:                       func(w *world) { w.waits(10, "red"); delete(w.spaces[parcels].sets, "meta") },
		`job JOB-parcels-10 runs and takes no place of its lane "red"`:     func(w *world) { w.takesPlace(10, "red"); delete(w.spaces[parcels].sets, "g:red:active") },
		`job JOB-parcels-10 takes a place of the lane "blue" and does not`: func(w *world) { w.takesPlace(10, "red"); w.add(parcels, "g:blue:active", idOf(parcels, 10), "") },
		`job JOB-parcels-99 takes a place of the lane "red" and does not`:  func(w *world) { w.add(parcels, "g:red:active", idOf(parcels, 99), "") },
		"dead has 0 ids, dead:at 1":                                        func(w *world) { w.add(keeps, "dead:at", idOf(keeps, 1), "7") },
		"the unique key k is held by JOB-kept-1, which does not name it":   func(w *world) { w.spaces[keeps].texts["de:k"] = idOf(keeps, 1) },
		"the unique key k is held by JOB-gone, which does not name it":     func(w *world) { w.spaces[keeps].texts["de:k"] = "JOB-gone" },
		`job JOB-parcels-10 is pending without its unique key k, which ""`: func(w *world) { w.waits(10, ""); w.spaces[parcels].rows[idOf(parcels, 10)]["unique"] = "k" },
		"job:JOB-kept-9:logs has lines, and its job has no row":            func(w *world) { w.spaces[keeps].lists["job:JOB-kept-9:logs"] = 2 },
		"queue kept: wake has 2 tokens":                                    func(w *world) { w.spaces[keeps].lists["wake"] = 2 },
		"queue kept: wake:pump has 3 tokens":                               func(w *world) { w.spaces[keeps].lists["wake:pump"] = 3 },
	} {
		w := newWorld()
		make(w)
		if got := w.problems(); !slices.ContainsFunc(got, func(p string) bool { return strings.Contains(p, want) }) {
			t.Errorf("%q is not found: %q", want, got)
		}
	}
}

// What a settle that came too late has changed is found, by a field and by a count.
func TestTheHarmOfALateSettleIsFound(t *testing.T) {
	t.Parallel()
	before, after := newWorld().spaces[keeps], newWorld()
	if harm := before.harmTo(after.spaces[keeps]); len(harm) > 0 {
		t.Errorf("nothing has changed: %q", harm)
	}
	after.spaces[keeps].rows[idOf(keeps, 1)]["result"] = "{}"
	after.add(keeps, "metrics:completed", "count", "2")
	harm := strings.Join(before.harmTo(after.spaces[keeps]), "\n")
	if !strings.Contains(harm, "changed JOB-kept-1") || !strings.Contains(harm, "1 became 2") {
		t.Errorf("found %q", harm)
	}
	gone := newWorld()
	maps.DeleteFunc(gone.spaces[keeps].rows, func(string, map[string]string) bool { return true })
	if harm := before.harmTo(gone.spaces[keeps]); len(harm) != 1 {
		t.Errorf("a row that is gone: %q", harm)
	}
}
