package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// manyJobs declares 30 jobs, of which some are wrong, in the given order and over several files.
func manyJobs(t *testing.T, order []int, wrong bool) string {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/stable\n\ngo 1.26\n"))
	write(t, filepath.Join(dir, "doc.go"), []byte("package p\n\n//emq:queue b timeout=1s attempts=1\n//emq:queue a timeout=1s attempts=1\n"))
	files := map[int]*strings.Builder{}
	for at, n := range order {
		b := files[at%3]
		if b == nil {
			b = &strings.Builder{}
			b.WriteString("package p\n\nimport \"time\"\n\nvar _ time.Time\n")
			files[at%3] = b
		}
		typ := "time.Time"
		if wrong && n%4 == 0 {
			typ = "map[bool]func()"
		}
		fmt.Fprintf(b, "\n//emq:job queue=%c\ntype J%d struct {\n\tA %s `json:\"a\"`\n}\n", 'a'+rune(n%2), n, typ)
	}
	for i, b := range files {
		write(t, filepath.Join(dir, fmt.Sprintf("f%d.go", i)), []byte(b.String()))
	}
	return dir
}

func TestTheOrderOfDeclarationsCarriesNoMeaning(t *testing.T) {
	var outputs []string
	order := make([]int, 30)
	for i := range order {
		order[i] = i
	}
	for range 2 {
		dir := manyJobs(t, order, false)
		var out bytes.Buffer
		if code := run(context.Background(), callIn(dir, &out, &out), nil); code != 0 {
			t.Fatalf("exit status %d\n%s", code, &out)
		}
		for _, name := range []string{"emq_gen.go", "emq.lock.json"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			outputs = append(outputs, string(data))
		}
		slices.Reverse(order)
	}
	if diff := cmp.Diff(outputs[:2], outputs[2:]); diff != "" {
		t.Errorf("(-in order +reversed):\n%s", diff)
	}
}

func TestTheSameErrorsComeInTheSameOrder(t *testing.T) {
	order := make([]int, 30)
	for i := range order {
		order[i] = (i * 7) % 30
	}
	dir := manyJobs(t, order, true)
	first := ""
	for range 20 {
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), callIn(dir, &stdout, &stderr), nil); code != 2 {
			t.Fatalf("exit status %d\n%s", code, &stderr)
		}
		if first == "" {
			first = stderr.String()
		}
		if diff := cmp.Diff(first, stderr.String()); diff != "" {
			t.Fatalf("(-first +this):\n%s", diff)
		}
	}
	if n := strings.Count(first, "EMQ040"); n != 16 {
		t.Errorf("%d errors, want two for each of 8 wrong jobs:\n%s", n, first)
	}
}

// TestAFileCutInItsHeaderIsReplaced cuts the generated file behind each byte of its first line.
func TestAFileCutInItsHeaderIsReplaced(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/cut\n\ngo 1.26\n"))
	write(t, filepath.Join(dir, "jobs.go"), []byte(declaration))
	generateAll(t, dir)
	output := filepath.Join(dir, "emq_gen.go")
	whole, err := os.ReadFile(output)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range bytes.IndexByte(whole, '\n') {
		if cut%7 != 0 { // each cut takes a run
			continue
		}
		write(t, output, whole[:cut])
		generateAll(t, dir)
		if got, err := os.ReadFile(output); err != nil || !bytes.Equal(got, whole) {
			t.Errorf("cut behind %d bytes: %v\n%s", cut, err, got)
		}
	}
}
