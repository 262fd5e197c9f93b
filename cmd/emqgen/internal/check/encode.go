package check

import (
	"fmt"
	"go/token"
	"go/types"

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
	seen  map[visit]bool
}

// visit is a type on one way: what is behind a pointer is addressable, and methods on pointers count.
type visit struct {
	t           types.Type
	addressable bool
}

// encodable checks the payload of a job or of an old version.
func encodable(p *model.Package, t *types.Named, diags *diag.List) {
	if t.TypeParams() != nil {
		return // refused as a whole
	}
	w := &walker{pkg: p, diags: diags, pos: p.Place(t.Obj().Pos()), seen: map[visit]bool{}}
	w.walk(t, t.Obj().Name(), false)
}

func (w *walker) fault(code diag.Code, hint, format string, args ...any) {
	if w.code != 0 {
		code = w.code
	}
	w.diags.Errorf(w.pos, code, hint, format, args...)
}

// walk checks a value of type t at a path like Job.Lines[].Amount.
func (w *walker) walk(t types.Type, path string, addressable bool) {
	t = types.Unalias(t)
	if w.seen[visit{t, addressable}] {
		return
	}
	w.seen[visit{t, addressable}] = true
	if w.own(t, path, addressable) {
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
		w.fault(diag.CannotEncode, "leave it out of the payload, or give its type MarshalJSON and UnmarshalJSON", "%s: %s cannot be encoded", path, w.text(t))
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
		switch {
		case to == payload.None && back == payload.None:
			continue
		case to == payload.Promoted || back == payload.Promoted && to == payload.None:
			if _, isStruct := t.Underlying().(*types.Struct); isStruct && !sameAsEmbedded(t) {
				v := embeddedBy(t, "Marshal"+form)
				outer := w.pos
				w.at(v, outer)
				w.fault(diag.Swallowed, "make it a field with a name", "%s: the embedded %s brings Marshal%s with it, and every other field of %s is lost", path, v.Name(), form, w.text(t))
				w.pos = outer
			}
		case to == payload.None:
			w.fault(diag.NoWayBack, "declare both or neither", "%s: %s has Unmarshal%s, but not Marshal%s", path, w.text(t), form, form)
		case back == payload.None:
			w.fault(diag.NoWayBack, "declare both or neither", "%s: %s has Marshal%s, but not Unmarshal%s: it would not come back", path, w.text(t), form, form)
		case to == payload.Pointer && !addressable:
			w.fault(diag.PointerMethod, "declare it on the value, or make the field a pointer",
				"%s: Marshal%s of %s is declared on the pointer, and encoding/json does not call it on a value", path, form, w.text(t))
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
		w.fault(diag.BadSignature, hint, "%s: encoding/json does not call %s of %s%s", path, fn.Name(), w.text(t), payload.SignatureOf(fn, w.pkg.Types))
	}
	return found
}

// embeddedBy is the embedded field of a struct that a method comes by.
func embeddedBy(t types.Type, method string) *types.Var {
	_, index, _ := types.LookupFieldOrMethod(t, true, nil, method)
	return t.Underlying().(*types.Struct).Field(index[0])
}

// sameAsEmbedded says whether a struct is nothing but the one field that it embeds.
func sameAsEmbedded(t types.Type) bool {
	st, ok := t.Underlying().(*types.Struct)
	return ok && st.NumFields() == 1
}

func (w *walker) basic(b *types.Basic, path string) {
	switch {
	case b.Kind() == types.Invalid && w.pkg.Unresolved: // reported by the type checker
	case b.Kind() == types.Invalid:
		w.fault(diag.Unresolved, "", "%s: its type is not known", path)
	case b.Info()&types.IsComplex != 0, b.Kind() == types.UnsafePointer:
		w.fault(diag.CannotEncode, "leave it out of the payload", "%s: %s cannot be encoded", path, b)
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
	if payload.Method(key, "MarshalText") == payload.Value && payload.Method(key, "UnmarshalText") != payload.None {
		return
	}
	w.fault(diag.CannotEncode, "use text or whole numbers as keys, or a type with MarshalText and UnmarshalText",
		"%s: a map with keys of type %s cannot be encoded", path, w.text(key))
}

func (w *walker) iface(t types.Type, u *types.Interface, path string) {
	if u.Empty() {
		w.fault(diag.AnyValue, "use a struct, or json.RawMessage and decode it in the handler",
			"%s: %s does not come back as it was (numbers become float64, structs become maps)", path, w.text(t))
		return
	}
	w.fault(diag.NoWayBack, "use a concrete type, or one with its own UnmarshalJSON", "%s: the interface %s can be encoded, but not decoded", path, w.text(t))
}

func (w *walker) structFields(t types.Type, st *types.Struct, path string, addressable bool) {
	fields, faults := payload.Fields(st)
	outer := w.pos
	for _, f := range w.ours(t, faults) {
		w.at(f.Var, outer)
		w.fault(f.Code, f.Hint, "%s: %s", path+"."+f.Var.Name(), f.Text)
	}
	for _, f := range fields {
		w.at(f.Var, outer)
		w.walk(f.Var.Type(), path+"."+f.Name, addressable || f.ByPointer)
	}
	w.pos = outer
}

// ours leaves out what the author of another package has said on purpose, and states its lost fields
// once, with what can be done from here.
func (w *walker) ours(t types.Type, faults []payload.Fault) (kept []payload.Fault) {
	lost := false
	for _, f := range faults {
		if f.Var.Pkg() != w.pkg.Types {
			switch {
			case f.Code == diag.DashUnmarked, f.Code == diag.FieldLost && (lost || opaque(t)):
				continue
			case f.Code == diag.FieldLost:
				lost = true
				f.Hint = `use another type, such as text; or give one of your own MarshalJSON and UnmarshalJSON; or, if ` + w.text(t) + ` is yours, add emq:"-"`
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

// at moves to a field that lies in the package itself; for others the field above stays the place.
func (w *walker) at(v *types.Var, outer token.Position) {
	w.pos = outer
	if v.Pkg() == w.pkg.Types && v.Pos().IsValid() && w.code == 0 {
		w.pos = w.pkg.Place(v.Pos())
	}
}

func (w *walker) text(t types.Type) string { return payload.TypeString(t, w.pkg.Types) }

func isByte(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Kind() == types.Uint8 && payload.Method(t, "MarshalJSON") == payload.None && payload.Method(t, "MarshalText") == payload.None
}

// lockByValue refuses payloads that hold a lock: they are copied all the time, and go vet says so in
// the generated file.
func lockByValue(p *model.Package, j *model.Job, diags *diag.List) {
	st, ok := j.Type.Underlying().(*types.Struct)
	if !ok {
		return
	}
	for v := range st.Fields() {
		if lock := lockIn(v.Type(), v.Name(), map[types.Type]bool{}); lock != "" {
			diags.Errorf(p.Place(v.Pos()), diag.Lock, "use a pointer", "%s: a lock by value, and payloads are copied", fmt.Sprintf("%s.%s", j.Name, lock))
		}
	}
}

// lockIn is the path to a lock that a value holds; it is empty if there is none.
func lockIn(t types.Type, path string, seen map[types.Type]bool) string {
	t = types.Unalias(t)
	if seen[t] {
		return ""
	}
	seen[t] = true
	if isLock(t) {
		return path
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for v := range u.Fields() {
			inner := path
			if v.Name() != "_" { // what forbids copies is most often a field without a name
				inner += "." + v.Name()
			}
			if lock := lockIn(v.Type(), inner, seen); lock != "" {
				return lock
			}
		}
	case *types.Array:
		return lockIn(u.Elem(), path+"[]", seen)
	}
	return ""
}

// isLock is go vet's rule: Lock and Unlock on the pointer, not on the value.
func isLock(t types.Type) bool {
	named, ok := t.(*types.Named)
	if !ok || types.IsInterface(t) {
		return false
	}
	onPointer, onValue := types.NewMethodSet(types.NewPointer(named)), types.NewMethodSet(named)
	has := func(s *types.MethodSet, name string) bool { return s.Lookup(named.Obj().Pkg(), name) != nil }
	return has(onPointer, "Lock") && has(onPointer, "Unlock") && !has(onValue, "Lock") ||
		has(onPointer, "lock") && has(onPointer, "unlock") && !has(onValue, "lock") && named.Obj().Name() == "noCopy"
}
