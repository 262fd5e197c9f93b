package load

import (
	"errors"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesOfPackagesAreGuessedFromTheirPaths(t *testing.T) {
	want := map[string]string{
		"time": "time", "net/http": "http", "example.com/m/v2": "m", "gopkg.in/yaml.v3": "yaml",
		"math/rand/v2": "rand", "v2": "v2", "example.com/go-yaml": "go-yaml",
	}
	got := map[string]string{}
	for path := range want {
		got[path] = guessName(path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPositionsOfTheGoCommandAreRead(t *testing.T) {
	want := map[string]token.Position{
		"":            {},
		"-":           {},
		"a/b.go:3:14": {Filename: "a/b.go", Line: 3, Column: 14},
		"a/b.go:3":    {Filename: "a/b.go", Line: 3},
		"a/b.go":      {Filename: "a/b.go"},
	}
	got := map[string]token.Position{}
	for s := range want {
		got[s] = position(s)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnOldBuildOfTheToolIsExplained(t *testing.T) {
	err := rebuildHint(errors.New("internal error in importing: export data version 4 is greater than maximum supported version 2"))
	if !strings.Contains(err.Error(), "rebuild it") {
		t.Error(err)
	}
	if other := errors.New("x"); rebuildHint(other) != other {
		t.Error("another error is not its business")
	}
}

func TestFilesThatSpeakOfUsAreFound(t *testing.T) {
	want := map[string]bool{
		"//emq:job": true, "x int // Emq:job": true, "/* emq:job": true, "\t * emq:job": true, "\temq:job": true,
		"import \"github.com/echomq/emq\"": false, "// see emq": false, "s := \"// emq\"": true, "": false, "/": false,
		"a /* b */ // emq": true, "http://emq": true,
	}
	got := map[string]bool{}
	for src := range want {
		got[src] = speaks(&File{Src: []byte(src)})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
