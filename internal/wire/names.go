package wire

import (
	"fmt"
	"regexp"
	"strconv"
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
		return strconv.QuoteToASCII(s[:most]) + "…"
	}
	return strconv.QuoteToASCII(s)
}

var (
	queueName  = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)
	kindName   = regexp.MustCompile(`^[a-z0-9._:/-]{1,128}$`)
	uniqueName = regexp.MustCompile(`^[A-Za-z0-9._:@/+=-]{1,255}$`)
)

// CheckQueue tests the name of a queue.
func CheckQueue(s string) error {
	switch {
	case !queueName.MatchString(s):
		return &RuleError{"queue", s, "a queue's name has 1 to 128 of the characters A-Z a-z 0-9 . _ -"}
	case s == "emq":
		return &RuleError{"queue", s, `the name "emq" is taken by the protocol itself`}
	}
	return nil
}

// CheckPrefix tests a deployment prefix; the empty one is none.
func CheckPrefix(s string) error {
	if s != "" && !queueName.MatchString(s) {
		return &RuleError{"prefix", s, "a prefix has 1 to 128 of the characters A-Z a-z 0-9 . _ -"}
	}
	return nil
}

// CheckKind tests the kind of a job.
func CheckKind(s string) error {
	if !kindName.MatchString(s) {
		return &RuleError{"kind", s, "a kind has 1 to 128 of the characters a-z 0-9 . _ : / -"}
	}
	return nil
}

// CheckUnique tests a unique key.
func CheckUnique(s string) error {
	if !uniqueName.MatchString(s) {
		return &RuleError{"unique key", s, "a unique key has 1 to 255 of the characters A-Z a-z 0-9 . _ : @ / + = -"}
	}
	return nil
}

// CheckLane tests the name of a lane.
func CheckLane(s string) error {
	if len(s) == 0 || len(s) > 255 || !printable(s) {
		return &RuleError{"lane", s, "a lane has 1 to 255 bytes of UTF-8 without control characters"}
	}
	return nil
}

// CheckHeader tests one header of a job.
func CheckHeader(key, value string) error {
	if len(key) == 0 || len(key) > 128 || !printable(key) {
		return &RuleError{"header", key, "a header's name has 1 to 128 bytes of UTF-8 without control characters"}
	}
	if len(value) > 4096 || !utf8.ValidString(value) {
		return &RuleError{"header " + Quote(key), value, "a header's value has at most 4096 bytes of UTF-8"}
	}
	return nil
}

func printable(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}
