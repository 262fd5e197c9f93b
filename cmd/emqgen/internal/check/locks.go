package check

import (
	"go/types"
	"reflect"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// lock is one that a value holds, and the way to it.
type lock struct {
	path   string // empty if there is none
	atomic bool   // a value of sync/atomic
	left   bool   // a field on the way is left out of the payload
}

// lockByValue refuses payloads that hold a lock: they are copied all the time, and go vet says so in
// the generated file. It answers the fields that do.
func lockByValue(p *model.Package, j *model.Job, inherited map[*types.Var]bool, diags *diag.List) map[*types.Var]bool {
	locks := map[*types.Var]bool{}
	st, ok := j.Type.Underlying().(*types.Struct)
	if !ok {
		return locks
	}
	for i := range st.NumFields() {
		v := st.Field(i)
		l := lockIn(v.Type(), v.Name(), map[types.Type]bool{}, locks)
		if l.path == "" || inherited[v] {
			continue
		}
		locks[v] = true
		l.left = l.left || leftOut(v, st.Tag(i))
		what := "a lock"
		if l.atomic {
			what = "an atomic"
		}
		diags.Errorf(p.Place(v.Pos()), diag.Lock, l.hint(v.Type()), "%s.%s: %s by value, and payloads are copied", j.Name, l.path, what)
	}
	return locks
}

// hint says all that is to be done to a field of type t with the lock.
func (l lock) hint(t types.Type) string {
	switch {
	case l.left, payload.Method(t, "MarshalJSON") != payload.None, payload.Method(t, "MarshalText") != payload.None:
		return "use a pointer"
	case l.atomic:
		return `leave it out of the payload, as a pointer with json:"-" emq:"-", or take a plain value`
	}
	return `use a pointer, and leave it out of the payload: json:"-" emq:"-"`
}

// leftOut says whether a field is left out of the payload on purpose.
func leftOut(v *types.Var, tag string) bool {
	t := reflect.StructTag(tag)
	return t.Get("emq") == "-" && (t.Get("json") == "-" || !v.Exported())
}

// lockIn finds a lock that a value holds, the fields of which go to way.
func lockIn(t types.Type, path string, seen map[types.Type]bool, way map[*types.Var]bool) lock {
	t = types.Unalias(t)
	if seen[t] {
		return lock{}
	}
	seen[t] = true
	if named := asLock(t); named != nil {
		return lock{path: path, atomic: named.Obj().Pkg().Path() == "sync/atomic"}
	}
	switch u := t.Underlying().(type) {
	case *types.Struct:
		for i := range u.NumFields() {
			v, inner := u.Field(i), path
			if v.Name() != "_" { // what forbids copies is most often a field without a name
				inner += "." + v.Name()
			}
			if l := lockIn(v.Type(), inner, seen, way); l.path != "" {
				way[v] = true
				l.left = l.left || leftOut(v, u.Tag(i))
				return l
			}
		}
	case *types.Array:
		return lockIn(u.Elem(), path+"[]", seen, way)
	}
	return lock{}
}

// asLock is go vet's rule: Lock and Unlock on the pointer, not on the value. It answers nil for any
// other type.
func asLock(t types.Type) *types.Named {
	named, ok := t.(*types.Named)
	if !ok || types.IsInterface(t) {
		return nil
	}
	onPointer, onValue := types.NewMethodSet(types.NewPointer(named)), types.NewMethodSet(named)
	has := func(s *types.MethodSet, name string) bool { return s.Lookup(named.Obj().Pkg(), name) != nil }
	if has(onPointer, "Lock") && has(onPointer, "Unlock") && !has(onValue, "Lock") ||
		has(onPointer, "lock") && has(onPointer, "unlock") && !has(onValue, "lock") && named.Obj().Name() == "noCopy" {
		return named
	}
	return nil
}
