package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testsOfTheTree are the names of all Go tests and fuzz tests of the repository.
func testsOfTheTree(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && (strings.HasPrefix(f.Name.Name, "Test") || strings.HasPrefix(f.Name.Name, "Fuzz")) {
				names[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil || len(names) < 100 {
		t.Fatal(len(names), err)
	}
	return names
}

// table is the first one behind a heading: the cells of each line, without the head.
func table(t *testing.T, file, heading string) (lines [][]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", file))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no heading %q", file, heading)
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			if len(lines) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		lines = append(lines, cells)
	}
	if len(lines) < 3 {
		t.Fatalf("%s: no table behind %q", file, heading)
	}
	return lines[2:]
}

var inCode = regexp.MustCompile("`([^`]+)`")

// What the docs name as the proof of a promise or of an experiment is there.
func TestWhatTheDocsNameAsProofExists(t *testing.T) {
	t.Parallel()
	known := testsOfTheTree(t)
	for _, d := range drills() {
		known[d.name] = true
	}
	for _, at := range []struct {
		file, heading string
		column, least int
	}{
		{"guarantees.md", "What shows each promise", 2, 15},
		{"drills.md", "The experiments", 2, 35},
	} {
		lines := table(t, at.file, at.heading)
		if len(lines) < at.least {
			t.Errorf("%s: %d lines, want %d", at.file, len(lines), at.least)
		}
		for _, cells := range lines {
			if len(cells) != 3 {
				t.Errorf("%s: a line of %d cells: %q", at.file, len(cells), cells)
				continue
			}
			names := inCode.FindAllStringSubmatch(cells[at.column], -1)
			if len(names) == 0 {
				t.Errorf("%s: nothing shows %q", at.file, cells[0])
			}
			for _, name := range names {
				if !known[name[1]] {
					t.Errorf("%s: there is no drill or test %q", at.file, name[1])
				}
			}
		}
	}
}

// Each drill has its line, and no line is of a drill that is gone.
func TestTheDocsListEachDrill(t *testing.T) {
	t.Parallel()
	listed := make(map[string]bool)
	for _, cells := range table(t, "drills.md", "What each shows") {
		listed[strings.Trim(cells[0], "`")] = true
	}
	have := make(map[string]bool)
	for _, d := range drills() {
		have[d.name] = true
	}
	if !maps.Equal(listed, have) {
		t.Errorf("listed %v, there are %v", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(have)))
	}
}
