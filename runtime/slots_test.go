package emq

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever queues do with their slots: no limit is passed, and a free slot is never left alone beside the
// queue whose turn it is, if that waits.
func TestNoSlotIsLostAndNoWaitingQueueIsForgotten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := &slots{limit: rapid.IntRange(1, 6).Draw(t, "slots"), strict: rapid.Bool().Draw(t, "strict"), lends: true}
		for range rapid.IntRange(1, 4).Draw(t, "queues") {
			sh := s.join(s.portion(rapid.IntRange(1, 6).Draw(t, "limit"), rapid.IntRange(0, 4).Draw(t, "weight")))
			for range rapid.IntRange(0, 3).Draw(t, "further shards") {
				s.join(sh.portion)
			}
		}
		running := make(map[*share]int) // slots of jobs, and of a claim that is under way
		claiming := make(map[*share]int)
		lent := make(map[*share]int)     // of jobs whose settle is under way
		recalled := make(map[*share]int) // of those whose settle is sent again
		any := rapid.SampledFrom(s.shares)
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				if sh := any.Draw(t, "queue"); claiming[sh] == 0 {
					select {
					case <-sh.turn:
					default:
					}
					claiming[sh] = s.take(sh, 5)
				}
			},
			"a claim is answered": func(t *rapid.T) {
				sh := any.Draw(t, "queue")
				n := claiming[sh]
				if n == 0 {
					return
				}
				jobs := rapid.IntRange(0, n).Draw(t, "jobs")
				s.unused(sh, n-jobs)
				running[sh] += jobs
				claiming[sh] = 0
				if jobs < n {
					s.leave(sh)
				} else {
					claiming[sh] = s.take(sh, 5)
				}
			},
			"a job ends": func(t *rapid.T) {
				if sh := any.Draw(t, "queue"); running[sh] > 0 {
					running[sh]--
					s.free(sh, 1)
				}
			},
			"a handler returns": func(t *rapid.T) {
				if sh := any.Draw(t, "queue"); running[sh] > 0 && s.lend(sh) {
					running[sh]--
					lent[sh]++
				}
			},
			"a settle has its verdict": func(t *rapid.T) {
				if sh := any.Draw(t, "queue"); lent[sh] > 0 {
					lent[sh]--
					s.settled(sh)
				}
			},
			"a settle is sent again": func(t *rapid.T) {
				if sh := any.Draw(t, "queue"); lent[sh] > 0 {
					lent[sh]--
					recalled[sh]++
					s.recall(sh)
				}
			},
			"it has its verdict, too": func(t *rapid.T) {
				if sh := any.Draw(t, "queue"); recalled[sh] > 0 {
					recalled[sh]--
					s.free(sh, 1)
				}
			},
			"a queue stops": func(t *rapid.T) {
				if sh := any.Draw(t, "queue"); claiming[sh] == 0 {
					s.leave(sh)
				}
			},
			"": func(t *rapid.T) {
				held := 0
				taken, over, away := make(map[*portion]int), make(map[*portion]int), make(map[*portion]int)
				allOver, allAway := 0, 0
				for _, sh := range s.shares {
					taken[sh.portion] += sh.used
					over[sh.portion] += recalled[sh]
					away[sh.portion] += lent[sh]
					allOver, allAway = allOver+recalled[sh], allAway+lent[sh]
					if sh.used != running[sh]+claiming[sh]+recalled[sh] || sh.used > sh.limit+recalled[sh] {
						t.Fatalf("%+v: %d run, %d are claimed for, %d are settled again", sh, running[sh], claiming[sh], recalled[sh])
					}
				}
				for p, n := range taken {
					held += min(n, p.limit) // what a queue has recalled beyond its limit keeps nothing from the others
					if n != p.taken || n > p.limit+over[p] || away[p] != p.lent || p.lent > loans*p.limit {
						t.Fatalf("a queue of at most %d has %d slots, %d of them recalled, and lent %d: %+v", p.limit, n, over[p], away[p], p)
					}
				}
				if held != s.used || s.used > s.limit+allOver || allAway != s.lent || s.lent > loans*s.limit {
					t.Fatalf("%d of %d slots and %d lent, but %d by queue, %d recalled, and %d lent", s.used, s.limit, s.lent, held, allOver, allAway)
				}
				if sh := s.first(nil); s.used < s.limit && sh != nil && sh.waits && len(sh.turn) == 0 {
					t.Fatalf("a slot is free, and nobody tells the queue whose turn it is: %+v", sh)
				}
			},
		})
	})
}

