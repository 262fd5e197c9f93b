package directive

import (
	"regexp"
	"slices"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
)

// Names lists the directives, for suggestions.
func Names() []string {
	return []string{"queue", "job", "cron", "was", "retired", "package"}
}

var (
	// A line comment that may have been meant as a directive: blanks, tool, what stands between, word.
	almost = regexp.MustCompile(`^//([ \t]*)((?i:emq(?:[-_.]?gen)?))([ \t]*:[ \t]*|[ \t]+|[._/=-]|$)([^ \t]*)`)
	word   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	// A line of a block comment that would be a directive elsewhere.
	inBlock = regexp.MustCompile(`(?m)^(?:/\*)?[ \t*]*(?://)?(?i:emq):([A-Za-z]+)`)
)

// nearMiss reports a comment that was most likely meant as a directive. What is not quite one is
// prose to gofmt, go vet and go/doc: nobody but us will ever say that it has no effect.
func nearMiss(comment string) *Problem {
	if strings.HasPrefix(comment, "/*") {
		m := inBlock.FindStringSubmatchIndex(comment)
		if m == nil || diag.Nearest(comment[m[2]:m[3]], Names()) == "" {
			return nil
		}
		return problem(m[2]-len("emq:"), diag.NearMiss, "write it on a line of its own that begins with //emq:",
			"a directive inside a /* */ comment has no effect")
	}
	m := almost.FindStringSubmatchIndex(comment)
	if m == nil {
		return nil
	}
	lead, tool, between, name := comment[m[2]:m[3]], comment[m[4]:m[5]], comment[m[6]:m[7]], comment[m[8]:m[9]]
	if !meant(lead, between, name) {
		return nil
	}
	hint := "a directive begins with //emq: and a lower-case name, without a blank"
	if known := diag.Nearest(name, Names()); known != "" {
		hint = "did you mean //emq:" + known + "?"
	}
	return problem(m[4], diag.NearMiss, hint, "%q is an ordinary comment and has no effect", "//"+lead+tool+between+name)
}

// meant tells a directive that is written wrong from prose that happens to speak of emq.
func meant(lead, between, name string) bool {
	exact := slices.Contains(Names(), strings.ToLower(name))
	switch {
	case between == ":": // "// emq:word"; not "// emq:{q}:rows", which is a key
		return word.MatchString(name)
	case strings.Contains(between, ":"): // "//emq : job"; "// emq: the framework" is prose
		return exact
	case lead != "": // "// emq job" is prose
		return false
	}
	return exact || between == "" && name == ""
}
