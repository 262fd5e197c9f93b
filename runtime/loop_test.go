package emq

import (
	"testing"
	"time"
)

// What is held back between two lines stands in the next one.
func TestALineAMinuteCountsWhatItStandsFor(t *testing.T) {
	t.Parallel()
	var s sparse
	for i, want := range []int{2, 0, 0} {
		if got := s.count("a", 2); got != want {
			t.Errorf("call %d: %d, want %d", i, got, want)
		}
	}
	if !s.allow("b") || s.allow("b") {
		t.Error("another key has lines of its own, one a minute")
	}
	s.last["a"] = time.Now().Add(-time.Minute)
	if got := s.count("a", 1); got != 5 {
		t.Errorf("after a minute: %d, want 5", got)
	}
	s.last["a"] = time.Now().Add(-time.Minute)
	if got := s.count("a", 1); got != 1 {
		t.Errorf("after another: %d, want 1", got)
	}
}
