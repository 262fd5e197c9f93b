package payload

// Shapes for TestFieldsAreThoseOfEncodingJSON, which reads this file as source and as types. It
// imports nothing, so that it can be type-checked by itself.

type (
	Inner struct {
		A int
		X int
	}
	other struct {
		A int
		Y int
	}
	embeds struct {
		Inner
		other
		Z int
	}
	shadows struct {
		Inner
		X string
	}
	tagWins struct {
		Inner
		other
		Q int `json:"Y"`
	}
	named struct {
		Inner `json:"inner"`
		other `json:"other"`
	}
	pointer struct {
		*Inner
		B *int
	}
	deep struct {
		level1
		A int
	}
	level1 struct {
		level2
		M int
	}
	level2 struct {
		Inner
		N int
	}
	twice struct {
		left
		right
	}
	left   struct{ Inner }
	right  struct{ Inner }
	tagged struct {
		X int
		Y int `json:"X"`
	}
	recursive struct {
		*recursive
		V int
	}
	Word  string
	words struct {
		Word
		N int
	}
	alias   = Inner
	aliased struct{ alias }
)
