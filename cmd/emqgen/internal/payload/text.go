package payload

import "go/types"

// Form is the canonical text of a value, of which unique keys and lanes are made.
type Form int

// The forms.
const (
	NoForm Form = iota
	StringForm
	IntForm
	UintForm
	BoolForm
	HexForm // an array of bytes
)

// Canonical finds the form of a type: one value, one text. Floats and times have several, and a
// pointer may be nil.
func Canonical(t types.Type) Form {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsString != 0:
			return StringForm
		case info&types.IsUnsigned != 0 && u.Kind() != types.Uintptr:
			return UintForm
		case info&types.IsInteger != 0 && u.Kind() != types.Uintptr:
			return IntForm
		case info&types.IsBoolean != 0:
			return BoolForm
		}
	case *types.Array:
		if b, ok := u.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Uint8 {
			return HexForm
		}
	}
	return NoForm
}
