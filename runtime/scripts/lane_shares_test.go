package scripts

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tenants plays on one server without the model, for histories that are long.
type tenants struct {
	*target
	t    testing.TB
	next int
}

func tenantsOn(t testing.TB, s *target) *tenants {
	s.clear()
	return &tenants{target: s, t: t}
}

// put enters n jobs of a lane.
func (s *tenants) put(lane string, n int) {
	s.t.Helper()
	s.admit(n, func(id string) NewJob { return NewJob(inLane(id, lane)) })
}

func (s *tenants) admit(n int, job func(id string) NewJob) {
	s.t.Helper()
	jobs := make([]Admit, n)
	for i := range jobs {
		jobs[i] = Admit{s.queue, job(jobN(s.next))}
		s.next++
	}
	for part := range slices.Chunk(jobs, 500) {
		for _, a := range s.queue.EnqueueAll(context.Background(), part) {
			if a.Err != nil {
				s.t.Fatal(a.Err)
			}
		}
	}
}

func (s *tenants) claim(n int) []ClaimedJob {
	s.t.Helper()
	got, err := s.queue.Claim(context.Background(), Claim{Lease: lease, N: n, By: "mine0001"})
	if err != nil {
		s.t.Fatal(err)
	}
	return got.Jobs
}

func (s *tenants) tune(lane, verb string, value int) {
	s.t.Helper()
	if err := s.queue.Tune(context.Background(), lane, verb, value); err != nil {
		s.t.Fatal(err)
	}
}

func (s *tenants) complete(f Fence) {
	s.t.Helper()
	if _, err := s.queue.Complete(context.Background(), f, 0, nil); err != nil {
		s.t.Fatal(err)
	}
}

