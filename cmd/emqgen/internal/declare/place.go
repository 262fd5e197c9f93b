package declare

import (
	"go/ast"
	"go/token"

	"github.com/echomq/emq/cmd/emqgen/internal/load"
)

// spot is what a comment stands at.
type spot int

const (
	floating   spot = iota // between declarations
	fileDoc                // above the package clause
	typeDoc                // above a type
	typeLine               // behind a type, on its line
	groupDoc               // above a type ( … )
	funcDoc                // above a function or method
	valueDoc               // above a var, const or import
	fieldDoc               // at a field of a struct or a method of an interface
	insideFunc             // in the body of a function
	insideDecl             // in a declaration, at nothing
)

func (s spot) String() string {
	return [...]string{
		"detached from any type", "above the package clause", "above a type", "behind a type",
		"above a group of types", "above a function", "above a var, const or import",
		"at a field", "inside a function", "inside a declaration",
	}[s]
}

// typeDecl is a type declaration with its comments.
type typeDecl struct {
	file *load.File
	spec *ast.TypeSpec
	doc  *ast.CommentGroup
}

// places says where the comments of a file stand.
type places struct {
	spots map[*ast.CommentGroup]spot
	types map[*ast.CommentGroup]*typeDecl // of docs and line comments of types
	decls []ast.Decl
	next  map[*ast.CommentGroup]string // the type that a detached comment stands before
}

func locate(f *load.File) *places {
	p := &places{
		spots: map[*ast.CommentGroup]spot{}, types: map[*ast.CommentGroup]*typeDecl{},
		decls: f.AST.Decls, next: map[*ast.CommentGroup]string{},
	}
	if f.AST.Doc != nil {
		p.spots[f.AST.Doc] = fileDoc
	}
	for _, d := range f.AST.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			p.mark(d.Doc, funcDoc)
		case *ast.GenDecl:
			p.group(f, d)
		}
	}
	for _, g := range f.AST.Comments {
		if _, ok := p.spots[g]; !ok {
			p.spots[g] = p.unattached(g)
		}
	}
	return p
}

func (p *places) mark(g *ast.CommentGroup, s spot) {
	if g != nil {
		p.spots[g] = s
	}
}

// group marks the comments of one type, var, const or import declaration.
func (p *places) group(f *load.File, d *ast.GenDecl) {
	if d.Tok != token.TYPE {
		p.mark(d.Doc, valueDoc)
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				p.mark(s.Doc, valueDoc)
				p.mark(s.Comment, valueDoc)
			case *ast.ImportSpec:
				p.mark(s.Doc, valueDoc)
				p.mark(s.Comment, valueDoc)
			}
		}
		return
	}
	if d.Lparen.IsValid() {
		p.mark(d.Doc, groupDoc)
	}
	for _, s := range d.Specs {
		spec, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		doc := spec.Doc
		if doc == nil && !d.Lparen.IsValid() {
			doc = d.Doc
		}
		decl := &typeDecl{file: f, spec: spec, doc: doc}
		if doc != nil {
			p.spots[doc], p.types[doc] = typeDoc, decl
		}
		if spec.Comment != nil {
			p.spots[spec.Comment], p.types[spec.Comment] = typeLine, decl
		}
		ast.Inspect(spec.Type, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok {
				p.mark(field.Doc, fieldDoc)
				p.mark(field.Comment, fieldDoc)
			}
			return true
		})
	}
}

// unattached places a comment that belongs to no declaration.
func (p *places) unattached(g *ast.CommentGroup) spot {
	for _, d := range p.decls {
		if d.Pos() <= g.Pos() && g.End() <= d.End() {
			if _, ok := d.(*ast.FuncDecl); ok {
				return insideFunc
			}
			return insideDecl
		}
		if d.Pos() > g.End() {
			if gen, ok := d.(*ast.GenDecl); ok && gen.Tok == token.TYPE && len(gen.Specs) == 1 {
				if spec, ok := gen.Specs[0].(*ast.TypeSpec); ok {
					p.next[g] = spec.Name.Name
				}
			}
			break
		}
	}
	return floating
}
