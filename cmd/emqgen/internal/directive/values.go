package directive

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
)

// Backoff is the value of backoff=.
type Backoff struct {
	Base, Cap time.Duration
	Grows     bool // exponential
	Jitter    bool // asked for by name
}

// String is the backoff as it is declared.
func (b Backoff) String() string {
	jitter := ""
	if b.Jitter {
		jitter = ",jitter"
	}
	if b.Grows {
		return fmt.Sprintf("exponential(%s,%s%s)", Short(b.Base), Short(b.Cap), jitter)
	}
	return fmt.Sprintf("fixed(%s%s)", Short(b.Base), jitter)
}

// Short prints a duration without the zero parts that Duration.String adds.
func Short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Duration reads the value as a positive duration in whole milliseconds.
func (a Arg) Duration() (time.Duration, *Problem) { return duration(a.Key, a.Value, a.ValueAt) }

// tooLong is the form of a duration; one that does not parse overflows.
var tooLong = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`)

func duration(what, text string, at int) (time.Duration, *Problem) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		if tooLong.MatchString(text) {
			return 0, problem(at, diag.BadDuration, "", "%s: %s is over the longest duration there is, %s", what, text, Short(math.MaxInt64/time.Hour*time.Hour))
		}
		hint := "write a number and a unit: 500ms, 30s, 10m, 1h30m"
		if n, ok := strings.CutSuffix(text, "d"); ok {
			if days, err := strconv.Atoi(n); err == nil && days > 0 && days < 1<<16 {
				hint = fmt.Sprintf("there is no unit for days: write %dh", 24*days)
			}
		} else if _, err := strconv.Atoi(text); err == nil {
			hint = fmt.Sprintf("give it a unit: %ss", text)
		}
		return 0, problem(at, diag.BadDuration, hint, "%s: %q is not a duration", what, text)
	case d <= 0:
		return 0, problem(at, diag.BadDuration, "", "%s: %s is not positive", what, text)
	case d%time.Millisecond != 0:
		return 0, problem(at, diag.BadDuration, "", "%s: %s is not a whole number of milliseconds, the unit in which the server counts", what, text)
	}
	return d, nil
}

// Int reads the value as a number from low to high.
func (a Arg) Int(low, high int) (int, *Problem) {
	n, err := strconv.Atoi(a.Value)
	if err != nil || n < low || n > high {
		return 0, problem(a.ValueAt, diag.BadNumber, "", "%s: %q is not a whole number from %d to %d", a.Key, a.Value, low, high)
	}
	return n, nil
}

// OneOf reads the value as one of a few words.
func (a Arg) OneOf(words ...string) (string, *Problem) {
	if slices.Contains(words, a.Value) {
		return a.Value, nil
	}
	hint := diag.Suggest(a.Value, words)
	if hint == "" {
		hint = "it is one of " + strings.Join(words, ", ")
	}
	return "", problem(a.ValueAt, diag.BadWord, hint, "%s: %q is unknown", a.Key, a.Value)
}

// Backoff reads fixed(d) or exponential(base,cap), each with an optional last word jitter.
func (a Arg) Backoff() (Backoff, *Problem) {
	const forms = "write fixed(30s) or exponential(1s,10m), either with jitter as the last word: fixed(30s,jitter)"
	name, inner, found := strings.Cut(a.Value, "(")
	inner, closed := strings.CutSuffix(inner, ")")
	if !found || !closed {
		return Backoff{}, problem(a.ValueAt, diag.BadBackoff, forms, "%s: %q is not a backoff", a.Key, a.Value)
	}
	if name != "fixed" && name != "exponential" {
		hint := diag.Suggest(name, []string{"fixed", "exponential"})
		if hint == "" {
			hint = forms
		}
		return Backoff{}, problem(a.ValueAt, diag.BadBackoff, hint, "%s: %q is unknown", a.Key, name)
	}
	b := Backoff{Grows: name == "exponential"}
	parts := split(inner, a.ValueAt+len(name)+1)
	if last := len(parts) - 1; parts[last].text == "jitter" {
		b.Jitter = true
		parts = parts[:last]
	}
	want := 1
	if b.Grows {
		want = 2
	}
	if len(parts) != want {
		return Backoff{}, problem(a.ValueAt, diag.BadBackoff, forms, "%s: %s takes %s, not %d", a.Key, name, count(want), len(parts))
	}
	var p *Problem
	if b.Base, p = duration(a.Key, parts[0].text, parts[0].at); p != nil {
		return Backoff{}, p
	}
	if !b.Grows {
		return b, nil
	}
	if b.Cap, p = duration(a.Key, parts[1].text, parts[1].at); p != nil {
		return Backoff{}, p
	}
	if b.Cap < b.Base {
		return Backoff{}, problem(parts[1].at, diag.BadBackoff, "the first is the wait after the first failure, the second the longest",
			"%s: the limit %s is shorter than the base %s", a.Key, parts[1].text, parts[0].text)
	}
	return b, nil
}

func count(durations int) string {
	if durations == 1 {
		return "one duration"
	}
	return "two durations"
}

type part struct {
	text string
	at   int
}

// split cuts at commas and trims blanks, and keeps the offsets.
func split(s string, at int) (parts []part) {
	for piece := range strings.SplitSeq(s, ",") {
		trimmed := strings.TrimLeft(piece, " \t")
		parts = append(parts, part{strings.TrimRight(trimmed, " \t"), at + len(piece) - len(trimmed)})
		at += len(piece) + 1
	}
	return parts
}

// Items reads the value as a list with commas.
func (a Arg) Items() []Arg {
	var items []Arg
	for _, p := range split(a.Value, a.ValueAt) {
		items = append(items, Arg{Key: a.Key, Value: p.text, At: a.At, ValueAt: p.at, HasValue: true, Quoted: a.Quoted})
	}
	return items
}