func (s *tenants) size(command, key string) int64 {
	s.t.Helper()
	n, err := s.do(command, s.key(key)).AsInt64()
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// Experiment 35: one lane trickles, a job at a time, the other is busy.
func TestSharesKeepToTheWeights(t *testing.T) {
	t.Parallel()
	claims := 4000
	if full() {
		claims = 20_000
	}
	for _, c := range []struct {
		busy            string // "" is no lane
		trickles, other int    // weights
	}{{"busy", 1, 1}, {"busy", 1, 10}, {"busy", 10, 1}, {"", 1, 10}, {"", 10, 1}} {
		t.Run(fmt.Sprintf("busy %q, %d to %d", c.busy, c.trickles, c.other), func(t *testing.T) {
			t.Parallel()
			s := tenantsOn(t, onRedis(t, ownLibrary(t)))
			s.tune("trickle", "weight", c.trickles)
			s.tune(c.busy, "weight", c.other)
			s.put(c.busy, claims)
			s.put("trickle", 1)
			served := 0
			for range claims {
				job := s.claim(1)[0]
				if job.Lane == "trickle" {
					served++
					s.put("trickle", 1)
				}
			}
			want := float64(claims) * float64(c.trickles) / float64(c.trickles+c.other)
			if off := math.Abs(float64(served)-want) / want; off > 0.05 {
				t.Errorf("the trickling lane got %d of %d, want about %.0f", served, claims, want)
			}
		})
	}
}

// Experiment 21: one tenant with 100 000 jobs and 99 with 10 each. The wait is counted in jobs served before,
// which no busy machine changes.
func TestANoisyTenantDelaysNobody(t *testing.T) {
	t.Parallel()
	s := tenantsOn(t, onRedis(t, ownLibrary(t)))
	quiet := func() {
		for i := range 99 {
			s.put("quiet"+strconv.Itoa(i), 10)
		}
	}
	// waits claims until the quiet tenants are served, and answers how long each of their jobs waited
	waits := func() []int {
		var places []int
		for served := 0; len(places) < 990; {
			for _, job := range s.claim(7) {
				if served++; job.Lane != "noisy" {
					places = append(places, served)
				}
				s.complete(job.Fence)
			}
		}
		return places
	}
	quiet()
	alone := waits()
	s.put("noisy", 100_000)
	quiet()
	beside := waits()
	p99 := func(places []int) int { return places[len(places)*99/100] }
	t.Logf("experiment 21: p99 of the quiet tenants' waits, in jobs served before: %d alone, %d beside the noisy one", p99(alone), p99(beside))
	if p99(beside) > p99(alone)*2 {
		t.Errorf("the noisy tenant makes the others wait: %d instead of %d", p99(beside), p99(alone))
	}
}

// Experiment 22: a lane limit of 3 and a limit of 7 for the queue, while claims die.
func TestLaneLimitsHoldWhileWorkersDie(t *testing.T) {
	t.Parallel()
	for _, server := range targets {
		t.Run(server.name, func(t *testing.T) {
			s := tenantsOn(t, server.open(t, ownLibrary(t)))
			ctx := context.Background()
			s.must("HSET", s.key("meta"), "concurrency", "7", "crash_budget", "0")
			s.tune("a", "limit", 3)
			s.tune("c", "limit", 3)
			r := rand.New(rand.NewPCG(3, 4))
			var fences []Fence
			for step := range 1500 {
				switch r.IntN(6) {
				case 0:
					s.put([]string{"a", "b", "c", ""}[r.IntN(4)], 1+r.IntN(4))
				case 1, 2:
					for _, job := range s.claim(1 + r.IntN(4)) {
						fences = append(fences, job.Fence)
					}
				case 3, 4:
					if n := len(fences); n > 0 { // by its holder, or late by somebody who has lost it
						i := r.IntN(n)
						_, err := s.queue.Complete(ctx, fences[i], 0, nil)
						if err != nil && !IsRefusal(err) {
							t.Fatal(err)
						}
						fences = slices.Delete(fences, i, i+1)
					}
				case 5: // everybody dies
					if r.IntN(5) == 0 {
						s.advance(2 * lease)
						for range 2 {
							if _, _, err := s.queue.Reap(ctx, 0, 1+r.IntN(100), lease); err != nil {
								t.Fatal(err)
							}
							s.advance(lease/3 + 11e9)
						}
					}
				}
				running := s.size("ZCARD", "active")
				lanes := int64(0)
				for _, lane := range []string{"a", "b", "c"} {
					n := s.size("SCARD", "g:"+lane+":active")
					if lanes += n; lane != "b" && n > 3 {
						t.Fatalf("step %d: %d jobs of lane %s run", step, n, lane)
					}
				}
				if running > 7 || lanes > running {
					t.Fatalf("step %d: %d jobs run, %d of them in lanes", step, running, lanes)
				}
				if step%10 == 0 { // a claim of all that may run leaves nothing that may
					for _, job := range s.claim(10) {
						fences = append(fences, job.Fence)
					}
					if s.size("ZCARD", "active") < 7 {
						for _, lane := range []string{"a", "c"} {
							if s.size("SCARD", "g:"+lane+":active") < 3 && s.size("ZCARD", "g:"+lane+":pending") > 0 {
								t.Fatalf("step %d: lane %s is stuck below its limit", step, lane)
							}
						}
						if s.size("ZCARD", "g:b:pending")+s.size("ZCARD", "pending") > 0 {
							t.Fatalf("step %d: the queue is stuck below its limit", step)
						}
					}
				}
			}
		})
	}
}

// Experiment 34, for a lane: claims at the limit find nothing and wake nobody, and a freed slot is one
// token.
func TestClaimsAtALaneLimitDoNotSpin(t *testing.T) {
	s := tenantsOn(t, onRedis(t, ownLibrary(t)))
	s.tune("a", "limit", 2)
	s.put("a", 100)
	jobs := s.claim(8)
	s.must("DEL", s.key("wake"))
	for range 20 {
		if more := s.claim(8); len(more) != 0 {
			t.Fatalf("%d jobs over the limit", len(more))
		}
		if s.size("EXISTS", "wake") != 0 {
			t.Fatal("a claim that took nothing wakes somebody")
		}
	}
	s.complete(jobs[0].Fence)
	if s.size("LLEN", "wake") != 1 {
		t.Fatal("a freed slot wakes nobody")
	}
}

func TestALaneIsBrowsedByPage(t *testing.T) {
	s := tenantsOn(t, onRedis(t, ownLibrary(t)))
	ctx := context.Background()
	for i := range 1000 {
		s.put("lane"+strconv.Itoa(i), 1)
	}
	s.tune("lane7", "limit", 2)
	s.tune("idle", "limit", 2)
	s.tune("idle", "pause", 0)
	s.tune("", "weight", 5)
	seen := map[string]int{}
	pages := 0
	for at := LanesBegin; at.Stage != ""; pages++ {
		lanes, next, err := s.queue.Lanes(ctx, at, 100)
		if err != nil || len(lanes) > 500 {
			t.Fatal(len(lanes), err)
		}
		for _, l := range lanes {
			seen[l.Name]++
		}
		at = next
	}
	if len(seen) != 1001 || pages < 4 || seen["idle"] == 0 {
		t.Fatalf("%d lanes in %d pages", len(seen), pages)
	}
	if l, err := s.queue.Lane(ctx, "idle"); err != nil || l != (Lane{Name: "idle", Weight: 1, Limit: 2, Paused: true}) {
		t.Fatalf("%+v, %v", l, err)
	}
}

// BenchmarkClaimByLanes gives the server's time for a job, claimed 64 at a time, and for its completion.
// 0 lanes is the queue without any.
func BenchmarkClaimByLanes(b *testing.B) {
	for _, lanes := range []int{0, 1, 10, 100, 1000, 10_000, 100_000} {
		b.Run(strconv.Itoa(lanes), func(b *testing.B) {
			s := tenantsOn(b, onRedis(b, ownLibrary(b)))
			const jobs = 64
			for i := range lanes {
				s.put("lane"+strconv.Itoa(i), 1)
			}
			fill := func() {
				for i := range jobs {
					lane := ""
					if lanes > 0 {
						lane = "lane" + strconv.Itoa((s.next+i)%lanes)
					}
					s.put(lane, 1)
				}
			}
			for range 4 {
				fill()
			}
			var claim, complete float64
			for b.Loop() {
				fill()
				before := s.usec()
				got := s.claim(jobs)
				claim += s.usec() - before
				before = s.usec()
				for _, j := range got {
					s.complete(j.Fence)
				}
				complete += s.usec() - before
			}
			b.ReportMetric(claim/float64(b.N)/jobs, "claim-µs/job")
			b.ReportMetric(complete/float64(b.N)/jobs, "complete-µs/job")
		})
	}
}

// usec is the time that the server has spent on scripts.
func (s *tenants) usec() float64 {
	s.t.Helper()
	info, err := s.do("INFO", "commandstats").ToString()
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "cmdstat_evalsha:")
	_, rest, _ = strings.Cut(rest, "usec=")
	text, _, _ := strings.Cut(rest, ",")
	return parseFloat(text)
}
