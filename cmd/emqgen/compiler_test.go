package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/echomq/emq/cmd/emqgen/internal/generate"
)

const declaration = `package jobs

//emq:queue mail timeout=30s attempts=5

// Send sends.
//
//emq:job
type Send struct {
	To string ` + "`json:\"to\"`" + `
}

// Count counts.
//
//emq:job result=int retain=1h
type Count struct{}
`

const handlers = `package jobs

import "context"

// H handles everything.
type H struct{}

// HandleSend sends.
func (H) HandleSend(context.Context, Send) error { return nil }

// HandleCount counts.
func (H) HandleCount(context.Context, Count) (int, error) { return 1, nil }

var _ = Bind(H{})
`

// TestTheCompilerFindsWhatDoesNotFit proves the promises that generated code makes: what is missing
// or out of step does not build. Each case is a package that was generated and then changed.
func TestTheCompilerFindsWhatDoesNotFit(t *testing.T) {
	cases := []struct {
		name          string
		before, after func(string) string // of the declaration, before and after generating
		handlers      func(string) string
		want          string // in the compiler's words; empty: it builds
	}{
		{name: "fits"},
		{
			name:   "job_added",
			before: func(s string) string { return s + "\n//emq:job\ntype Extra struct{}\n" },
			want:   "H does not implement Handler (missing method HandleExtra)",
		},
		{
			name: "result_of_another_type",
			handlers: func(s string) string {
				return strings.Replace(s, "(int, error) { return 1", `(string, error) { return ""`, 1)
			},
			want: "H does not implement Handler (wrong type for method HandleCount)",
		},
		{
			name:  "field_changed_after_generating",
			after: func(s string) string { return strings.Replace(s, "To string", "To []string", 1) },
			want:  "cannot convert Send{}",
		},
		{
			name:  "field_added_after_generating",
			after: func(s string) string { return strings.Replace(s, "To string", "Cc string\n\tTo string", 1) },
			want:  "cannot convert Send{}",
		},
		{
			name: "no_upgrade",
			before: func(s string) string {
				return strings.Replace(s, "//emq:job\n", "//emq:job version=2\n", 1) + "\n//emq:was Send version=1\ntype SendV1 struct{}\n"
			},
			want: "(type SendV1) does not satisfy emq.Upgrader[J] (missing method Upgrade)",
		},
		{
			name: "upgrade_to_another_after_generating",
			before: func(s string) string {
				return strings.Replace(s, "//emq:job\n", "//emq:job version=2\n", 1) +
					"\n//emq:was Send version=1\ntype SendV1 struct{}\n\nfunc (SendV1) Upgrade() (Send, error) { return Send{}, nil }\n"
			},
			after: func(s string) string {
				return strings.Replace(s, "(Send, error) { return Send{}", "(Count, error) { return Count{}", 1)
			},
			want: "emq.Upgrade[SendV1](1) does not match inferred type emq.Old[Send]",
		},
		{
			name:     "undeclared_payload",
			handlers: func(s string) string { return s + "\nvar _ = NewProducer(nil).EnqueueSend(nil, Count{})\n" },
			want:     "cannot use Count{}",
		},
	}
	dir := t.TempDir()
	moduleFor(t, dir, "example.com/compiler")
	apply := func(change func(string) string, s string) string {
		if change == nil {
			return s
		}
		return change(s)
	}
	declared := func(name string) string { return strings.Replace(declaration, "queue mail", "queue "+name, 1) }
	for _, c := range cases {
		pkg := filepath.Join(dir, c.name)
		write(t, filepath.Join(pkg, "handlers.go"), []byte(apply(c.handlers, handlers)))
		write(t, filepath.Join(pkg, "jobs.go"), []byte(apply(c.before, declared(c.name))))
	}
	generateAll(t, dir)
	for _, c := range cases {
		write(t, filepath.Join(dir, c.name, "jobs.go"), []byte(apply(c.after, apply(c.before, declared(c.name)))))
	}
	out := string(goCommand(t, dir, false, "build", "./..."))
	for _, c := range cases {
		_, said, failed := strings.Cut(out, "# example.com/compiler/"+c.name+"\n")
		said, _, _ = strings.Cut(said, "\n# ")
		if failed != (c.want != "") || !strings.Contains(said, c.want) {
			t.Errorf("%s: the compiler said\n%s\nwant %q", c.name, said, c.want)
		}
	}
}

// generateAll runs emqgen over a module.
func generateAll(t *testing.T, dir string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), callIn(dir, &stdout, &stderr), []string{"./..."}); code != 0 {
		t.Fatalf("emqgen: exit status %d\n%s", code, &stderr)
	}
}

// callIn is a call in a directory, for a runtime that serves every feature.
func callIn(dir string, stdout, stderr io.Writer) generate.Call {
	return generate.Call{Dir: dir, Env: goEnviron(), Stdout: stdout, Stderr: stderr}
}

func goEnviron() []string {
	return append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
}

// goCommand runs the go command and answers what it said.
func goCommand(t *testing.T, dir string, mustWork bool, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = goEnviron()
	out, err := cmd.CombinedOutput()
	if err != nil && mustWork {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TestTwoRunsAtOnceLeaveOneWholeFile runs emqgen from several goroutines on one package.
func TestTwoRunsAtOnceLeaveOneWholeFile(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), []byte("module example.com/twice\n\ngo 1.26\n"))
	write(t, filepath.Join(dir, "jobs.go"), []byte(declaration))
	codes := make(chan int)
	const runs = 6
	for range runs {
		go func() {
			var out bytes.Buffer
			codes <- run(context.Background(), callIn(dir, &out, &out), nil)
		}()
	}
	for range runs {
		if code := <-codes; code != 0 {
			t.Errorf("exit status %d", code)
		}
	}
	var out bytes.Buffer
	if code := run(context.Background(), callIn(dir, &out, &out), []string{"-check"}); code != 0 {
		t.Errorf("the file is not whole:\n%s", &out)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v %v", left, err)
	}
}
