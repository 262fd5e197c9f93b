package load

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Span is a stretch of source that a payload is made of.
type Span struct{ From, To token.Pos }

// reach walks the type declarations of one package from some names on and collects the imports that
// they need. A whole package may import half the world for its handlers; payloads rarely name more
// than time.
type reach struct {
	pkg    *Package
	types  map[string]declared
	seen   map[string]bool
	needs  map[string]map[string]bool // import path to the names wanted of it
	spans  []Span
	ofC    []types.Error // types of C that payloads name
	strict bool          // every import of a file that names something we cannot place
}

type declared struct {
	file *File
	node ast.Node // the expressions that make up the declaration
}

func newReach(pkg *Package) *reach {
	r := &reach{pkg: pkg, types: map[string]declared{}, seen: map[string]bool{}, needs: map[string]map[string]bool{}}
	for _, f := range pkg.Files {
		for _, d := range f.AST.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					r.types[s.Name.Name] = declared{f, s}
				case *ast.ValueSpec:
					if g.Tok == token.CONST { // the length of an array
						for _, n := range s.Names {
							r.types[n.Name] = declared{f, s}
						}
					}
				}
			}
		}
	}
	return r
}

// name walks a declaration of the package, once.
func (r *reach) name(name string) bool {
	d, ok := r.types[name]
	if !ok {
		return false
	}
	if !r.seen[name] {
		r.seen[name] = true
		r.spans = append(r.spans, Span{d.node.Pos(), d.node.End()})
		r.node(d.file, d.node)
	}
	return true
}

// node walks the expressions below a node.
func (r *reach) node(f *File, n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			if n.TypeParams != nil {
				r.node(f, n.TypeParams)
			}
			r.node(f, n.Type)
			return false
		case *ast.Field: // its names are no uses
			r.node(f, n.Type)
			return false
		case *ast.FuncLit:
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				r.qualified(f, x.Name, n.Sel.Name)
				if x.Name == "C" && importsC(f) {
					r.ofC = append(r.ofC, types.Error{Fset: r.pkg.Fset, Pos: n.Pos(), Msg: "C." + n.Sel.Name + " is a type of C, and no two systems agree on those. Use a type of Go, such as int32 or string"})
				}
				return false
			}
		case *ast.Ident:
			if n.Name != "_" && !r.name(n.Name) && types.Universe.Lookup(n.Name) == nil {
				r.dotted(f, n.Name)
			}
		}
		return true
	})
}

// qualified needs what "x.name" means in a file.
func (r *reach) qualified(f *File, x, name string) {
	placed := false
	for _, imp := range f.AST.Imports {
		p := importPath(imp)
		if imp.Name != nil && imp.Name.Name == x || imp.Name == nil && guessName(p) == x {
			r.need(p, name)
			placed = true
		}
	}
	if placed && !r.strict {
		return
	}
	// The name of a package need not be the end of its path: any import without a name may be it.
	for _, imp := range f.AST.Imports {
		if imp.Name == nil {
			r.need(importPath(imp), name)
		}
	}
}

func importsC(f *File) bool {
	return slices.ContainsFunc(f.AST.Imports, func(imp *ast.ImportSpec) bool { return importPath(imp) == "C" })
}

// dotted needs the dot imports of a file, of which a name may come.
func (r *reach) dotted(f *File, name string) {
	for _, imp := range f.AST.Imports {
		if imp.Name != nil && imp.Name.Name == "." {
			r.need(importPath(imp), name)
		}
	}
}

func (r *reach) need(importPath, name string) {
	if importPath == "C" || importPath == "unsafe" || importPath == "" {
		return
	}
	if r.needs[importPath] == nil {
		r.needs[importPath] = map[string]bool{}
	}
	r.needs[importPath][name] = true
}

func importPath(imp *ast.ImportSpec) string {
	p, err := strconv.Unquote(imp.Path.Value)
	if err != nil {
		return "" // the parser has reported it
	}
	return p
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// guessName is the likely name of a package that has not been loaded.
func guessName(importPath string) string {
	last := path.Base(importPath)
	if majorVersion.MatchString(last) && path.Dir(importPath) != "." {
		last = path.Base(path.Dir(importPath))
	}
	if i := strings.Index(last, ".v"); i > 0 { // gopkg.in/yaml.v3
		last = last[:i]
	}
	return last
}
