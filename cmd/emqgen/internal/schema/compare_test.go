package schema

import (
	"encoding/json"
	"fmt"
	"go/token"
	"go/types"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// shape is one type, for the program and for the type checker.
type shape struct {
	real  reflect.Type
	model types.Type
}

func leaves() []shape {
	basic := func(t reflect.Type, k types.BasicKind) shape { return shape{t, types.Typ[k]} }
	return []shape{
		basic(reflect.TypeFor[int8](), types.Int8), basic(reflect.TypeFor[int32](), types.Int32), basic(reflect.TypeFor[int](), types.Int),
		basic(reflect.TypeFor[uint16](), types.Uint16), basic(reflect.TypeFor[uint32](), types.Uint32), basic(reflect.TypeFor[uint64](), types.Uint64),
		basic(reflect.TypeFor[float32](), types.Float32), basic(reflect.TypeFor[float64](), types.Float64),
		basic(reflect.TypeFor[string](), types.String), basic(reflect.TypeFor[bool](), types.Bool),
		{reflect.TypeFor[[]byte](), types.NewSlice(types.Typ[types.Byte])},
	}
}

// drawPair draws a type and what may have become of it.
func drawPair(t *rapid.T, depth int) (old, now shape) {
	if rapid.IntRange(0, 9).Draw(t, "change") == 0 {
		a, _ := drawPair(t, depth)
		b, _ := drawPair(t, depth)
		return a, b
	}
	form := 5
	if depth > 0 {
		form = rapid.IntRange(0, 5).Draw(t, "form")
	}
	if form == 5 {
		leaf := rapid.SampledFrom(leaves()).Draw(t, "leaf")
		if rapid.IntRange(0, 3).Draw(t, "other leaf") == 0 {
			return leaf, rapid.SampledFrom(leaves()).Draw(t, "leaf")
		}
		return leaf, leaf
	}
	if form == 4 {
		return drawStructs(t, depth)
	}
	a, b := drawPair(t, depth-1)
	wrap := func(form int, s shape) shape {
		switch form {
		case 0:
			return shape{reflect.PointerTo(s.real), types.NewPointer(s.model)}
		case 1:
			return shape{reflect.SliceOf(s.real), types.NewSlice(s.model)}
		case 2:
			return shape{reflect.MapOf(reflect.TypeFor[string](), s.real), types.NewMap(types.Typ[types.String], s.model)}
		}
		return shape{reflect.ArrayOf(2, s.real), types.NewArray(s.model, 2)}
	}
	after := form
	if rapid.IntRange(0, 3).Draw(t, "other wrap") == 0 {
		after = rapid.IntRange(0, 3).Draw(t, "wrap")
	}
	return wrap(form, a), wrap(after, b)
}

// drawStructs draws two structs that have some fields in common.
func drawStructs(t *rapid.T, depth int) (old, now shape) {
	pkg := types.NewPackage("p", "p")
	var real [2][]reflect.StructField
	var vars [2][]*types.Var
	var tags [2][]string
	for i, name := range []string{"A", "B", "C"} {
		a, b := drawPair(t, depth-1)
		json := strings.ToLower(name)
		for side, s := range []shape{a, b} {
			if rapid.IntRange(0, 3).Draw(t, "left out") == 0 {
				continue
			}
			if side == 1 && i == 2 && rapid.Bool().Draw(t, "other case") {
				json = "C"
			}
			tag := fmt.Sprintf(`json:"%s"`, json)
			real[side] = append(real[side], reflect.StructField{Name: name, Type: s.real, Tag: reflect.StructTag(tag)})
			vars[side] = append(vars[side], types.NewField(token.NoPos, pkg, name, s.model, false))
			tags[side] = append(tags[side], tag)
		}
	}
	return shape{reflect.StructOf(real[0]), types.NewStruct(vars[0], tags[0])}, shape{reflect.StructOf(real[1]), types.NewStruct(vars[1], tags[1])}
}

// TestWhatTheLockLetsPassLosesNothing holds the rule against encoding/json: if no change is found, a
// payload of the old type, with the largest numbers it may hold, decodes into the new one whole.
func TestWhatTheLockLetsPassLosesNothing(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		old, now := drawPair(t, 3)
		if arrives(t, old, now) {
			passed++
		}
	})
	if passed < 10 {
		t.Errorf("only %d pairs passed the lock", passed)
	}
}

// TestEachPairOfPlainTypes does the same for all pairs of types without parts.
func TestEachPairOfPlainTypes(t *testing.T) {
	passed := 0
	for _, old := range leaves() {
		for _, now := range leaves() {
			if arrives(t, old, now) {
				passed++
			}
		}
	}
	if want := len(leaves()) + 14; passed != want { // 14 are wider
		t.Errorf("%d pairs passed the lock, want %d", passed, want)
	}
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// arrives says whether the lock lets a change pass, and fails if it should not have.
func arrives(t fataler, old, now shape) bool {
	t.Helper()
	changes := Compare(Of(old.model, nil), Of(now.model, nil))
	if slices.ContainsFunc(changes, func(c Change) bool { return c.Kind != Added }) {
		return false
	}
	value := reflect.New(old.real).Elem()
	fill(value)
	sent, err := json.Marshal(value.Interface())
	if err != nil {
		t.Fatal(err)
	}
	got := reflect.New(now.real)
	if err := json.Unmarshal(sent, got.Interface()); err != nil {
		t.Fatalf("%v to %v: %v", old.real, now.real, err)
	}
	back, err := json.Marshal(got.Interface())
	if err != nil {
		t.Fatal(err)
	}
	if !within(decoded(t, sent), decoded(t, back)) {
		t.Fatalf("%v to %v: %s has become %s", old.real, now.real, sent, back)
	}
	return true
}

func decoded(t fataler, data []byte) (v any) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// within says whether all of a is in b, in whatever case its names are written.
func within(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		object, ok := b.(map[string]any)
		for name, value := range a {
			found := false
			for other, inner := range object {
				found = found || strings.EqualFold(name, other) && within(value, inner)
			}
			ok = ok && found
		}
		return ok
	case []any:
		list, ok := b.([]any)
		if !ok || len(a) != len(list) {
			return false
		}
		for i := range a {
			if !within(a[i], list[i]) {
				return false
			}
		}
		return true
	case json.Number:
		n, ok := b.(json.Number)
		return ok && (a == n || sameFloat(a, n))
	}
	return reflect.DeepEqual(a, b)
}

// sameFloat compares numbers of which one at least is no whole number: a float32 has fewer digits.
func sameFloat(a, b json.Number) bool {
	x, err1 := a.Float64()
	y, err2 := b.Float64()
	whole := !strings.ContainsAny(string(a)+string(b), ".eE")
	return err1 == nil && err2 == nil && !whole && math.Abs(x-y) <= 1e-6*math.Abs(x)
}

// fill puts the largest value into every part.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Int8, reflect.Int32, reflect.Int:
		v.SetInt(1<<(v.Type().Bits()-1) - 1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(math.MaxUint64 >> (64 - v.Type().Bits()))
	case reflect.Float32:
		v.SetFloat(math.MaxFloat32)
	case reflect.Float64:
		v.SetFloat(math.MaxFloat64)
	case reflect.String:
		v.SetString("x%")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Map:
		elem := reflect.New(v.Type().Elem()).Elem()
		fill(elem)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("k"), elem)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}
