package payload

import "go/types"

// Redacted lists the paths of hidden values in a struct, also in structs that it holds: address.street,
// items[].card.
func Redacted(st *types.Struct) []string {
	return redacted(st, "", map[types.Type]bool{})
}

func redacted(st *types.Struct, prefix string, above map[types.Type]bool) (paths []string) {
	if above[st] { // a recursive type: its paths are endless, and the outer ones say enough
		return nil
	}
	above[st] = true
	defer delete(above, st)
	fields, _ := Fields(st)
	for _, f := range fields {
		if f.Redact {
			paths = append(paths, prefix+f.JSON)
			continue
		}
		inner, suffix := element(f.Var.Type())
		if inner != nil {
			paths = append(paths, redacted(inner, prefix+f.JSON+suffix+".", above)...)
		}
	}
	return paths
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
