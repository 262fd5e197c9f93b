// Package load finds packages, parses their files, and gets the types of what payloads name. It is
// the only room that knows go/packages.
//
// It works in two phases, because the usual single load needs a package that compiles, and ours do
// not before their first generated file: List asks the go command for file names only and parses
// them without our own output; Check then fetches types for just the imports that payloads name and
// ignores function bodies. So a generated file that is missing, stale or broken does no harm, and
// heavy imports that only handlers use are never loaded.
package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// Output is the name of the generated file, which is never an input.
const Output = "emq_gen.go"

// Config says where and how to look.
type Config struct {
	Dir string   // of the call
	Env []string // of the go command
	// Fset holds the positions of all packages, also of those whose types come from export data.
	Fset *token.FileSet
}

// Package is one package with its parsed files.
type Package struct {
	Path, Name, Dir string
	Module          string // the path of its module; empty outside any
	Root            string // directory to ask for its imports: its module's, or its own
	Fset            *token.FileSet
	Files           []*File // built here; our own output is left out
	Excluded        []*File // not built here, but with something like a directive in them
	Others          []*File // not built here either, whatever is in them: what they declare is taken
	Tests           []*File // test files, as far as they parse
	Types           *types.Package
	TypeErrors      []types.Error
}

// File is one parsed file.
type File struct {
	Path string
	Src  []byte
	AST  *ast.File
}

// Fault is an error with a place, as the go command or the parser states it.
type Fault struct {
	Pos      token.Position
	Syntax   bool
	InTheWay bool // of the output
	Text     string
}

// List finds the packages of the patterns and parses those that hold something like a directive, or
// a generated file of ours. A package with a fault is not among the result.
func List(ctx context.Context, cfg Config, patterns []string) ([]*Package, []Fault, error) {
	local := survey(cfg, patterns)
	if blocked := local.blocked(); len(blocked) > 0 {
		return nil, blocked, nil
	}
	found, err := packages.Load(&packages.Config{
		Context: ctx, Dir: cfg.Dir, Env: cfg.Env, Fset: cfg.Fset,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedModule,
	}, patterns...)
	if err != nil {
		return nil, nil, fmt.Errorf("%s", plainError(err))
	}
	found = append(found, local.unlisted(patterns, found)...)
	if len(found) == 0 {
		return nil, nil, fmt.Errorf("%s matched no packages", strings.Join(patterns, " "))
	}
	slices.SortFunc(found, func(a, b *packages.Package) int { return cmp.Compare(a.PkgPath, b.PkgPath) })
	var out []*Package
	var faults []Fault
	files := 0
	for _, p := range found {
		files += len(p.GoFiles) + len(p.IgnoredFiles)
		if len(p.GoFiles) == 0 && len(p.IgnoredFiles) == 0 && (len(p.Errors) > 0 || p.Dir == "") {
			faults = append(faults, listFaults(p)...)
			continue
		}
		pkg, bad, err := parsePackage(cfg, p)
		if err != nil {
			return nil, nil, err
		}
		faults = append(faults, bad...)
		if pkg != nil {
			out = append(out, pkg)
		}
	}
	if files == 0 && len(faults) == 0 && len(out) == 0 {
		return nil, nil, fmt.Errorf("%s matched only packages without Go files", strings.Join(patterns, " "))
	}
	return out, faults, nil
}

// plainError is what the go command has said, without how it was called.
func plainError(err error) string {
	return strings.TrimSpace(calledBy.ReplaceAllString(err.Error(), ""))
}

var calledBy = regexp.MustCompile(`^err: exit status \d+: stderr: `)

// listFaults are the go command's reasons for a package without files.
func listFaults(p *packages.Package) (faults []Fault) {
	for _, e := range p.Errors {
		faults = append(faults, Fault{Pos: position(e.Pos), Text: strings.TrimSpace(e.Msg)})
	}
	return faults
}

// position reads "file:line:col" as far as it goes.
func position(s string) token.Position {
	var p token.Position
	if s == "" || s == "-" {
		return p
	}
	name, rest, _ := strings.Cut(s, ":")
	p.Filename = name
	if _, err := fmt.Sscanf(rest, "%d:%d", &p.Line, &p.Column); err != nil && p.Line == 0 {
		p.Filename = s
	}
	return p
}

