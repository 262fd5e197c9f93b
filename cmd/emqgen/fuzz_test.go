package main

import (
	"bytes"
	"context"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzGenerate mutates whole source files. Whatever they hold: no panic; an error writes nothing;
// a success writes a file that parses, is formatted, and is up to date.
func FuzzGenerate(f *testing.F) {
	f.Add(declaration)
	f.Add("package p")
	f.Add("package p\n\n//emq:queue a timeout=1s attempts=1\n//emq:job\n")
	f.Add(strings.Replace(declaration, "string", "map[[2]T]chan<- struct{ A, B interface{ M() } }", 1))
	f.Add(strings.Replace(declaration, "type Count struct{}", "type Count struct{ Count; *Send; x.Y }", 1))
	f.Add(strings.Replace(declaration, "Count struct", "Count[T any] struct", 1))
	f.Add(strings.Replace(declaration, "To string", "To T[T[int]]", 1) + "\ntype T[P any] struct{ V *T[P]; W P }\n")
	f.Add(strings.Replace(declaration, "To string", "Send", 1))
	f.Add(strings.Replace(declaration, "To string", "A N; B *M[int]; C P; D string `emq:\"redact\"`", 1) + "\ntype N []N\ntype M[T any] map[string]M[T]\ntype P *P\n")
	f.Add(strings.Replace(declaration, "To string", "A [len(\"x\") << 40]struct{}; B [N]int; C [-1]int", 1) + "\nconst N = N\n")
	f.Add(declaration + "\ntype A = B\ntype B = A\n//emq:was A version=1\ntype C A\n")
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/fuzz\n\ngo 1.26\n"), 0o644); err != nil {
		f.Fatal(err)
	}
	output := filepath.Join(dir, "emq_gen.go")
	f.Fuzz(func(t *testing.T, src string) {
		if strings.Contains(src, "import") { // the search for modules is the go command's
			return
		}
		write(t, filepath.Join(dir, "jobs.go"), []byte(src))
		for _, name := range []string{"emq_gen.go", "emq.lock.json"} {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), callIn(dir, &stdout, &stderr), nil)
		got, err := os.ReadFile(output)
		if strings.Contains(stderr.String(), "EMQ009") {
			t.Fatalf("an internal error:\n%s", &stderr)
		}
		if code != 0 {
			if err == nil || stderr.Len() == 0 {
				t.Fatalf("exit status %d, the file is there: %v, and it said:\n%s", code, err == nil, &stderr)
			}
			return
		}
		if err != nil { // no jobs
			return
		}
		if _, err := parser.ParseFile(token.NewFileSet(), output, got, 0); err != nil {
			t.Fatalf("%v in\n%s", err, got)
		}
		if formatted, err := format.Source(got); err != nil || !bytes.Equal(formatted, got) {
			t.Fatalf("not formatted (%v):\n%s", err, got)
		}
		stdout.Reset()
		if code := run(context.Background(), callIn(dir, &stdout, &stderr), []string{"-check"}); code != 0 {
			t.Fatalf("-check: exit status %d\n%s%s", code, &stdout, &stderr)
		}
	})
}
