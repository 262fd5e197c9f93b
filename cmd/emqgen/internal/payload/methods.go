package payload

import "go/types"

// Receiver says on what a method is declared.
type Receiver int

// The kinds of receivers.
const (
	None Receiver = iota
	Value
	Pointer
	Promoted // it comes from an embedded field
)

// Method finds one of the four methods that encoding/json calls: MarshalJSON, MarshalText,
// UnmarshalJSON, UnmarshalText. A method of that name with another signature is not one of them.
func Method(t types.Type, name string) Receiver {
	t = types.Unalias(t)
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	if types.IsInterface(t) {
		return None
	}
	obj, index, _ := types.LookupFieldOrMethod(t, true, nil, name)
	fn, ok := obj.(*types.Func)
	if !ok || !rightSignature(fn, name) {
		return None
	}
	if len(index) > 1 {
		return Promoted
	}
	if recv := fn.Signature().Recv(); recv != nil {
		if _, ok := types.Unalias(recv.Type()).(*types.Pointer); ok {
			return Pointer
		}
	}
	return Value
}

func rightSignature(fn *types.Func, name string) bool {
	sig := fn.Signature()
	isBytes := func(t types.Type) bool {
		s, ok := types.Unalias(t).(*types.Slice)
		return ok && types.Identical(s.Elem(), types.Typ[types.Byte])
	}
	isError := func(t types.Type) bool { return types.Identical(t, types.Universe.Lookup("error").Type()) }
	in, out := sig.Params(), sig.Results()
	if name == "MarshalJSON" || name == "MarshalText" {
		return in.Len() == 0 && out.Len() == 2 && isBytes(out.At(0).Type()) && isError(out.At(1).Type())
	}
	return in.Len() == 1 && isBytes(in.At(0).Type()) && out.Len() == 1 && isError(out.At(0).Type())
}
