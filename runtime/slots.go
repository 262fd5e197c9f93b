package emq

import "sync"

// slots are the jobs that a process may run at once. While they are short, each free one goes to the queue
// whose turn it is: by virtual time, which moves on by 1/weight for each slot that a queue got, or with
// strict order to the highest weight. Only queues that want one take part. The shards of one queue share its
// portion.
type slots struct {
	limit  int
	strict bool
	lends  bool // slots of runs that only wait for the verdict on their settle

	mu     sync.Mutex
	used   int
	lent   int     // of all portions, and not in used
	at     float64 // the virtual time that was served last
	shares []*share
}

// portion is one queue's part in the slots, over all its shards. Its fields are the slots' to guard.
type portion struct {
	limit  int // of the queue's own
	weight int
	shards int
	taken  int
	lent   int     // slots of runs whose settle is under way; they are not in taken
	next   float64 // virtual time of its next slot
	served float64 // the turn of the shard that was served last
}

// share is what one shard of a queue has of its portion.
type share struct {
	*portion
	used int
	at   float64 // its turn among the shards of the queue: how many slots it has had
	// wants is set while the queue may have work: it waits for a slot, or its claim is under way and the
	// one before found as much as it asked for. For so long nobody takes a slot whose turn is this one's.
	wants bool
	waits bool
	turn  chan struct{} // there may be a slot for it now
}

// portion is that of one queue, which its shards join.
func (s *slots) portion(limit, weight int) *portion {
	return &portion{limit: min(limit, s.limit), weight: max(weight, 1)}
}

// join adds a shard to a queue's portion.
func (s *slots) join(p *portion) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.shards++
	sh := &share{portion: p, turn: make(chan struct{}, 1)}
	sh.wants = true // nobody knows yet: the first slots are shared by all
	s.shares = append(s.shares, sh)
	return sh
}

// take takes the free slots that are the queue's, most of them at most. If it answers 0 the queue waits
// until a signal on its turn.
func (s *slots) take(sh *share, most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !sh.wants { // it comes back, and has no claim to the time that it was away
		if !s.wanted(sh.portion) {
			sh.next = max(sh.next, s.at)
		}
		sh.wants, sh.at = true, max(sh.at, sh.served)
	}
	n := 0
	for n < most && s.used < s.limit && sh.taken < sh.limit && s.mayTake(sh, n) {
		n++
		s.count(sh, 1)
		s.at = max(s.at, sh.next)
		sh.served = max(sh.served, sh.at)
		sh.next += 1 / float64(sh.weight)
		sh.at++
	}
	sh.waits = n == 0
	s.signal()
	return n
}

// mayTake tells whether it is the share's turn, which has just taken n slots. Shards of one queue take turns by
// the fair part of its slots, not by single ones: else a claim would be a call for one job.
func (s *slots) mayTake(sh *share, n int) bool {
	rival := s.first(sh)
	if rival == nil || !s.before(rival, sh) {
		return true
	}
	return rival.portion == sh.portion && n > 0 && n < sh.limit/sh.shards
}

// wanted tells whether any shard of a queue wants slots.
func (s *slots) wanted(p *portion) bool {
	for _, sh := range s.shares {
		if sh.portion == p && sh.wants {
			return true
		}
	}
	return false
}

// count books n slots, or gives back -n. What a queue holds beyond its own limit, recalled, is its own affair: it keeps no
// slot from the others.
func (s *slots) count(sh *share, n int) {
	s.used -= min(sh.taken, sh.limit)
	sh.taken += n
	sh.used += n
	s.used += min(sh.taken, sh.limit)
}

// takeFree takes free slots without a turn, for one who asks for all queues in turn.
func (s *slots) takeFree(sh *share, most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(most, s.limit-s.used, sh.limit-sh.taken)
	s.count(sh, n)
	return n
}

// free gives back slots whose jobs have ended.
func (s *slots) free(sh *share, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(sh, -n)
	s.signal()
}

// loans are how many each slot may be lent for at once.
const loans = 2

// lend gives the slot of a run away whose handler has returned and whose settle is about to be sent, so that the
// next claim need not wait for the verdict; at most twice as many as there are, since those of the last claim may
// still be on their way when those of the next return. It answers whether it did.
func (s *slots) lend(sh *share) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lends || s.lent >= loans*s.limit || sh.lent >= loans*sh.limit {
		return false
	}
	s.loan(sh, 1)
	s.count(sh, -1)
	s.signal()
	return true
}

// loan books n loans, or the end of -n.
func (s *slots) loan(sh *share, n int) {
	s.lent += n
	sh.lent += n
}

// settled ends a loan: the settle has its verdict.
func (s *slots) settled(sh *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loan(sh, -1)
}

// recall ends a loan whose settle has to be sent again: the run holds a slot of its queue from now on, though there may
// be none.
func (s *slots) recall(sh *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loan(sh, -1)
	s.count(sh, 1)
	s.signal() // the queue may be at its own limit now, and the turn another one's
}

// unused gives back slots for which there was no job: they cost the queue no turn.
func (s *slots) unused(sh *share, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(sh, -n)
	sh.next -= float64(n) / float64(sh.weight)
	sh.at -= float64(n)
	s.signal()
}

// leave says that the queue wants nothing for now.
func (s *slots) leave(sh *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sh.wants, sh.waits = false, false
	s.signal()
}

// before tells whether it is a's turn and not b's.
func (s *slots) before(a, b *share) bool {
	if s.strict && a.weight != b.weight {
		return a.weight > b.weight
	}
	if a.portion != b.portion {
		return a.next < b.next
	}
	return a.at < b.at
}

// first is the share that comes first of those that want a slot and may have one, beside one of them; of
// equal ones one that waits.
func (s *slots) first(beside *share) (first *share) {
	for _, sh := range s.shares {
		if sh == beside || !sh.wants || sh.taken >= sh.limit {
			continue
		}
		if first == nil || s.before(sh, first) || sh.waits && !first.waits && !s.before(first, sh) {
			first = sh
		}
	}
	return first
}

// signal wakes the queue whose turn it is, if it waits; when its claim is under way it will come by itself.
func (s *slots) signal() {
	if s.used >= s.limit {
		return
	}
	if sh := s.first(nil); sh != nil && sh.waits {
		signalOne(sh.turn)
	}
}
