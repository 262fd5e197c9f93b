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

const (
	blanks = `[\s\p{Z}\p{Cf}]*` // also those that nobody sees
	tools  = `(?i:emq(?:[-_.]?gen)?|echomq|eqm|meq|emqq)`
)

var (
	// A line comment that may have been meant as a directive: what leads, tool, what stands between, word.
	almost = regexp.MustCompile(`^//(/?` + blanks + `[@+!#]?` + blanks + `)(` + tools + `)(` + blanks + `[:：]+` + blanks + `|` + blanks + `[;,]` + blanks + `|[ \t]+|[._/=-]|$)([^ \t]*)(.*)`)
	itself = regexp.MustCompile(`^(?i:emq(?:[-_.]?gen)?)$`)
	word   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	// A line of a block comment that would be a directive elsewhere.
	inBlock = regexp.MustCompile(`(?m)^(?:/\*)?[ \t*]*(?://|[@+])?((?i:emq):([A-Za-z]+))`)
	// A directive of another tool, or nolint, that holds one of ours.
	withinOther = regexp.MustCompile(`^//[a-z0-9]+(:)(emq[:.]([A-Za-z]+))`)
	behindOther = regexp.MustCompile(`^//(?:nolint\b|[a-z0-9]+:)[^ \t]*[ \t].*(//[ \t]*emq:([A-Za-z]+))`)
	// A directive in all but one letter of the tool, or without its colon.
	offByOne = regexp.MustCompile(`^//([A-Za-z]{2,4}):([a-z]+)([ \t].*)?$`)
	glued    = regexp.MustCompile(`^//emq([a-z]+)([ \t].*)?$`)
	option   = regexp.MustCompile(`^[a-z]+=[^=]`)
	named    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// otherQueues are tools that are one letter away, and may have directives of their own.
func otherQueues() []string { return []string{"rmq", "amq", "zmq"} }

// nearMisses reports a comment that was most likely meant as a directive. What is not quite one is
// prose to gofmt, go vet and go/doc: nobody but us will ever say that it has no effect.
func nearMisses(comment string) []*Problem {
	if strings.HasPrefix(comment, "/*") {
		return blockMisses(comment)
	}
	for _, other := range []*regexp.Regexp{withinOther, behindOther} {
		m := other.FindStringSubmatchIndex(comment)
		if m == nil {
			continue
		}
		n := len(m)
		if known := diag.Nearest(comment[m[n-2]:m[n-1]], Names()); known != "" {
			return []*Problem{problem(m[n-4], diag.NearMiss, "write it on a line of its own: //emq:"+known,
				"%q stands in the directive of another tool and has no effect", comment[m[n-4]:m[n-1]])}
		}
	}
	if known := Slip(comment); known != "" {
		return []*Problem{problem(len("//"), diag.NearMiss, "did you mean //emq:"+known+"?",
			"%q is an ordinary comment and has no effect", strings.Fields(comment)[0])}
	}
	m := almost.FindStringSubmatchIndex(comment)
	if m == nil {
		return nil
	}
	part := func(i int) string { return comment[m[2*i]:m[2*i+1]] }
	lead, tool, between, name, rest := part(1), part(2), part(3), part(4), part(5)
	if !meant(lead, tool, between, name, rest) {
		return nil
	}
	hint := "a directive begins with //emq: and a lower-case name, without a blank"
	if known := diag.Nearest(name, Names()); known != "" {
		hint = "did you mean //emq:" + known + "?"
	}
	return []*Problem{problem(m[4], diag.NearMiss, hint, "%q is an ordinary comment and has no effect", "//"+lead+tool+between+name)}
}

// Slip is the directive that a comment is but for one slip in "emq:"; it is empty for any other comment.
func Slip(comment string) string {
	name, rest := "", ""
	if m := glued.FindStringSubmatch(comment); m != nil {
		name, rest = m[1], m[2]
	} else if m := offByOne.FindStringSubmatch(comment); m != nil {
		if tool := strings.ToLower(m[1]); diag.Distance(tool, "emq") == 1 && !slices.Contains(otherQueues(), tool) {
			name, rest = m[2], m[3]
		}
	}
	if !slices.Contains(Names(), name) || !argumentsOf(name, rest) {
		return ""
	}
	return name
}

// argumentsOf says whether what follows the name of a directive looks like its arguments. It knows them
// better than arguments does, because where emq itself is not written most comments are of something else.
func argumentsOf(name, rest string) bool {
	args := strings.Fields(rest)
	if len(args) > 0 && slices.Contains([]string{"queue", "was", "cron"}, name) { // they begin with a word
		if name == "cron" {
			return strings.ContainsAny(args[0][:1], "\"`@")
		}
		if !named.MatchString(args[0]) {
			return false
		}
		args = args[1:]
	}
	return len(args) == 0 || option.MatchString(args[0])
}

// blockMisses are the lines of a block comment that would be directives elsewhere.
func blockMisses(comment string) (problems []*Problem) {
	for _, m := range inBlock.FindAllStringSubmatchIndex(comment, -1) {
		if diag.Nearest(comment[m[4]:m[5]], Names()) != "" {
			problems = append(problems, problem(m[2], diag.NearMiss, "write it on a line of its own that begins with //emq:",
				"%q inside a /* */ comment has no effect", comment[m[2]:m[3]]))
		}
	}
	return problems
}

// meant tells a directive that is written wrong from prose that happens to speak of emq, and from one
// that was commented out with a further //.
func meant(lead, tool, between, name, rest string) bool {
	exact := slices.Contains(Names(), strings.ToLower(name))
	colon := strings.ContainsAny(between, ":：")
	ours := itself.MatchString(tool)
	switch {
	case !ours || strings.Trim(lead, " \t") != "": // "//eqm:job", "//@emq:job", "///emq:job"
		return colon && diag.Nearest(name, Names()) != "" && arguments(rest)
	case between == ":": // "// emq:word"; not "// emq:{q}:rows", which is a key
		return word.MatchString(name)
	case colon || strings.ContainsAny(between, ";,"): // "//emq : job"; "// emq: job queues" is prose
		return exact && (lead == "" || arguments(rest))
	case lead != "": // "// emq job" is prose
		return false
	}
	return exact || between == "" && name == ""
}

// arguments says whether what follows a word may be the arguments of a directive, and not the rest of
// a sentence.
func arguments(rest string) bool {
	return strings.ContainsAny(rest, "=\"`") || len(strings.Fields(rest)) == 0
}
