package payload

import (
	"fmt"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// tagFaults says what encoding/json would ignore in a tag without a word.
func tagFaults(v *types.Var, tag string) []Fault {
	if why := tagSyntax(tag); why != "" {
		return []Fault{fault(v, diag.TagSyntax, `write key:"value" pairs with one blank between them`, fmt.Sprintf("the tag `%s` is not read at all: %s", tag, why))}
	}
	faults := keysTwice(v, tag)
	value := reflect.StructTag(tag).Get("json")
	if value == "-" {
		return faults
	}
	name, options, _ := strings.Cut(value, ",")
	if name != "" && !validName(name) {
		faults = append(faults, fault(v, diag.TagSyntax, "use letters, digits and punctuation other than quotes and commas",
			fmt.Sprintf("encoding/json ignores the name %q", name)))
	}
	known := []string{"omitempty", "omitzero", "string"}
	all := strings.Split(options, ",")
	for i, opt := range all {
		switch {
		case opt == "":
		case slices.Contains(all[:i], opt):
			faults = append(faults, fault(v, diag.TagTwice, "", fmt.Sprintf("the tag json:%q says %s twice", value, opt)))
		case !slices.Contains(known, opt):
			faults = append(faults, fault(v, diag.JSONOption, diag.Suggest(opt, known), fmt.Sprintf("encoding/json ignores the option %q", opt)))
		case opt == "omitempty" && NeverEmpty(v.Type()) && !slices.Contains(all, "omitzero"):
			f := fault(v, diag.JSONOption, "write omitzero, which leaves out a zero value",
				fmt.Sprintf(`encoding/json ignores the option "omitempty" on a %s, which it always writes`, TypeString(v.Type(), v.Pkg())))
			f.Warning = true
			faults = append(faults, f)
		case opt == "string" && !quotable(v.Type()):
			faults = append(faults, fault(v, diag.JSONOption, "it is for numbers, strings and bools",
				fmt.Sprintf(`encoding/json ignores the option "string" on a %s`, TypeString(v.Type(), v.Pkg()))))
		case opt == "string" && OwnMethod(v.Type()) != "":
			faults = append(faults, fault(v, diag.JSONOption, "drop the option",
				fmt.Sprintf(`with the option "string", encoding/json cannot read what %s of %s writes`, OwnMethod(v.Type()), TypeString(pointee(v.Type()), v.Pkg()))))
		}
	}
	return faults
}

// NeverEmpty says whether no value of a type is empty for json:",omitempty".
func NeverEmpty(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Struct:
		return true
	case *types.Array:
		return u.Len() > 0
	}
	return false
}

// keysTwice reports a json or emq key that a tag has twice: only the first is read. Other libraries may
// well give a key of their own several times.
func keysTwice(v *types.Var, tag string) (faults []Fault) {
	keys := tagKeys(tag)
	for i, key := range keys {
		if (key == "json" || key == "emq") && slices.Index(keys, key) < i {
			faults = append(faults, fault(v, diag.TagTwice, "write one, with commas between its words", fmt.Sprintf("the tag `%s` has the key %s twice, and only the first is read", tag, key)))
		}
	}
	return faults
}

// tagKeys are the keys of a tag whose syntax is right.
func tagKeys(tag string) (keys []string) {
	for {
		key, rest, _ := strings.Cut(tag, ":")
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return keys
		}
		keys = append(keys, strings.TrimLeft(key, " "))
		tag = rest[len(quoted):]
	}
}

// quotable says whether json:",string" has an effect. encoding/json looks through one pointer that has
// no name.
func quotable(t types.Type) bool {
	b, ok := pointee(t).Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsBoolean|types.IsInteger|types.IsFloat|types.IsString) != 0
}

// OwnMethod names the method by which a type encodes itself; it is empty for one that does not.
func OwnMethod(t types.Type) string {
	for _, name := range []string{"MarshalJSON", "MarshalText"} {
		if Method(t, name) != None {
			return name
		}
	}
	return ""
}

