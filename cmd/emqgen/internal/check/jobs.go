package check

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
	"github.com/echomq/emq/internal/wire"
)

// settings checks that a job has a queue, a timeout and attempts: there are no silent defaults.
func settings(j *model.Job, diags *diag.List) {
	if j.Queue == nil {
		return // reported by queueKnown
	}
	q := j.Queue.Name.Value
	if !j.Timeout.Set {
		diags.Errorf(j.At, diag.NoTimeout, "add timeout=30s here or to //emq:queue "+q, "job %s has no timeout, and neither has its queue %s", j.Name, q)
	}
	if !j.Attempts.Set {
		diags.Errorf(j.At, diag.NoAttempts, "add attempts=5 here or to //emq:queue "+q, "job %s has no attempts, and neither has its queue %s", j.Name, q)
	}
}

// queueKnown reports a job whose queue is missing or not declared.
func queueKnown(p *model.Package, j *model.Job, diags *diag.List) {
	switch {
	case j.Queue != nil:
	case j.InQueue.Set && wire.CheckQueue(j.InQueue.Value) != nil: // reported
	case p.Muddled: // the queue may be what a directive with an error was to declare
	case j.InQueue.Set:
		hint := diag.Suggest(j.InQueue.Value, queueNames(p))
		if hint == "" {
			hint = "declare it in this package: //emq:queue " + j.InQueue.Value + " timeout=30s attempts=5"
		}
		diags.Errorf(j.InQueue.Pos, diag.UnknownQueue, hint, "queue %q is not declared in this package", j.InQueue.Value)
	case len(p.Queues) == 0:
		diags.Errorf(j.At, diag.NoQueue, "declare one at the top of the file: //emq:queue NAME timeout=30s attempts=5",
			"job %s has no queue, and this package declares none", j.Name)
	default:
		diags.Errorf(j.At, diag.NoQueue, "add queue="+p.Queues[0].Name.Value+" or another", "job %s does not say which of the %d queues of this package it goes to", j.Name, len(p.Queues))
	}
}

func queueNames(p *model.Package) (names []string) {
	for _, q := range p.Queues {
		names = append(names, q.Name.Value)
	}
	return names
}

// kindName checks the default kind, which is made of the type's name.
func kindName(j *model.Job, diags *diag.List) {
	if j.Kind.Set || j.Refused {
		return
	}
	if err := wire.CheckKind(j.Kind.Value); err != nil {
		diags.Errorf(j.Kind.Pos, diag.BadName, "give it one: kind=some_name", "the name of type %s gives no kind: %v", j.Name, err)
	}
}

// from checks the queues that a moved job is still served on.
func from(j *model.Job, diags *diag.List) {
	for _, q := range j.From {
		if j.Queue != nil && q.Value == j.Queue.Name.Value {
			diags.Errorf(q.Pos, diag.BadFrom, "from= names the queue that the job has left", "from=%s is the queue that job %s is in", q.Value, j.Name)
		}
	}
}

// versions checks the old structs of a job, which are in the order of their versions.
func versions(p *model.Package, j *model.Job, said once, diags *diag.List) {
	var before, newest *model.Old
	for _, old := range j.Olds {
		if old.Type == nil {
			continue // it is no struct: reported
		}
		v := old.Version.Value
		switch {
		case v < 1 || j.Version.Value < 1: // not a number: reported
		case v >= j.Version.Value:
			newest = old
		case before != nil && before.Version.Value == v:
			diags.Errorf(old.Version.Pos, diag.BadVersion, "", "%s and %s are both version %d of %s", before.Name, old.Name, v, j.Name)
		}
		before = old
		upgrade(p, j, old, diags)
		encodable(p, old.Type, parts{}, said, diags)
	}
	if newest != nil { // once: it is the job's own version that is too low
		diags.Errorf(newest.Version.Pos, diag.BadVersion, fmt.Sprintf("raise the job's own: //emq:job version=%d", newest.Version.Value+1),
			"%s is version %d of %s, which is at version %d itself", newest.Name, newest.Version.Value, j.Name, j.Version.Value)
	}
}

// upgrade checks the form of an old struct's method; that there is one is for the compiler to say.
func upgrade(p *model.Package, j *model.Job, old *model.Old, diags *diag.List) {
	obj, _, _ := types.LookupFieldOrMethod(old.Type, true, p.Types, "Upgrade")
	fn, ok := obj.(*types.Func)
	if !ok {
		return
	}
	want := fmt.Sprintf("func (%s) Upgrade() (%s, error)", old.Name, j.Name)
	sig := fn.Signature()
	in, out := sig.Params(), sig.Results()
	if in.Len() != 0 || out.Len() != 2 || !types.Identical(out.At(0).Type(), j.Type) || !types.Identical(out.At(1).Type(), types.Universe.Lookup("error").Type()) {
		diags.Errorf(p.Place(fn.Pos()), diag.BadSignature, "write "+want, "Upgrade of %s does not make a %s%s",
			old.Name, j.Name, payload.SignatureOf(fn, p.Types))
		return
	}
	if payload.OnPointer(fn) {
		diags.Errorf(p.Place(fn.Pos()), diag.BadSignature, "write "+want, "Upgrade of %s is declared on the pointer, and old payloads come by value", old.Name)
	}
}

