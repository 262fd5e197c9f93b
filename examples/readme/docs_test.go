package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	emq "github.com/echomq/emq/runtime"
)

// TestTheCodeInTheDocsIsCodeThatRuns finds every Go block of the README and of docs/ in a file of this
// folder, which the tests compile and run. docs/generator.md is kept by the generator's own tests.
func TestTheCodeInTheDocsIsCodeThatRuns(t *testing.T) {
	code := make(map[string]string)
	for _, pattern := range []string{"*.go", "mail/*.go", "exports/*.go", "search/*.go", "reports/*.go", "billing/*.go"} {
		for _, file := range match(t, pattern) {
			code[file] = "\n" + normalised(read(t, file))
		}
	}
	blocks := 0
	for _, page := range append(match(t, "../../docs/*.md"), "../../README.md") {
		if filepath.Base(page) == "generator.md" {
			continue
		}
		for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(read(t, page), -1) {
			blocks++
			want, found := "\n"+normalised(m[1]), false
			for _, text := range code {
				found = found || strings.Contains(text, want)
			}
			if !found {
				t.Errorf("%s: no file of this folder holds\n%s", page, m[1])
			}
		}
	}
	if blocks < 5 {
		t.Errorf("only %d blocks: are they still marked as go?", blocks)
	}
}

// TestLinksOfTheDocsLeadSomewhere follows every relative link.
func TestLinksOfTheDocsLeadSomewhere(t *testing.T) {
	for _, page := range append(match(t, "../../docs/*.md"), match(t, "../../*.md")...) {
		for _, m := range regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`).FindAllStringSubmatch(read(t, page), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// normalised leaves out what a page and a file may differ in: indentation, empty lines, the module of the
// reader's own packages, and the line that calls the generator, which in this module stands in generate.go.
func normalised(text string) string {
	text = strings.ReplaceAll(text, `"github.com/echomq/emq/examples/readme/`, `"example.com/shop/`)
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//go:generate") {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

func match(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	return files
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestTheErrorsOfTheREADMEAreWhatIsSaid makes the three mistakes of the first screen.
func TestTheErrorsOfTheREADMEAreWhatIsSaid(t *testing.T) {
	page := strings.Join(strings.Fields(read(t, "../../README.md")), " ")
	said := func(output, from, to string) {
		t.Helper()
		text := strings.Join(strings.Fields(output), " ")
		i := strings.Index(text, from)
		if i < 0 {
			t.Fatalf("%q is not in %s", from, output)
		}
		text, _, _ = strings.Cut(text[i:], to)
		if text += to; !strings.Contains(page, text) {
			t.Errorf("the README does not have %s", text)
		}
	}

	dir := t.TempDir()
	emqgen := filepath.Join(dir, "emqgen")
	if out, err := exec.Command("go", "build", "-o", emqgen, "../../cmd/emqgen").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	declared := regexp.MustCompile("(?s)```go\n(package mail\n.*?)```").FindStringSubmatch(read(t, "../../README.md"))[1]
	generate := func(old, new string) string {
		t.Helper()
		write(t, filepath.Join(dir, "mail.go"), strings.Replace(declared, old, new, 1))
		cmd := exec.Command(emqgen)
		cmd.Dir = dir
		out, _ := cmd.CombinedOutput() // that it fails is the point
		return string(out)
	}
	write(t, filepath.Join(dir, "go.mod"), "module example.com/mail\n\ngo 1.26\n")
	if out := generate("", ""); out != "" {
		t.Fatal(out)
	}
	said(generate("attempts=", "atempts="), "mail.go:", "(did you mean attempts?)")
	said(generate(`json:"email"`, `json:"mail"`), "mail.go:12:2:", "and keep the old struct")

	// the compiler's word for a handler that lacks a job
	const forgetful = "package main\n\nimport \"github.com/echomq/emq/examples/readme/mail\"\n\ntype mailer struct{}\n\nfunc main() { mail.Bind(&mailer{}) }\n"
	file := filepath.Join(dir, "forgetful.go")
	write(t, file, forgetful)
	out, _ := exec.Command("go", "vet", file).CombinedOutput() // that it fails is the point
	said(string(out), "*mailer does not implement", "HandleWelcome)")
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEveryVerbIsInTheREADME: the table of verbs has a line with an example for each method of a queue.
func TestEveryVerbIsInTheREADME(t *testing.T) {
	page := read(t, "../../README.md")
	verbs := reflect.TypeFor[*emq.Queue]()
	for i := range verbs.NumMethod() {
		name := verbs.Method(i).Name
		line := regexp.MustCompile("(?m)^\\| `" + name + "` \\| [^|]+ \\| `[^|]*q\\." + name + "\\(ctx[^|]*` \\|$")
		if !line.MatchString(page) {
			t.Errorf("the table has no line for %s", name)
		}
	}
}
