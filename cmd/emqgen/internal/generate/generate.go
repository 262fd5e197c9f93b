// Package generate runs emqgen: it leads the packages of a call through the rooms and decides what
// is printed and what is written.
package generate

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/check"
	"github.com/echomq/emq/cmd/emqgen/internal/declare"
	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/emit"
	"github.com/echomq/emq/cmd/emqgen/internal/load"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/output"
)

// Mode is what a call is to do.
type Mode int

// The modes.
const (
	Write Mode = iota
	Check
	List
	ListJSON
)

// Exit codes.
const (
	Fine   = 0
	Stale  = 1 // of Check
	Failed = 2
)

// Call is one call of emqgen.
type Call struct {
	Mode           Mode
	Dir            string // absolute
	Env            []string
	Patterns       []string
	Stdout, Stderr io.Writer
}

// Run does the call and answers its exit code. Nothing is written if there is an error anywhere.
func Run(ctx context.Context, c Call) int {
	r := &run{Call: c, diags: &diag.List{}}
	code, err := r.do(ctx)
	if err != nil {
		r.diags.Errorf(token.Position{}, diag.Load, "", "%v", err)
		code = Failed
	}
	if err := r.diags.Print(c.Stderr, c.Dir); err != nil {
		return Failed
	}
	return code
}

type run struct {
	Call
	diags *diag.List
}

func (r *run) do(ctx context.Context) (int, error) {
	for _, p := range r.Patterns {
		if strings.HasSuffix(p, ".go") {
			return Failed, fmt.Errorf("%s is a file: emqgen takes packages, such as %s", p, packageOf(p))
		}
	}
	pkgs, dirs, err := r.packages(ctx)
	if err != nil {
		return Failed, err
	}
	if r.diags.Failed() {
		return Failed, nil
	}
	switch r.Mode {
	case List:
		return Fine, listText(r.Stdout, pkgs)
	case ListJSON:
		return Fine, listJSON(r.Stdout, pkgs)
	}
	files, err := r.files(pkgs, dirs)
	if err != nil {
		return Failed, err
	}
	if r.diags.Failed() {
		return Failed, nil
	}
	if r.Mode == Check {
		return r.check(files)
	}
	return r.write(files)
}

func packageOf(file string) string {
	dir := filepath.ToSlash(filepath.Dir(file))
	if dir == "." || filepath.IsAbs(dir) || strings.HasPrefix(dir, "..") {
		return dir
	}
	return "./" + dir
}

// packages loads, reads and checks the packages of the call. It answers those with jobs, and the
// directories of all in which a file of ours may lie.
func (r *run) packages(ctx context.Context) (pkgs []*model.Package, dirs []string, err error) {
	cfg := load.Config{Dir: r.Dir, Env: r.Env, Fset: token.NewFileSet()}
	sources, faults, err := load.List(ctx, cfg, r.Patterns)
	if err != nil {
		return nil, nil, err
	}
	r.faults(faults)
	var drafts []*declare.Draft
	var annotated []*load.Package
	var roots []load.Roots
	for _, src := range sources {
		dirs = append(dirs, src.Dir)
		d := declare.Read(src, r.diags)
		d.Model.From = r.Dir
		if !d.Empty() {
			drafts, annotated, roots = append(drafts, d), append(annotated, src), append(roots, d.Roots())
		}
	}
	if len(drafts) == 0 {
		return nil, dirs, nil
	}
	spans, faults, err := load.Check(ctx, cfg, annotated, roots)
	if err != nil {
		return nil, nil, err
	}
	r.faults(faults)
	for i, src := range annotated {
		for _, e := range src.TypeErrors {
			if load.Within(spans[i], e.Pos) {
				r.diags.Errorf(src.Fset.PositionFor(e.Pos, false), diag.Unresolved, "", "%s", e.Msg)
			}
		}
	}
	for _, d := range drafts {
		pkgs = append(pkgs, d.Resolve())
	}
	check.Packages(pkgs, r.diags)
	return pkgs, dirs, nil
}

func (r *run) faults(faults []load.Fault) {
	for _, f := range faults {
		code := diag.Load
		if f.Syntax {
			code = diag.Syntax
		}
		r.diags.Errorf(f.Pos, code, "", "%s", f.Text)
	}
}

// files makes the files of the packages, and finds those that are left over.
func (r *run) files(pkgs []*model.Package, dirs []string) ([]*output.File, error) {
	want := map[string][]byte{}
	for _, p := range pkgs {
		src, err := emit.File(p)
		if err != nil {
			r.diags.Errorf(token.Position{}, diag.Internal, "please report it with the package that it happens for", "%v", err)
			continue
		}
		want[p.Dir] = src
	}
	var files []*output.File
	for _, dir := range dirs {
		f := &output.File{Path: filepath.Join(dir, load.Output), Want: want[dir]}
		if err := f.Read(); err != nil {
			return nil, err
		}
		if f.Exists() && f.Stale() && !ours(f.Have()) {
			pos := token.Position{Filename: f.Path}
			r.diags.Errorf(pos, diag.NotOurs, "move its contents to another file", "this file does not begin with %q: emqgen neither overwrites nor removes it", emit.Header())
			continue
		}
		files = append(files, f)
	}
	return files, nil
}

// ours says whether a file may be overwritten: it has our header in its first lines, or is empty, or
// is what a failed merge left of a file of ours.
func ours(src []byte) bool {
	text := strings.TrimPrefix(string(src), "\uFEFF")
	if strings.TrimSpace(text) == "" {
		return true
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == emit.Header() {
			return true
		}
		if strings.HasPrefix(line, "package ") {
			return false
		}
	}
	return false
}

// check prints what would change.
func (r *run) check(files []*output.File) (int, error) {
	code := Fine
	for _, f := range files {
		if !f.Stale() {
			continue
		}
		code = Stale
		if _, err := r.Stdout.Write(f.Diff(r.name(f.Path))); err != nil {
			return Failed, err
		}
	}
	return code, nil
}

// write brings the files up to date.
func (r *run) write(files []*output.File) (int, error) {
	code := Fine
	for _, f := range files {
		if err := f.Write(); err != nil {
			r.diags.Errorf(token.Position{Filename: f.Path}, diag.Write, "the old file is as it was", "cannot write: %v", cause(err))
			code = Failed
		}
	}
	return code, nil
}

// cause is an error without the name of the temporary file.
func cause(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}

func (r *run) name(path string) string { return diag.Place(token.Position{Filename: path}, r.Dir) }
