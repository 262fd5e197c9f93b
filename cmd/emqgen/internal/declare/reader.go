package declare

import (
	"fmt"
	"go/token"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/directive"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/names"
	"github.com/echomq/emq/internal/wire"
)

// reader reads the arguments of one directive.
type reader struct {
	diags *diag.List
	base  token.Position // of the comment
	text  string
	dir   directive.Directive
	given map[string]bool
	quiet bool // about stray words
}

// at is the position of an offset in the comment.
func (r *reader) at(offset int) token.Position {
	pos := r.base
	before := r.text[:offset]
	if n := strings.Count(before, "\n"); n > 0 { // a block comment
		pos.Line += n
		pos.Column = offset - strings.LastIndexByte(before, '\n')
		return pos
	}
	pos.Column += offset
	return pos
}

func (r *reader) errorf(offset int, code diag.Code, hint, format string, args ...any) {
	r.diags.Errorf(r.at(offset), code, hint, format, args...)
}

func (r *reader) report(p *directive.Problem) { r.errorf(p.At, p.Code, p.Hint, "%s", p.Text) }

// args gives each option of the directive to take; word takes the argument without a "=", if the
// directive has one.
func (r *reader) args(word, take func(directive.Arg)) {
	options := Options()[r.dir.Name]
	words := 0
	for _, a := range r.dir.Args {
		switch {
		case !a.HasValue && word != nil && words == 0:
			words++
			word(a)
		case !a.HasValue:
			r.strayWord(a, options)
		case !slices.Contains(options, a.Key):
			r.errorf(a.At, diag.UnknownOption, r.suggestOption(a.Key, options), "unknown option %q", a.Key)
			// Read it as what it means, so that the option is not also reported as missing.
			if a.Key = meantBy(a.Key, options); a.Key != "" && !r.given[a.Key] {
				r.given[a.Key] = true
				take(a)
			}
		case r.given[a.Key]:
			r.errorf(a.At, diag.OptionTwice, "", "option %s is given twice", a.Key)
		default:
			r.given[a.Key] = true
			take(a)
		}
	}
}

// faults reports what is wrong in a directive of a type that counts for nothing else.
func (r *reader) faults() {
	switch r.dir.Name {
	case "job":
		r.job()
	case "was":
		r.was()
	case "cron":
		r.cron()
	}
}

func (r *reader) suggestOption(key string, options []string) string {
	if hint := tagHint(key); hint != "" {
		return hint
	}
	if hint := diag.Suggest(key, options); hint != "" {
		return hint
	}
	return "//emq:" + r.dir.Name + " has " + strings.Join(options, ", ")
}

// meantBy is the option that an unknown one most likely is.
func meantBy(key string, options []string) string {
	if tagHint(key) != "" {
		return ""
	}
	return diag.Nearest(key, options)
}

// tagHint tells who writes the word of a field's tag in a directive where it belongs.
func tagHint(word string) string {
	if slices.Contains([]string{"lane", "unique", "redact"}, word) {
		return fmt.Sprintf("it is a tag of a field: emq:%q", word)
	}
	return ""
}

func (r *reader) strayWord(a directive.Arg, options []string) {
	if r.quiet {
		return
	}
	hint := ""
	key, value, hasKey := strings.Cut(a.Value, "=")
	switch {
	case a.Quoted && hasKey && slices.Contains(options, key):
		hint = fmt.Sprintf("quotes go around the value only: write %s=%q", key, value)
	case a.Value == "jitter":
		hint = "it is the last word inside the parentheses: backoff=fixed(30s,jitter)"
	case slices.Contains(options, a.Value):
		hint = "write " + a.Value + "=VALUE"
	case strings.Contains(a.Value, ":") && slices.Contains(options, a.Value[:strings.Index(a.Value, ":")]):
		hint = "write " + strings.Replace(a.Value, ":", "=", 1)
	case tagHint(a.Value) != "":
		hint = tagHint(a.Value)
	case diag.Nearest(a.Value, options) != "":
		hint = "did you mean " + diag.Nearest(a.Value, options) + "=?"
	case r.dir.Name == "cron":
		hint = "put the whole spec into quotes"
	}
	r.errorf(a.At, diag.UnknownOption, hint, "unexpected word %q", a.Value)
}

// given makes a value that an argument gives.
func given[T any](r *reader, a directive.Arg, v T) model.Given[T] {
	return model.Given[T]{Value: v, Pos: r.at(a.ValueAt), Set: true}
}

// valued takes the result of reading a value; a fault is reported and leaves the value unset, but
// marked as given, so that it is not also reported as missing.
func valued[T any](r *reader, a directive.Arg, v T, p *directive.Problem) model.Given[T] {
	if p != nil {
		r.report(p)
	}
	return given(r, a, v)
}

