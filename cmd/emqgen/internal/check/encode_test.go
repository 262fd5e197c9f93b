package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/token"
	"go/types"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// shape is one type, for the program and for the type checker.
type shape struct {
	real  reflect.Type
	model types.Type
}

func errorType() types.Type { return types.Universe.Lookup("error").Type() }

// leaves are types without parts.
func leaves() []shape {
	basic := func(t reflect.Type, k types.BasicKind) shape { return shape{t, types.Typ[k]} }
	return []shape{
		basic(reflect.TypeFor[int](), types.Int), basic(reflect.TypeFor[string](), types.String), basic(reflect.TypeFor[bool](), types.Bool),
		basic(reflect.TypeFor[float64](), types.Float64), basic(reflect.TypeFor[uint8](), types.Uint8), basic(reflect.TypeFor[int64](), types.Int64),
		basic(reflect.TypeFor[complex64](), types.Complex64),
		{reflect.TypeFor[any](), types.NewInterfaceType(nil, nil)},
		{reflect.TypeFor[error](), errorType()},
		{reflect.TypeFor[chan int](), types.NewChan(types.SendRecv, types.Typ[types.Int])},
		{reflect.TypeFor[func()](), types.NewSignatureType(nil, nil, nil, nil, nil, false)},
	}
}

// mapKeys are types of map keys, of which encoding/json takes some.
func mapKeys() []shape {
	return []shape{
		{reflect.TypeFor[string](), types.Typ[types.String]},
		{reflect.TypeFor[int16](), types.Typ[types.Int16]},
		{reflect.TypeFor[uint](), types.Typ[types.Uint]},
		{reflect.TypeFor[bool](), types.Typ[types.Bool]},
		{reflect.TypeFor[float64](), types.Typ[types.Float64]},
		{reflect.TypeFor[[2]int](), types.NewArray(types.Typ[types.Int], 2)},
	}
}

func drawShape(t *rapid.T, pkg *types.Package, depth int) shape {
	if depth == 0 {
		return rapid.SampledFrom(leaves()).Draw(t, "leaf")
	}
	inner := func() shape { return drawShape(t, pkg, depth-1) }
	switch rapid.IntRange(0, 6).Draw(t, "form") {
	case 0:
		s := inner()
		return shape{reflect.PointerTo(s.real), types.NewPointer(s.model)}
	case 1:
		s := inner()
		return shape{reflect.SliceOf(s.real), types.NewSlice(s.model)}
	case 2:
		s := inner()
		return shape{reflect.ArrayOf(2, s.real), types.NewArray(s.model, 2)}
	case 3:
		k, s := rapid.SampledFrom(mapKeys()).Draw(t, "key"), inner()
		return shape{reflect.MapOf(k.real, s.real), types.NewMap(k.model, s.model)}
	case 4, 5:
		a, b := inner(), inner()
		return shape{
			reflect.StructOf([]reflect.StructField{{Name: "A", Type: a.real}, {Name: "B", Type: b.real, Tag: `json:"b,omitempty"`}}),
			types.NewStruct([]*types.Var{
				types.NewField(token.NoPos, pkg, "A", a.model, false), types.NewField(token.NoPos, pkg, "B", b.model, false),
			}, []string{"", `json:"b,omitempty"`}),
		}
	}
	return rapid.SampledFrom(leaves()).Draw(t, "leaf")
}

// TestWhatIsAcceptedComesBack holds the rule against encoding/json itself: a type is accepted if and
// only if a value in which nothing is empty survives the way there and back.
func TestWhatIsAcceptedComesBack(t *testing.T) {
	pkg := types.NewPackage("p", "p")
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t, pkg, 3)
		var diags diag.List
		w := newWalker(&model.Package{Types: pkg, Fset: token.NewFileSet()}, token.Position{}, once{}, &diags)
		w.whole(s.model, "X")
		value := reflect.New(s.real)
		fill(value.Elem())
		err := thereAndBack(value)
		if diags.Failed() != (err != nil) {
			var said bytes.Buffer
			if err := diags.Print(&said, ""); err != nil {
				t.Fatal(err)
			}
			t.Fatalf("%v: encoding/json says %v, emqgen says %q", s.real, err, &said)
		}
	})
}

func thereAndBack(value reflect.Value) error {
	data, err := json.Marshal(value.Elem().Interface())
	if err != nil {
		return err
	}
	back := reflect.New(value.Type().Elem())
	if err := json.Unmarshal(data, back.Interface()); err != nil {
		return err
	}
	if !reflect.DeepEqual(value.Interface(), back.Interface()) {
		return errors.New("it comes back changed")
	}
	return nil
}

// fill puts something that is not zero into every part of a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Int, reflect.Int16, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint, reflect.Uint8:
		v.SetUint(7)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Interface:
		if v.NumMethod() == 0 {
			v.Set(reflect.ValueOf(int64(7)))
		} else {
			v.Set(reflect.ValueOf(errors.New("x")))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, elem)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}
