// Package declare reads the directives of a package into the model: which comment is which
// directive, whether it stands where it may, and what its options say.
package declare

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/directive"
	"github.com/echomq/emq/cmd/emqgen/internal/load"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// Draft is a package whose directives are read and whose types are not known yet.
type Draft struct {
	Source *load.Package
	Model  *model.Package
	diags  *diag.List
	jobs   map[*model.Job]*typeDecl
	olds   map[*model.Old]*typeDecl
	was    []*model.Old
	crons  map[*typeDecl]*model.Cron
	byType map[*typeDecl]*model.Job
	failed map[*typeDecl]bool // types with a comment that was to be a directive and is none; reported
	files  []*load.File       // with annotated types
	hidden bool               // a file that is not built here has directives
}

// Read reads the directives of a package. Faults go to diags.
func Read(src *load.Package, diags *diag.List) *Draft {
	d := &Draft{
		Source: src, diags: diags,
		Model: &model.Package{Path: src.Path, Name: src.Name, Dir: src.Dir, Module: src.Module, Fset: src.Fset},
		jobs:  map[*model.Job]*typeDecl{}, olds: map[*model.Old]*typeDecl{},
		crons: map[*typeDecl]*model.Cron{}, byType: map[*typeDecl]*model.Job{}, failed: map[*typeDecl]bool{},
	}
	for _, f := range src.Files {
		d.file(f)
	}
	for _, f := range src.Tests {
		d.elsewhere(f, func(pos token.Position, name string) {
			diags.Errorf(pos, diag.TestFile, "move the type to a file that is not a test", "//emq:%s in a test file: nothing is generated for tests", name)
		})
	}
	for _, f := range src.Excluded {
		said := false
		d.elsewhere(f, func(pos token.Position, name string) {
			d.hidden = true
			if !said {
				what, remedy := notBuilt(f)
				diags.Warnf(pos, diag.NotBuilt, remedy, "%s: its directives are not seen", what)
			}
			said = true
		})
		d.variants(f)
	}
	d.attach()
	d.constraint()
	return d
}

// file reads the comments of a file that is built.
func (d *Draft) file(f *load.File) {
	at := locate(f)
	seen := map[*typeDecl]map[string]token.Position{}
	for _, group := range f.AST.Comments {
		lost := false // a directive of this comment has been reported as misplaced
		for _, comment := range group.List {
			dir, ok, problems := directive.Parse(comment.Text)
			r := &reader{diags: d.diags, base: d.place(comment.Pos()), text: comment.Text, dir: dir, given: map[string]bool{}}
			for _, p := range problems {
				r.report(p)
			}
			decl := at.types[group]
			known := slices.Contains(directive.Names(), dir.Name)
			if len(problems) > 0 && !ok || ok && !known { // what it was to declare is not also missed
				d.failed[decl] = decl != nil
				d.Model.Muddled = d.Model.Muddled || decl == nil
			}
			if !ok {
				continue
			}
			if !known {
				r.errorf(dir.NameAt, diag.UnknownDirective, suggest(dir.Name), "unknown directive //emq:%s", dir.Name)
				continue
			}
			ofType := dir.Name != "queue" && dir.Name != "retired" && dir.Name != "package"
			if lost && ofType {
				continue // for the same reason
			}
			if !d.placed(r, at, group) {
				lost = lost || ofType
				d.Model.Muddled = d.Model.Muddled || dir.Name == "queue"
				continue
			}
			if decl != nil {
				if seen[decl] == nil {
					seen[decl] = map[string]token.Position{}
				}
				if first, twice := seen[decl][dir.Name]; twice {
					r.errorf(0, diag.DirectiveTwice, once(dir.Name), "//emq:%s stands here twice, first on line %d", dir.Name, first.Line)
					r.faults()
					continue
				}
				seen[decl][dir.Name] = r.base
			}
			d.directive(r, decl)
		}
	}
}

func suggest(name string) string {
	if n := diag.Nearest(name, directive.Names()); n != "" {
		return "did you mean //emq:" + n + "?"
	}
	if hint := tagHint(name); hint != "" {
		return hint
	}
	return "there are queue, job, cron, was, retired and package"
}

// once says what to do instead of writing a directive twice on one type.
func once(name string) string {
	switch name {
	case "cron":
		return "a job has one declared schedule: add others at run time with AddCron, or make a second job"
	case "was":
		return "a struct is one old version of one job: copy it for the other"
	}
	return "put the options on one line"
}

