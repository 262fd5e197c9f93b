package declare

import (
	"go/ast"
	"go/token"
	"reflect"
	"strconv"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// StrayTags looks at the emq tags of structs that no payload of the run is made of. They may be part
// of one in a package that the run does not see, so that a good tag is worth a warning and no more.
func (d *Draft) StrayTags(reached func(token.Pos) bool) {
	for _, f := range d.Source.Files {
		var owner string
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				owner = n.Name.Name
			case *ast.Field:
				if n.Tag != nil && !d.failedType(owner) && !reached(n.Pos()) {
					d.strayTag(owner, n)
				}
			}
			return true
		})
	}
}

func (d *Draft) strayTag(owner string, field *ast.Field) {
	tag, err := strconv.Unquote(field.Tag.Value)
	value, ok := reflect.StructTag(tag).Lookup("emq")
	if err != nil || !ok || value == "-" {
		return
	}
	name := owner
	if len(field.Names) > 0 {
		name += "." + field.Names[0].Name
	}
	pos := d.place(field.Pos())
	faults := payload.EmqFaults(tag)
	for _, f := range faults {
		d.diags.Errorf(pos, f.Code, f.Hint, "%s: %s", name, f.Text)
	}
	if len(faults) == 0 {
		d.diags.Warnf(pos, diag.TagIgnored, "annotate the struct with //emq:job, or remove the tag",
			"%s: the tag emq:%q has no effect: no job of these packages is made of this struct", name, value)
	}
}
