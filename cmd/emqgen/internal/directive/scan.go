// Package directive reads the text of //emq: directives. It knows nothing of files and types: it
// turns a comment into a name and arguments, each with its offset in the comment, and argument texts
// into values.
package directive

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
)

// Directive is one //emq:name line.
type Directive struct {
	Name   string
	NameAt int // offset of the name in the comment
	Args   []Arg
}

// Arg is a word, or key=value.
type Arg struct {
	Key      string // empty for a word
	Value    string // without its quotes
	At       int    // offset of the argument in the comment
	ValueAt  int    // offset of the value in the comment
	HasValue bool   // there was a "="
	Quoted   bool
}

// Problem is a fault in a comment, at an offset.
type Problem struct {
	At         int
	Code       diag.Code
	Text, Hint string
}

func problem(at int, code diag.Code, hint, format string, args ...any) *Problem {
	return &Problem{At: at, Code: code, Hint: hint, Text: fmt.Sprintf(format, args...)}
}

// Parse reads one comment, with its slashes. It answers false for a comment that is none of ours;
// arguments that cannot be read are left out and reported.
func Parse(comment string) (Directive, bool, []*Problem) {
	// Positions begin at 1, so that offsets can be told from the zero token.Pos.
	d, ok := ast.ParseDirective(1, comment)
	if !ok || d.Tool != "emq" {
		return Directive{}, false, nearMisses(comment)
	}
	at := func(p token.Pos) int { return int(p) - 1 }
	out := Directive{Name: d.Name, NameAt: at(d.Pos()) + len("//emq:")}
	text, unseen := plainBlanks(comment, len("//emq:")+len(d.Name))
	args, problems := scan(text, at(d.ArgsPos))
	out.Args = args
	return out, true, append(unseen, problems...)
}

// plainBlanks reports the first character that looks like a blank or like nothing, which a text copied
// from a page brings with it, and answers the comment as it is meant: with plain blanks, in as many bytes.
// What is quoted stays as it is.
func plainBlanks(comment string, from int) (string, []*Problem) {
	var problems []*Problem
	quote := rune(0)
	out := []byte(comment)
	for i, r := range comment[from:] {
		switch {
		case quote != 0 || r == '"' || r == '`':
			if quote == 0 || r == quote {
				quote ^= r
			}
		case r > unicode.MaxASCII && (unicode.IsSpace(r) || unicode.Is(unicode.Cf, r)):
			if problems == nil {
				problems = []*Problem{problem(from+i, diag.Malformed, "write a plain blank, or nothing", "a character that only looks like a blank, or cannot be seen: %U", r)}
			}
			for n := range utf8.RuneLen(r) {
				out[from+i+n] = ' '
			}
		}
	}
	return string(out), problems
}

// scan splits arguments at blanks, outside quotes and parentheses.
func scan(s string, i int) (args []Arg, problems []*Problem) {
	for {
		i = skipBlanks(s, i)
		if i >= len(s) {
			return args, problems
		}
		if strings.HasPrefix(s[i:], "//") || s[i] == '#' {
			return args, append(problems, problem(i, diag.Malformed, "a comment goes on a line of its own",
				"a directive has no room for a comment"))
		}
		arg, next, p := scanArg(s, i)
		if p == nil {
			arg, next, p = otherForm(s, arg, next)
			if p != nil { // what is meant is plain: it is not also reported as missing
				problems, args = append(problems, p), append(args, arg)
				i = next
				continue
			}
		}
		if p != nil {
			problems = append(problems, p)
		} else {
			args = append(args, arg)
		}
		i = next
	}
}