// placed says whether the directive stands where it may.
func (d *Draft) placed(r *reader, at *places, g *ast.CommentGroup) bool {
	spot := at.spots[g]
	name := r.dir.Name
	switch name {
	case "queue", "retired", "package":
		if spot == floating || spot == fileDoc {
			return true
		}
		hint := "it stands by itself at the top of the file"
		if spot == typeDoc {
			hint = "put a blank line between it and the type, above the type's doc"
		}
		r.errorf(0, diag.Misplaced, hint, "//emq:%s %s has no effect", name, spot)
		return false
	}
	if spot == typeDoc {
		return true
	}
	hint := "it belongs into the doc comment of a struct type"
	switch next := at.next[g]; {
	case spot == floating && next != "":
		hint = "remove the blank line between it and type " + next
	case spot == typeLine:
		hint = "put it on a line of its own above the type"
	case spot == groupDoc:
		hint = "put it above the type, inside the parentheses"
	}
	r.errorf(0, diag.Misplaced, hint, "//emq:%s %s has no effect", name, spot)
	return false
}

// directive reads one directive that stands where it may.
func (d *Draft) directive(r *reader, decl *typeDecl) {
	switch r.dir.Name {
	case "queue":
		q := r.queue()
		if q == nil {
			d.Model.Muddled = true
			return
		}
		d.Model.Queues = append(d.Model.Queues, q)
	case "retired":
		if x := r.retired(); x != nil {
			d.Model.Retired = append(d.Model.Retired, x)
		}
	case "package":
		d.packagePrefix(r)
	case "job":
		job := r.job()
		job.Refused = !d.structType(decl, job.At, "job")
		job.Name, job.Pos = decl.spec.Name.Name, d.place(decl.spec.Name.Pos())
		job.Summary, job.Deprecated = summary(decl.doc), deprecated(decl.doc)
		d.Model.Jobs = append(d.Model.Jobs, job)
		d.jobs[job], d.byType[decl] = decl, job
		d.annotated(decl.file)
	case "was":
		old := r.was()
		if old == nil {
			d.failed[decl] = true
			return
		}
		d.structType(decl, old.Pos, "was")
		old.Name = decl.spec.Name.Name
		d.was = append(d.was, old)
		d.olds[old] = decl
		d.annotated(decl.file)
	case "cron":
		if c := r.cron(); c != nil {
			d.crons[decl] = c
		}
	}
}

func (d *Draft) packagePrefix(r *reader) {
	prefix, ok := r.prefix()
	if !ok {
		return
	}
	if first := d.Model.Prefix; first.Set {
		r.errorf(0, diag.DirectiveTwice, "", "//emq:package stands in this package twice, first at %s", diag.Place(first.Pos, d.Source.Dir))
		return
	}
	d.Model.Prefix = prefix
}

// structType refuses what cannot be a payload by its form; it answers false for what has no fields of its
// own to look at.
func (d *Draft) structType(decl *typeDecl, at token.Position, name string) bool {
	spec := decl.spec
	switch _, isStruct := spec.Type.(*ast.StructType); {
	case spec.Assign.IsValid():
		d.diags.Errorf(at, diag.OnAlias, "annotate the type that it stands for", "//emq:%s on the alias %s", name, spec.Name.Name)
	case !isStruct:
		d.diags.Errorf(at, diag.NotStruct, "a payload is written as a struct with its fields: it can grow without harm to jobs that wait",
			"//emq:%s on %s, which is not declared as struct { … }", name, spec.Name.Name)
	case spec.TypeParams != nil:
		d.diags.Errorf(at, diag.Generic, "annotate a struct without parameters that has the instance as a field",
			"//emq:%s on the generic type %s, which has no single form on the wire", name, spec.Name.Name)
	case name == "job" && !ast.IsExported(spec.Name.Name):
		d.diags.Errorf(d.place(spec.Name.Pos()), diag.Unexported, "begin its name with a capital letter",
			"job %s is not exported: a handler of another package could not have its method", spec.Name.Name)
	}
	_, isStruct := spec.Type.(*ast.StructType)
	return isStruct && !spec.Assign.IsValid()
}

func (d *Draft) annotated(f *load.File) {
	if !slices.Contains(d.files, f) {
		d.files = append(d.files, f)
	}
}

