package emit

import (
	"go/types"
	"reflect"
	"strconv"

	"github.com/dave/jennifer/jen"

	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// typ prints a type as the package would write it; aliases stay as they were written, because what
// they stand for may be internal to another module.
func (f *file) typ(t types.Type) *jen.Statement {
	switch t := t.(type) {
	case *types.Basic:
		if t.Kind() == types.UnsafePointer {
			return f.qual("unsafe", "unsafe", "Pointer")
		}
		return jen.Id(t.Name())
	case *types.Alias:
		return f.named(t.Obj(), t.TypeArgs())
	case *types.Named:
		return f.named(t.Obj(), t.TypeArgs())
	case *types.Pointer:
		return jen.Op("*").Add(f.typ(t.Elem()))
	case *types.Slice:
		return jen.Index().Add(f.typ(t.Elem()))
	case *types.Array:
		return jen.Index(jen.Lit(int(t.Len()))).Add(f.typ(t.Elem()))
	case *types.Map:
		return jen.Map(f.typ(t.Key())).Add(f.typ(t.Elem()))
	case *types.Chan:
		return f.channel(t)
	case *types.Signature:
		return jen.Func().Add(f.signature(t))
	case *types.Struct:
		return f.structType(t, true)
	case *types.Interface:
		return f.interfaceType(t)
	}
	panic("no form for the type " + t.String())
}

func (f *file) named(obj *types.TypeName, args *types.TypeList) *jen.Statement {
	name := jen.Id(obj.Name())
	if p := obj.Pkg(); p != nil && p.Path() != f.pkg.Path {
		name = f.qual(p.Path(), p.Name(), obj.Name())
	}
	if args.Len() > 0 {
		name.TypesFunc(func(g *jen.Group) {
			for t := range args.Types() {
				g.Add(f.typ(t))
			}
		})
	}
	return name
}

func (f *file) channel(t *types.Chan) *jen.Statement {
	elem := f.typ(t.Elem())
	switch t.Dir() {
	case types.SendOnly:
		return jen.Chan().Op("<-").Add(elem)
	case types.RecvOnly:
		return jen.Op("<-").Chan().Add(elem)
	}
	if c, ok := t.Elem().(*types.Chan); ok && c.Dir() == types.RecvOnly {
		elem = jen.Parens(elem)
	}
	return jen.Chan().Add(elem)
}

func (f *file) signature(t *types.Signature) *jen.Statement {
	list := func(g *jen.Group, tuple *types.Tuple, variadic bool) {
		for i := range tuple.Len() {
			v := tuple.At(i).Type()
			if s, ok := v.(*types.Slice); ok && variadic && i == tuple.Len()-1 {
				g.Op("...").Add(f.typ(s.Elem()))
				continue
			}
			g.Add(f.typ(v))
		}
	}
	s := jen.ParamsFunc(func(g *jen.Group) { list(g, t.Params(), t.Variadic()) })
	switch t.Results().Len() {
	case 0:
		return s
	case 1:
		return s.Add(f.typ(t.Results().At(0).Type()))
	}
	return s.ParamsFunc(func(g *jen.Group) { list(g, t.Results(), false) })
}

// structType prints a struct, with one field on one line.
func (f *file) structType(t *types.Struct, tags bool) *jen.Statement {
	var fields []jen.Code
	for i := range t.NumFields() {
		v := t.Field(i)
		field := f.typ(v.Type())
		if !v.Anonymous() {
			field = jen.Id(v.Name()).Add(field)
		}
		switch tag := t.Tag(i); {
		case !tags || tag == "":
		case strconv.CanBackquote(tag):
			field.Op("`" + tag + "`") // as people write it
		default:
			field.Lit(tag)
		}
		fields = append(fields, field)
	}
	if len(fields) < 2 {
		opts := jen.Options{Open: "struct{", Close: "}"}
		return jen.Custom(opts, fields...)
	}
	return jen.Struct(fields...)
}

func (f *file) interfaceType(t *types.Interface) *jen.Statement {
	if t.Empty() {
		return jen.Id("any")
	}
	return jen.InterfaceFunc(func(g *jen.Group) {
		for e := range t.EmbeddedTypes() {
			g.Add(f.typ(e))
		}
		for m := range t.ExplicitMethods() {
			g.Id(m.Name()).Add(f.signature(m.Signature()))
		}
	})
}

// typeText is a type in a comment.
func (f *file) typeText(t types.Type) string { return payload.TypeString(t, f.pkg.Types) }

// text is the canonical text of a field of j.
func (f *file) text(field *model.Field) *jen.Statement {
	value := jen.Id("j").Dot(field.Name)
	t := field.Var.Type()
	convert := func(to types.BasicKind) *jen.Statement {
		if types.Identical(t, types.Typ[to]) {
			return value
		}
		return jen.Id(types.Typ[to].Name()).Parens(value)
	}
	strconv := func(fn string, args ...jen.Code) *jen.Statement {
		return f.qual("strconv", "strconv", fn).Call(args...)
	}
	switch payload.Canonical(t) {
	case payload.StringForm:
		return convert(types.String)
	case payload.IntForm:
		if types.Identical(t, types.Typ[types.Int]) {
			return strconv("Itoa", value)
		}
		return strconv("FormatInt", convert(types.Int64), jen.Lit(10))
	case payload.UintForm:
		return strconv("FormatUint", convert(types.Uint64), jen.Lit(10))
	case payload.BoolForm:
		return strconv("FormatBool", convert(types.Bool))
	case payload.HexForm:
		return f.qual("encoding/hex", "hex", "EncodeToString").Call(value.Index(jen.Op(":")))
	}
	panic("no canonical text for " + reflect.TypeOf(t).String())
}
