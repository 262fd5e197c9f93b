package schema

import (
	"cmp"
	"fmt"
	"go/format"
	"maps"
	"slices"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/names"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// keepOld is the text to paste for an old version: its struct, as far as a schema can give it back,
// and the method that the compiler will ask for.
func keepOld(p *model.Package, j *model.Job, version int, s *Schema) []string {
	name := fmt.Sprintf("%sV%d", j.Name, version)
	text := fmt.Sprintf("//emq:was %s version=%d\ntype %s %s", j.Name, version, name, goType(typesIn(p, j), s, 0))
	if pretty, err := format.Source([]byte(text)); err == nil { // else it is as readable as it is
		text = string(pretty)
	}
	return append(strings.Split(text, "\n"), fmt.Sprintf("func (%s) Upgrade() (%s, error)", name, j.Name))
}

// typesIn are the Go types that names in $defs stand for, as far as the job still has them.
func typesIn(p *model.Package, j *model.Job) map[string]string {
	b := newBuilder(p.Types)
	b.build(j.Type)
	defs := map[string]string{}
	for named, name := range b.names {
		defs[name] = payload.TypeString(named, p.Types)
	}
	return defs
}

// goType is a Go type that decodes what a schema describes.
func goType(defs map[string]string, s *Schema, depth int) string {
	if ref := strings.TrimPrefix(reference(s), "#/$defs/"); ref != "" {
		return "*" + cmp.Or(defs[ref], ref)
	}
	switch s.kind() {
	case "string":
		return stringType(s)
	case "boolean":
		return "bool"
	case "integer":
		return s.Format
	case "number":
		if s.Format == "float" {
			return "float32"
		}
		return "float64"
	case "array":
		if s.MaxItems > 0 {
			return fmt.Sprintf("[%d]%s", s.MaxItems, goType(defs, s.Items, depth))
		}
		return "[]" + goType(defs, s.Items, depth)
	case "object":
		if s.Values != nil {
			return "map[string]" + goType(defs, s.Values, depth)
		}
		return structType(defs, s, depth)
	}
	if s.GoType != "" {
		return shortType(s.GoType)
	}
	return "json.RawMessage"
}

func stringType(s *Schema) string {
	switch {
	case s.GoType != "":
		return shortType(s.GoType)
	case s.Encoding == "base64":
		return "[]byte"
	case s.Format == "date-time":
		return "time.Time"
	}
	return "string"
}

// shortType is pkg.Type without the path before it.
func shortType(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func structType(defs map[string]string, s *Schema, depth int) string {
	if len(s.Properties) == 0 {
		return "struct{}"
	}
	var b strings.Builder
	b.WriteString("struct {\n")
	indent := strings.Repeat("\t", depth+1)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		tag := name
		if !slices.Contains(s.Required, name) {
			tag += ",omitempty"
		}
		fmt.Fprintf(&b, "%s%s %s `json:%q`\n", indent, fieldName(name), goType(defs, s.Properties[name], depth+1), tag)
	}
	b.WriteString(strings.Repeat("\t", depth) + "}")
	return b.String()
}

// fieldName is a Go name for a name on the wire.
func fieldName(name string) string {
	if id := names.Ident(name); names.Exported(id) {
		return id
	}
	return "F" + strings.Map(func(r rune) rune {
		if r < 128 && (r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}, name)
}
