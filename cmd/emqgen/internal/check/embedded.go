package check

import (
	"go/types"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// takenOver reports, at the embedded field, a struct whose encoding is that of what it embeds, to the harm
// of its other fields; or, where it has none, of a pointer or an interface, whose methods encoding/json
// calls also where it is nil.
func (w *walker) takenOver(t types.Type, form string, to, back payload.Receiver, path string) bool {
	method := "Marshal" + form
	if to != payload.Promoted {
		method = "Unmarshal" + form
	}
	_, isStruct := t.Underlying().(*types.Struct)
	if !isStruct || to != payload.Promoted && back != payload.Promoted || sameAsEmbedded(t) && !mayBeNil(t, method) {
		return false
	}
	v := embeddedBy(t, method)
	pos, field, base := w.pos, w.field, w.base
	w.at(v, v, path, pos)
	if sameAsEmbedded(t) {
		w.fault(diag.Swallowed, "embed it by value, or make it a field with a name", path,
			"the embedded %s brings %s with it, and encoding/json calls it on nil, which panics", v.Name(), method)
	} else {
		w.fault(diag.Swallowed, "make it a field with a name", path, "the embedded %s brings %s with it, and every other field of %s is lost", v.Name(), method, w.text(t))
	}
	w.pos, w.field, w.base = pos, field, base
	return true
}

// hasMethod says whether a method can be called on a value that has no address.
func hasMethod(t types.Type, name string) bool { return types.NewMethodSet(t).Lookup(nil, name) != nil }

// mayBeNil says whether a promoted method comes by a pointer or an interface, at any depth.
func mayBeNil(t types.Type, method string) bool {
	obj, _, indirect := types.LookupFieldOrMethod(t, true, nil, method)
	fn, ok := obj.(*types.Func)
	return ok && (indirect || types.IsInterface(fn.Signature().Recv().Type()))
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
