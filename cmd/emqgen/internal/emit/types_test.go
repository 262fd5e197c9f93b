package emit

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/dave/jennifer/jen"
	"pgregory.net/rapid"

	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

const vocabulary = `package p
type Named struct{ A int }
type Gen[T any] struct{ V T }
type Two[K comparable, V any] map[K]V
type Alias = Named
type AliasOf[T any] = Gen[[]T]
`

// TestAPrintedTypeIsTheSameType prints random types and reads them back.
func TestAPrintedTypeIsTheSameType(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		expr := typeExpr(t, 4)
		pkg := checked(t, "var X "+expr)
		f := &file{pkg: &model.Package{Path: "p", Name: "p", Types: pkg}, imports: map[string]string{}}
		printed := fmt.Sprintf("%#v", jen.Var().Id("Y").Add(f.typ(pkg.Scope().Lookup("X").Type())))
		both := checked(t, "var X "+expr+"\n"+printed)
		x, y := both.Scope().Lookup("X").Type(), both.Scope().Lookup("Y").Type()
		if !types.Identical(x, y) {
			t.Fatalf("%s is printed as %s", expr, printed)
		}
	})
}

func checked(t *rapid.T, decl string) *types.Package {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "p.go", vocabulary+decl, 0)
	if err != nil {
		t.Fatalf("%v in %s", err, decl)
	}
	pkg, err := new(types.Config).Check("p", fset, []*ast.File{file}, nil)
	if err != nil {
		t.Fatalf("%v in %s", err, decl)
	}
	return pkg
}

// typeExpr is the source of a random type.
func typeExpr(t *rapid.T, depth int) string {
	simple := rapid.SampledFrom([]string{"int", "string", "byte", "rune", "error", "any", "uint8", "Named", "Alias", "struct{}", "interface{}"})
	if depth == 0 {
		return simple.Draw(t, "simple")
	}
	inner := func() string { return typeExpr(t, depth-1) }
	switch rapid.IntRange(0, 14).Draw(t, "form") {
	case 0:
		return "*" + inner()
	case 1:
		return "[]" + inner()
	case 2:
		return "[3]" + inner()
	case 3:
		return "map[string]" + inner()
	case 4:
		return "chan (" + inner() + ")"
	case 5:
		return "chan<- (" + inner() + ")"
	case 6:
		return "<-chan (" + inner() + ")"
	case 7:
		return "func(" + inner() + ", ..." + inner() + ")"
	case 8:
		return "func() (" + inner() + ", error)"
	case 9:
		return "func(" + inner() + ") " + inner()
	case 10:
		return "struct{ A " + inner() + " `json:\"a\"`; b, C " + inner() + "; D " + inner() + " \"json:\\\"d\\\" x:\\\"`\\\"\"; *Named }"
	case 11:
		return "interface{ M(" + inner() + ") " + inner() + "; error }"
	case 12:
		return "Gen[" + inner() + "]"
	case 13:
		return "Two[int, " + inner() + "]"
	}
	if strings.Contains(simple.Draw(t, "simple"), "a") {
		return "AliasOf[" + inner() + "]"
	}
	return simple.Draw(t, "simple")
}
