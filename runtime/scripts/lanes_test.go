package scripts

import (
	"context"
	"fmt"
	"strings"
)

func inLane(id, lane string) enqueue {
	e := enter(id)
	e.Lane = lane
	return e
}

// fill enters n jobs of a lane, with the ids from a number on.
func (s *scene) fill(lane string, from, n int) {
	for i := range n {
		s.all(inLane(jobN(from+i), lane))
	}
}

// order claims n jobs, size at a time, and gives the lanes in the order in which they were served; "-"
// is a job without one.
func (s *scene) order(n, size int) string {
	var order strings.Builder
	for n > 0 {
		got := s.do(claim{Lease: lease, N: min(size, n), By: "mine0001"})
		jobs := strings.Split(got.Says, "; ")[1:]
		if len(jobs) == 0 {
			break
		}
		for _, j := range jobs {
			_, lane, _ := strings.Cut(j, " lane ")
			lane = strings.Trim(lane, `"`)
			if lane == "" {
				lane = "-"
			}
			order.WriteString(lane)
		}
		n -= len(jobs)
	}
	return order.String()
}

func (s *scene) serves(want string, size int) {
	if got := s.order(len(want), size); got != want {
		failf("after %s\nthe order is %s, want %s", s.story(), got, want)
	}
}

func laneScenarios() []scenario {
	all := []scenario{
		{"a lane that enters comes after those that wait, and never before its turn", func(s *scene) {
			s.fill("b", 0, 4)
			s.fill("c", 10, 4)
			s.serves("bc", 1)
			s.fill("a", 20, 2)
			s.serves("abcabc", 1)
		}},
		{"a lane that comes back after a while has no claim to the time that it was away", func(s *scene) {
			s.fill("a", 0, 1)
			s.serves("a", 1)
			s.fill("b", 10, 6)
			s.serves("bbb", 1)
			s.fill("a", 20, 3)
			s.serves("ababa", 1)
		}},
		{"jobs without a lane take their turn beside lanes, and win ties", func(s *scene) {
			s.fill("a", 0, 3)
			s.fill("", 10, 5)
			s.serves("-", 1)
			s.serves("-a-a-a-", 1)
			s.fill("", 20, 2)
			s.serves("--", 1)
		}},
		{"the empty lane's weight is that of the jobs without a lane", func(s *scene) {
			s.all(tune{"", "weight", 3})
			s.fill("a", 0, 3)
			s.fill("", 10, 8)
			s.serves("----a---a-", 10)
		}},
		{"a lane at its limit waits for its own jobs only", func(s *scene) {
			s.all(tune{"a", "limit", 2})
			s.fill("a", 0, 4)
			s.fill("b", 10, 3)
			s.serves("ababb", 10)
			s.all(popWake())
			s.takes(0, claimBy("mine0002"))
			s.woken(false)
			s.all(complete{Fence: fenceOf(jobN(10), 1, "mine0001")})
			s.woken(false)
			s.all(complete{Fence: fenceOf(jobN(0), 1, "mine0001")})
			s.woken(true)
			s.all(complete{Fence: fenceOf(jobN(1), 1, "mine0001")})
			s.woken(false)
			s.serves("aa", 10)
		}},
		{"a lane in the batch of a claim stops at its limit", func(s *scene) {
			s.all(tune{"a", "limit", 3})
			s.fill("a", 0, 5)
			s.takes(3, claimBy("mine0001"))
			s.all(tune{"a", "limit", 4})
			s.takes(1, claimBy("mine0002"))
			s.all(tune{"a", "limit", 0})
			s.takes(1, claimBy("mine0003"))
		}},
		{"a higher limit, no limit and a resume wake a worker, a lower limit does not", func(s *scene) {
			s.all(tune{"a", "limit", 1})
			s.fill("a", 0, 5)
			s.all(claimBy("mine0001"), popWake(), tune{"a", "limit", 1})
			s.woken(false)
			s.all(tune{"a", "limit", 2})
			s.woken(true)
			s.all(tune{"a", "limit", 1})
			s.woken(false)
			s.all(tune{"a", "limit", 0})
			s.woken(true)
			s.all(tune{"a", "pause", 0}, tune{"a", "limit", 3})
			s.woken(false)
			s.all(tune{"a", "resume", 0})
			s.woken(true)
			s.all(tune{"a", "resume", 0}, tune{"a", "weight", 7})
			s.woken(false)
		}},
		{"a paused lane gives nothing and its jobs go on running", func(s *scene) {
			s.fill("a", 0, 3)
			s.fill("b", 10, 2)
			s.serves("ab", 1)
			s.all(tune{"a", "pause", 0})
			s.serves("b", 10)
			s.takes(0, claimBy("mine0002"))
			s.leaves(claimBy("mine0002"))
			s.says("completed", complete{Fence: fenceOf(jobN(0), 1, "mine0001")})
			s.fill("a", 20, 1)
			s.takes(0, claimBy("mine0003"))
			s.all(tune{"a", "resume", 0})
			s.serves("aaa", 10)
		}},
		{"a lane can be paused, limited and weighed before its first job", func(s *scene) {
			s.all(tune{"a", "pause", 0}, tune{"b", "limit", 1}, tune{"c", "weight", 5}, browse{})
			s.fill("a", 0, 1)
			s.fill("b", 10, 2)
			s.serves("b", 10)
			s.all(browse{})
		}},
		{"the same weight again costs a lane no place", func(s *scene) {
			s.all(tune{"a", "weight", 2})
			s.fill("a", 0, 4)
			s.fill("b", 10, 4)
			s.serves("aa", 1)
			s.all(tune{"a", "weight", 2}, tune{"b", "weight", 1})
			s.serves("baab", 1)
		}},
		{"max_len counts what waits in lanes, whatever took it out", func(s *scene) {
			s.all(setMeta("max_len", "3"))
			s.fill("a", 0, 2)
			s.fill("b", 10, 1)
			s.says("EMQFULL", inLane(jobN(20), "c"))
			s.says("EMQFULL", enter(jobN(20)))
			s.all(cancel{jobN(1)})
			s.says("enqueued", enter(jobN(20)))
			s.all(claim{Lease: lease, N: 3, By: "mine0001"})
			s.says("enqueued", inLane(jobN(21), "c"))
			s.all(release{fenceOf(jobN(0), 1, "mine0001"), 0}, release{fenceOf(jobN(10), 1, "mine0001"), 0})
			s.says("EMQFULL", inLane(jobN(22), "c"))
		}},
		{"a count of waiting jobs that somebody spoilt is right again when no lane has any", func(s *scene) {
			s.fill("a", 0, 2)
			s.takes(2, claimBy("mine0001"))
			s.fill("a", 10, 1)
			s.must("HSET", s.key("meta"), "laned", "77")
			s.takes(1, claimBy("mine0002"))
		}},
		{"a job lapses, waits again in its lane, and is settled late", func(s *scene) {
			s.all(tune{"a", "limit", 1})
			s.fill("a", 0, 2)
			s.serves("a", 1)
			s.lapse(5)
			s.says("pending", release{fenceOf(jobN(0), 1, "mine0001"), 0})
			s.serves("a", 1)
			s.lapse(5)
			s.says("completed", complete{Fence: fenceOf(jobN(0), 2, "mine0001")})
			s.serves("a", 1)
		}},
		{"a dead letter and a scheduled job come back into their lane", func(s *scene) {
			s.fill("a", 0, 1)
			s.all(inLane(jobN(1), "b").parked(), claimBy("mine0001"), kill{fenceOf(jobN(0), 1, "mine0001"), "poisoned"})
			s.all(reprocess{jobN(0)})
			s.promoteAll()
			s.serves("ab", 10)
		}},
		{"a stray member of a lane starts nothing, and the lane leaves the ring", func(s *scene) {
			s.fill("a", 0, 1)
			s.all(enter(jobA), later(jobB, delay))
			for _, id := range []string{jobA, jobB} {
				s.must("HINCRBY", s.key("meta"), "laned", "1")
				s.all(stray("g:a:pending", id, 0))
			}
			s.all(deleteRow(jobN(0)))
			s.serves("-", 10)
			s.takes(0, claimBy("mine0002"))
			s.orphans(3)
		}},
		{"a job that waits in one lane is not served from another", func(s *scene) {
			s.all(tune{"b", "pause", 0}, inLane(jobB, "b"))
			s.fill("a", 0, 1)
			s.must("HINCRBY", s.key("meta"), "laned", "1")
			s.all(stray("g:a:pending", jobB, 0))
			s.takes(1, claimBy("mine0001"))
			s.orphans(1)
			s.all(tune{"b", "resume", 0})
			s.serves("b", 10)
		}},
		{"a claim passes the token on while a lane has more, and not when all are parked", func(s *scene) {
			s.fill("a", 0, 3)
			s.all(popWake(), claim{Lease: lease, N: 1, By: "mine0001"})
			s.woken(true)
			s.all(tune{"a", "limit", 2}, claim{Lease: lease, N: 1, By: "mine0002"})
			s.woken(false)
		}},
		{"jobs without a lane have no claim to the time when there were none", func(s *scene) {
			s.fill("a", 0, 8)
			s.serves("aaaa", 1)
			s.fill("", 20, 4)
			s.serves("--a-a-aa", 1)
		}},
		{"a lane whose last job is cancelled leaves the ring", func(s *scene) {
			s.fill("a", 0, 1)
			s.fill("b", 10, 1)
			s.all(cancel{jobN(0)})
			s.serves("b", 10)
		}},
		{"a lane of nothing but orphans does not hide the others", func(s *scene) {
			s.fill("a", 0, 4)
			s.fill("b", 10, 1)
			for i := range 4 {
				s.all(deleteRow(jobN(i)))
			}
			s.serves("b", 1)
		}},
		{"a lane whose key somebody overwrote stops no other", func(s *scene) {
			s.fill("b", 0, 1)
			s.must("ZADD", s.key("ring"), "0", "a")
			s.must("SET", s.key("g:a:pending"), "spoilt")
			got := s.alone(claimBy("mine0001"))
			if !strings.Contains(got.Says, jobN(0)) {
				failf("the claim answers %q", got.Says)
			}
		}},
		{"every pick of a lane sees the concurrency and the rate", func(s *scene) {
			s.all(setMeta("concurrency", "3"))
			s.fill("a", 0, 4)
			s.fill("b", 10, 4)
			s.serves("aba", 10)
			s.all(popWake())
			s.takes(0, claimBy("mine0002"))
			s.all(complete{Fence: fenceOf(jobN(10), 1, "mine0001")})
			s.woken(true)
			s.serves("b", 10)
		}},
		{"lanes with hostile names are lanes", func(s *scene) {
			for i, lane := range []string{"{x}", "a:pending", "ring", " ", "größe", "0"} {
				s.fill(lane, 10*i, 2)
				s.all(tune{lane, "limit", 1})
			}
			s.all(claimBy("mine0001"), browse{})
			s.lapse(5)
		}},
	}
	for _, v := range verbs(mine) {
		all = append(all, scenario{v.name + " frees the slot of its lane", func(s *scene) {
			s.all(tune{"a", "limit", 1}, inLane(jobA, "a"), inLane(jobB, "a"), claimBy("mine0001"), popWake())
			s.says(v.ok, v.step)
			s.woken(true)
			if len(s.m.runningIn("a")) != 0 {
				failf("the lane's active set is %v", s.m.runningIn("a"))
			}
			s.takes(1, claimBy("other001"))
		}})
	}
	for _, size := range []int{1, 2, 7, 10} {
		all = append(all, scenario{fmt.Sprintf("claims of %d serve equal lanes in turn and others by weight", size), func(s *scene) {
			for i, lane := range []string{"a", "b", "c"} {
				s.fill(lane, 10*i, 4)
			}
			s.serves("abcabcabcabc", size)
			s.all(tune{"x", "weight", 3}, tune{"z", "weight", 10})
			s.fill("x", 100, 9)
			s.fill("y", 120, 3)
			s.fill("z", 140, 30)
			order := s.order(28, size)
			if x, y, z := strings.Count(order, "x"), strings.Count(order, "y"), strings.Count(order, "z"); x != 6 || y != 2 || z != 20 {
				failf("after %s\nweights 3, 1 and 10 are served %d, %d and %d times: %s", s.story(), x, y, z, order)
			}
		}})
	}
	return all
}

// alone takes a step on the server alone, where somebody has done what the model does not know.
func (s *scene) alone(st step) answer {
	s.trail = append(s.trail, st)
	return st.call(context.Background(), s.target)
}
