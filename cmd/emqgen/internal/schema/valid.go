package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/echomq/emq/internal/wire"
)

// check says what in a lock no emqgen has written: somebody has edited it.
func (l *Lock) check() error {
	seen := map[Retired]bool{}
	for _, k := range l.Kinds {
		at := Retired{k.Kind, k.Queue}
		switch {
		case wire.CheckKind(k.Kind) != nil:
			return wire.CheckKind(k.Kind)
		case wire.CheckQueue(k.Queue) != nil:
			return fmt.Errorf("kind %s: %w", k.Kind, wire.CheckQueue(k.Queue))
		case seen[at]:
			return fmt.Errorf("kind %s stands twice on queue %s", k.Kind, k.Queue)
		case k.Version < 1:
			return fmt.Errorf("kind %s has version %d: versions count from 1", k.Kind, k.Version)
		case k.Payload == nil:
			return fmt.Errorf("kind %s has no payload", k.Kind)
		}
		seen[at] = true
		if err := cmp.Or(k.names(), k.schemas()); err != nil {
			return fmt.Errorf("kind %s: %w", k.Kind, err)
		}
	}
	return cmp.Or(checkRetired("retired", l.Retired), checkRetired("once_retired", l.Past))
}

func checkRetired(member string, kinds []Retired) error {
	for _, x := range kinds {
		if err := cmp.Or(wire.CheckKind(x.Kind), wire.CheckQueue(x.Queue)); err != nil {
			return fmt.Errorf("%s: %w", member, err)
		}
	}
	return nil
}

func (k Kind) names() error {
	for _, alias := range k.Aliases {
		if err := wire.CheckKind(alias); err != nil {
			return fmt.Errorf("aliases: %w", err)
		}
	}
	for _, queue := range k.From {
		if err := wire.CheckQueue(queue); err != nil {
			return fmt.Errorf("from: %w", err)
		}
	}
	return nil
}

func (k Kind) schemas() error {
	if err := k.Payload.check(k.Payload, "payload"); err != nil {
		return err
	}
	if k.Result != nil {
		if err := k.Result.check(k.Result, "result"); err != nil {
			return err
		}
	}
	for _, version := range slices.Sorted(maps.Keys(k.Old)) {
		if n, err := strconv.Atoi(version); err != nil || n < 1 {
			return fmt.Errorf("old has %q, which is no version", version)
		} else if n >= k.Version {
			return fmt.Errorf("old has %q, and the payload is of version %d", version, k.Version)
		}
		if err := k.Old[version].check(k.Old[version], "old."+version); err != nil {
			return err
		}
	}
	return nil
}

var (
	jsonTypes     = []string{"null", "boolean", "string", "integer", "number", "array", "object"}
	numberFormats = map[string][]string{
		"integer": {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"},
		"number":  {"float", "double"},
	}
)

// check says what in a schema is not of the form that Of makes.
func (s *Schema) check(root *Schema, path string) error {
	if s == nil {
		return fmt.Errorf("%s is null", path)
	}
	for _, t := range s.Type {
		if !slices.Contains(jsonTypes, t) {
			return fmt.Errorf("%s has the type %q, which JSON has not", path, t)
		}
	}
	ref := reference(s)
	switch formats := numberFormats[s.kind()]; {
	case ref != "" && root.Defs[strings.TrimPrefix(ref, "#/$defs/")] == nil:
		return fmt.Errorf("%s refers to %s, which is not there", path, ref)
	case s.kind() == "array" && s.Items == nil:
		return fmt.Errorf("%s is an array without items", path)
	case formats != nil && !slices.Contains(formats, s.Format):
		return fmt.Errorf("%s is a number of the format %q: it is one of %s", path, s.Format, strings.Join(formats, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if err := s.Properties[name].check(root, path+"."+name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Defs)) {
		if err := s.Defs[name].check(root, path+".$defs."+name); err != nil {
			return err
		}
	}
	for i, alternative := range s.AnyOf {
		if err := alternative.check(root, fmt.Sprintf("%s.anyOf.%d", path, i)); err != nil {
			return err
		}
	}
	for _, part := range []*Schema{s.Items, s.Values} {
		if part != nil {
			if err := part.check(root, path+"[]"); err != nil {
				return err
			}
		}
	}
	return nil
}
