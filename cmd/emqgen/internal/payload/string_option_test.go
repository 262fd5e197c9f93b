package payload

import (
	"encoding/json"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"reflect"
	"testing"
)

// The kinds of types on which json:",string" may stand, with and without an encoding of their own.
type (
	plainInt    int
	plainBool   bool
	plainFloat  float64
	plainString string
	pointerInt  *int

	textInt    int
	textBool   bool
	textFloat  float64
	textString string
	textUint   uint8

	jsonInt    int
	jsonBool   bool
	jsonFloat  float64
	jsonString string
)

func (textInt) MarshalText() ([]byte, error)    { return []byte("one"), nil }
func (textBool) MarshalText() ([]byte, error)   { return []byte("yes"), nil }
func (textFloat) MarshalText() ([]byte, error)  { return []byte("half"), nil }
func (textString) MarshalText() ([]byte, error) { return []byte("word"), nil }
func (textUint) MarshalText() ([]byte, error)   { return []byte("1"), nil }

func (v *textInt) UnmarshalText([]byte) error    { *v = 1; return nil }
func (v *textBool) UnmarshalText([]byte) error   { *v = true; return nil }
func (v *textFloat) UnmarshalText([]byte) error  { *v = 0.5; return nil }
func (v *textString) UnmarshalText([]byte) error { *v = "word"; return nil }
func (v *textUint) UnmarshalText([]byte) error   { *v = 1; return nil }

func (jsonInt) MarshalJSON() ([]byte, error)    { return []byte("1"), nil }
func (jsonBool) MarshalJSON() ([]byte, error)   { return []byte("true"), nil }
func (jsonFloat) MarshalJSON() ([]byte, error)  { return []byte("[1,2]"), nil }
func (jsonString) MarshalJSON() ([]byte, error) { return []byte(`{"word":"x"}`), nil }

func (v *jsonInt) UnmarshalJSON(b []byte) error  { return json.Unmarshal(b, (*int)(v)) }
func (v *jsonBool) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*bool)(v)) }
func (v *jsonFloat) UnmarshalJSON([]byte) error  { *v = 0.5; return nil }
func (v *jsonString) UnmarshalJSON([]byte) error { *v = "x"; return nil }

type quoted[T any] struct {
	//lint:ignore SA5008 that some of these do not work is what is tested
	V T `json:"v,string"`
}

// quotedFields has each kind as a field; a pointer to it is no other kind.
type quotedFields struct {
	PlainInt    quoted[plainInt]
	PlainBool   quoted[plainBool]
	PlainFloat  quoted[plainFloat]
	PlainString quoted[plainString]
	PointerInt  quoted[pointerInt]
	Int         quoted[int]
	Uintptr     quoted[uintptr]
	Ptr         quoted[*int]
	PtrPtr      quoted[**int]
	Slice       quoted[[]int]
	Number      quoted[json.Number]
	NumberPtr   quoted[*json.Number]

	TextInt    quoted[textInt]
	TextBool   quoted[textBool]
	TextFloat  quoted[textFloat]
	TextString quoted[textString]
	TextUint   quoted[textUint]
	TextPtr    quoted[*textInt]
	JSONInt    quoted[jsonInt]
	JSONBool   quoted[jsonBool]
	JSONFloat  quoted[jsonFloat]
	JSONString quoted[jsonString]
	JSONPtr    quoted[*jsonInt]
}

// TestTheStringOptionIsAllowedWhereItWorks compares the rule with encoding/json: the option is allowed
// if and only if it puts the value into quotes and the value comes back.
func TestTheStringOptionIsAllowedWhereItWorks(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "string_option_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: importer.ForCompiler(fset, "source", nil), IgnoreFuncBodies: true}
	pkg, err := conf.Check("payload", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := pkg.Scope().Lookup("quotedFields").Type().Underlying().(*types.Struct)
	allowed := 0
	for f := range reflect.TypeFor[quotedFields]().Fields() {
		works := quotedComesBack(f.Type)
		_, faults := Fields(fieldType(all, f.Name).Underlying().(*types.Struct))
		if works {
			allowed++
		}
		if works != (len(faults) == 0) {
			t.Errorf("%s: with encoding/json it works: %v, but emqgen says %v", f.Name, works, faults)
		}
	}
	if refused := all.NumFields() - allowed; allowed < 9 || refused < 13 {
		t.Errorf("%d kinds allowed and %d refused: the table has lost some", allowed, refused)
	}
}

func fieldType(st *types.Struct, name string) types.Type {
	for v := range st.Fields() {
		if v.Name() == name {
			return v.Type()
		}
	}
	return nil
}

// quotedComesBack says whether a value that is not zero is written in quotes and read again.
func quotedComesBack(typ reflect.Type) bool {
	value := reflect.New(typ)
	some(value.Elem().Field(0))
	data, err := json.Marshal(value.Interface())
	if err != nil {
		return false
	}
	var object map[string]string
	if json.Unmarshal(data, &object) != nil {
		return false
	}
	back := reflect.New(typ)
	return json.Unmarshal(data, back.Interface()) == nil && reflect.DeepEqual(value.Interface(), back.Interface())
}

// some puts a value that is not zero into v, the one that its methods make if it has any.
func some(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		some(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case v.Type() == reflect.TypeFor[json.Number]():
		v.SetString("12")
	case v.Kind() == reflect.String:
		v.SetString("x")
		if v.Type() == reflect.TypeFor[textString]() {
			v.SetString("word")
		}
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanFloat():
		v.SetFloat(0.5)
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	}
}