// otherForm knows what other notations make of key=value: blanks around the "=", and commas between
// options. It answers the argument that was meant.
func otherForm(s string, arg Arg, next int) (Arg, int, *Problem) {
	word, at := arg.Value, skipBlanks(s, next)
	if !arg.HasValue && !arg.Quoted && at < len(s) && s[at] == '=' { // timeout = 3s, timeout =3s
		if at = skipBlanks(s, at+1); at < len(s) {
			if meant, end, p := scanArg(s, at); p == nil && !meant.HasValue {
				meant.Key, meant.At, meant.HasValue = word, arg.At, true
				form := word + "=" + strings.TrimSuffix(s[at:end], ",")
				meant.Value = strings.TrimSuffix(meant.Value, ",")
				return meant, end, problem(arg.At, diag.UnknownOption, "write "+form, "blanks around the = of %s", word)
			}
		}
	}
	if arg.Quoted || !arg.HasValue {
		return arg, next, nil
	}
	if m := commaOption.FindStringIndex(arg.Value); m != nil { // timeout=3s,attempts=5
		cut := arg.ValueAt + m[0]
		arg.Value = arg.Value[:m[0]]
		return arg, cut + 1, problem(cut, diag.UnknownOption, "write "+s[arg.At:cut]+" "+s[cut+1:next], "a comma between options")
	}
	if rest, found := strings.CutSuffix(arg.Value, ","); found { // timeout=3s, attempts=5
		arg.Value = rest
		if at < len(s) && !strings.Contains(s[at:wordEnd(s, at)], "=") {
			return arg, wordEnd(s, at), problem(next-1, diag.UnknownOption, "write "+s[arg.At:next]+s[at:wordEnd(s, at)], "a blank in a list")
		}
		return arg, next, problem(next-1, diag.UnknownOption, "options have blanks between them: write "+s[arg.At:next-1], "a comma behind an option")
	}
	return arg, next, nil
}

var commaOption = regexp.MustCompile(`,[a-z]+=`)

func skipBlanks(s string, i int) int {
	for i < len(s) && blank(s[i]) {
		i++
	}
	return i
}

// scanArg reads the argument at i and says where it ends.
func scanArg(s string, i int) (Arg, int, *Problem) {
	arg := Arg{At: i, ValueAt: i}
	if s[i] == '"' || s[i] == '`' {
		return scanQuoted(s, i, arg)
	}
	j := i
	for j < len(s) && !blank(s[j]) && s[j] != '=' && s[j] != '(' {
		j++
	}
	if j >= len(s) || s[j] != '=' {
		return scanBare(s, i, arg)
	}
	arg.Key, arg.HasValue, arg.ValueAt = s[i:j], true, j+1
	switch {
	case j == i:
		return arg, wordEnd(s, i), problem(i, diag.Malformed, "", "a value without an option: %s", s[i:wordEnd(s, i)])
	case j+1 >= len(s) || blank(s[j+1]):
		if at := skipBlanks(s, j+1); at < len(s) && !strings.Contains(s[at:wordEnd(s, at)], "=") && !strings.HasPrefix(s[at:], "//") && s[at] != '#' {
			form := arg.Key + "=" + strings.TrimSuffix(s[at:wordEnd(s, at)], ",")
			return arg, wordEnd(s, at), problem(i, diag.Malformed, "write "+form, "a blank behind the = of %s", arg.Key)
		}
		return arg, j + 1, problem(i, diag.Malformed, "write "+arg.Key+"=VALUE without blanks around the =", "%s= has no value", arg.Key)
	case s[j+1] == '"' || s[j+1] == '`':
		return scanQuoted(s, j+1, arg)
	}
	return scanBare(s, j+1, arg)
}

// scanQuoted reads a value in "quotes" or `backquotes`, which ends at a blank or the end.
func scanQuoted(s string, i int, arg Arg) (Arg, int, *Problem) {
	quoted, err := strconv.QuotedPrefix(s[i:])
	if err != nil {
		return arg, len(s), problem(i, diag.Malformed, "", "the quote is not closed, or holds a bad escape: %s", s[i:])
	}
	end := i + len(quoted)
	if end < len(s) && !blank(s[end]) {
		return arg, wordEnd(s, end), problem(end, diag.Malformed, "put a blank after the quote", "text touches a quote: %s", s[i:wordEnd(s, end)])
	}
	arg.Value, err = strconv.Unquote(quoted)
	if err != nil {
		return arg, end, problem(i, diag.Malformed, "", "the quoted text holds a bad escape: %s", quoted)
	}
	arg.Quoted = true
	return arg, end, nil
}

// scanBare reads a value up to a blank that is not in parentheses.
func scanBare(s string, i int, arg Arg) (Arg, int, *Problem) {
	depth, j := 0, i
	for ; j < len(s) && (depth > 0 || !blank(s[j])); j++ {
		switch s[j] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth < 0 {
			return arg, wordEnd(s, j), problem(j, diag.Malformed, "", "a ) without its (: %s", s[i:wordEnd(s, j)])
		}
	}
	if depth > 0 {
		return arg, j, problem(i, diag.Malformed, "", "a ( without its ): %s", s[i:j])
	}
	arg.Value = s[i:j]
	return arg, j, nil
}

func wordEnd(s string, i int) int {
	for i < len(s) && !blank(s[i]) {
		i++
	}
	return i
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f' }
