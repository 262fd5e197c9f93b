package scripts

import (
	"context"
	"testing"

	"pgregory.net/rapid"
)

// newScenes begins a scene on each queue of one server; each knows the others.
func newScenes(queues []*target) []*scene {
	var all []*scene
	for _, q := range queues {
		all = append(all, newScene(q))
	}
	for i, s := range all {
		for j, b := range all {
			if i != j {
				s.beside = append(s.beside, b)
				b.clock = s.clock
			}
		}
	}
	return all
}

// withNeighbours adds to a queue another one of its deployment, and one of the same name under another prefix.
func (s *target) withNeighbours(prefix string) []*target {
	of := func(prefix, name string) *target {
		server := &Server{client: s.client, prefix: prefix, scripts: s.queue.scripts, direct: newDirect()}
		return &target{client: s.client, queue: server.Queue(name), mini: s.mini, clock: s.clock}
	}
	return []*target{s, of(s.queue.prefix, "other"), of(prefix, testQueue)}
}

func TestRandomHistoriesOfSeveralQueues(t *testing.T) {
	for _, on := range targets[:2] {
		t.Run(on.name, func(t *testing.T) {
			checks(t, "20")
			s := on.open(t, ownLibrary(t))
			queues := s.withNeighbours(s.queue.prefix + "blue")
			rapid.Check(t, property(func() []*target { return queues }))
		})
	}
}

// foreign writes a key that is not of the queue.
type foreign struct{ key string }

func (f foreign) call(_ context.Context, s *target) answer {
	s.must("HSET", f.key, "paused", "1")
	return answer{}
}

func (foreign) expect(*model, stamp) answer { return answer{} }

func TestAStepThatTouchesAnotherQueueIsSeen(t *testing.T) {
	s := onMini(t, ownLibrary(t))
	for i, other := range s.withNeighbours(s.queue.prefix + "blue")[1:] {
		scenes := newScenes(s.withNeighbours(s.queue.prefix + "blue"))
		scenes[i+1].do(setMeta("concurrency", "1"))
		seen := func() (seen bool) {
			defer func() { _, seen = recover().(failure) }()
			scenes[0].do(foreign{other.key("meta")})
			return false
		}()
		if !seen {
			t.Errorf("nothing tells that %s was written", other.key("meta"))
		}
	}
}
