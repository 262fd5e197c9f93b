// Package payload sees structs as encoding/json does: which fields go onto the wire, under which
// names, and which are lost on the way without an error.
package payload

import (
	"cmp"
	"fmt"
	"go/types"
	"slices"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// Fault is something wrong with a field.
type Fault struct {
	Var        *types.Var
	Code       diag.Code
	Hint, Text string
	Outer      *types.Var // the field of the struct itself: Var, or the embedded one that it came by
	Other      *types.Var // the second of a clash
	Warning    bool
}

func fault(v *types.Var, code diag.Code, hint, text string) Fault {
	return Fault{Var: v, Code: code, Hint: hint, Text: text, Outer: v}
}

// clash is a fault of two fields.
func clash(v, outer, other *types.Var, format string, args ...any) Fault {
	f := fault(v, diag.SameJSONName, "give each its own name with a json tag", fmt.Sprintf(format, args...))
	f.Outer, f.Other = outer, other
	return f
}

// level is a struct to look into, with the way to it.
type level struct {
	typ       types.Type
	st        *types.Struct
	index     []int
	byPointer bool
	outer     *types.Var
}

// Fields flattens a struct: the fields of embedded structs are its own, in the order of their
// declaration; where two have one name, encoding/json's rules say which is seen.
func Fields(st *types.Struct) ([]*model.Field, []Fault) {
	var all []*model.Field
	var faults []Fault
	seen := map[types.Type]bool{}
	for levels := []level{{st: st}}; len(levels) > 0; {
		var next []level
		for _, l := range levels {
			if l.typ != nil && (seen[l.typ] || l.st == st) { // encoding/json takes a struct up once, the first time
				continue
			}
			fields, below, bad := l.read()
			all = append(all, fields...)
			next = append(next, below...)
			faults = append(faults, bad...)
		}
		for _, l := range levels {
			if l.typ != nil {
				seen[l.typ] = true
			}
		}
		levels = next
	}
	visible, hidden := dominant(all)
	faults = append(faults, hidden...)
	slices.SortFunc(visible, func(a, b *model.Field) int { return slices.Compare(a.Index, b.Index) })
	return visible, faults
}

// read reads the fields of one struct and names the structs that are embedded in it.
func (l level) read() (fields []*model.Field, below []level, faults []Fault) {
	for i := range l.st.NumFields() {
		v, tag := l.st.Field(i), l.st.Tag(i)
		if v.Name() == "_" {
			continue // padding: it holds no data
		}
		f := &model.Field{
			Var: v, Name: v.Name(), JSON: v.Name(), ByPointer: l.byPointer,
			Index: append(slices.Clone(l.index), i), Outer: cmp.Or(l.outer, v),
		}
		faults = append(faults, tagFaults(v, tag)...)
		left, bad := emqTag(f, tag)
		faults = append(faults, bad...)
		dropped := jsonTag(f, tag)
		inner, byPointer := embedded(v)
		if inner != nil && !dropped && byPointer && !v.Exported() {
			faults = append(faults, fault(v, diag.NoWayBack, "embed it by value, or export its type",
				"encoding/json cannot fill an embedded pointer to an unexported struct"))
		}
		switch {
		case inner != nil && !dropped && !f.Tagged:
			below = append(below, level{pointee(v.Type()), inner, f.Index, l.byPointer || byPointer, f.Outer})
		case dropped || !v.Exported() && inner == nil: // an embedded struct may be unexported
			faults = append(faults, lost(f, dropped, left)...)
		case left:
			faults = append(faults, fault(v, diag.EmqTag, `add json:"-", or drop the tag`, `emq:"-" says that the field is left out, but encoding/json writes it`))
		default:
			_, pointer := types.Unalias(v.Type()).(*types.Pointer)
			f.Optional = f.Optional || pointer
			fields = append(fields, f)
		}
	}
	for i, f := range faults {
		faults[i].Outer = cmp.Or(l.outer, f.Var)
	}
	return fields, below, faults
}

// lost says what is wrong with a field that does not go onto the wire.
func lost(f *model.Field, dropped, left bool) []Fault {
	switch {
	case f.Lane || f.Unique:
		return []Fault{fault(f.Var, diag.TagIgnored, "lane and unique fields are part of the payload", "a lane or unique field that is not encoded")}
	case left:
		return nil
	case dropped && f.Var.Exported():
		return []Fault{fault(f.Var, diag.DashUnmarked, `if that is meant, add emq:"-"`, `json:"-": the handler never sees this field`)}
	}
	return []Fault{fault(f.Var, diag.FieldLost, `export it, or add emq:"-" if it is meant to be left out`,
		"an unexported field is not encoded: the handler never sees it")}
}

// pointee is a type, or what it points to.
func pointee(t types.Type) types.Type {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		return types.Unalias(p.Elem())
	}
	return t
}

// embedded is the struct that a field embeds, directly or by pointer.
func embedded(v *types.Var) (st *types.Struct, byPointer bool) {
	if !v.Anonymous() {
		return nil, false
	}
	t := types.Unalias(v.Type())
	if p, ok := t.(*types.Pointer); ok {
		t, byPointer = types.Unalias(p.Elem()), true
	}
	st, _ = t.Underlying().(*types.Struct)
	return st, byPointer
}

// dominant applies encoding/json's rule for equal names: the shallowest wins; of several there, the
// one with a tag; of several again, none. Every other field is lost.
func dominant(all []*model.Field) (visible []*model.Field, faults []Fault) {
	byName := map[string][]*model.Field{}
	var order []string
	for _, f := range all {
		if byName[f.JSON] == nil {
			order = append(order, f.JSON)
		}
		byName[f.JSON] = append(byName[f.JSON], f)
	}
	for _, name := range order {
		same := byName[name]
		slices.SortStableFunc(same, func(a, b *model.Field) int {
			return cmp.Or(cmp.Compare(len(a.Index), len(b.Index)), -cmp.Compare(rank(a), rank(b)), slices.Compare(a.Index, b.Index))
		})
		if len(same) == 1 {
			visible = append(visible, same[0])
			continue
		}
		first, second := same[0], same[1]
		if len(first.Index) == len(second.Index) && rank(first) == rank(second) {
			for _, f := range same[1:] {
				faults = append(faults, clash(f.Var, f.Outer, first.Var,
					"fields %s and %s are both %q in JSON, and encoding/json drops both without an error", selector(first), selector(f), name))
			}
			continue
		}
		visible = append(visible, first)
		for _, f := range same[1:] {
			faults = append(faults, clash(f.Outer, f.Outer, first.Var, "field %s is hidden by %s: both are %q in JSON", selector(f), selector(first), name))
		}
	}
	return visible, faults
}

// selector is a field as Go code may name it, with the embedded field that it came by.
func selector(f *model.Field) string {
	if f.Outer != f.Var {
		return f.Outer.Name() + "." + f.Name
	}
	return f.Name
}

func rank(f *model.Field) int {
	if f.Tagged {
		return 1
	}
	return 0
}

// TypeString prints a type as it is written in package from.
func TypeString(t types.Type, from *types.Package) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == from {
			return ""
		}
		return p.Name()
	})
}
