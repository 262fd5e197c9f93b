// Package generate runs emqgen: it leads the packages of a call through the rooms and decides what
// is printed and what is written.
package generate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/token"
	"io"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/check"
	"github.com/echomq/emq/cmd/emqgen/internal/declare"
	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/emit"
	"github.com/echomq/emq/cmd/emqgen/internal/load"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/output"
	"github.com/echomq/emq/cmd/emqgen/internal/schema"
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
	Accept         []string // kinds whose breaking changes are wanted
	Stdout, Stderr io.Writer
}

// Run does the call and answers its exit code. Nothing is written if there is an error anywhere.
func Run(ctx context.Context, c Call) int {
	r := &run{Call: c, diags: &diag.List{}}
	code, err := r.guarded(ctx)
	if err != nil {
		r.diags.Errorf(token.Position{}, diag.Load, "", "%s", r.short(err.Error()))
		code = Failed
	}
	if err := r.diags.Print(c.Stderr, c.Dir); err != nil {
		return Failed
	}
	return code
}

// guarded turns a panic, which is a fault of ours, into a report that a user can hand on.
func (r *run) guarded(ctx context.Context) (code int, err error) {
	defer func() {
		if p := recover(); p != nil {
			code = Failed
			r.diags.Add(diag.Diagnostic{
				Code: diag.Internal, Text: fmt.Sprintf("emqgen itself has failed: %v", p), Hint: "please report it with what follows",
				More: strings.Split(strings.TrimSpace(string(debug.Stack())), "\n"),
			})
		}
	}()
	return r.do(ctx)
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
		d := declare.Read(src, r.diags)
		d.Model.From = r.Dir
		if d.Elsewhere() {
			continue
		}
		dirs = append(dirs, src.Dir)
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
	if spans == nil {
		return nil, dirs, nil
	}
	for i, src := range annotated {
		drafts[i].StrayTags(func(pos token.Pos) bool { return load.Within(spans[i], pos) })
		for _, e := range src.TypeErrors {
			if load.Within(spans[i], e.Pos) {
				r.diags.Errorf(src.Fset.PositionFor(e.Pos, false), diag.Unresolved, "", "%s", e.Msg)
				drafts[i].Model.Unresolved = true
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
		switch {
		case f.Syntax:
			code = diag.Syntax
		case f.InTheWay:
			code = diag.NotOurs
		}
		r.diags.Errorf(f.Pos, code, "", "%s", r.short(f.Text))
	}
}

// short takes the call's directory out of a text: the go command and the system name files in full.
func (r *run) short(text string) string {
	return strings.ReplaceAll(text, r.Dir+string(filepath.Separator), "")
}

// files makes the files of the packages, and finds those that are left over.
func (r *run) files(pkgs []*model.Package, dirs []string) ([]*output.File, error) {
	byDir := map[string]*model.Package{}
	for _, p := range pkgs {
		byDir[p.Dir] = p
	}
	met := map[string]bool{}
	var files []*output.File
	for _, dir := range dirs {
		p := byDir[dir]
		lock, err := r.lock(dir, p, pkgs, met)
		if err != nil {
			return nil, err
		}
		code, err := r.code(dir, p)
		if err != nil {
			return nil, err
		}
		r.missLock(code, lock)
		for _, f := range []*output.File{code, lock} {
			if f != nil {
				files = append(files, f)
			}
		}
	}
	for _, kind := range r.Accept {
		if !met[kind] {
			return nil, fmt.Errorf("-accept: no lock of these packages has a kind %q", kind)
		}
	}
	return files, nil
}

// code makes the generated file of a directory; p is nil if nothing is declared there.
func (r *run) code(dir string, p *model.Package) (*output.File, error) {
	f := &output.File{Path: filepath.Join(dir, load.Output)}
	if p != nil && p.Generates() {
		src, err := emit.File(p)
		if err != nil {
			r.diags.Errorf(token.Position{}, diag.Internal, "please report it with the package that it happens for", "%v", err)
			return nil, nil
		}
		f.Want = src
	}
	if ok, err := r.read(f); !ok {
		return nil, err
	}
	if f.Exists() && f.Stale() && !ours(f.Have()) {
		hint := "move its contents to another file"
		if bytes.Contains(f.Have(), []byte("\n"+emit.Header()+"\n")) {
			hint = "if it was generated, remove it, or what stands before that line"
		}
		r.diags.Errorf(token.Position{Filename: f.Path, Line: 1, Column: 1}, diag.NotOurs, hint,
			"this file does not begin with %q: emqgen neither overwrites nor removes it", emit.Header())
		return nil, nil
	}
	return f, nil
}

// read says whether there is a file that can be worked with, or none.
func (r *run) read(f *output.File) (bool, error) {
	err := f.Read()
	var irregular *output.NotRegularError
	if errors.As(err, &irregular) {
		r.diags.Errorf(token.Position{Filename: f.Path}, diag.NotOurs, "move it away", "%s is in the place of the file: emqgen neither follows, overwrites nor removes it", irregular.What)
		return false, nil
	}
	return err == nil, err
}

// lock makes the schema lock of a directory and reviews what has changed since the last.
func (r *run) lock(dir string, p *model.Package, all []*model.Package, met map[string]bool) (*output.File, error) {
	f := &output.File{Path: filepath.Join(dir, schema.FileName)}
	if ok, err := r.read(f); !ok {
		return nil, err
	}
	now := &schema.Lock{}
	if p != nil {
		now = schema.Build(p)
	}
	if ok, err := r.review(f, p, all, now, met); !ok {
		return nil, err
	}
	if p == nil {
		return f, nil
	}
	want, err := now.Encode()
	f.Want = want
	return f, err
}

// review compares an old lock with what is to be written now; it answers false for one that cannot be read.
func (r *run) review(f *output.File, p *model.Package, all []*model.Package, now *schema.Lock, met map[string]bool) (ok bool, err error) {
	if !f.Exists() {
		return true, nil
	}
	old, err := schema.Decode(f.Have())
	if err != nil {
		hint := "restore it from version control; if you delete it, it is written anew, and nothing is known of jobs that wait"
		var fault *schema.FaultError
		if errors.As(err, &fault) && fault.Merge {
			hint = "take either side whole, git checkout --theirs " + schema.FileName + ", solve the conflict in the sources, and run emqgen"
		}
		r.diags.Errorf(schema.Place(f.Path, f.Have(), err), diag.LockFile, hint, "the schema lock cannot be read: %v", err)
		return false, nil
	}
	review := schema.Review{Path: f.Path, Src: f.Have(), Old: old, Now: now, Package: p, Others: all, Accept: r.Accept, Diags: r.diags}
	for _, kind := range review.Run() {
		met[kind] = true
	}
	return true, nil
}

// missLock warns of a lock that is not there though its package has been generated before.
func (r *run) missLock(code, lock *output.File) {
	if code == nil || lock == nil || len(code.Have()) == 0 || lock.Exists() || lock.Want == nil {
		return
	}
	r.diags.Warnf(token.Position{Filename: lock.Path}, diag.LockFile, "if it was deleted, bring it back from version control before you commit this one",
		"there is no schema lock beside %s: it is written anew, and nothing is known of what jobs that wait look like", load.Output)
}

// ours says whether a file may be overwritten: our header is its first line, or all that a failed
// merge has put before it is its markers; or it is empty or cut within the header.
func ours(src []byte) bool {
	text := strings.TrimPrefix(string(src), "\uFEFF")
	if strings.HasPrefix(emit.Header(), strings.TrimSpace(text)) {
		return true
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if line == emit.Header() {
			return true
		}
		if !schema.MergeMarker(line) {
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
