package payload

import (
	"go/types"
	"strings"
)

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
	fn, index := lookup(t, name)
	if fn == nil || !rightSignature(fn, name) {
		return None
	}
	if len(index) > 1 {
		return Promoted
	}
	if OnPointer(fn) {
		return Pointer
	}
	return Value
}

// OnPointer says whether a method is declared on the pointer to its type.
func OnPointer(fn *types.Func) bool {
	recv := fn.Signature().Recv()
	if recv == nil {
		return false
	}
	_, ok := types.Unalias(recv.Type()).(*types.Pointer)
	return ok
}

func lookup(t types.Type, name string) (fn *types.Func, index []int) {
	obj, index, _ := types.LookupFieldOrMethod(t, true, nil, name)
	fn, _ = obj.(*types.Func)
	return fn, index
}

// Misfits are the methods of a type that have the name of one which encoding/json calls, but another
// signature, so that they are not called.
func Misfits(t types.Type) (misfits []*types.Func) {
	for _, name := range []string{"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText"} {
		if fn, _ := lookup(t, name); fn != nil && !rightSignature(fn, name) {
			misfits = append(misfits, fn)
		}
	}
	return misfits
}

// Signature is the right one for a method that encoding/json calls.
func Signature(name string) string {
	if strings.HasPrefix(name, "Un") {
		return name + "([]byte) error"
	}
	return name + "() ([]byte, error)"
}

// SignatureOf prints the signature of a method; it is empty if a type in it is not known, because only
// the packages that payload fields name are looked at.
func SignatureOf(fn *types.Func, from *types.Package) string {
	text := TypeString(fn.Signature(), from)
	if strings.Contains(text, "invalid type") {
		return ""
	}
	return ": its signature is " + fn.Name() + strings.TrimPrefix(text, "func")
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