// named takes a name that the wire has a rule for.
func (r *reader) named(a directive.Arg, check func(string) error) (model.Given[string], bool) {
	if err := check(a.Value); err != nil {
		hint := ""
		if s := names.Plain(a.Value); check(s) == nil {
			hint = "did you mean " + s + "?"
		}
		r.errorf(a.ValueAt, diag.BadName, hint, "%v", err)
		return given(r, a, a.Value), false
	}
	return given(r, a, a.Value), true
}

const mostAttempts = 1_000_000

// settings takes an option that queues and jobs have in common.
func (r *reader) settings(s *model.Settings, a directive.Arg) bool {
	switch a.Key {
	case "timeout":
		v, p := a.Duration()
		s.Timeout = valued(r, a, v, p)
	case "retain":
		v, p := a.Duration()
		s.Retain = valued(r, a, v, p)
	case "attempts":
		v, p := a.Int(1, mostAttempts)
		s.Attempts = valued(r, a, v, p)
	case "backoff":
		v, p := a.Backoff()
		s.Backoff = valued(r, a, v, p)
	default:
		return false
	}
	return true
}

// Options lists the options of each directive.
func Options() map[string][]string {
	return map[string][]string{
		"queue":   {"timeout", "attempts", "backoff", "retain", "name", "shards"},
		"job":     {"queue", "kind", "alias", "timeout", "attempts", "backoff", "unique", "retain", "result", "version", "from"},
		"cron":    {"tz", "missed", "overlap"},
		"was":     {"version"},
		"retired": {"kind", "queue"},
		"package": {"prefix"},
	}
}

// queue reads //emq:queue; it answers nil for one without a usable name.
func (r *reader) queue() *model.Queue {
	q := &model.Queue{Pos: r.base}
	ok := true
	r.args(func(a directive.Arg) {
		q.Name, ok = r.named(a, wire.CheckQueue)
	}, func(a directive.Arg) {
		if r.settings(&q.Settings, a) {
			return
		}
		if a.Key == "shards" {
			v, p := a.Int(1, wire.MaxShards)
			q.Shards = valued(r, a, v, p)
			return
		}
		q.IdentAs = given(r, a, a.Value)
		if !names.Exported(a.Value) {
			r.errorf(a.ValueAt, diag.BadIdent, "it stands in Go names: write it like VideoTranscode", "name: %q is not an exported Go name", a.Value)
		}
	})
	if !q.Name.Set {
		r.errorf(0, diag.Missing, "write //emq:queue NAME", "//emq:queue without a name")
		return nil
	}
	q.Ident = names.Ident(q.Name.Value)
	switch {
	case q.IdentAs.Set:
		q.Ident = q.IdentAs.Value
	case ok && !names.Exported(q.Ident):
		r.diags.Errorf(q.Name.Pos, diag.BadIdent, "give it a Go name: name=Something", "queue %q gives no Go name", q.Name.Value)
	}
	return q
}

// job reads //emq:job.
func (r *reader) job() *model.Job {
	j := &model.Job{At: r.base}
	r.args(nil, func(a directive.Arg) {
		switch {
		case r.settings(&j.Own, a):
		case a.Key == "queue":
			j.InQueue, _ = r.named(a, wire.CheckQueue)
		case a.Key == "kind":
			j.Kind, _ = r.named(a, wire.CheckKind)
		case a.Key == "alias":
			j.Aliases = r.list(a, wire.CheckKind)
		case a.Key == "from":
			j.From = r.list(a, wire.CheckQueue)
		case a.Key == "version":
			v, p := a.Int(1, math.MaxInt32)
			j.Version = valued(r, a, v, p)
		case a.Key == "unique":
			j.Unique = r.unique(a)
		case a.Key == "result":
			j.Result = given(r, a, a.Value)
		}
	})
	return j
}

// list reads names with commas between them.
func (r *reader) list(a directive.Arg, check func(string) error) (out []model.Given[string]) {
	for _, item := range a.Items() {
		name, ok := r.named(item, check)
		if ok && slices.ContainsFunc(out, func(o model.Given[string]) bool { return o.Value == name.Value }) {
			r.errorf(item.ValueAt, diag.OptionTwice, "", "%s: %s is given twice", a.Key, name.Value)
			continue
		}
		out = append(out, name)
	}
	return out
}

