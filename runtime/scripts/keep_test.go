package scripts

import (
	"time"
)

func (s *scene) dieAll(n int) {
	for i := range n {
		s.all(enter(jobN(i)), claimBy("mine0001"), kill{fenceOf(jobN(i), 1, "mine0001"), "poisoned"})
		s.pass(time.Minute)
	}
}

// keepScenarios: what is kept after the end of a job, and for how long.
func keepScenarios() []scenario {
	return []scenario{
		{"a completed job is kept with its result until its retention has passed", func(s *scene) {
			running(s)
			s.says("completed", complete{Fence: mine, Retain: delay, Result: "42"})
			s.pass(delay - time.Hour)
			s.says("moved 0", expire{100})
			s.pass(2 * time.Hour)
			s.says("moved 1", expire{100})
			s.says("enqueued", enter(jobA))
		}},
		{"retention ends at each job's own time", func(s *scene) {
			s.all(enter(jobA), enter(jobB), claimBy("mine0001"))
			s.all(complete{Fence: mine, Retain: delay2}, complete{Fence: fenceOf(jobB, 1, "mine0001"), Retain: delay})
			s.pass(delay + time.Hour)
			s.says("moved 1", expire{100})
			s.pass(delay2)
			s.says("moved 1", expire{100})
		}},
		{"the morgue keeps its newest deaths under the cap", func(s *scene) {
			s.all(setMeta("dead_max", "3"))
			s.dieAll(5)
			s.says("moved 1", expire{1})
			s.says("moved 1", expire{100})
			s.says("moved 0", expire{100})
			if s.m.jobs[jobN(1)] != nil || s.m.jobs[jobN(2)] == nil {
				failf("not the oldest deaths were forgotten")
			}
		}},
		{"what is over the caps goes in one beat after another", func(s *scene) {
			s.all(setMeta("dead_max", "1"))
			s.dieAll(7)
			s.all(expire{2}, expire{2}, expire{2}, expire{2})
			s.all(setMeta("dead_max", "100"), setMeta("dead_ms", "1"))
			s.dieAll(5)
			s.pass(time.Hour)
			s.all(expire{2}, expire{2}, expire{2}, expire{2})
		}},
		{"the morgue forgets deaths that are too old", func(s *scene) {
			s.all(setMeta("dead_ms", "10800000"))
			s.dieAll(2)
			s.pass(2 * time.Hour)
			s.says("moved 0", expire{100})
			s.all(enter(jobC), claimBy("mine0001"), kill{fenceOf(jobC, 1, "mine0001"), "poisoned"})
			s.pass(90 * time.Minute)
			s.says("moved 2", expire{100})
		}},
		{"deaths are kept for 90 days if the queue does not say", func(s *scene) {
			s.dieAll(1)
			s.pass(89 * 24 * time.Hour)
			s.says("moved 0", expire{100})
			s.pass(2 * 24 * time.Hour)
			s.says("moved 1", expire{100})
		}},
		{"a reprocessed job is not forgotten with the deaths of its time", func(s *scene) {
			s.all(setMeta("dead_ms", "10800000"))
			s.dieAll(1)
			s.says("revived", reprocess{jobN(0)})
			s.pass(delay2)
			s.says("moved 0", expire{100})
		}},
		{"a job that dies twice is kept from its second death on", func(s *scene) {
			s.all(setMeta("dead_ms", "10800000"))
			s.dieAll(1)
			s.pass(2 * time.Hour)
			s.all(reprocess{jobN(0)}, claimBy("other001"), kill{fenceOf(jobN(0), 2, "other001"), "poisoned again"})
			s.pass(2 * time.Hour)
			s.says("moved 0", expire{100})
			s.pass(2 * time.Hour)
			s.says("moved 1", expire{100})
		}},
		{"reprocess clears the error, the cancellation and every count", func(s *scene) {
			s.all(enter(jobA), claimBy("mine0001"))
			s.lapse(5)
			s.all(claimBy("other001"), retry{fenceOf(jobA, 2, "other001"), delay, 1, "broken"})
			s.says("revived", reprocess{jobA})
			s.all(claimBy("other002"))
			s.says("scheduled", retry{fenceOf(jobA, 3, "other002"), delay, 2, "broken"})
		}},
	}
}