// tagSyntax is the rule of reflect.StructTag; a tag that breaks it is silently cut short.
func tagSyntax(tag string) string {
	for first := true; tag != ""; first = false {
		if !first {
			if tag[0] != ' ' {
				return "pairs are not separated by blanks"
			}
			if tag = strings.TrimLeft(tag, " "); tag == "" {
				return ""
			}
		}
		i := 0
		for i < len(tag) && tag[i] > ' ' && tag[i] != ':' && tag[i] != '"' && tag[i] != 0x7f {
			i++
		}
		if i == 0 || i+1 >= len(tag) || tag[i] != ':' || tag[i+1] != '"' {
			return "a key is not followed by a colon and a quote"
		}
		key := tag[:i]
		if low := strings.ToLower(key); low != key && (low == "json" || low == "emq") {
			return fmt.Sprintf("the key is %s, not %s", low, key)
		}
		quoted, err := strconv.QuotedPrefix(tag[i+1:])
		if err != nil {
			return "a quote is not closed"
		}
		if key != "emq" && diag.Nearest(key, []string{"emq"}) != "" && ourWords(quoted) {
			return fmt.Sprintf("the key is emq, not %s", key)
		}
		tag = tag[i+1+len(quoted):]
	}
	return ""
}

// ourWords says whether the quoted value of a tag is made of words that only emq tags have.
func ourWords(quoted string) bool {
	value, err := strconv.Unquote(quoted)
	for word := range strings.SplitSeq(value, ",") {
		if !slices.Contains([]string{"lane", "unique", "text", "redact"}, word) {
			return false
		}
	}
	return err == nil
}

// validName is encoding/json's rule for the name in a tag.
func validName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return true
}

// jsonTag reads the json key of a tag.
func jsonTag(f *model.Field, tag string) (dropped bool) {
	value := reflect.StructTag(tag).Get("json")
	if value == "-" {
		return true
	}
	name, options, _ := strings.Cut(value, ",")
	if name != "" && validName(name) {
		f.JSON, f.Tagged = name, true
	}
	for opt := range strings.SplitSeq(options, ",") {
		switch opt {
		case "omitempty", "omitzero":
			f.Optional = true
		case "string":
			f.AsString = quotable(f.Var.Type())
		}
	}
	return false
}

// EmqFaults says what is wrong with the emq key of a tag, wherever the field is.
func EmqFaults(tag string) []Fault {
	_, faults := emqTag(&model.Field{}, tag)
	return append(faults, keysTwice(nil, tag)...)
}

// emqTag reads the emq key of a tag; left says that the field is left out on purpose.
func emqTag(f *model.Field, tag string) (left bool, faults []Fault) {
	value, ok := reflect.StructTag(tag).Lookup("emq")
	if !ok {
		return false, nil
	}
	add := func(code diag.Code, hint, format string, args ...any) {
		faults = append(faults, fault(f.Var, code, hint, fmt.Sprintf(format, args...)))
	}
	words := strings.Split(value, ",")
	for i, w := range words {
		switch {
		case slices.Contains(words[:i], w):
			add(diag.TagTwice, "", "the tag emq:%q says %s twice", value, w)
		case w == "lane":
			f.Lane = true
		case w == "unique":
			f.Unique = true
		case w == "redact":
			f.Redact = true
		case w == "text" && slices.Contains(words, "unique"):
			f.UniqueBy = "text"
		case w == "text":
			add(diag.EmqTag, `write emq:"unique,text"`, "in the tag emq:%q, text says nothing without unique", value)
		case w == "-" && len(words) == 1:
			left = true
		case w == "-":
			add(diag.EmqTag, "", `in the tag emq:%q, "-" contradicts the rest`, value)
		default:
			hint := diag.Suggest(w, []string{"lane", "unique", "redact"})
			if hint == "" {
				hint = `there are lane, unique, redact and -`
			}
			add(diag.EmqTag, hint, "the tag emq:%q has an unknown word %q", value, w)
		}
	}
	return left, faults
}

// TaggedRedact says whether the emq key of a tag has the word redact.
func TaggedRedact(tag string) bool {
	var f model.Field
	_, _ = emqTag(&f, tag)
	return f.Redact
}
