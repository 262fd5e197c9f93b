package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
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
// those of types which hold themselves and are not what they were, and the method that the compiler will
// ask for.
func keepOld(p *model.Package, j *model.Job, version int, s *Schema) []string {
	name := fmt.Sprintf("%sV%d", j.Name, version)
	goNames, copies := typesOf(p, j, name, s)
	text := fmt.Sprintf("//emq:was %s version=%d\ntype %s %s\n", j.Name, version, name, goType(goNames, unnamed(s), 0))
	for _, def := range copies {
		text += fmt.Sprintf("type %s %s\n", goNames[def], goType(goNames, s.Defs[def], 0))
	}
	if pretty, err := format.Source([]byte(text)); err == nil { // else it is as readable as it is
		text = string(pretty)
	}
	return append(strings.Split(strings.TrimSuffix(text, "\n"), "\n"), fmt.Sprintf("func (%s) Upgrade() (%s, error)", name, j.Name))
}

// unnamed is a schema, or what its reference stands for: a payload that holds itself is one.
func unnamed(s *Schema) *Schema { return resolve(s, s) }

// typesOf are the Go types that names in $defs stand for in the old struct of a job: the job's own, as far
// as they are what they were, and else copies, which are to be declared.
func typesOf(p *model.Package, j *model.Job, old string, s *Schema) (goNames map[string]string, copies []string) {
	b := newBuilder(p.Types)
	b.build(j.Type)
	goNames = map[string]string{}
	for named, def := range b.names {
		goNames[def] = payload.TypeString(named, p.Types)
	}
	defs := slices.Sorted(maps.Keys(s.Defs))
	changed := map[string]bool{}
	for _, def := range defs {
		changed[def] = b.defs[def] == nil || !same(b.defs[def], s.Defs[def])
	}
	self := strings.TrimPrefix(reference(s), "#/$defs/")
	if self != "" {
		changed[self] = true // it has another name now
	}
	for again := true; again; { // what holds a copy is one
		again = false
		for _, def := range defs {
			if !changed[def] && s.Defs[def].refersTo(func(ref string) bool { return changed[ref] }) {
				changed[def], again = true, true
			}
		}
	}
	for _, def := range defs {
		switch {
		case def == self:
			goNames[def] = old
		case changed[def]:
			goNames[def] = old + names.Ident(names.Plain(def))
			copies = append(copies, def)
		}
	}
	return goNames, copies
}

// same says whether two schemas are written alike.
func same(a, b *Schema) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && bytes.Equal(x, y)
}

// refersTo says whether a schema has a reference of which is holds.
func (s *Schema) refersTo(is func(def string) bool) bool {
	if s == nil {
		return false
	}
	if ref := strings.TrimPrefix(s.Ref, "#/$defs/"); ref != "" && is(ref) {
		return true
	}
	for _, part := range slices.Concat([]*Schema{s.Items, s.Values}, s.AnyOf, slices.Collect(maps.Values(s.Properties))) {
		if part.refersTo(is) {
			return true
		}
	}
	return false
}

// goType is a Go type that decodes what a schema describes.
func goType(defs map[string]string, s *Schema, depth int) string {
	if ref := strings.TrimPrefix(reference(s), "#/$defs/"); ref != "" {
		if s.Ref == "" { // or null
			return "*" + cmp.Or(defs[ref], ref)
		}
		return cmp.Or(defs[ref], ref)
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

// stringOption is the Go type of a field that is written as text by the option string of its tag.
func stringOption(s *Schema) (typ string, ok bool) {
	if s.kind() != "string" || s.GoType != "" || s.Encoding != "" {
		return "", false
	}
	base, null := strings.CutSuffix(s.Format, "-null")
	switch base {
	case "", "date-time":
		return "", false
	case "boolean":
		typ = "bool"
	case "float":
		typ = "float32"
	case "double":
		typ = "float64"
	default: // string, or a format of whole numbers, which are Go's names
		typ = base
	}
	if null {
		typ = "*" + typ
	}
	return typ, true
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
		typ, asString := stringOption(s.Properties[name])
		if asString {
			tag += ",string"
		} else {
			typ = goType(defs, s.Properties[name], depth+1)
		}
		fmt.Fprintf(&b, "%s%s %s `json:%q`\n", indent, fieldName(name), typ, tag)
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
