// Package diag holds what emqgen reports: one line for each fault, with its place, its code, what is
// wrong, and what to do about it.
package diag

import (
	"cmp"
	"fmt"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strings"
)

// Diagnostic is one report.
type Diagnostic struct {
	Pos     token.Position
	Code    Code
	Text    string
	Hint    string   // what to do; "did you mean …" goes into parentheses
	More    []string // further lines, indented below
	Warning bool     // reported, but no reason to stop
}

// List collects the reports of a run.
type List struct{ all []Diagnostic }

// Add takes reports.
func (l *List) Add(d ...Diagnostic) { l.all = append(l.all, d...) }

// Errorf takes an error.
func (l *List) Errorf(pos token.Position, code Code, hint, format string, args ...any) {
	l.Add(Diagnostic{Pos: pos, Code: code, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// Warnf takes a warning.
func (l *List) Warnf(pos token.Position, code Code, hint, format string, args ...any) {
	l.Add(Diagnostic{Pos: pos, Code: code, Text: fmt.Sprintf(format, args...), Hint: hint, Warning: true})
}

// Failed says whether there is an error among the reports.
func (l *List) Failed() bool {
	return slices.ContainsFunc(l.all, func(d Diagnostic) bool { return !d.Warning })
}

// Sorted gives the reports by place, then code and text, each once.
func (l *List) Sorted() []Diagnostic {
	sorted := slices.Clone(l.all)
	slices.SortStableFunc(sorted, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Pos.Filename, b.Pos.Filename),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Text, b.Text),
		)
	})
	return slices.CompactFunc(sorted, func(a, b Diagnostic) bool {
		return a.Pos == b.Pos && a.Code == b.Code && a.Text == b.Text
	})
}

// Print writes the reports, with file names relative to dir.
func (l *List) Print(w io.Writer, dir string) error {
	for _, d := range l.Sorted() {
		if _, err := io.WriteString(w, d.Format(dir)); err != nil {
			return err
		}
	}
	return nil
}

// Format is the report as text, with its line ends.
func (d Diagnostic) Format(dir string) string {
	var b strings.Builder
	if d.Pos.Filename != "" {
		b.WriteString(Place(d.Pos, dir))
		b.WriteString(": ")
	}
	b.WriteString(d.Code.String())
	b.WriteString(": ")
	if d.Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(d.Text)
	switch {
	case d.Hint == "":
	case strings.HasPrefix(d.Hint, "did you mean"):
		b.WriteString(" (" + d.Hint + ")")
	default:
		b.WriteString(". " + sentence(d.Hint))
	}
	b.WriteByte('\n')
	for _, line := range d.More {
		b.WriteString("\t" + line + "\n")
	}
	return b.String()
}

// sentence begins a hint with a capital, unless it begins with an option.
func sentence(hint string) string {
	if first, _, _ := strings.Cut(hint, " "); strings.Contains(first, "=") {
		return hint
	}
	return strings.ToUpper(hint[:1]) + hint[1:]
}

// Place is a position as file:line:column, relative to dir where it lies below it.
func Place(p token.Position, dir string) string {
	name := p.Filename
	if rel, err := filepath.Rel(dir, name); err == nil && filepath.IsLocal(rel) {
		name = rel
	}
	name = filepath.ToSlash(name)
	if p.Line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, p.Line, p.Column)
}
