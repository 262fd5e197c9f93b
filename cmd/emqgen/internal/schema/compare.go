package schema

import (
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// ChangeKind is what happened to a field.
type ChangeKind int

// The kinds of changes. Added is harmless; the others break jobs that wait.
const (
	Added ChangeKind = iota
	Gone
	Retyped
	Required
)

// Change is one difference between two schemas of a kind.
type Change struct {
	Kind     ChangeKind
	Path     string    // lines[].amount; empty for the payload itself
	Name     string    // of what is Gone: the last part of Path
	From, To string    // types, in words; for Gone, To is the name that the field may have now
	At       token.Pos // of the nearest field of the new schema's package; none for the payload itself
}

// words say what happened to what the change is about, which has a name.
func (c Change) words(name string) string {
	switch c.Kind {
	case Added:
		return name + " is new"
	case Gone:
		return name + " is gone"
	case Retyped:
		return fmt.Sprintf("%s was %s and is %s", name, c.From, c.To)
	}
	return name + " was optional and is required"
}

// Compare lists what payloads written by the old schema meet in the new one, by path.
func Compare(old, now *Schema) []Change {
	c := &comparer{oldRoot: old, newRoot: now, seen: map[[2]string]bool{}}
	c.compare(old, now, "", token.NoPos)
	return c.changes
}

type comparer struct {
	oldRoot, newRoot *Schema
	seen             map[[2]string]bool // pairs of references
	changes          []Change
}

func (c *comparer) compare(old, now *Schema, path string, at token.Pos) {
	at = cmp.Or(now.at, at)
	oldRef, newRef := reference(old), reference(now)
	if oldRef != "" || newRef != "" {
		pair := [2]string{oldRef, newRef}
		if c.seen[pair] {
			return
		}
		c.seen[pair] = true
	}
	old, now = resolve(c.oldRoot, old), resolve(c.newRoot, now)
	if !accepts(old, now) {
		c.changes = append(c.changes, Change{Kind: Retyped, Path: path, From: old.String(), To: now.String(), At: at})
		return
	}
	if now.kind() == "" {
		return
	}
	if old.Items != nil && now.Items != nil {
		c.compare(old.Items, now.Items, path+"[]", at)
	}
	if old.Values != nil && now.Values != nil {
		c.compare(old.Values, now.Values, path+"[]", at)
	}
	c.properties(old, now, path, at)
}

func (c *comparer) properties(old, now *Schema, path string, at token.Pos) {
	if path != "" {
		path += "."
	}
	added := map[string]bool{}
	for name := range now.Properties {
		added[name] = old.Properties[name] == nil
	}
	for _, name := range slices.Sorted(maps.Keys(old.Properties)) {
		before := old.Properties[name]
		after := now.Properties[name]
		if after == nil {
			// encoding/json finds a field in whatever case it is written.
			if alike := foldName(now, name); alike != "" {
				delete(added, alike)
				c.compare(before, now.Properties[alike], path+name, at)
				continue
			}
			gone := Change{Kind: Gone, Path: path + name, Name: name, From: before.String(), To: c.renamed(before, now, added), At: at}
			if gone.To != "" {
				gone.At = cmp.Or(now.Properties[gone.To].at, at)
			}
			c.changes = append(c.changes, gone)
			continue
		}
		c.compare(before, after, path+name, at)
		if !slices.Contains(old.Required, name) && slices.Contains(now.Required, name) {
			c.changes = append(c.changes, Change{Kind: Required, Path: path + name, At: cmp.Or(after.at, at)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(added)) {
		if added[name] && slices.Contains(now.Required, name) {
			c.changes = append(c.changes, Change{Kind: Added, Path: path + name, At: cmp.Or(now.Properties[name].at, at)})
		}
	}
}

// renamed is the one new field of the same type, if there is just one.
func (c *comparer) renamed(before, now *Schema, added map[string]bool) string {
	found := ""
	for _, name := range slices.Sorted(maps.Keys(added)) {
		if added[name] && now.Properties[name].String() == before.String() {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	return found
}

func foldName(s *Schema, name string) string {
	for _, other := range slices.Sorted(maps.Keys(s.Properties)) {
		if strings.EqualFold(other, name) {
			return other
		}
	}
	return ""
}

func reference(s *Schema) string {
	for _, alt := range s.AnyOf {
		if alt != nil && alt.Ref != "" {
			return alt.Ref
		}
	}
	return s.Ref
}

func resolve(root, s *Schema) *Schema {
	if ref := reference(s); ref != "" {
		if def := root.Defs[strings.TrimPrefix(ref, "#/$defs/")]; def != nil {
			return def
		}
	}
	return s
}

// accepts says whether every value of old, taken by itself, decodes under now without loss.
func accepts(old, now *Schema) bool {
	from, to := old.kind(), now.kind()
	switch {
	case to == "" && now.GoType == "": // anything
		return true
	case old.GoType != now.GoType || old.Encoding != now.Encoding || (old.Values == nil) != (now.Values == nil):
		return false
	case from == "integer" && to == "integer":
		return fits(old.Format, now.Format)
	case from == "integer" && to == "number": // a float64 holds each whole number of 32 bits
		return now.Format == "double" && (fits(old.Format, "int32") || fits(old.Format, "uint32"))
	case from == "number" && to == "number":
		return old.Format == now.Format || now.Format == "double"
	case from == "array" && to == "array": // decoding drops what is too much for an array
		return now.MaxItems == 0 || old.MaxItems != 0 && old.MaxItems <= now.MaxItems
	case from == "string" && to == "string":
		return now.Format == "" || old.Format == now.Format
	}
	return from == to
}

// fits says whether whole numbers of one width fit into another.
func fits(old, now string) bool {
	if old == now {
		return true
	}
	a, aUnsigned := width(old)
	b, bUnsigned := width(now)
	return a < b && (aUnsigned || !bUnsigned)
}

func width(format string) (bits int, unsigned bool) {
	switch format {
	case "int8", "uint8":
		bits = 8
	case "int16", "uint16":
		bits = 16
	case "int32", "uint32":
		bits = 32
	default:
		bits = 64
	}
	return bits, strings.HasPrefix(format, "uint")
}
