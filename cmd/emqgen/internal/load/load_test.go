package load

import (
	"context"
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/echomq/emq/cmd/emqgen/internal/directive"
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

func TestTheGoCommandSpeaksForItself(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/newer\n\ngo 1.999\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := List(context.Background(), Config{Dir: dir, Env: append(os.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=", "GOWORK=off"), Fset: token.NewFileSet()}, []string{"."})
	if err == nil || !strings.HasPrefix(err.Error(), "go: go.mod requires go >= 1.999") {
		t.Error(err)
	}
}

func TestFilesThatSpeakOfUsAreFound(t *testing.T) {
	want := map[string]bool{
		"//emq:job": true, "x int // Emq:job": true, "/* emq:job": true, "\t * emq:job": true, "\temq:job": true, "// see emq": true,
		"///emq:job": true, "//@emq:job": true, "//nolint //emq:job": true, "//eqm:job": true, "//echomq:job": true, "\t@emq:job": true, "EMQ : job": true,
		"//emg:job": true, "//em:job queue=a": true, "\t//enq:cron @daily\r": true, "//emqjob": true, "x int //emg:job": true, "// emg:job": false, "//rmq:queue a": false, "//emg:jobs": false, "//em:dash": false,
		"import \"github.com/echomq/emq\"": false, "\temq \"github.com/echomq/emq/runtime\"": false, "q := 1 // no": false, "emq.Bind(q)": false, "": false, "/": false,
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

// FuzzWhatIsReportedIsSeen holds the quick look at a file against the reading of its comments: what is
// a directive, or almost one, is never passed over.
func FuzzWhatIsReportedIsSeen(f *testing.F) {
	for _, comment := range []string{"//emq:job", "// emq :job", "//\u200bemq:job", "///emq:job", "//nolint:all //emq:job", "/*\n * @emq:job\n*/", "/* x\n//emq:job */", "//EQM:job", "//go:emq.job", "//emg:job", "var x int //mq:cron @daily", "///emg:job", "//emqjob queue=a"} {
		f.Add(comment)
	}
	f.Fuzz(func(t *testing.T, comment string) {
		src := "package p\n\n" + comment + "\n"
		file, err := parser.ParseFile(token.NewFileSet(), "p.go", src, parser.ParseComments)
		if err != nil {
			return
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				if _, ok, problems := directive.Parse(c.Text); (ok || len(problems) > 0) && !speaks(&File{Src: []byte(src)}) {
					t.Errorf("%q is passed over", src)
				}
			}
		}
	})
}

func TestPatternsMatchAsForTheGoCommand(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"./...", ".", true}, {"./...", "a/b", true}, {"./a/...", "a", true}, {"./a/...", "a/b", true}, {"./a/...", "ab", false}, {"./a...", "ab", true},
		{"./.../b", "a/b", true}, {"./.../b", "a/c", false}, {"example.com/m/...", "example.com/m", true}, {"example.com/m...", "example.com/m/x", true},
		{"./a.b/...", "axb", false}, {"../x/...", "../x/y", true},
	} {
		if got := matcher(c.pattern)(c.name); got != c.want {
			t.Errorf("%s matches %s: %v", c.pattern, c.name, got)
		}
	}
	for pattern, want := range map[string]string{"./...": "/m", "./a/...": "/m/a", "./a...": "/m", "../x/.../y": "/x", "/abs/...": "/abs", ".": "/m", "./a": "/m/a", "a/...": "", "all": ""} {
		if got, ok := localBase("/m", pattern); got != want || ok != (want != "") {
			t.Errorf("%s is below %q (%v), want %q", pattern, got, ok, want)
		}
	}
}
