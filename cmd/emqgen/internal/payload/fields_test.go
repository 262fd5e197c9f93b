package payload

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestFieldsAreThoseOfEncodingJSON compares what Fields sees with what encoding/json writes.
func TestFieldsAreThoseOfEncodingJSON(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "shapes_test.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := new(types.Config).Check("payload", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []any{
		Inner{}, embeds{}, shadows{}, tagWins{}, named{}, pointer{Inner: &Inner{}}, deep{}, twice{},
		tagged{}, recursive{recursive: &recursive{}}, words{}, aliased{},
	} {
		name := reflect.TypeOf(value).Name()
		fields, _ := Fields(pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct))
		got := []string{}
		for _, f := range fields {
			got = append(got, f.JSON)
		}
		slices.Sort(got)
		if diff := cmp.Diff(written(t, value), got); diff != "" {
			t.Errorf("%s (-encoding/json +Fields):\n%s", name, diff)
		}
	}
}

func TestOfTwoFieldsWithOneNameTheTaggedOneWins(t *testing.T) {
	st := types.NewStruct([]*types.Var{
		types.NewField(token.NoPos, nil, "X", types.Typ[types.Int], false),
		types.NewField(token.NoPos, nil, "Y", types.Typ[types.Int], false),
	}, []string{"", `json:"X"`})
	fields, faults := Fields(st)
	if len(fields) != 1 || fields[0].Name != "Y" || len(faults) != 1 || faults[0].Var.Name() != "X" {
		t.Errorf("%v %v", fields, faults)
	}
}

// TestTagsAreReadAsByEncodingJSON compares random structs without embedding, whose tags may be as
// wrong as they like.
func TestTagsAreReadAsByEncodingJSON(t *testing.T) {
	tags := []string{
		"", `json:"a"`, `json:"b,omitempty"`, `json:",omitempty"`, `json:"-"`, `json:"-,"`, `json:"A"`, `json:"a\"b"`, `json:"b c"`,
		`json:"ü,omitzero"`, `json:"n,string"`, `json: "x"`, `json:"x`, `json:x`, `yaml:"q" json:"r"`, `Json:"s"`, `json:"é/|~"`, `json:"t"json:"u"`,
	}
	kinds := []struct {
		real  reflect.Type
		model types.Type
	}{
		{reflect.TypeFor[int](), types.Typ[types.Int]},
		{reflect.TypeFor[string](), types.Typ[types.String]},
		{reflect.TypeFor[bool](), types.Typ[types.Bool]},
		{reflect.TypeFor[[]string](), types.NewSlice(types.Typ[types.String])},
	}
	pkg := types.NewPackage("payload", "payload")
	rapid.Check(t, func(t *rapid.T) {
		var real []reflect.StructField
		var vars []*types.Var
		var modelTags []string
		for i := range rapid.IntRange(0, 6).Draw(t, "fields") {
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			tag := rapid.SampledFrom(tags).Draw(t, "tag")
			name := string(rune('A' + i))
			real = append(real, reflect.StructField{Name: name, Type: kind.real, Tag: reflect.StructTag(tag)})
			vars = append(vars, types.NewField(token.NoPos, pkg, name, kind.model, false))
			modelTags = append(modelTags, tag)
		}
		fields, _ := Fields(types.NewStruct(vars, modelTags))
		got := []string{}
		for _, f := range fields {
			got = append(got, f.JSON)
		}
		slices.Sort(got)
		if diff := cmp.Diff(written(t, reflect.Zero(reflect.StructOf(real)).Interface()), got); diff != "" {
			t.Errorf("%v (-encoding/json +Fields):\n%s", real, diff)
		}
	})
}

// written lists the names that encoding/json gives a value in which nothing is empty.
func written(t testingT, value any) []string {
	t.Helper()
	full := reflect.New(reflect.TypeOf(value)).Elem()
	full.Set(reflect.ValueOf(value))
	fill(full)
	data, err := json.Marshal(full.Interface())
	if err != nil {
		t.Fatal(err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return append([]string{}, slices.Sorted(maps.Keys(object))...)
}

type testingT interface {
	Helper()
	Fatal(args ...any)
}

// fill makes every field that can be set differ from zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Int:
		if v.CanSet() {
			v.SetInt(1)
		}
	case reflect.Bool:
		if v.CanSet() {
			v.SetBool(true)
		}
	case reflect.Slice:
		if v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
	case reflect.String:
		if v.CanSet() {
			v.SetString("x")
		}
	}
}
