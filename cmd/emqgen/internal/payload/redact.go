package payload

import "go/types"

// Redacted lists the paths of hidden values in a struct, also in structs that it holds: address.street,
// items[].card. A field by which a type that hides something holds itself is hidden whole, because its paths
// are endless.
func Redacted(st *types.Struct) []string {
	r := redaction{above: map[*types.Struct]bool{}}
	r.walk(st, "")
	return r.paths
}

type redaction struct {
	above map[*types.Struct]bool
	paths []string // of hidden fields, and of those by which a type holds itself
}

func (r *redaction) walk(st *types.Struct, prefix string) {
	r.above[st] = true
	defer delete(r.above, st)
	fields, _ := Fields(st)
	for _, f := range fields {
		inner, suffix := element(f.Var.Type())
		switch {
		case f.Redact, r.above[inner] && hides(inner, map[*types.Struct]bool{}):
			r.paths = append(r.paths, prefix+f.JSON)
		case r.above[inner]:
		case inner != nil:
			r.walk(inner, prefix+f.JSON+suffix+".")
		}
	}
}

// hides says whether there is a hidden value in a struct, at any depth.
func hides(st *types.Struct, seen map[*types.Struct]bool) bool {
	seen[st] = true
	fields, _ := Fields(st)
	for _, f := range fields {
		inner, _ := element(f.Var.Type())
		if f.Redact || inner != nil && !seen[inner] && hides(inner, seen) {
			return true
		}
	}
	return false
}

// element is the struct that a value holds, through pointers, slices, arrays and maps. There is none
// in a type that holds nothing but itself.
func element(t types.Type) (st *types.Struct, suffix string) {
	for seen := map[types.Type]bool{}; !seen[t]; {
		seen[t] = true
		if Method(t, "MarshalJSON") != None || Method(t, "MarshalText") != None {
			return nil, ""
		}
		switch u := t.Underlying().(type) {
		case *types.Struct:
			return u, suffix
		case *types.Pointer:
			t = u.Elem()
		case *types.Slice:
			t, suffix = u.Elem(), suffix+"[]"
		case *types.Array:
			t, suffix = u.Elem(), suffix+"[]"
		case *types.Map:
			t, suffix = u.Elem(), suffix+"[]"
		}
	}
	return nil, ""
}
