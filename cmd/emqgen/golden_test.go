package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/echomq/emq/cmd/emqgen/internal/generate"
)

var update = flag.Bool("update", false, "rewrite the goldens and docs/generator.md from what emqgen says now")

const goldenDir = "../../testdata/emqgen"

// TestGoldens runs each archive of testdata/emqgen. In its script, emqgen must succeed, ! emqgen
// must exit with 2, and stale must exit with 1.
func TestGoldens(t *testing.T) {
	goEnv := goVariables(t)
	testscript.Run(t, testscript.Params{
		Dir:                 goldenDir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, goEnv...)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"emqgen": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg {
					runInScript(ts, 2, args)
					return
				}
				runInScript(ts, 0, args)
				if again := runTwice(ts, args); again != "" {
					ts.Fatalf("a second run changes something:\n%s", again)
				}
			},
			"stale": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg {
					ts.Fatalf("! stale means nothing")
				}
				runInScript(ts, 1, args)
			},
		},
	})
}

// goVariables are what the go command needs and testscript takes away.
func goVariables(t *testing.T) []string {
	t.Helper()
	var vars []string
	names := []string{"GOCACHE", "GOMODCACHE", "GOPATH"}
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, value := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		vars = append(vars, names[i]+"="+value)
	}
	return append(vars, "GOFLAGS=", "GOPROXY=off", "GOTOOLCHAIN=local", "GOWORK=")
}

// runInScript runs emqgen in this process, in the script's directory and environment. A run that
// fails must leave everything that it could write as it was.
func runInScript(ts *testscript.TestScript, want int, args []string) {
	before := written(ts)
	if code := runEmqgen(ts, args); code != want {
		ts.Fatalf("emqgen %s: exit status %d, want %d", strings.Join(args, " "), code, want)
	}
	if want != 0 {
		if diff := cmp.Diff(before, written(ts)); diff != "" {
			ts.Fatalf("a run that must not write has written (-before +after):\n%s", diff)
		}
	}
}

func runEmqgen(ts *testscript.TestScript, args []string) int {
	return run(context.Background(), scriptCall(ts, ts.Stdout(), ts.Stderr()), args)
}

// scriptCall is a call of a script.
func scriptCall(ts *testscript.TestScript, stdout, stderr io.Writer) generate.Call {
	return generate.Call{Dir: ts.MkAbs("."), Env: scriptEnv(ts), Stdout: stdout, Stderr: stderr}
}

// scriptEnv is the environment of a script, as far as the go command looks at it.
func scriptEnv(ts *testscript.TestScript) []string {
	env := os.Environ()
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN", "GOWORK", "GOOS", "GOARCH", "CGO_ENABLED", "HOME"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	return env
}

// runTwice runs a writing call again and says what it changed, which must be nothing, not even a time.
func runTwice(ts *testscript.TestScript, args []string) string {
	if slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }) {
		return ""
	}
	before := written(ts)
	var stdout, stderr bytes.Buffer
	if code := run(context.Background(), scriptCall(ts, &stdout, &stderr), args); code != 0 {
		return stderr.String()
	}
	return cmp.Diff(before, written(ts))
}

// written reads every file that emqgen may have written, with its time.
func written(ts *testscript.TestScript) map[string]string {
	files := map[string]string{}
	root := ts.Getenv("WORK")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "emq") && !strings.HasPrefix(d.Name(), ".emq") || strings.HasSuffix(d.Name(), ".want") {
			return err
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = info.ModTime().String() + "\n" + string(data)
		return err
	})
	ts.Check(err)
	return files
}

// TestGoldenOutputCompilesAndVets puts the packages of every good golden into one module and vets
// them at once: the generated code of each difficulty is accepted by the compiler and by go vet, and
// where a golden has a run_test.go, does what it says.
func TestGoldenOutputCompilesAndVets(t *testing.T) {
	dir := t.TempDir()
	count, tested := 0, []string(nil)
	for _, archive := range goldens(t) {
		if !compiles(archive.Archive) {
			continue
		}
		count++
		for _, f := range archive.Files {
			name := strings.TrimSuffix(f.Name, ".want")
			if !strings.HasSuffix(name, ".go") || name == f.Name && archive.has(f.Name+".want") {
				continue
			}
			write(t, filepath.Join(dir, archive.name, filepath.FromSlash(name)), f.Data)
			if path.Base(name) == "run_test.go" {
				tested = append(tested, "./"+path.Join(archive.name, path.Dir(name)))
			}
		}
	}
	if count < 20 {
		t.Fatalf("only %d goldens to compile", count)
	}
	moduleFor(t, dir, "example.com")
	goCommand(t, dir, true, "vet", "./...")
	goCommand(t, dir, true, append([]string{"test"}, tested...)...)
	fmtOut, err := exec.Command("gofmt", "-l", dir).CombinedOutput()
	for line := range strings.Lines(string(fmtOut)) {
		if strings.Contains(line, "emq_gen.go") {
			t.Errorf("not formatted: %s", line)
		}
	}
	if err != nil {
		t.Fatalf("gofmt: %v\n%s", err, fmtOut)
	}
	lint(t, dir)
}

