package payload

import "go/types"

// Redacted lists the paths of hidden values in a struct, also in structs that it holds: address.street,
// items[].card. A field by which a type holds itself is hidden whole, because its paths are endless.
func Redacted(st *types.Struct) []string {
	r := redaction{above: map[*types.Struct]bool{}}
	r.walk(st, "")
	if !r.hides {
		return nil
	}
	return r.paths
}

type redaction struct {
	above map[*types.Struct]bool
	paths []string // of hidden fields, and of those by which a type holds itself
	hides bool     // there is one with a tag
}

func (r *redaction) walk(st *types.Struct, prefix string) {
	r.above[st] = true
	defer delete(r.above, st)
	fields, _ := Fields(st)
	for _, f := range fields {
		inner, suffix := element(f.Var.Type())
		switch {
		case f.Redact || r.above[inner]:
			r.paths = append(r.paths, prefix+f.JSON)
			r.hides = r.hides || f.Redact
		case inner != nil:
			r.walk(inner, prefix+f.JSON+suffix+".")
		}
	}
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
