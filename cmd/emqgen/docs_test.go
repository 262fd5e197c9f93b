package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/echomq/emq/cmd/emqgen/internal/declare"
	"github.com/echomq/emq/cmd/emqgen/internal/diag"
)

const (
	docsPath  = "../../docs/generator.md"
	docsBegin = "<!-- What follows is written by go test ./cmd/emqgen -run Docs -update from the goldens. -->\n"
	docsEnd   = "<!-- The end of what is written. -->\n"
)

// TestDocsListEveryError keeps docs/generator.md in step: each code with an example from the goldens.
func TestDocsListEveryError(t *testing.T) {
	page, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), docsBegin)
	_, after, ok2 := strings.Cut(rest, docsEnd)
	if !ok || !ok2 {
		t.Fatal("the page has lost its marks")
	}
	want := before + docsBegin + "\n" + errorDocs(t) + docsEnd + after
	if *update {
		write(t, docsPath, []byte(want))
		return
	}
	if diff := cmp.Diff(string(page), want); diff != "" {
		t.Errorf("run go test ./cmd/emqgen -run Docs -update (-page +wanted):\n%s", diff)
	}
}

// TestDocsNameEveryOption finds each directive and option in the page's tables.
func TestDocsNameEveryOption(t *testing.T) {
	page, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	for directive, options := range declare.Options() {
		for _, option := range options {
			row := regexp.MustCompile(`(?m)^\| .*` + directive + `.* \| ` + "`" + option + "=")
			if !row.Match(page) {
				t.Errorf("the page does not have %s= of //emq:%s", option, directive)
			}
		}
	}
}

// errorDocs is the list of errors.
func errorDocs(t *testing.T) string {
	t.Helper()
	all := goldens(t)
	var b strings.Builder
	for _, e := range diag.Explanations() {
		fmt.Fprintf(&b, "### %s: %s\n\n", e.Code, e.Title)
		source, message := example(all, e.Code)
		switch {
		case message != "":
			if source != "" {
				fmt.Fprintf(&b, "```go\n%s```\n", source)
			}
			fmt.Fprintf(&b, "```text\n%s```\n", message)
		case e.Code != diag.Write && e.Code != diag.Internal: // they need a full disk, or a fault
			t.Errorf("no golden has %s", e.Code)
		}
		fmt.Fprintf(&b, "%s\n\n", e.Remedy)
	}
	return b.String()
}

var place = regexp.MustCompile(`^([^:\n]+\.go):(\d+):\d+: `)

// attached is a directive that is about the type below it.
var attached = regexp.MustCompile(`^\s*//[ ]?emq:(job|was|cron)`)

// example is the first message with a code in the goldens, and the lines of source that it is about.
func example(all []golden, code diag.Code) (source, message string) {
	for _, g := range all {
		lines := strings.SplitAfter(g.file("stderr.want"), "\n")
		for i, line := range lines {
			if !strings.Contains(line, code.String()+": ") {
				continue
			}
			message = line
			for _, more := range lines[i+1:] {
				if !strings.HasPrefix(more, "\t") {
					break
				}
				message += more
			}
			if m := place.FindStringSubmatch(line); m != nil {
				source = excerpt(g.file(m[1]), m[2])
			}
			return source, message
		}
	}
	return "", ""
}

// excerpt is a line of a file; a directive brings the rest of its comment and the type with it.
func excerpt(file, number string) string {
	n, err := strconv.Atoi(number)
	lines := strings.SplitAfter(file, "\n")
	if err != nil || n > len(lines) {
		return ""
	}
	out := lines[n-1]
	for i := n; attached.MatchString(lines[n-1]) && strings.HasPrefix(strings.TrimSpace(lines[i-1]), "//") && i < len(lines) && strings.TrimSpace(lines[i]) != ""; i++ {
		out += lines[i]
		if !strings.HasPrefix(strings.TrimSpace(lines[i]), "//") {
			break
		}
	}
	return out
}