// admitScenarios: the door.
func admitScenarios() []scenario {
	return []scenario{
		{"a job waits with all that was said of it", func(s *scene) {
			e := enter(jobA)
			e.Payload = []byte("\x00\xff not text \r\n")
			e.Fields = append(e.Fields, "max", "3", "v", "2", "headers", `{"trace":"abc"}`)
			s.says("enqueued", e)
			s.says("duplicate src00001", e)
			s.all(claimBy("mine0001"))
		}},
		{"a job without a kind or a payload is still a job", func(s *scene) {
			s.says("enqueued", enqueue{ID: jobA, Src: "src00001"})
			s.all(claimBy("mine0001"), complete{Fence: mine})
		}},
		{"a delay is on the server's clock", func(s *scene) {
			s.says("enqueued", later(jobA, delay))
			s.pass(delay - time.Minute)
			s.says("moved 0", promote{100})
			s.pass(2 * time.Minute)
			s.says("moved 1", promote{100})
			s.all(claimBy("mine0001"))
		}},
		{"an absolute time is the caller's", func(s *scene) {
			e := enter(jobA)
			e.Later, e.At = true, time.UnixMilli(int64(s.now())).Add(delay)
			s.says("enqueued", e)
			s.pass(delay + time.Minute)
			s.says("moved 1", promote{100})
		}},
		{"an absolute time in the past is due at once", func(s *scene) {
			e := enter(jobA)
			e.Later, e.At = true, time.UnixMilli(1000)
			s.says("enqueued", e)
			s.says("moved 1", promote{100})
		}},
		{"an absolute time is never early by a part of a millisecond", func(s *scene) {
			e := enter(jobA)
			e.Later, e.At = true, time.UnixMilli(1000).Add(time.Nanosecond)
			args := s.queue.admission((*NewJob)(&e)).args
			if args[8] != "1001" {
				failf("due at %s", args[8])
			}
			if got := ms(time.Nanosecond) + " " + ms(0) + " " + ms(2*time.Millisecond) + " " + ms(1<<63-1); got != "1 0 2 9223372036855" {
				failf("durations in ms: %s", got)
			}
		}},
		{"every kind of id but a job's is refused", func(s *scene) {
			for _, id := range []string{"USR0KHTOWnGLuA", "job0KHTOWnGLuA", "", "JO", " JOB"} {
				s.says("EMQKIND", enter(id))
				s.says("EMQKIND", later(id, delay))
			}
		}},
		{"many jobs get one verdict each, in order", func(s *scene) {
			s.all(setMeta("max_len", "3"), only(jobA))
			s.many(enter(jobB), only(jobC), enter("USR0KHTOWnGLuA"), enter(jobA), later(jobC, delay), enter(jobN(1)))
		}},
		{"gathered jobs are admitted as single ones are", func(s *scene) {
			s.all(setMeta("max_len", "6"), enter(jobA), later(jobN(9), delay), inLane(jobN(8), "a"))
			again, other := enter(jobB), enter(jobB)
			other.Src = "another0"
			s.many(enter("USR0KHTOWnGLuA"), enter(jobA), enter(jobB), other, again, enter(jobC), enter(jobN(1)), enter(jobN(2)), enter(jobB))
			s.all(claimBy("mine0001"))
		}},
		{"gathered jobs of a queue without a limit are all admitted", func(s *scene) {
			var jobs []enqueue
			for n := range MaxGathered + 2 {
				jobs = append(jobs, enter(jobN(n)))
			}
			s.many(jobs...)
		}},
		{"what ends a gathered call keeps the order of the batch", func(s *scene) {
			s.all(setMeta("max_len", "3"))
			s.many(enter(jobA), enter(jobB), only(jobC), enter(jobN(1)), enter(jobN(2)))
		}},
	}
}