// unique reads done or start, either with debounce as the last word, or a duration.
func (r *reader) unique(a directive.Arg) model.Given[model.Unique] {
	items := a.Items()
	u, p := uniqueMode(items[0])
	if u.Debounce = len(items) > 1; u.Debounce && p == nil {
		_, p = items[1].OneOf("debounce")
		switch {
		case p != nil && strings.HasPrefix(p.Hint, "it is"):
			p.Hint = "the word after the comma is debounce"
		case p == nil && len(items) > 2:
			p = &directive.Problem{At: items[2].ValueAt, Code: diag.BadWord, Text: "unique: there is nothing to say after debounce"}
		case p == nil && u.Mode == "window":
			p = &directive.Problem{At: items[1].ValueAt, Code: diag.BadWord, Text: "unique: a key that is held for a time cannot be debounced",
				Hint: "write done,debounce or start,debounce"}
		}
	}
	return valued(r, a, u, p)
}

func uniqueMode(a directive.Arg) (model.Unique, *directive.Problem) {
	if a.Value != "" && strings.ContainsAny(a.Value[:1], "0123456789+-.") {
		d, p := a.Duration()
		return model.Unique{Mode: "window", Window: d}, p
	}
	mode, p := a.OneOf("done", "start")
	if p != nil && strings.HasPrefix(p.Hint, "it is") {
		p.Hint = "it is done, start, either with debounce as in done,debounce, or a duration"
	}
	return model.Unique{Mode: mode}, p
}

// was reads //emq:was; it answers nil for one without a type or a version.
func (r *reader) was() *model.Old {
	old := &model.Old{Pos: r.base}
	r.args(func(a directive.Arg) {
		old.Of = given(r, a, a.Value)
	}, func(a directive.Arg) {
		v, p := a.Int(1, math.MaxInt32)
		old.Version = valued(r, a, v, p)
	})
	if !old.Of.Set || !old.Version.Set {
		r.errorf(0, diag.Missing, "write //emq:was JOB version=N", "//emq:was needs the job's type and the version that this struct was")
		return nil
	}
	return old
}

// retired reads //emq:retired.
func (r *reader) retired() *model.Retired {
	x := &model.Retired{Pos: r.base}
	r.args(nil, func(a directive.Arg) {
		if a.Key == "kind" {
			x.Kind, _ = r.named(a, wire.CheckKind)
		} else {
			x.Queue, _ = r.named(a, wire.CheckQueue)
		}
	})
	if !x.Kind.Set || !x.Queue.Set {
		r.errorf(0, diag.Missing, "write //emq:retired kind=KIND queue=QUEUE", "//emq:retired needs the kind and its queue")
		return nil
	}
	return x
}

func (r *reader) prefix() (prefix model.Given[string], ok bool) {
	r.args(nil, func(a directive.Arg) {
		prefix = given(r, a, a.Value)
		if !names.Exported(a.Value) {
			r.errorf(a.ValueAt, diag.BadIdent, "it begins names like JobProducer: write it like Job", "prefix: %q is not an exported Go name", a.Value)
		}
	})
	if !prefix.Set {
		r.errorf(0, diag.Missing, "write //emq:package prefix=Job", "//emq:package without an option")
	}
	return prefix, prefix.Set
}

// cron reads //emq:cron; it answers nil for one without a spec.
func (r *reader) cron() *model.Cron {
	c := &model.Cron{Pos: r.base}
	r.args(func(a directive.Arg) {
		c.Spec = given(r, a, a.Value)
		if !a.Quoted && !strings.HasPrefix(a.Value, "@") {
			r.errorf(a.At, diag.BadCron, `write //emq:cron "15 2 * * *"`, "a cron spec stands in quotes")
			r.quiet = true // the rest of the spec is not a row of stray words
			return
		}
		if err := checkSpec(a.Value); err != "" {
			r.errorf(a.ValueAt, diag.BadCron, cronHint(a.Value, err), "cron spec %q: %s", a.Value, err)
		}
	}, func(a directive.Arg) {
		if a.Key == "missed" {
			v, p := a.OneOf("skip", "once", "all")
			c.Missed = valued(r, a, v, p)
			return
		}
		if a.Key == "overlap" {
			v, p := a.OneOf("allow", "skip")
			c.Overlap = valued(r, a, v, p)
			return
		}
		c.TZ = given(r, a, a.Value)
		if _, err := time.LoadLocation(a.Value); err != nil || a.Value == "Local" || a.Value == "" {
			r.errorf(a.ValueAt, diag.BadZone, zoneHint(a.Value), "tz: there is no time zone %q", a.Value)
		}
	})
	if !c.Spec.Set {
		r.errorf(0, diag.Missing, `write //emq:cron "15 2 * * *"`, "//emq:cron without a spec")
		return nil
	}
	return c
}