// parsePackage reads the files of one package. It answers nil for a package that has nothing of ours.
func parsePackage(cfg Config, p *packages.Package) (*Package, []Fault, error) {
	pkg := newPackage(cfg, p)
	built, ours, err := readAll(p.GoFiles)
	if err != nil {
		return nil, nil, err
	}
	isTest := func(path string) bool { return strings.HasSuffix(path, "_test.go") }
	excluded, oursExcluded, err := readAll(slices.DeleteFunc(slices.Clone(p.IgnoredFiles), isTest))
	if err != nil {
		return nil, nil, err
	}
	tests, err := readTests(pkg.Dir)
	if err != nil {
		return nil, nil, err
	}
	if !ours && !oursExcluded && !slices.ContainsFunc(slices.Concat(built, excluded, tests), speaks) {
		return nil, nil, nil
	}
	var faults []Fault
	pkg.Files, faults = parse(pkg.Fset, built)
	// Of files that are not built here only comments and names matter: what does not parse is no fault.
	pkg.Others, _ = parse(pkg.Fset, excluded)
	pkg.Excluded = filter(slices.Clone(pkg.Others), speaks)
	pkg.Tests, _ = parse(pkg.Fset, tests)
	faults = append(faults, pkg.settleName()...)
	if len(faults) > 0 {
		return nil, faults, nil
	}
	return pkg, nil, nil
}

// parseForeign reads a package without regard to directives.
func parseForeign(cfg Config, p *packages.Package) (*Package, []Fault, error) {
	pkg := newPackage(cfg, p)
	built, _, err := readAll(p.GoFiles)
	if err != nil {
		return nil, nil, err
	}
	var faults []Fault
	pkg.Files, faults = parse(pkg.Fset, built)
	return pkg, append(faults, pkg.settleName()...), nil
}

func newPackage(cfg Config, p *packages.Package) *Package {
	pkg := &Package{Path: p.PkgPath, Name: p.Name, Fset: cfg.Fset, Dir: dirOf(p)}
	pkg.Root = pkg.Dir
	if p.Module != nil && p.Module.Dir != "" {
		pkg.Root = p.Module.Dir
	}
	if p.Module != nil {
		pkg.Module = p.Module.Path
	}
	return pkg
}

// parse gives the files of which a syntax tree could be made, and the faults of all.
func parse(fset *token.FileSet, files []*File) (parsed []*File, faults []Fault) {
	for _, f := range files {
		var err error
		f.AST, err = parser.ParseFile(fset, f.Path, f.Src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			faults = append(faults, syntaxFaults(f.Path, err)...)
		}
		if f.AST != nil {
			parsed = append(parsed, f)
		}
	}
	return parsed, faults
}

func filter(files []*File, keep func(*File) bool) []*File {
	return slices.DeleteFunc(files, func(f *File) bool { return !keep(f) })
}

// settleName takes the package's name from its own files: the go command may have taken it from a
// stale generated file.
func (p *Package) settleName() []Fault {
	var first *File
	for _, f := range p.Files {
		switch {
		case f.AST.Name.Name == "": // a syntax error, which is reported
		case first == nil:
			first, p.Name = f, f.AST.Name.Name
		case f.AST.Name.Name != p.Name:
			return []Fault{{
				Pos:  p.Fset.PositionFor(f.AST.Name.Pos(), false),
				Text: fmt.Sprintf("package %s, but %s has package %s: one directory holds one package", f.AST.Name.Name, filepath.Base(first.Path), p.Name),
			}}
		}
	}
	return nil
}

// syntaxFaults states what the parser found, each line once.
func syntaxFaults(path string, err error) (faults []Fault) {
	var list scanner.ErrorList
	if !errors.As(err, &list) {
		return []Fault{{Pos: token.Position{Filename: path}, Syntax: true, Text: err.Error()}}
	}
	list.RemoveMultiples()
	for _, e := range list {
		pos := e.Pos
		pos.Filename = path // a //line comment may have changed it
		faults = append(faults, Fault{Pos: pos, Syntax: true, Text: e.Msg})
	}
	return faults
}

// readAll reads Go files in the order of their names, apart from our output.
func readAll(paths []string) (files []*File, ours bool, err error) {
	for _, path := range slices.Sorted(slices.Values(paths)) {
		if filepath.Base(path) == Output {
			ours = true
			continue
		}
		if !strings.HasSuffix(path, ".go") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, false, err
		}
		files = append(files, &File{Path: path, Src: src})
	}
	return files, ours, nil
}

func readTests(dir string) ([]*File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if !e.IsDir() && strings.HasSuffix(e.Name(), "_test.go") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	files, _, err := readAll(paths)
	return files, err
}
