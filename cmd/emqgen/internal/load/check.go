package load

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
)

// Check type-checks the packages as far as the roots of each need it: roots[i] names the types of
// pkgs[i] that payloads are made of. Faults of other declarations are not its business. It answers
// the spans of what was reached, for each package, in which a type error is a fault of a payload;
// there are none when types are not fit to be looked at.
func Check(ctx context.Context, cfg Config, pkgs []*Package, roots []Roots) ([][]Span, []Fault, error) {
	c := &checker{ctx: ctx, cfg: cfg, sources: map[string]*source{}, exports: map[string]*types.Package{}, broken: map[string]string{}}
	for i, p := range pkgs {
		s := &source{pkg: p, reach: newReach(p), wanted: map[string]bool{}}
		c.sources[p.Path] = s
		for _, name := range roots[i].Names {
			s.wanted[name] = true
		}
		for _, e := range roots[i].Exprs {
			s.reach.node(e.File, e.Expr)
		}
	}
	if err := c.gather(); err != nil {
		return nil, nil, err
	}
	spans := make([][]Span, len(pkgs))
	for i, p := range pkgs {
		if _, err := c.Import(p.Path); err != nil {
			return nil, nil, err
		}
		reach := c.sources[p.Path].reach
		p.TypeErrors = append(p.TypeErrors, reach.ofC...)
		spans[i] = reach.spans
	}
	if endless := c.endless(); len(endless) > 0 {
		return nil, endless, nil
	}
	return spans, c.faults(), nil
}

// endless are generic types that grow with each step into them. Nothing may follow such a type.
func (c *checker) endless() (faults []Fault) {
	for _, path := range slices.Sorted(maps.Keys(c.sources)) {
		for _, e := range c.sources[path].pkg.TypeErrors {
			if strings.Contains(e.Msg, "instantiation cycle") {
				faults = append(faults, Fault{Pos: c.cfg.Fset.PositionFor(e.Pos, false), Text: "a generic type that grows without end (an instantiation cycle)"})
			}
		}
	}
	return faults
}

// Roots is what a package's payloads begin with.
type Roots struct {
	Names []string
	Exprs []RootExpr // types that directives name
}

// RootExpr is a type in a directive, seen from a file.
type RootExpr struct {
	File *File
	Expr ast.Expr
}

// checker imports packages for each other: those with directives, and those that do not compile,
// from source; the rest from the compiler's export data.
type checker struct {
	ctx     context.Context
	cfg     Config
	sources map[string]*source
	exports map[string]*types.Package
	broken  map[string]string // imports that could not be had, and why
}

type source struct {
	pkg    *Package
	reach  *reach
	wanted map[string]bool // names that payloads of others use
	busy   bool
}

// gather loads what is needed, round by round, until nothing is missing: a package that is found not
// to compile is read as source and may need further ones. The modules of a round are asked at once.
func (c *checker) gather() error {
	for {
		missing := c.missing()
		if len(missing) == 0 {
			return nil
		}
		roots := slices.Sorted(maps.Keys(missing))
		loads := make([]loaded, len(roots))
		var wg sync.WaitGroup
		for i, root := range roots {
			wg.Go(func() { loads[i] = c.load(root, slices.Sorted(maps.Keys(missing[root]))) })
		}
		wg.Wait()
		for i, root := range roots { // in order, so that the same errors come in the same order
			if err := c.take(root, loads[i]); err != nil {
				return err
			}
		}
	}
}

// missing walks the sources and collects, for each root directory, imports that nobody has loaded.
func (c *checker) missing() map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for again := true; again; {
		again = false
		for _, path := range slices.Sorted(maps.Keys(c.sources)) {
			s := c.sources[path]
			for name := range s.wanted {
				s.reach.name(name)
			}
			for imp, names := range s.reach.needs {
				if other := c.sources[imp]; other != nil {
					for n := range names {
						again = again || !other.wanted[n]
						other.wanted[n] = true
					}
					continue
				}
				if c.exports[imp] == nil && c.broken[imp] == "" {
					if out[s.pkg.Root] == nil {
						out[s.pkg.Root] = map[string]bool{}
					}
					out[s.pkg.Root][imp] = true
				}
			}
		}
	}
	return out
}

// loaded is the go command's answer for imports of one module.
type loaded struct {
	paths []string
	found []*packages.Package
	err   error
}

// load asks the go command for export data.
func (c *checker) load(root string, paths []string) loaded {
	found, err := packages.Load(&packages.Config{
		Context: c.ctx, Dir: root, Env: c.cfg.Env, Fset: c.cfg.Fset,
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedModule | packages.NeedImports | packages.NeedTypes,
	}, paths...)
	return loaded{paths, found, err}
}

