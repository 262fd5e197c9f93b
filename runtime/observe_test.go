package emq_test

import (
	"context"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// An observer is told how many leases the pump has taken back.
func TestReapedLeasesAreCounted(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		words := []string{"ZADD", "emq:{chores}:active"}
		for n := range 3 {
			words = append(words, "1", string(put(t, s, chore{N: n}).ID))
		}
		claims(t, s.hands(t), 3)
		s.do(t, words...)
		seen := new(sightings)
		run(t, s.Client, emq.WorkerConfig{Observer: seen, Lease: time.Second}, emq.Handle(func(context.Context, chore) error { return nil }))
		eventually(t, "three leases were told", func() bool { return seen.of(emq.EventReaped) == 3 })
		if c := s.counts(t, "chores"); c.Totals["reaped"] != 3 {
			t.Errorf("%+v", c)
		}
	})
}