// lint holds the generated files of a module against the rules for files that are written by hand: it
// takes the header away first, because generated files are let off most of them.
func lint(t *testing.T, dir string) {
	t.Helper()
	var generated []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "emq_gen.go" {
			return err
		}
		generated = append(generated, path)
		src, err := os.ReadFile(path)
		_, byHand, _ := bytes.Cut(src, []byte("\n"))
		write(t, path, byHand)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Abs("../../revive.toml")
	if err != nil {
		t.Fatal(err)
	}
	runLinter(t, dir, "honnef.co/go/tools/cmd/staticcheck", "-checks", "all,-ST1000", "-tests=false", "./...") // the package's doc is the user's
	runLinter(t, dir, "github.com/mgechev/revive", append([]string{"-config", config}, generated...)...)
}

// runLinter runs one of the pinned linters and reports what it finds in generated files.
func runLinter(t *testing.T, dir, pkg string, args ...string) {
	t.Helper()
	tool := filepath.Join(t.TempDir(), path.Base(pkg))
	build := exec.Command("go", "build", "-o", tool, pkg)
	build.Dir = "../../tools" // where its version is pinned
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(tool, args...)
	cmd.Dir, cmd.Env = dir, goEnviron()
	out, err := cmd.CombinedOutput()
	var findings *exec.ExitError
	if err != nil && !errors.As(err, &findings) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		ofTheUser := strings.Contains(line, ".go:") && !strings.Contains(line, "emq_gen.go") || strings.Contains(line, "Snake_Case")
		if !ofTheUser {
			t.Errorf("%s: %s", path.Base(pkg), line)
		}
	}
}

// moduleFor writes a go.mod that takes emq from this tree.
func moduleFor(t testing.TB, dir, path string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(mod), "\n")
	write(t, filepath.Join(dir, "go.mod"), []byte("module "+path+"\n"+rest+
		"\nrequire github.com/echomq/emq v0.0.0\n\nreplace github.com/echomq/emq => "+root+"\n"))
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "go.sum"), sum)
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

type golden struct {
	name string
	*txtar.Archive
}

func (g golden) has(name string) bool {
	return slices.ContainsFunc(g.Files, func(f txtar.File) bool { return f.Name == name })
}

func (g golden) file(name string) string {
	for _, f := range g.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func goldens(t *testing.T) []golden {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(goldenDir, "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var out []golden
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, golden{strings.TrimSuffix(filepath.Base(p), ".txtar"), a})
	}
	return out
}

// compiles says whether a golden is one module whose output is part of it. The few with several
// modules, or for another system, are left to their scripts.
func compiles(a *txtar.Archive) bool {
	mods, good := 0, false
	for _, f := range a.Files {
		if filepath.Base(f.Name) == "go.mod" {
			mods++
		}
		good = good || strings.HasSuffix(f.Name, "emq_gen.go.want")
	}
	return good && mods == 1 && !bytes.Contains(a.Comment, []byte("# not compiled: "))
}

// TestGoldensAreWhatTheyClaim keeps the collection honest: enough errors, each good one compared,
// each module named as the archive.
func TestGoldensAreWhatTheyClaim(t *testing.T) {
	bad := 0
	all := goldens(t)
	for _, g := range all {
		script := string(g.Comment)
		if strings.Contains(script, "! emqgen") {
			bad++
			if !g.has("stderr.want") {
				t.Errorf("%s: the errors are not compared", g.name)
			}
		}
		if mod := g.file("go.mod"); mod != "" && !strings.HasPrefix(mod, "module example.com/"+g.name+"\n") {
			t.Errorf("%s: its module is not example.com/%s", g.name, g.name)
		}
		if !strings.HasPrefix(script, "# ") {
			t.Errorf("%s: it does not begin with a sentence", g.name)
		}
	}
	if 100*bad < 45*len(all) {
		t.Errorf("only %d of %d goldens are errors", bad, len(all))
	}
}
