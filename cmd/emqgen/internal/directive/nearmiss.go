package directive

import (
	"regexp"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
)

// Names lists the directives, for suggestions.
func Names() []string {
	return []string{"queue", "job", "cron", "was", "retired", "package"}
}

// What is not quite a directive is prose to gofmt, go vet and go/doc: nobody but us will ever say
// that it has no effect. These are the ways to miss, each with the rest of the line in group 2.
var (
	spaced   = regexp.MustCompile(`^//[ \t]+((?i:emq))[ \t]*:([^ \t].*)?`)
	gap      = regexp.MustCompile(`^//[ \t]*((?i:emq))[ \t]*:[ \t]+(.*)`)
	noColon  = regexp.MustCompile(`^//((?i:emq))[ \t._/=-]*(?:$|[ \t._/=-](.*))`)
	wrongTag = regexp.MustCompile(`^//[ \t]*((?i:emq(?:[-_.]?gen)?)):(.*)`)
	otherTag = regexp.MustCompile(`^//[ \t]*((?i:emq[-_.]?gen))[ \t]*:[ \t]*(.*)`)
	inBlock  = regexp.MustCompile(`(?im)^(?:/\*)?[ \t*]*(?://)?emq:([a-z]+)`)
)

// nearMiss reports a comment that was most likely meant as a directive.
func nearMiss(comment string) *Problem {
	if strings.HasPrefix(comment, "/*") {
		m := inBlock.FindStringSubmatchIndex(comment)
		if m == nil || known(comment[m[2]:m[3]]) == "" {
			return nil
		}
		return problem(m[2]-len("emq:"), diag.NearMiss, "write it as a line of its own that begins with //emq:",
			"a directive inside a /* */ comment has no effect")
	}
	for _, form := range []struct {
		match  *regexp.Regexp
		always bool // the form is never prose
		why    string
	}{
		{wrongTag, true, "a directive begins with //emq: and a lower-case name, without a blank"},
		{spaced, true, "a directive begins with //emq: without a blank"},
		{otherTag, true, "a directive begins with //emq: without a blank"},
		{gap, false, "a directive has no blank around its colon"},
		{noColon, false, "a directive begins with //emq: and a name"},
	} {
		m := form.match.FindStringSubmatchIndex(comment)
		if m == nil {
			continue
		}
		rest := ""
		if m[4] >= 0 {
			rest = comment[m[4]:m[5]]
		}
		name := known(firstWord(rest))
		if name == "" && (!form.always || !strings.HasPrefix(strings.TrimLeft(rest, " \t"), firstWord(rest)) || firstWord(rest) == "") {
			continue
		}
		hint := ""
		if name != "" {
			hint = "did you mean //emq:" + name + "?"
		}
		return problem(m[2], diag.NearMiss, hint, "%q has no effect: %s", strings.TrimRight(comment[:m[3]]+clip(comment[m[3]:]), " \t"), form.why)
	}
	return nil
}

func clip(s string) string {
	if i := strings.IndexByte(strings.TrimLeft(s, ": \t"), ' '); i >= 0 {
		return s[:len(s)-len(strings.TrimLeft(s, ": \t"))+i]
	}
	return s
}

func firstWord(s string) string {
	s = strings.TrimLeft(s, " \t")
	return s[:wordEnd(s, 0)]
}

// known finds the directive that a word means.
func known(word string) string { return diag.Nearest(word, Names()) }
