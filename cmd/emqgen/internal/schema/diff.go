package schema

import (
	"bytes"
	"cmp"
	"fmt"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// Review is one package's old lock against what the package is now.
type Review struct {
	Path    string // of the lock
	Src     []byte
	Old     *Lock
	Now     *Lock
	Package *model.Package   // nil when nothing is declared any more
	Others  []*model.Package // all of the run: a job may have moved to one
	Accept  []string         // kinds whose changes are wanted
	Diags   *diag.List
}

// Run reports the changes that break jobs which wait, hands on to Now what the old lock remembers, and
// answers the accepted kinds that it met.
func (r *Review) Run() (met []string) {
	jobs := r.match()
	for i, old := range r.Old.Kinds {
		switch j := jobs[i]; {
		case slices.Contains(r.Accept, old.Kind):
			met = append(met, old.Kind)
		case j == nil:
			r.gone(old)
		default:
			r.kept(old, j)
		}
	}
	return append(met, r.unretired()...)
}

// match finds the job that each entry of the lock stands for: the one with its kind on its queue;
// else one that has moved; else one that has its kind as an alias; else none.
func (r *Review) match() []*model.Job {
	found := make([]*model.Job, len(r.Old.Kinds))
	if r.Package == nil {
		return found
	}
	taken := map[*model.Job]bool{}
	for _, fits := range []func(Kind, *model.Job) bool{
		func(old Kind, j *model.Job) bool { return j.Kind.Value == old.Kind && j.Queue.Name.Value == old.Queue },
		func(old Kind, j *model.Job) bool { return j.Kind.Value == old.Kind && !taken[j] },
		func(old Kind, j *model.Job) bool {
			return slices.ContainsFunc(j.Aliases, func(a model.Given[string]) bool { return a.Value == old.Kind })
		},
	} {
		for i, old := range r.Old.Kinds {
			if found[i] != nil {
				continue
			}
			if n := slices.IndexFunc(r.Package.Jobs, func(j *model.Job) bool { return fits(old, j) }); n >= 0 {
				found[i] = r.Package.Jobs[n]
				taken[found[i]] = true
			}
		}
	}
	return found
}

// gone reports a kind that no job has any more, with all names and queues under which jobs of it may wait.
func (r *Review) gone(old Kind) {
	if there, j := r.server(old.Kind, old.Queue); j != nil { // it has moved to another package
		there.kept(old, j)
		return
	}
	var lost []string
	for _, queue := range append([]string{old.Queue}, old.From...) {
		for _, kind := range append([]string{old.Kind}, old.Aliases...) {
			if !slices.Contains(r.Now.Retired, Retired{kind, queue}) && !r.takenOver(old, kind, queue, diag.KindGone) {
				lost = append(lost, fmt.Sprintf("//emq:retired kind=%s queue=%s", kind, queue))
			}
		}
	}
	if len(lost) == 0 {
		return
	}
	d := diag.Diagnostic{Pos: r.line(old.Kind), Code: diag.KindGone,
		Text: fmt.Sprintf("no job has the kind %s any more, and jobs of it may wait in queue %s", old.Kind, old.Queue)}
	if retire := "//emq:retired kind=" + old.Kind + " queue=" + old.Queue; len(lost) == 1 && lost[0] == retire {
		d.Hint = fmt.Sprintf("if the type was renamed, give it kind=%s; if it is in another package now, name both in one call; if the kind is gone on purpose, write %s%s", old.Kind, retire, orAccept(old))
	} else {
		d.Hint = fmt.Sprintf("if the type was renamed, give it kind=%s; if it is in another package now, name both in one call%s; if the kind is gone on purpose, write", old.Kind, orAccept(old))
		d.More = lost
	}
	r.Diags.Add(d)
}

// orAccept ends a hint with the way for those who know that nothing waits.
func orAccept(old Kind) string {
	return "; or, if no job of it waits, run emqgen -accept " + old.Kind
}

// line is the place of a kind in the lock.
func (r *Review) line(kind string) token.Position {
	return placeAt(r.Path, r.Src, bytes.Index(r.Src, []byte(`"kind": `+strconv.Quote(kind))))
}

// kept reports what changed for the worse in a job that is still there.
func (r *Review) kept(old Kind, j *model.Job) {
	now := r.entry(j)
	r.placed(old, now, j)
	r.keys(old, now, j)
	r.result(old, now, j)
	switch {
	case now.Version < old.Version:
		r.Diags.Errorf(j.Version.Pos, diag.VersionBack, fmt.Sprintf("write version=%d or more%s", old.Version, orAccept(old)),
			"job %s has version %d, but was at version %d: jobs of that version would be taken for newer ones", j.Name, now.Version, old.Version)
	case now.Version == old.Version:
		r.payload(old, now, j)
		r.olds(old, old.Old, j)
	default:
		r.olds(old, waiting(old), j)
	}
}

func (r *Review) entry(j *model.Job) Kind {
	for _, k := range r.Now.Kinds {
		if k.Kind == j.Kind.Value && k.Queue == j.Queue.Name.Value {
			return k
		}
	}
	return kindOf(r.Package, j) // two jobs with one kind on one queue: reported elsewhere
}

// placed reports a job that has left its queue or dropped an alias.
func (r *Review) placed(old, now Kind, j *model.Job) {
	if now.Queue != old.Queue && !slices.Contains(now.From, old.Queue) {
		pos := j.InQueue.Pos
		if !j.InQueue.Set {
			pos = j.At
		}
		r.Diags.Errorf(pos, diag.QueueMoved, "add from="+old.Queue+": then workers serve it there too"+orAccept(old),
			"job %s has moved from queue %s to %s, and jobs that wait there would find no handler", j.Name, old.Queue, now.Queue)
	}
	for _, q := range old.From {
		if q != now.Queue && !slices.Contains(now.From, q) && !slices.Contains(r.Now.Retired, Retired{now.Kind, q}) && !r.takenOver(old, old.Kind, q, diag.QueueMoved) {
			r.Diags.Errorf(j.At, diag.QueueMoved, "keep from="+q+" until that queue is empty"+orAccept(old),
				"job %s is not served on queue %s any more, where jobs may wait since it has moved", j.Name, q)
		}
	}
	for _, a := range old.Aliases {
		if a != now.Kind && !slices.Contains(now.Aliases, a) && !slices.Contains(r.Now.Retired, Retired{a, now.Queue}) && !r.takenOver(old, a, now.Queue, diag.AliasGone) {
			r.Diags.Errorf(j.At, diag.AliasGone, fmt.Sprintf("keep it, or write //emq:retired kind=%s queue=%s%s", a, now.Queue, orAccept(old)),
				"job %s has lost the alias %s, and jobs with that kind may wait", j.Name, a)
		}
	}
}

// keys warns of changed keys: they are no fault, but old and new ones do not exclude each other.
func (r *Review) keys(old, now Kind, j *model.Job) {
	if !slices.Equal(old.Unique, now.Unique) {
		r.Diags.Warnf(j.Pos, diag.KeyChanged, "", "the unique key of %s is made of (%s) now, not of (%s): jobs with old keys and new ones do not exclude each other",
			j.Name, strings.Join(now.Unique, ", "), strings.Join(old.Unique, ", "))
	}
	if old.Lane != now.Lane {
		r.Diags.Warnf(j.Pos, diag.KeyChanged, "", "the lane of %s is %s now, not %s: jobs that wait stay in their lanes", j.Name, orNone(now.Lane), orNone(old.Lane))
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return strconv.Quote(s)
}

// payload reports fields that waiting jobs would lose or not decode into.
func (r *Review) payload(old, now Kind, j *model.Job) {
	paste := keepOld(r.Package, j, old.Version, old.Payload)
	changes := Compare(old.Payload, now.Payload)
	slices.SortStableFunc(changes, func(a, b Change) int { return comparePlaces(r.at(a, j), r.at(b, j)) }) // as they are printed
	for _, c := range changes {
		d := diag.Diagnostic{Pos: r.at(c, j), Hint: fmt.Sprintf("raise the job to version=%d and keep the old struct", old.Version+1)}
		if paste != nil {
			d.Hint += " as below"
		}
		name := fmt.Sprintf("field %q of %s v%d", c.Path, now.Kind, now.Version)
		if c.Path == "" {
			name = fmt.Sprintf("the payload of %s v%d", now.Kind, now.Version)
		}
		switch c.Kind {
		case Added:
			d.Code, d.Warning, d.Hint = diag.FieldRequired, true, ""
			d.Text = c.words(name) + ": jobs that wait have it empty"
		case Gone:
			d.Code = diag.FieldGone
			d.Text = c.words(name) + ": jobs that wait would lose it"
			if c.To != "" {
				d.Hint = fmt.Sprintf("if it was renamed, keep its name on the wire, json:%q instead of %q; else %s", c.Name, c.To, d.Hint)
			}
		case Retyped:
			d.Code = diag.FieldRetyped
			d.Text = c.words(name) + ": jobs that wait would not decode"
		case Required:
			d.Code = diag.FieldRequired
			d.Text = c.words(name) + ": jobs that wait may lack it"
			d.Hint = "keep omitempty or omitzero; else " + d.Hint
		}
		if c.Kind != Added {
			d.Hint += orAccept(old)
			d.More, paste = paste, nil // once for a job
		}
		r.Diags.Add(d)
	}
}

// at is the place of the field that a change of a job's payload is about, or of the job's type.
func (r *Review) at(c Change, j *model.Job) token.Position {
	if c.At.IsValid() {
		return r.Package.Place(c.At)
	}
	return j.Pos
}

func comparePlaces(a, b token.Position) int {
	return cmp.Or(cmp.Compare(a.Filename, b.Filename), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}

// result reports what is different in results: kept ones, and callers of an older build, have the old form.
func (r *Review) result(old, now Kind, j *model.Job) {
	if old.Result == nil {
		return // nobody reads one yet
	}
	pos := j.At
	if j.Result.Set {
		pos = j.Result.Pos
	}
	hint := "add fields beside the old ones instead; or, if no result is kept and no job of it waits, run emqgen -accept " + old.Kind
	if now.Result == nil {
		r.Diags.Errorf(pos, diag.ResultChanged, "keep result=; or, if nobody waits for one, run emqgen -accept "+old.Kind, "job %s has no result any more, and callers may wait for one", j.Name)
		return
	}
	for _, c := range Compare(old.Result, now.Result) {
		name := "the result of " + now.Kind
		if c.Path != "" {
			name = fmt.Sprintf("field %q of the result of %s", c.Path, now.Kind)
		}
		switch c.Kind {
		case Added:
			r.Diags.Warnf(pos, diag.ResultChanged, "", "%s: results that are kept have it empty", c.words(name))
		case Gone:
			r.Diags.Errorf(pos, diag.ResultChanged, hint, "%s: callers of an older build would not find it", c.words(name))
		case Retyped:
			r.Diags.Errorf(pos, diag.ResultChanged, hint, "%s: results that are kept would not decode", c.words(name))
		case Required:
			r.Diags.Errorf(pos, diag.ResultChanged, hint, "%s: results that are kept may lack it", c.words(name))
		}
	}
}

// olds checks that each version which may wait has its struct, and that the struct is what it was.
func (r *Review) olds(old Kind, kept map[string]*Schema, j *model.Job) {
	for _, v := range slices.Sorted(maps.Keys(kept)) {
		version, err := strconv.Atoi(v)
		if err != nil {
			continue
		}
		i := slices.IndexFunc(j.Olds, func(o *model.Old) bool { return o.Version.Value == version })
		if i < 0 {
			r.Diags.Add(diag.Diagnostic{Pos: j.Version.Pos, Code: diag.BadVersion,
				Text: fmt.Sprintf("job %s is at version %d, and jobs of version %d may wait", j.Name, j.Version.Value, version),
				Hint: "keep their struct as below; or, if no job of that version waits, run emqgen -accept " + old.Kind, More: keepOld(r.Package, j, version, kept[v])})
			continue
		}
		was := j.Olds[i]
		if was.Type == nil {
			continue
		}
		now := Of(was.Type, r.Package.Types)
		if d := differs(kept[v], now); d != "" {
			r.Diags.Add(diag.Diagnostic{Pos: was.Pos, Code: diag.WasDiffers,
				Text: fmt.Sprintf("%s is not what %s was at version %d: %s", was.Name, j.Name, version, d),
				Hint: "keep the struct as it was" + orAccept(old), More: keepOld(r.Package, j, version, kept[v])})
		}
	}
}

// differs says in which field two schemas of one version differ.
func differs(kept, now *Schema) string {
	changes := slices.Concat(Compare(kept, now), Compare(now, kept))
	if len(changes) == 0 {
		return ""
	}
	c := changes[0]
	switch c.Kind {
	case Retyped:
		return fmt.Sprintf("field %q was %s and is %s", c.Path, c.From, c.To)
	case Gone:
		if slices.ContainsFunc(Compare(kept, now), func(x Change) bool { return x == c }) {
			return fmt.Sprintf("field %q is missing", c.Path)
		}
	}
	return fmt.Sprintf("field %q is new or required now", c.Path)
}
