package check

import (
	"go/token"
	"go/types"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// keys checks the fields that a lane and a unique key are made of.
func keys(p *model.Package, j *model.Job, inherited map[*types.Var]bool, said once, diags *diag.List) {
	var lane *model.Field
	for _, f := range j.Payload.Fields {
		if inherited[f.Outer] {
			continue
		}
		pos := placeOf(p, f)
		if f.Lane && lane != nil {
			diags.Errorf(pos, diag.TagTwice, "a job goes into one lane", "fields %s and %s of %s are both its lane", lane.Name, f.Name, j.Name)
		}
		if f.Lane && lane == nil {
			lane = f
		}
		if !f.Lane && !f.Unique {
			continue
		}
		what := "unique key"
		if f.Lane {
			what = "lane"
		}
		typ := payload.TypeString(f.Var.Type(), p.Types)
		switch {
		case !f.ByPointer && f.Var.Pkg() == p.Types && said[report{field: f.Var, code: diag.NoText}]: // in another job
		case f.ByPointer:
			diags.Errorf(pos, diag.NoText, "embed the struct by value", "%s.%s cannot be a %s: the struct that it comes from is embedded by pointer and may be nil", j.Name, f.Name, what)
		case f.UniqueBy == "text" && !f.Lane:
			said[report{field: f.Var, code: diag.NoText}] = true
			if _, isPointer := f.Var.Type().Underlying().(*types.Pointer); isPointer || payload.Method(f.Var.Type(), "MarshalText") == payload.None {
				diags.Errorf(pos, diag.NoText, "", `%s.%s is tagged "unique,text", but %s has no MarshalText on the value`, j.Name, f.Name, typ)
			}
		case payload.Canonical(f.Var.Type()) == payload.NoForm:
			said[report{field: f.Var, code: diag.NoText}] = true
			diags.Errorf(pos, diag.NoText, noTextHint(f), "%s.%s cannot be a %s: a %s has no one text for one value", j.Name, f.Name, what, typ)
		}
	}
	if j.Unique.Set && len(j.UniqueFields()) == 0 && len(j.Payload.Fields) > 0 {
		diags.Errorf(j.Unique.Pos, diag.UniqueNoField, `tag the fields that make two jobs the same: emq:"unique"`, "unique=%s, but no field of %s is tagged", j.Unique.Value, j.Name)
	}
	if _, unique := j.EffectiveUnique(); unique && lane != nil && !j.UniqueInLane() && j.Queue != nil && j.Queue.Shards.Value > 1 {
		diags.Errorf(placeOf(p, lane), diag.UniqueOverLane, `write emq:"lane,unique" here, or take shards= from the queue`,
			"%s is unique and in the lane of its %s, and its queue %s has %d shards: in two lanes it could be there twice", j.Name, lane.Name, j.Queue.Name.Value, j.Queue.Shards.Value)
	}
	nestedTags(p, j, said, diags)
	unseenRedactions(p, j, said, diags)
}

// placeOf is where a field stands in the package; for one that a struct of another package brings along,
// where that struct is embedded.
func placeOf(p *model.Package, f *model.Field) token.Position {
	if f.Var.Pkg() != p.Types {
		return p.Place(f.Outer.Pos())
	}
	return p.Place(f.Var.Pos())
}

func noTextHint(f *model.Field) string {
	if f.Unique && payload.Method(f.Var.Type(), "MarshalText") != payload.None {
		if n, ok := types.Unalias(f.Var.Type()).(*types.Named); ok && n.Obj().Pkg().Path() == "time" {
			return "add a field with the text that you mean, such as a date"
		}
		return `write emq:"unique,text" if its MarshalText gives equal values equal texts`
	}
	return "use text, a whole number, a bool or an array of bytes"
}

// nestedTags reports lane and unique tags in structs that a payload holds: only its own fields, and
// those of structs that it embeds, are looked at. A job that another holds has its tags for itself.
func nestedTags(p *model.Package, j *model.Job, said once, diags *diag.List) {
	seen := map[types.Type]bool{}
	var walk func(t types.Type, path string, top bool)
	walk = func(t types.Type, path string, top bool) {
		t = types.Unalias(t)
		if seen[t] {
			return
		}
		seen[t] = true
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			walk(u.Elem(), path, top)
		case *types.Slice:
			walk(u.Elem(), path+"[]", false)
		case *types.Array:
			walk(u.Elem(), path+"[]", false)
		case *types.Map:
			walk(u.Elem(), path+"[]", false)
		case *types.Struct:
			named, _ := t.(*types.Named)
			ofJob := top || named != nil && isJob(p, named)
			fields, _ := payload.Fields(u)
			for _, f := range fields {
				if !ofJob && (f.Lane || f.Unique) && f.Var.Pkg() == p.Types && said.first(report{field: f.Var, code: diag.TagIgnored}) {
					diags.Errorf(p.Place(f.Var.Pos()), diag.TagIgnored, "move the value, or a copy of it, to a field of the job itself",
						"%s.%s: a lane or unique tag inside a payload has no effect", path, f.Name)
				}
				walk(f.Var.Type(), path+"."+f.Name, false)
			}
		}
	}
	walk(j.Type, j.Name, true)
}

// unseenRedactions reports redact tags in types that encode themselves: what these write has no members
// that could be told from each other, and a log line has the value as it is. A tag on the field that holds
// such a value hides it whole.
func unseenRedactions(p *model.Package, j *model.Job, said once, diags *diag.List) {
	type way struct {
		t   types.Type
		own string // the method that encodes it, or what it is in
	}
	seen := map[way]bool{}
	var walk func(t types.Type, path, own string, at *types.Var)
	walk = func(t types.Type, path, own string, at *types.Var) {
		t = types.Unalias(t)
		if own == "" && t != types.Type(j.Type) {
			own = payload.OwnMethod(t)
		}
		if seen[way{t, own}] {
			return
		}
		seen[way{t, own}] = true
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			walk(u.Elem(), path, own, at)
		case *types.Slice:
			walk(u.Elem(), path+"[]", own, at)
		case *types.Array:
			walk(u.Elem(), path+"[]", own, at)
		case *types.Map:
			walk(u.Elem(), path+"[]", own, at)
		case *types.Struct:
			for i := range u.NumFields() {
				f := u.Field(i)
				if f.Pkg() == p.Types {
					at = f
				}
				redact := payload.TaggedRedact(u.Tag(i))
				if redact && own != "" && said.first(report{field: at, code: diag.TagIgnored, why: "redact"}) {
					diags.Errorf(p.Place(at.Pos()), diag.TagIgnored, `tag the field of the payload that holds the value: emq:"redact"`,
						"%s.%s: a redact tag in a type with its own %s has no effect", path, f.Name(), own)
				}
				if !redact {
					walk(f.Type(), path+"."+f.Name(), own, at)
				}
			}
		}
	}
	walk(j.Type, j.Name, "", nil)
}