func TestNoMoreSlotsAreLentThanThereAre(t *testing.T) {
	t.Parallel()
	s := &slots{limit: 3, lends: true}
	mail := s.join(s.portion(2, 1))
	export := s.join(s.portion(3, 1))
	lent := func(sh *share, most int) (n int) {
		for range most {
			if s.takeFree(sh, 1) != 1 {
				t.Fatal("nothing is free")
			}
			if s.lend(sh) {
				n++
			} else {
				s.free(sh, 1)
			}
		}
		return n
	}
	if got := []int{lent(mail, 9), lent(export, 9)}; got[0] != 4 || got[1] != 2 {
		t.Errorf("lent %v, want each of mail's own two slots twice, and each of the three in all", got)
	}
	for range 4 {
		s.recall(mail)
	}
	for range 2 {
		s.recall(export)
	}
	if s.used != 4 || s.lent != 0 {
		t.Errorf("mail keeps its two slots and exports two: %+v", s)
	}
	if n := s.take(export, 3); n != 0 || !export.waits {
		t.Errorf("%d are free: %+v", n, export)
	}
}

// The settles of one queue have no verdict: it holds what it may of the slots, and no more, whatever it had lent.
func TestAQueueThatCannotSettleLeavesTheOthersTheirSlots(t *testing.T) {
	t.Parallel()
	s := &slots{limit: 10, lends: true}
	mail, export := s.join(s.portion(4, 1)), s.join(s.portion(10, 1))
	for range 8 {
		s.takeFree(mail, 1)
		s.lend(mail)
	}
	s.takeFree(mail, 4)
	for range 8 {
		s.recall(mail)
	}
	if n := s.take(mail, 10); n != 0 {
		t.Errorf("a queue of 4 that holds 12 gets %d more", n)
	}
	if n := s.take(export, 10); n != 6 {
		t.Errorf("%d slots beside a queue that may have 4 of 10, want 6", n)
	}
	for left := range 12 {
		s.free(mail, 1)
		if want := 6 + min(11-left, 4); s.used != want {
			t.Errorf("%d are taken when mail holds %d, want %d", s.used, 11-left, want)
		}
	}
}

// Queues that always have work, and whose claims are answered in any order.
func TestShortSlotsAreSharedByWeight(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		strict  bool
		weights []int
		limits  []int
		want    []int // slots of 1000
	}{
		{"equal", false, []int{0, 1}, []int{9, 9}, []int{500, 500}},
		{"three to one", false, []int{3, 1}, []int{9, 9}, []int{750, 250}},
		{"three queues", false, []int{5, 3, 2}, []int{9, 9, 9}, []int{500, 300, 200}},
		{"strict", true, []int{1, 5, 2}, []int{9, 9, 9}, []int{0, 1000, 0}},
		{"strict of equals", true, []int{5, 5, 2}, []int{9, 9, 9}, []int{500, 500, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &slots{limit: 4, strict: c.strict}
			for i, w := range c.weights {
				s.join(s.portion(c.limits[i], w))
			}
			got := make([]int, len(s.shares))
			var held []*share // in the order in which their jobs end
			total := 0
			for step := 0; total < 1000; step++ {
				sh := s.shares[step%len(s.shares)]
				for range s.take(sh, 2) {
					total++
					for i := range s.shares {
						if s.shares[i] == sh {
							got[i]++
						}
					}
					held = append(held, sh)
				}
				if len(held) > 0 {
					s.free(held[0], 1)
					held = held[1:]
				}
			}
			for i, want := range c.want {
				if d := got[i] - want; d < -10 || d > 10 {
					t.Errorf("the queues got %v, want %v", got, c.want)
				}
			}
		})
	}
}

// A queue with many shards gets no more than its share beside one without, and its shards get the same.
func TestShardsShareTheSlotsOfTheirQueue(t *testing.T) {
	t.Parallel()
	s := &slots{limit: 8}
	s.join(s.portion(8, 1))
	spread := s.join(s.portion(8, 1))
	s.join(spread.portion)
	s.join(spread.portion)
	got := make([]int, len(s.shares))
	var held []*share // in the order in which their jobs end
	for step, total := 0, 0; total < 6000; step++ {
		i := step % len(s.shares)
		n := s.take(s.shares[i], 4)
		got[i] += n
		total += n
		for range n {
			held = append(held, s.shares[i])
		}
		if len(held) > 0 {
			s.free(held[0], 1)
			held = held[1:]
		}
	}
	for i, want := range []int{3000, 1000, 1000, 1000} {
		if d := got[i] - want; d < -30 || d > 30 {
			t.Errorf("the queue without shards and the three shards got %v", got)
		}
	}
}