// result checks the type that a job returns.
func result(p *model.Package, j *model.Job, said once, diags *diag.List) {
	if j.Result.Set && !j.Retain.Set {
		diags.Errorf(j.Result.Pos, diag.ResultNoRetain, "add retain=1h", "job %s has a result that nobody could wait for: without retain= it is gone when the job is done", j.Name)
	}
	if j.Returns == nil {
		return
	}
	w := newWalker(p, j.Result.Pos, said, diags)
	w.code, w.field = diag.BadResult, types.NewVar(token.NoPos, nil, "result", j.Returns)
	w.whole(j.Returns, "result")
	if name := unexportedPart(j.Returns); name != "" {
		diags.Errorf(j.Result.Pos, diag.BadResult, "begin its name with a capital letter", "result: %s is not exported, so that handlers of other packages could not name it", name)
	}
}

func unexportedPart(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		if !t.Obj().Exported() && t.Obj().Pkg() != nil {
			return t.Obj().Name()
		}
	case *types.Pointer:
		return unexportedPart(t.Elem())
	case *types.Slice:
		return unexportedPart(t.Elem())
	case *types.Map:
		return unexportedPart(t.Elem())
	}
	return ""
}

// members refuses fields and methods that the generated methods would collide with, and one job in
// another.
func members(p *model.Package, j *model.Job, diags *diag.List) {
	reserved := []string{"EmqSpec"}
	if j.Result.Set {
		reserved = append(reserved, "EmqResult")
	}
	if len(j.Payload.Redacted) > 0 {
		reserved = append(reserved, "LogValue")
	}
	for _, name := range []string{"EmqSpec", "EmqResult", "LogValue"} {
		obj, index, _ := types.LookupFieldOrMethod(j.Type, true, p.Types, name)
		if obj == nil || len(index) > 1 {
			continue
		}
		_, isField := obj.(*types.Var)
		if isField || slices.Contains(reserved, name) {
			what := "method"
			if isField {
				what = "field"
			}
			diags.Errorf(p.Place(obj.Pos()), diag.ReservedName, "call it something else", "job %s has a %s %s, which is a name of generated code", j.Name, what, name)
		}
	}
}

// embedsJob refuses a job in another: the outer would inherit the inner's methods. It answers the fields
// by which it does; what else is wrong with what they bring is said of the inner job.
func embedsJob(p *model.Package, j *model.Job, diags *diag.List) map[*types.Var]bool {
	inherited := map[*types.Var]bool{}
	st, ok := j.Type.Underlying().(*types.Struct)
	if !ok {
		return inherited
	}
	for v := range st.Fields() {
		if inner := embeddedJob(p, v, map[*types.Named]bool{}); inner != nil {
			inherited[v] = true
			diags.Errorf(p.Place(v.Pos()), diag.EmbedsJob, "embed a plain struct that both have, or make it a field with a name",
				"job %s embeds the job %s: it would take over that one's result and log form", j.Name, payload.TypeString(inner, p.Types))
		}
	}
	return inherited
}

// embeddedJob is the job that a field embeds, be it through other structs; nil if there is none.
func embeddedJob(p *model.Package, v *types.Var, seen map[*types.Named]bool) *types.Named {
	if !v.Anonymous() {
		return nil
	}
	t := types.Unalias(v.Type())
	if ptr, ok := t.(*types.Pointer); ok {
		t = types.Unalias(ptr.Elem())
	}
	inner, ok := t.(*types.Named)
	if !ok || seen[inner] {
		return nil
	}
	seen[inner] = true
	if isJob(p, inner) {
		return inner
	}
	st, ok := inner.Underlying().(*types.Struct)
	if !ok {
		return nil
	}
	for f := range st.Fields() {
		if job := embeddedJob(p, f, seen); job != nil {
			return job
		}
	}
	return nil
}

// isJob tells the jobs of the package by its directives, and those of others by what was generated.
func isJob(p *model.Package, t *types.Named) bool {
	if t.Obj().Pkg() == p.Types {
		return slices.ContainsFunc(p.Jobs, func(j *model.Job) bool { return j.Type == t })
	}
	_, index, _ := types.LookupFieldOrMethod(t, true, nil, "EmqSpec")
	return len(index) == 1
}

// cron checks that a job which enqueues itself can do so without a payload.
func cron(p *model.Package, j *model.Job, inherited map[*types.Var]bool, diags *diag.List) {
	if j.Cron == nil {
		return
	}
	for _, f := range j.Payload.Fields {
		if !f.Optional && !f.Lane && !inherited[f.Outer] {
			option := "omitempty or omitzero"
			if payload.NeverEmpty(f.Var.Type()) {
				option = "omitzero"
			}
			diags.Errorf(placeOf(p, f), diag.CronRequired, "add "+option+" to its json tag",
				"field %s of %s is required, but cron enqueues the job without a payload", f.Name, j.Name)
		}
	}
	if lane := j.LaneField(); lane != nil && !inherited[lane.Outer] {
		diags.Errorf(j.Cron.Pos, diag.CronRequired, "give the periodic part a job of its own", "job %s has a lane, which cron could not fill", j.Name)
	}
}
