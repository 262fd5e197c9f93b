package scripts

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// undrawn are the scripts that the random histories do not draw, each with its reason.
var undrawn = map[string]string{"shards": "it changes no job, and nothing within a shard depends on it: TestShardsAreKeptByTheFirst"}

// missed gives the scripts that the server of s has never been sent.
func (s *target) missed() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.queue.scripts)) {
		there, err := s.do("SCRIPT", "EXISTS", s.queue.scripts[name].sha).AsIntSlice()
		check(err)
		if there[0] == 0 {
			names = append(names, name)
		}
	}
	return names
}

// drawsAll plays histories on a server of its own until every script has been drawn.
func drawsAll(t *testing.T, s *target) {
	var missed []string
	for range 5 { // histories are drawn anew
		rapid.Check(t, property(func() []*target { return []*target{s} }))
		missed = slices.DeleteFunc(s.missed(), func(name string) bool { return undrawn[name] != "" })
		if len(missed) == 0 || t.Failed() {
			break
		}
	}
	if len(missed) > 0 {
		t.Errorf("no history draws %s: add it to the actions, or to undrawn with a reason", strings.Join(missed, ", "))
	}
	for name := range undrawn {
		if s.queue.scripts[name] == nil || !slices.Contains(s.missed(), name) {
			t.Errorf("undrawn names %s, which is no script or is drawn", name)
		}
	}
}

// TestEverySharedPieceIsUsed: a piece that no script is composed of is drawn by no history either.
func TestEverySharedPieceIsUsed(t *testing.T) {
	files, err := sources.ReadDir("shared")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		piece, err := sources.ReadFile("shared/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		used := false
		for _, sc := range ownLibrary(t) {
			used = used || strings.Contains(sc.text, string(piece))
		}
		if !used {
			t.Errorf("shared/%s is part of no script", f.Name())
		}
	}
}