// attach gives crons and old versions to their jobs.
func (d *Draft) attach() {
	for decl, cron := range d.crons {
		if job := d.byType[decl]; job != nil {
			job.Cron = cron
			continue
		}
		if d.failed[decl] {
			continue
		}
		d.diags.Errorf(cron.Pos, diag.Misplaced, "add //emq:job to the type", "//emq:cron on %s, which is not a job", decl.spec.Name.Name)
	}
	var jobs []string
	for _, j := range d.Model.Jobs {
		jobs = append(jobs, j.Name)
	}
	for _, old := range d.was {
		if d.byType[d.olds[old]] != nil {
			d.diags.Errorf(old.Pos, diag.WasUnknown, "keep the old struct beside the job's", "%s is a job itself and cannot be an old version of %s", old.Name, old.Of.Value)
			continue
		}
		i := slices.Index(jobs, old.Of.Value)
		if i < 0 && d.failedType(old.Of.Value) {
			continue
		}
		if i < 0 {
			d.diags.Errorf(old.Of.Pos, diag.WasUnknown, diag.Suggest(old.Of.Value, jobs), "//emq:was %s: there is no job of this name in the package", old.Of.Value)
			continue
		}
		d.Model.Jobs[i].Olds = append(d.Model.Jobs[i].Olds, old)
	}
}

// failedType says whether a type of this name was most likely to be a job.
func (d *Draft) failedType(name string) bool {
	for decl, failed := range d.failed {
		if failed && decl.spec.Name.Name == name {
			return true
		}
	}
	return false
}

// elsewhere finds the directives of a file that is no input. What is almost one is a fault there too:
// it would be silent for ever.
func (d *Draft) elsewhere(f *load.File, report func(pos token.Position, name string)) {
	for _, group := range f.AST.Comments {
		for _, c := range group.List {
			dir, ok, problems := directive.Parse(c.Text)
			if ok {
				report(d.place(c.Pos()), dir.Name)
				continue
			}
			r := &reader{diags: d.diags, base: d.place(c.Pos()), text: c.Text}
			for _, p := range problems {
				r.report(p)
			}
		}
	}
}

// variants refuses jobs that a file for another target declares once more: one generated file serves
// the package, and would be of one of the two.
func (d *Draft) variants(f *load.File) {
	at := locate(f)
	for _, group := range f.AST.Comments {
		decl := at.types[group]
		if decl == nil {
			continue
		}
		for _, c := range group.List {
			dir, ok, _ := directive.Parse(c.Text)
			i := slices.IndexFunc(d.Model.Jobs, func(j *model.Job) bool { return j.Name == decl.spec.Name.Name })
			if ok && dir.Name == "job" && i >= 0 {
				d.diags.Errorf(d.place(c.Pos()), diag.Constraints,
					"declare the struct once, in a file that is built for all, and keep what differs in the handler or in other types",
					"job %s is declared for %s here, and for %s at %s: one generated file serves the package",
					decl.spec.Name.Name, orAll(constraintOf(f)), orAll(constraintOf(d.jobs[d.Model.Jobs[i]].file)), diag.Place(d.Model.Jobs[i].Pos, d.Source.Dir))
			}
		}
	}
}

func (d *Draft) place(pos token.Pos) token.Position { return d.Source.Fset.PositionFor(pos, false) }

// constraint finds the one build constraint of the annotated files.
func (d *Draft) constraint() {
	if len(d.files) == 0 {
		return
	}
	first := d.files[0]
	d.Model.Constraint = constraintOf(first)
	for _, f := range d.files[1:] {
		if c := constraintOf(f); c != d.Model.Constraint {
			d.diags.Errorf(d.place(f.AST.Package), diag.Constraints,
				"one generated file serves the package: put the annotated types into files with one constraint",
				"this file is built for %s, but %s for %s", orAll(c), diag.Place(d.place(first.AST.Package), d.Source.Dir), orAll(d.Model.Constraint))
			return
		}
	}
}

func orAll(constraint string) string {
	if constraint == "" {
		return "every target"
	}
	return fmt.Sprintf("%q", constraint)
}

// Elsewhere says whether the jobs of the package are all in files that are not built here. Nothing
// is known of it then, and its files are left alone.
func (d *Draft) Elsewhere() bool { return d.hidden && len(d.Model.Jobs) == 0 }

// Empty says whether the package declares nothing.
func (d *Draft) Empty() bool {
	m := d.Model
	return len(m.Queues) == 0 && len(m.Jobs) == 0 && len(m.Retired) == 0 && !m.Prefix.Set && len(d.was) == 0
}
