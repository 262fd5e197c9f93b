// Package schema holds the lock: what each kind looked like when it was last generated, as JSON
// Schema, and which changes would break jobs that wait in a queue.
package schema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// Schema is the part of JSON Schema that payloads need. Its properties are printed in the order of
// their names.
type Schema struct {
	Ref        string             `json:"$ref,omitempty"`
	Type       Types              `json:"type,omitempty"`
	Format     string             `json:"format,omitempty"` // int32, date-time, …
	Encoding   string             `json:"contentEncoding,omitempty"`
	Properties map[string]*Schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	Items      *Schema            `json:"items,omitempty"`
	MaxItems   int                `json:"maxItems,omitempty"` // of an array
	Values     *Schema            `json:"additionalProperties,omitempty"`
	AnyOf      []*Schema          `json:"anyOf,omitempty"`
	GoType     string             `json:"x-go-type,omitempty"` // of a type that encodes itself
	Defs       map[string]*Schema `json:"$defs,omitempty"`
	at         token.Pos          // of the field that it is the schema of, in its own package
}

// Types is one type, or several: a value that may be null has two.
type Types []string

// MarshalJSON writes one type as a string.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// UnmarshalJSON reads either form.
func (t *Types) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*t = Types{one}
		return nil
	}
	return json.Unmarshal(b, (*[]string)(t))
}

// Of is the schema of a type as encoding/json writes it.
func Of(t types.Type, from *types.Package) *Schema {
	b := newBuilder(from)
	s := b.build(t)
	if len(b.defs) > 0 {
		s.Defs = b.defs
	}
	return s
}

// builder makes one schema. Types are written where they stand; only a recursive one goes to $defs.
type builder struct {
	from  *types.Package
	open  []*types.Named          // types being written
	names map[*types.Named]string // of recursive ones
	defs  map[string]*Schema
}

func newBuilder(from *types.Package) *builder {
	return &builder{from: from, names: map[*types.Named]string{}, defs: map[string]*Schema{}}
}

func (b *builder) build(t types.Type) *Schema {
	t = types.Unalias(t)
	if s := b.own(t); s != nil {
		return s
	}
	named, ok := t.(*types.Named)
	if !ok {
		return b.plain(t)
	}
	if slices.Contains(b.open, named) {
		if b.names[named] == "" {
			b.names[named] = b.defName(named)
		}
		return b.reference(named)
	}
	b.open = append(b.open, named)
	s := b.plain(t.Underlying())
	b.open = b.open[:len(b.open)-1]
	if name := b.names[named]; name != "" {
		b.defs[name] = s
		return b.reference(named)
	}
	return s
}

func (b *builder) reference(named *types.Named) *Schema {
	return &Schema{Ref: "#/$defs/" + b.names[named]}
}

// plain is the schema of a type without a name.
func (b *builder) plain(t types.Type) *Schema {
	switch t := t.(type) {
	case *types.Basic:
		return basic(t)
	case *types.Pointer:
		return nullable(b.build(t.Elem()))
	case *types.Slice:
		if e, ok := t.Elem().Underlying().(*types.Basic); ok && e.Kind() == types.Uint8 {
			return &Schema{Type: Types{"string", "null"}, Encoding: "base64"}
		}
		return &Schema{Type: Types{"array", "null"}, Items: b.build(t.Elem())}
	case *types.Array:
		return &Schema{Type: Types{"array"}, Items: b.build(t.Elem()), MaxItems: int(t.Len())}
	case *types.Map:
		return &Schema{Type: Types{"object", "null"}, Values: b.build(t.Elem())}
	case *types.Struct:
		return b.object(t)
	}
	return &Schema{} // anything; what cannot be encoded has been refused
}

// own is the schema of a type that encodes itself.
func (b *builder) own(t types.Type) *Schema {
	name := types.TypeString(t, func(p *types.Package) string { return p.Path() })
	switch {
	case name == "time.Time":
		return &Schema{Type: Types{"string"}, Format: "date-time"}
	case name == "encoding/json.RawMessage":
		return &Schema{}
	case isPointer(t): // its element decides
		return nil
	case payload.Method(t, "MarshalJSON") != payload.None:
		return &Schema{GoType: name}
	case payload.Method(t, "MarshalText") != payload.None:
		return &Schema{Type: Types{"string"}, GoType: name}
	}
	return nil
}

func isPointer(t types.Type) bool {
	_, ok := t.(*types.Pointer)
	return ok
}

func (b *builder) object(st *types.Struct) *Schema {
	s := &Schema{Type: Types{"object"}, Properties: map[string]*Schema{}}
	fields, _ := payload.Fields(st)
	for _, f := range fields {
		p := b.build(f.Var.Type())
		if f.AsString {
			p = &Schema{Type: Types{"string"}, Format: cmp.Or(p.Format, strings.Join(p.Type, "-"))}
		}
		p.at = b.place(f)
		s.Properties[f.JSON] = p
		if !f.Optional {
			s.Required = append(s.Required, f.JSON)
		}
	}
	slices.Sort(s.Required)
	return s
}

// place is where a field is declared; it is none if that is in another package.
func (b *builder) place(f *model.Field) token.Pos {
	for _, v := range []*types.Var{f.Var, f.Outer} {
		if v.Pkg() == b.from {
			return v.Pos()
		}
	}
	return token.NoPos
}

// defName is a name for $defs: what stands in a JSON pointer without escapes, and no other has.
func (b *builder) defName(named *types.Named) string {
	base := strings.Map(func(r rune) rune {
		if r == '.' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '_'
	}, payload.TypeString(named, b.from))
	name := base
	for i := 2; slices.Contains(slices.Collect(maps.Values(b.names)), name); i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	return name
}

func nullable(s *Schema) *Schema {
	switch {
	case s.Ref != "":
		return &Schema{AnyOf: []*Schema{s, {Type: Types{"null"}}}}
	case len(s.Type) == 1:
		s.Type = append(s.Type, "null")
	}
	return s
}

func basic(t *types.Basic) *Schema {
	switch info := t.Info(); {
	case info&types.IsBoolean != 0:
		return &Schema{Type: Types{"boolean"}}
	case info&types.IsString != 0:
		return &Schema{Type: Types{"string"}}
	case info&types.IsInteger != 0:
		format := t.Name()
		switch t.Kind() {
		case types.Int:
			format = "int64"
		case types.Uint, types.Uintptr:
			format = "uint64"
		case types.Uint8: // byte is another name for it
			format = "uint8"
		case types.Int32: // and rune for this
			format = "int32"
		}
		return &Schema{Type: Types{"integer"}, Format: format}
	case t.Kind() == types.Float32:
		return &Schema{Type: Types{"number"}, Format: "float"}
	}
	return &Schema{Type: Types{"number"}, Format: "double"}
}

// String is the schema in a few words.
func (s *Schema) String() string {
	switch kind := s.kind(); kind {
	case "array":
		if s.MaxItems > 0 {
			return fmt.Sprintf("array of %d %s", s.MaxItems, s.Items)
		}
		return "array of " + s.Items.String()
	case "object":
		if s.Values != nil {
			return "map of " + s.Values.String()
		}
		return "object"
	case "":
		return cmp.Or(s.GoType, strings.TrimPrefix(reference(s), "#/$defs/"), "anything")
	default:
		if detail := cmp.Or(s.Format, s.Encoding, s.GoType); detail != "" {
			return fmt.Sprintf("%s (%s)", kind, detail)
		}
		return kind
	}
}

// kind is the type apart from null.
func (s *Schema) kind() string {
	for _, t := range s.Type {
		if t != "null" {
			return t
		}
	}
	return ""
}