// take keeps export data, and reads as source what has none.
func (c *checker) take(root string, l loaded) error {
	if l.err != nil {
		return rebuildHint(errors.New(plainError(l.err)))
	}
	for _, p := range l.found {
		for _, e := range p.Errors {
			if err := rebuildHint(errors.New(e.Msg)); err.Error() != e.Msg {
				return err
			}
		}
		switch {
		case len(p.Errors) == 0 && p.Types != nil && p.Types.Complete() && p.Types.Scope().Len() > 0:
			c.exports[p.PkgPath] = p.Types
			c.verifyName(p.PkgPath, p.Types.Name())
		case len(p.GoFiles) == 0:
			c.broken[p.PkgPath] = firstError(p)
		default:
			if err := c.asSource(root, p); err != nil {
				return err
			}
		}
	}
	for _, path := range l.paths { // what the go command did not answer at all
		if c.exports[path] == nil && c.sources[path] == nil && c.broken[path] == "" {
			c.broken[path] = "not found"
		}
	}
	return nil
}

// asSource reads a package that has no export data, most often because it waits for a generated file
// of its own.
func (c *checker) asSource(root string, p *packages.Package) error {
	pkg, faults, err := parsePackage(c.cfg, p)
	if err != nil {
		return err
	}
	if pkg == nil { // nothing of ours in it: parse it all the same
		pkg, faults, err = parseForeign(c.cfg, p)
		if err != nil {
			return err
		}
	}
	if len(faults) > 0 {
		c.broken[p.PkgPath] = faults[0].Text
		return nil
	}
	pkg.Root = root // not its own module, which may lie in the module cache
	c.sources[p.PkgPath] = &source{pkg: pkg, reach: newReach(pkg), wanted: map[string]bool{}}
	c.verifyName(p.PkgPath, pkg.Name)
	return nil
}

// verifyName widens the search of packages that import a package whose name is not what its path
// makes one guess: what they took for it may be another.
func (c *checker) verifyName(path, name string) {
	if guessName(path) == name {
		return
	}
	for _, s := range c.sources {
		if s.reach.needs[path] == nil || s.reach.strict {
			continue
		}
		s.reach.strict = true
		clear(s.reach.seen)
		s.reach.spans = nil
	}
}

func firstError(p *packages.Package) string {
	if len(p.Errors) == 0 {
		return "it has no Go files"
	}
	return strings.TrimSpace(p.Errors[0].Msg)
}

// rebuildHint explains the one failure of export data that users meet.
func rebuildHint(err error) error {
	if strings.Contains(err.Error(), "export data") && strings.Contains(err.Error(), "version") {
		return fmt.Errorf("emqgen was built with an older Go than the one in use: rebuild it (%w)", err)
	}
	return err
}

// Import gives a package to the type checker; it never fails, so that one import that cannot be had
// spoils only the declarations that name it.
func (c *checker) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if s := c.sources[path]; s != nil && !s.busy {
		if s.pkg.Types == nil {
			s.busy = true
			c.check(s.pkg)
			s.busy = false
		}
		return s.pkg.Types, nil
	}
	if p := c.exports[path]; p != nil {
		return p, nil
	}
	fake := types.NewPackage(path, guessName(path))
	fake.MarkComplete()
	return fake, nil
}

// check type-checks declarations and collects the errors.
func (c *checker) check(p *Package) {
	files := make([]*ast.File, len(p.Files))
	for i, f := range p.Files {
		files[i] = f.AST
	}
	conf := types.Config{
		Importer:         c,
		IgnoreFuncBodies: true,
		FakeImportC:      true,
		Error: func(err error) {
			var e types.Error
			if errors.As(err, &e) {
				p.TypeErrors = append(p.TypeErrors, e)
			}
		},
	}
	// The error is the first of those that are collected already.
	p.Types, _ = conf.Check(p.Path, p.Fset, files, nil)
}

// faults are the imports that payloads need and that could not be had, at their import lines.
func (c *checker) faults() (faults []Fault) {
	for _, path := range slices.Sorted(maps.Keys(c.sources)) {
		s := c.sources[path]
		for _, f := range s.pkg.Files {
			for _, imp := range f.AST.Imports {
				p := importPath(imp)
				if why := c.broken[p]; why != "" && s.reach.needs[p] != nil && !c.guessed(s, imp) {
					faults = append(faults, Fault{Pos: s.pkg.Fset.PositionFor(imp.Pos(), false),
						Text: fmt.Sprintf("a payload needs the import %q: %s", p, why)})
				}
			}
		}
	}
	return faults
}

// guessed says whether an import was only tried because a name could not be placed.
func (c *checker) guessed(s *source, imp *ast.ImportSpec) bool {
	p := importPath(imp)
	for name := range s.reach.needs[p] {
		for _, f := range s.pkg.Files {
			if uses(f, imp, name, guessName(p)) {
				return false
			}
		}
	}
	return true
}

// uses says whether a file names x.name by the import.
func uses(f *File, imp *ast.ImportSpec, name, guess string) bool {
	if imp.Name != nil {
		guess = imp.Name.Name
	}
	found := guess == "."
	ast.Inspect(f.AST, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == guess && sel.Sel.Name == name {
				found = true
			}
		}
		return !found
	})
	return found
}

// Within says whether a position lies in one of the spans.
func Within(spans []Span, pos token.Pos) bool {
	return slices.ContainsFunc(spans, func(s Span) bool { return s.From <= pos && pos < s.To })
}
