package declare

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/load"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/names"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// Roots names the types that the package's payloads begin with.
func (d *Draft) Roots() load.Roots {
	var r load.Roots
	for _, j := range d.Model.Jobs {
		r.Names = append(r.Names, j.Name)
		if j.Result.Set {
			if x, err := parser.ParseExpr(j.Result.Value); err == nil {
				r.Exprs = append(r.Exprs, load.RootExpr{File: d.jobs[j].file, Expr: x})
			}
		}
	}
	for _, old := range d.was {
		r.Names = append(r.Names, old.Name)
	}
	return r
}

// Resolve completes the model with types, queues and defaults, once the package has been checked.
func (d *Draft) Resolve() *model.Package {
	m := d.Model
	m.Types = d.Source.Types
	m.Scope, m.Imports = d.scope()
	for _, j := range m.Jobs {
		if !j.Refused {
			j.Type, j.Payload = d.structOf(j.Name)
		}
		if !j.Kind.Set {
			j.Kind.Value, j.Kind.Pos = names.Kind(j.Name), j.Pos
		}
		if !j.Version.Set {
			j.Version.Value, j.Version.Pos = 1, j.At
		}
		d.queueOf(j)
		d.result(j)
	}
	for _, old := range d.was {
		old.Type, old.Payload = d.structOf(old.Name)
	}
	m.Sort()
	return m
}

func (d *Draft) structOf(name string) (*types.Named, *model.Struct) {
	obj, ok := d.Source.Types.Scope().Lookup(name).(*types.TypeName)
	if !ok {
		return nil, nil
	}
	named, ok := obj.Type().(*types.Named)
	if !ok { // an alias: refused
		return nil, nil
	}
	st, ok := named.Underlying().(*types.Struct)
	if !ok {
		return nil, nil
	}
	fields, _ := payload.Fields(st)
	return named, &model.Struct{Fields: fields, Redacted: payload.Redacted(st)}
}

// queueOf finds the job's queue and its effective settings.
func (d *Draft) queueOf(j *model.Job) {
	queues := d.Model.Queues
	if !j.InQueue.Set && len(queues) == 1 {
		j.Queue = queues[0]
	}
	for _, q := range queues {
		if j.InQueue.Set && q.Name.Value == j.InQueue.Value {
			j.Queue = q
			break
		}
	}
	j.Settings = j.Own
	if j.Queue != nil {
		of := j.Queue.Settings
		j.Timeout = j.Own.Timeout.Or(of.Timeout)
		j.Retain = j.Own.Retain.Or(of.Retain)
		j.Attempts = j.Own.Attempts.Or(of.Attempts)
		j.Backoff = j.Own.Backoff.Or(of.Backoff)
	}
}

// result finds the type of result=.
func (d *Draft) result(j *model.Job) {
	if !j.Result.Set {
		return
	}
	x, err := parser.ParseExpr(j.Result.Value)
	if err != nil {
		d.diags.Errorf(j.Result.Pos, diag.BadResult, "write a type: Report, *Report, []pkg.Line", "result: %q is not a type", j.Result.Value)
		return
	}
	if name, params := d.uninstantiated(j, x); name != "" {
		d.diags.Errorf(j.Result.Pos, diag.BadResult, fmt.Sprintf("write %s[%s] with real types for %[2]s", name, params),
			"result: the generic type %s needs a type argument for each parameter, and has no single form on the wire without", name)
		return
	}
	if t := d.typeOf(j, x); t != nil {
		j.Returns = t
		return
	}
	d.diags.Errorf(j.Result.Pos, diag.BadResult, diag.Suggest(j.Result.Value, d.typeNames()), "result: there is no type %s here", j.Result.Value)
}

// typeOf is the type that an expression in a directive of a job means, or nil.
func (d *Draft) typeOf(j *model.Job, x ast.Expr) types.Type {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	err := types.CheckExpr(d.Source.Fset, d.Source.Types, d.jobs[j].spec.Pos(), x, info)
	if t, ok := info.Types[x]; err == nil && ok && t.IsType() {
		return t.Type
	}
	return nil
}

// uninstantiated is the first generic type in an expression that has not an argument for each of its
// parameters, and these.
func (d *Draft) uninstantiated(j *model.Job, x ast.Expr) (name, params string) {
	ast.Inspect(x, func(n ast.Node) bool {
		if name != "" {
			return false
		}
		of, args := ast.Expr(nil), []ast.Expr(nil)
		switch n := n.(type) {
		case *ast.Field: // its name is none of a type
			name, params = d.uninstantiated(j, n.Type)
			return false
		case *ast.IndexExpr:
			of, args = n.X, []ast.Expr{n.Index}
		case *ast.IndexListExpr:
			of, args = n.X, n.Indices
		case *ast.Ident:
			of = n
		case *ast.SelectorExpr:
			of = n
		default:
			return true
		}
		if all := parameters(d.typeOf(j, of)); len(all) > 0 && len(all) != len(args) {
			name, params = types.ExprString(of), strings.Join(all, ",")
		}
		for _, arg := range args {
			if name == "" {
				name, params = d.uninstantiated(j, arg)
			}
		}
		return false
	})
	return name, params
}

// parameters are the names of those that a generic type has and that have no arguments.
func parameters(t types.Type) (params []string) {
	generic, ok := t.(interface {
		TypeParams() *types.TypeParamList
		TypeArgs() *types.TypeList
	})
	if !ok || generic.TypeArgs().Len() > 0 {
		return nil
	}
	for p := range generic.TypeParams().TypeParams() {
		params = append(params, p.Obj().Name())
	}
	return params
}

func (d *Draft) typeNames() (typeNames []string) {
	scope := d.Source.Types.Scope()
	for _, name := range scope.Names() {
		if _, ok := scope.Lookup(name).(*types.TypeName); ok {
			typeNames = append(typeNames, name)
		}
	}
	return typeNames
}

// scope lists the names that are taken in the package, and those that its files give to imports.
func (d *Draft) scope() (scope, imports model.Names) {
	scope, imports = model.Names{}, model.Names{}
	s := d.Source.Types.Scope()
	for _, name := range s.Names() {
		scope[name] = d.place(s.Lookup(name).Pos())
	}
	for _, f := range d.Source.Tests {
		if f.AST.Name.Name == d.Source.Name {
			d.declared(f, scope)
		}
	}
	for _, f := range d.Source.Others {
		if d.meets(f) {
			d.declared(f, scope)
		}
	}
	for _, f := range d.Source.Files {
		for _, imp := range f.AST.Imports {
			if imp.Name != nil {
				imports[imp.Name.Name] = d.place(imp.Pos())
				continue
			}
			if p, err := strconv.Unquote(imp.Path.Value); err == nil {
				imports[path.Base(p)] = d.place(imp.Pos())
			}
		}
	}
	return scope, imports
}

// meets says whether a file that is not built here is built together with the generated file elsewhere.
// A generated file with a constraint of its own may well have a stand-in for other targets.
func (d *Draft) meets(f *load.File) bool {
	return f.AST.Name.Name == d.Source.Name && d.Model.Constraint == "" && !slices.Contains(tagsOf(constraintOf(f)), "ignore")
}

// declared adds the names that a file declares for its package. Tests are not type-checked, but what
// they declare must not meet generated names either.
func (d *Draft) declared(f *load.File, scope model.Names) {
	for _, decl := range f.AST.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				scope[decl.Name.Name] = d.place(decl.Name.Pos())
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					scope[spec.Name.Name] = d.place(spec.Name.Pos())
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						scope[name.Name] = d.place(name.Pos())
					}
				}
			}
		}
	}
}
