package wire

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RuleError says which rule of the wire a name breaks.
type RuleError struct {
	What  string // "queue", "kind", "lane", …
	Value string
	Rule  string
}

func (e *RuleError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.What, Quote(e.Value), e.Rule)
}

// Quote makes any bytes readable in an error or a log line: quoted, and cut when long.
func Quote(s string) string {
	const most = 64
	if len(s) > most {
		cut := most
		for cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) { // a letter is shown whole or not at all
			cut--
		}
		return strconv.Quote(s[:cut]) + "…"
	}
	return strconv.Quote(s)
}

// spelled tells whether s is of 1 to most bytes, each a digit, a small letter, one of the signs or, with
// capitals, a capital one. It runs for every job, where a regular expression takes as long as the encoding.
func spelled(s string, most int, capitals bool, signs string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || capitals && 'A' <= c && c <= 'Z'
		if !letter && (c < '0' || c > '9') && strings.IndexByte(signs, c) < 0 {
			return false
		}
	}
	return s != "" && len(s) <= most
}

func isQueue(s string) bool { return spelled(s, 128, true, "._-") }

// CheckQueue tests the name of a queue.
func CheckQueue(s string) error {
	switch {
	case !isQueue(s):
		return &RuleError{"queue", s, "a queue's name has 1 to 128 of the characters A-Z a-z 0-9 . _ -"}
	case s == "emq":
		return &RuleError{"queue", s, `the name "emq" is taken by the protocol itself`}
	}
	return nil
}

// CheckPrefix tests a deployment prefix; the empty one is none.
func CheckPrefix(s string) error {
	if s != "" && !isQueue(s) {
		return &RuleError{"prefix", s, "a prefix has 1 to 128 of the characters A-Z a-z 0-9 . _ -"}
	}
	return nil
}

// CheckKind tests the kind of a job.
func CheckKind(s string) error {
	if !spelled(s, 128, false, "._:/-") {
		return &RuleError{"kind", s, "a kind has 1 to 128 of the characters a-z 0-9 . _ : / -"}
	}
	return nil
}

// CheckUnique tests a unique key.
func CheckUnique(s string) error {
	if !spelled(s, 255, true, "._:@/+=-") {
		return &RuleError{"unique key", s, "a unique key has 1 to 255 of the characters A-Z a-z 0-9 . _ : @ / + = -"}
	}
	return nil
}

// CheckLane tests the name of a lane.
func CheckLane(s string) error {
	if len(s) == 0 || len(s) > 255 || !printable(s) {
		return &RuleError{"lane", s, "a lane has 1 to 255 bytes of UTF-8 without control or invisible characters"}
	}
	return nil
}

// CheckHeader tests one header of a job.
func CheckHeader(key, value string) error {
	if len(key) == 0 || len(key) > 128 || !printable(key) {
		return &RuleError{"header", key, "a header's name has 1 to 128 bytes of UTF-8 without control or invisible characters"}
	}
	if len(value) > 4096 || !utf8.ValidString(value) {
		return &RuleError{"header " + Quote(key), value, "a header's value has at most 4096 bytes of UTF-8"}
	}
	return nil
}

// printable tells whether a text shows all that it is: no control characters, none that turn the direction of
// the text, join it or have no width (Cf), and no separators of lines and paragraphs.
func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) || r > unicode.MaxASCII && unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
			return false
		}
	}
	return true
}
