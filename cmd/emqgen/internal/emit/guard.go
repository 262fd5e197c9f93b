package emit

import (
	"cmp"
	"go/types"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// guard declares a function that converts each struct of the package's payloads to its shape, so
// that a changed field does not compile until the generator has run again. It is never called.
func (f *file) guard() {
	f.Add(doc(
		"If a conversion below does not compile, a struct has changed since this file was generated:",
		"run go generate.",
	))
	f.Func().Id("_").Params().BlockFunc(func(g *jen.Group) {
		for _, n := range f.guarded() {
			st, ok := n.Underlying().(*types.Struct)
			if !ok {
				continue
			}
			g.Id("_").Op("=").Add(f.structType(st, false)).Parens(jen.Id(n.Obj().Name()).Values())
		}
	})
}

// guarded lists the structs of this package that payloads are made of, by name.
func (f *file) guarded() []*types.Named {
	var found []*types.Named
	seen := map[*types.Named]bool{}
	var walk func(t types.Type)
	walk = func(t types.Type) {
		switch t := types.Unalias(t).(type) {
		case *types.Named:
			for arg := range t.TypeArgs().Types() {
				walk(arg)
			}
			if seen[t] || t.Obj().Pkg() != f.pkg.Types {
				return
			}
			seen[t] = true
			_, isStruct := t.Underlying().(*types.Struct)
			switch {
			case !isStruct:
				walk(t.Underlying())
			case t.TypeArgs().Len() == 0:
				found = append(found, t)
				if payload.Method(t, "MarshalJSON") == payload.None && payload.Method(t, "MarshalText") == payload.None {
					walk(t.Underlying())
				}
			}
		case *types.Struct:
			for v := range t.Fields() {
				walk(v.Type())
			}
		case *types.Pointer:
			walk(t.Elem())
		case *types.Slice:
			walk(t.Elem())
		case *types.Array:
			walk(t.Elem())
		case *types.Map:
			walk(t.Elem())
		}
	}
	for _, j := range f.pkg.Jobs {
		walk(j.Type)
		for _, old := range j.Olds {
			walk(old.Type)
		}
	}
	slices.SortFunc(found, func(a, b *types.Named) int { return cmp.Compare(a.Obj().Name(), b.Obj().Name()) })
	return found
}
