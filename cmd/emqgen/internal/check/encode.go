package check

import (
	"fmt"
	"go/token"
	"go/types"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// walker follows a payload into its types, as encoding/json would, and reports what does not arrive.
type walker struct {
	pkg   *model.Package
	diags *diag.List
	code  diag.Code // of every fault, or 0 for each its own
	pos   token.Position
	parts

	field *types.Var // of the package, that is looked at
	base  string     // the way to it
	// Each field of the package is looked at by itself, so that the second use of a bad type is also
	// found; structs of the package are looked at once, since their faults have places of their own.
	here, walked map[visit]bool
	said         once

	// What is wrong inside a type of another module is one fault of the field: that type is not made for it.
	abroad types.Type // the type, while it is looked into
	bundle map[*types.Var]*bundle
}

// parts are fields of a payload of which something has been said that explains what is found in them.
type parts struct {
	locks     map[*types.Var]bool // they hold a lock
	inherited map[*types.Var]bool // they embed another job
}

// bundle are the faults of a type of another module in one field.
type bundle struct {
	first diag.Diagnostic
	of    types.Type
	more  int
}

// visit is a type on one way: what is behind a pointer is addressable, and methods on pointers count.
type visit struct {
	t           types.Type
	addressable bool
}

// encodable checks the payload of a job or of an old version.
func encodable(p *model.Package, t *types.Named, about parts, said once, diags *diag.List) {
	if t.TypeParams() != nil {
		return // refused as a whole
	}
	w := newWalker(p, p.Place(t.Obj().Pos()), said, diags)
	w.parts = about
	w.whole(t, t.Obj().Name())
}

func newWalker(p *model.Package, pos token.Position, said once, diags *diag.List) *walker {
	return &walker{pkg: p, diags: diags, pos: pos, here: map[visit]bool{}, walked: map[visit]bool{}, said: said, bundle: map[*types.Var]*bundle{}}
}

// whole checks a type and reports what is wrong.
func (w *walker) whole(t types.Type, path string) {
	w.walk(t, path, false)
	for _, b := range w.bundle {
		if b.more > 0 {
			b.first.Text += fmt.Sprintf(" (and %d more in %s)", b.more, w.text(b.of))
			b.first.Hint = "take another type, or wrap it in one of your own with MarshalJSON and UnmarshalJSON"
		}
		w.diags.Add(b.first)
	}
}

// fault reports what is wrong at a path, once for each field.
func (w *walker) fault(code diag.Code, hint, path, format string, args ...any) {
	w.report(path, diag.Diagnostic{Code: code, Hint: hint, Text: fmt.Sprintf(format, args...)})
}

func (w *walker) report(path string, d diag.Diagnostic) {
	if !w.said.first(report{w.field, d.Code, strings.TrimPrefix(path, w.base), d.Text}) {
		return
	}
	if w.code != 0 && !d.Warning {
		d.Code = w.code
	}
	d.Pos, d.Text = w.pos, path+": "+d.Text
	switch b := w.bundle[w.field]; {
	case w.abroad == nil:
		w.diags.Add(d)
	case b == nil:
		w.bundle[w.field] = &bundle{first: d, of: w.abroad}
	default:
		b.more++
	}
}

// walk checks a value of type t at a path like Job.Lines[].Amount.
func (w *walker) walk(t types.Type, path string, addressable bool) {
	t = types.Unalias(t)
	if w.here[visit{t, addressable}] {
		return
	}
	w.here[visit{t, addressable}] = true
	if w.own(t, path, addressable) || w.synchronizes(t, path) {
		return
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		w.basic(u, path)
	case *types.Pointer:
		w.walk(u.Elem(), path, true)
	case *types.Slice:
		if isByte(u.Elem()) {
			return // base64
		}
		w.walk(u.Elem(), path+"[]", true)
	case *types.Array:
		w.walk(u.Elem(), path+"[]", addressable)
	case *types.Map:
		w.mapKey(u, path)
		w.walk(u.Elem(), path+"[]", false)
	case *types.Interface:
		w.iface(t, u, path)
	case *types.Struct:
		w.structFields(t, u, path, addressable)
	case *types.Chan, *types.Signature:
		w.fault(diag.CannotEncode, "leave it out of the payload, or give its type MarshalJSON and UnmarshalJSON", path, "%s cannot be encoded", w.text(t))
	}
}

// own deals with types that encode themselves; it answers true for them.
func (w *walker) own(t types.Type, path string, addressable bool) bool {
	if _, ok := t.(*types.Pointer); ok || types.IsInterface(t) {
		return false // what it points to, or holds, decides
	}
	if w.misfits(t, path) {
		return false
	}
	for _, form := range []string{"JSON", "Text"} {
		to, back := payload.Method(t, "Marshal"+form), payload.Method(t, "Unmarshal"+form)
		if to == payload.None && back == payload.None {
			continue
		}
		if w.takenOver(t, form, to, back, path) {
			return true
		}
		switch {
		case to == payload.None:
			w.fault(diag.NoWayBack, "declare both or neither", path, "%s has Unmarshal%s, but not Marshal%s", w.text(t), form, form)
		case back == payload.None:
			w.fault(diag.NoWayBack, "declare both or neither", path, "%s has Marshal%s, but not Unmarshal%s: it would not come back", w.text(t), form, form)
		case !addressable && !hasMethod(t, "Marshal"+form):
			w.fault(diag.PointerMethod, "declare it on the value, or make the field a pointer", path,
				"Marshal%s of %s is declared on the pointer, and encoding/json does not call it on a value", form, w.text(t))
		}
		return true
	}
	return false
}

// misfits reports methods that look as if they encoded the type, and are never called.
func (w *walker) misfits(t types.Type, path string) (found bool) {
	for _, fn := range payload.Misfits(t) {
		found = true
		hint := "call it something else, or write " + payload.Signature(fn.Name())
		if fn.Pkg() != w.pkg.Types {
			hint += "; if it is not yours, take another type, or wrap it in one of your own with MarshalJSON and UnmarshalJSON"
		}
		w.fault(diag.BadSignature, hint, path, "encoding/json does not call %s of %s%s", fn.Name(), w.text(t), payload.SignatureOf(fn, w.pkg.Types))
	}
	return found
}

func (w *walker) basic(b *types.Basic, path string) {
	switch {
	case b.Kind() == types.Invalid && w.pkg.Unresolved: // reported by the type checker
	case b.Kind() == types.Invalid:
		w.fault(diag.Unresolved, "", path, "its type is not known")
	case b.Info()&types.IsComplex != 0, b.Kind() == types.UnsafePointer:
		w.fault(diag.CannotEncode, "leave it out of the payload", path, "%s cannot be encoded", b)
	}
}

// mapKey checks a map's key: text, a whole number, or something that makes and reads text.
func (w *walker) mapKey(m *types.Map, path string) {
	key := m.Key()
	if w.misfits(key, path) {
		return
	}
	if b, ok := key.Underlying().(*types.Basic); ok && b.Info()&(types.IsString|types.IsInteger) != 0 {
		return
	}
	if isTextKey(key) {
		return
	}
	if ptr, ok := types.Unalias(key).(*types.Pointer); ok && isTextKey(ptr.Elem()) {
		w.fault(diag.NoWayBack, "use "+w.text(ptr.Elem())+" itself as the key", path,
			"a map with keys of type %s can be encoded, but not decoded", w.text(key))
		return
	}
	w.fault(diag.CannotEncode, "use text or whole numbers as keys, or a type with MarshalText and UnmarshalText", path,
		"a map with keys of type %s cannot be encoded", w.text(key))
}

// isTextKey says whether encoding/json can write a key as text, and read it into a new value of its type.
// It does not look behind a pointer for the method that reads.
func isTextKey(key types.Type) bool {
	if payload.Method(key, "MarshalText") == payload.Promoted && (!sameAsEmbedded(key) || mayBeNil(key, "MarshalText")) {
		return false // its other fields would be lost, or there is nothing to read into
	}
	return hasMethod(key, "MarshalText") && hasMethod(types.NewPointer(key), "UnmarshalText")
}

func (w *walker) iface(t types.Type, u *types.Interface, path string) {
	if !u.IsMethodSet() {
		return // a constraint: the type checker has reported it
	}
	if u.Empty() {
		w.fault(diag.AnyValue, "use a struct, or json.RawMessage and decode it in the handler", path,
			"%s does not come back as it was (numbers become float64, structs become maps)", w.text(t))
		return
	}
	w.fault(diag.NoWayBack, "use a concrete type, or one with its own UnmarshalJSON", path, "the interface %s can be encoded, but not decoded", w.text(t))
}

func (w *walker) structFields(t types.Type, st *types.Struct, path string, addressable bool) {
	if key := (visit{t, addressable}); w.ofPackage(st) {
		if w.walked[key] {
			return
		}
		w.walked[key] = true
	}
	fields, faults := payload.Fields(st)
	outer, above, base, here, abroad := w.pos, w.field, w.base, w.here, w.abroad
	if w.abroad == nil && w.foreign(t) {
		w.abroad = t
	}
	for _, f := range w.ours(t, faults) {
		if w.inherited[f.Outer] {
			continue
		}
		name := f.Var.Name()
		if f.Outer != f.Var {
			name = f.Outer.Name() + "." + name
		}
		if w.at(f.Var, f.Outer, path, outer) && w.field == f.Var {
			w.base = path + "." + name // the same by whatever it is embedded
		}
		lost := f.Code == diag.FieldLost || f.Code == diag.DashUnmarked
		if lost && (w.locks[f.Var] || w.locks[f.Outer] && f.Var.Pkg() != w.pkg.Types) {
			continue // it is a lock, which has been said
		}
		if f.Other != nil && f.Other.Pkg() == w.pkg.Types {
			f.Text += " (the other is at " + diag.Place(w.pkg.Place(f.Other.Pos()), w.pkg.From) + ")"
		}
		w.report(path+"."+name, diag.Diagnostic{Code: f.Code, Hint: f.Hint, Text: f.Text, Warning: f.Warning})
	}
	for _, f := range fields {
		if w.inherited[f.Outer] {
			continue
		}
		w.field, w.base, w.here = above, base, here
		if w.at(f.Var, f.Outer, path, outer) {
			w.here = map[visit]bool{}
		}
		w.walk(f.Var.Type(), path+"."+f.Name, addressable || f.ByPointer)
	}
	w.pos, w.field, w.base, w.here, w.abroad = outer, above, base, here, abroad
}

// foreign says whether a type is declared in another module.
func (w *walker) foreign(t types.Type) bool {
	named, ok := t.(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg() == w.pkg.Types {
		return false
	}
	path, module := named.Obj().Pkg().Path(), w.pkg.Module
	return module == "" || path != module && !strings.HasPrefix(path, module+"/")
}

// ofPackage says whether the fields of a struct are declared in the package itself.
func (w *walker) ofPackage(st *types.Struct) bool {
	return st.NumFields() > 0 && st.Field(0).Pkg() == w.pkg.Types
}

// ours leaves out what the author of another package has said on purpose, and states the lost fields
// of each type once, with what can be done from here.
func (w *walker) ours(t types.Type, faults []payload.Fault) (kept []payload.Fault) {
	lost := map[*types.Var]bool{}
	for _, f := range faults {
		if f.Var.Pkg() != w.pkg.Types {
			owner := t
			if f.Outer != f.Var {
				owner = f.Outer.Type()
			}
			of := f.Outer
			if of == f.Var {
				of = nil
			}
			switch {
			case f.Code == diag.DashUnmarked, f.Warning, f.Code == diag.FieldLost && (lost[of] || opaque(owner)):
				continue
			case f.Code == diag.FieldLost:
				lost[of] = true
				f.Hint = `use another type, such as text; or give one of your own MarshalJSON and UnmarshalJSON`
				if first, _, _ := strings.Cut(f.Var.Pkg().Path(), "/"); strings.Contains(first, ".") { // not the standard library's
					f.Hint += `; or, if ` + w.text(owner) + ` is yours, add emq:"-"`
				}
			}
		}
		kept = append(kept, f)
	}
	return kept
}

// opaque is a protobuf message, whose unexported fields carry nothing over.
func opaque(t types.Type) bool {
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, "ProtoReflect")
	return obj != nil
}

// at moves to a field, or to that by which it is embedded, if one lies in the package itself; for
// others the field above stays the place.
func (w *walker) at(v, embedded *types.Var, path string, outer token.Position) bool {
	w.pos = outer
	if v.Pkg() != w.pkg.Types {
		v = embedded
	}
	if v.Pkg() != w.pkg.Types || !v.Pos().IsValid() {
		return false
	}
	w.field, w.base = v, path
	if w.code == 0 {
		w.pos = w.pkg.Place(v.Pos())
	}
	return true
}

// synchronizes deals with the types of sync and sync/atomic, which hold nothing that is encoded; it
// answers true for them.
func (w *walker) synchronizes(t types.Type, path string) bool {
	named, ok := t.(*types.Named)
	if !ok || named.Obj().Pkg() == nil || types.IsInterface(t) {
		return false
	}
	if p := named.Obj().Pkg().Path(); p != "sync" && p != "sync/atomic" {
		return false
	}
	if !w.locks[w.field] {
		w.fault(diag.CannotEncode, `leave it out of the payload: json:"-" emq:"-"`, path, "%s is not encoded", w.text(t))
	}
	return true
}

func (w *walker) text(t types.Type) string { return payload.TypeString(t, w.pkg.Types) }

func isByte(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Uint8 && payload.Method(t, "MarshalJSON") == payload.None && payload.Method(t, "MarshalText") == payload.None
}
