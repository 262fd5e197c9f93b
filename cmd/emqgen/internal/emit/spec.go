package emit

import (
	"fmt"
	"time"

	"github.com/dave/jennifer/jen"

	"github.com/echomq/emq/cmd/emqgen/internal/directive"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// spec declares EmqSpec, the settings of a job by value.
func (f *file) spec(j *model.Job) {
	f.Add(doc("EmqSpec returns the declared settings of the job."))
	typ := f.emq("Spec").Types(jen.Id(j.Name))
	f.Func().Params(jen.Id(j.Name)).Id("EmqSpec").Params().Add(typ).Block(
		jen.Return(jen.Add(typ).CustomFunc(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, func(g *jen.Group) {
			f.specFields(g, j)
		})),
	)
	f.Line()
}

func (f *file) specFields(g *jen.Group, j *model.Job) {
	set := func(name string, value jen.Code) { g.Id(name).Op(":").Add(value) }
	set("Queue", jen.Id(j.Queue.ConstName()))
	if j.Queue.Shards.Value > 1 {
		set("Shards", jen.Lit(j.Queue.Shards.Value))
	}
	set("Kind", jen.Lit(j.Kind.Value))
	if len(j.Aliases) > 0 {
		set("Aliases", jen.Index().String().ValuesFunc(func(g *jen.Group) {
			for _, a := range j.Aliases {
				g.Lit(a.Value)
			}
		}))
	}
	set("Version", jen.Lit(j.Version.Value))
	set("Timeout", f.duration(j.Timeout.Value))
	set("Attempts", jen.Lit(j.Attempts.Value))
	if j.Backoff.Set {
		set("Backoff", f.backoff(j.Backoff.Value))
	}
	if u, ok := j.EffectiveUnique(); ok {
		set("UniqueFor", f.uniqueMode(u))
		set("UniqueKey", f.uniqueKey(j))
	}
	if lane := j.LaneField(); lane != nil {
		set("Lane", jen.Func().Params(jen.Id("j").Id(j.Name)).String().Add(oneLine(jen.Return(f.text(lane)))))
	}
	if j.UniqueInLane() { // also where the queue has no shards: it may get some
		set("UniqueInLane", jen.True())
	}
	if j.Retain.Set {
		set("Retain", f.duration(j.Retain.Value))
	}
	if j.Cron != nil {
		set("Cron", f.cron(j.Cron))
	}
	if hidden := j.Redacted(); len(hidden) > 0 {
		set("Redacted", jen.Index().String().ValuesFunc(func(g *jen.Group) {
			for _, path := range hidden {
				g.Lit(path)
			}
		}))
	}
}

// result declares EmqResult, by which the compiler ties a result's type to its job.
func (f *file) result(j *model.Job) {
	if j.Returns == nil {
		return
	}
	f.Add(doc("EmqResult names the type that the job returns."))
	f.Func().Params(jen.Id(j.Name)).Id("EmqResult").Params().Params(jen.Id("r").Add(f.typ(j.Returns))).
		Add(oneLine(jen.Return(jen.Id("r"))))
	f.Line()
}

// duration spells a duration in its largest whole unit: 90 * time.Second, time.Minute.
func (f *file) duration(d time.Duration) *jen.Statement {
	for _, u := range []struct {
		name string
		unit time.Duration
	}{
		{"Hour", time.Hour}, {"Minute", time.Minute}, {"Second", time.Second}, {"Millisecond", time.Millisecond},
	} {
		if d%u.unit != 0 {
			continue
		}
		unit := f.qual("time", "time", u.name)
		if d == u.unit {
			return unit
		}
		return jen.Lit(int(d / u.unit)).Op("*").Add(unit)
	}
	return jen.Lit(int(d)) // no option takes less than a millisecond
}

func (f *file) backoff(b directive.Backoff) *jen.Statement {
	if b.Grows { // jitter is in its nature
		return f.emq("Exponential").Call(f.duration(b.Base), f.duration(b.Cap))
	}
	fixed := f.emq("Fixed").Call(f.duration(b.Base))
	if b.Jitter {
		fixed.Dot("WithJitter").Call()
	}
	return fixed
}

func (f *file) uniqueMode(u model.Unique) *jen.Statement {
	if u.Mode == "window" {
		return f.emq("ForWindow").Call(f.duration(u.Window))
	}
	mode := f.emq("UntilDone").Call()
	if u.Mode == "start" {
		mode = f.emq("UntilStart").Call()
	}
	if u.Debounce {
		mode.Dot("Debounced").Call()
	}
	return mode
}

// uniqueKey is the function that makes the key of a payload. A MarshalText that fails gives an empty
// key, which the enqueue refuses.
func (f *file) uniqueKey(j *model.Job) *jen.Statement {
	fields := j.UniqueFields()
	param := jen.Id("j").Id(j.Name)
	if len(fields) == 0 {
		param = jen.Id(j.Name)
	}
	parts := []jen.Code{jen.Lit(j.Kind.Value)}
	var before []jen.Code
	for _, u := range fields {
		if u.UniqueBy != "text" {
			parts = append(parts, f.text(u))
			continue
		}
		text := "text"
		if n := len(before) / 2; n > 0 {
			text = fmt.Sprintf("text%d", n+1)
		}
		before = append(before,
			jen.List(jen.Id(text), jen.Id("err")).Op(":=").Id("j").Dot(u.Name).Dot("MarshalText").Call(),
			jen.If(jen.Id("err").Op("!=").Nil()).Block(
				jen.Return(jen.Lit("")).Comment("// an empty key: the enqueue is refused"),
			),
		)
		parts = append(parts, jen.String().Parens(jen.Id(text)))
	}
	fn := jen.Func().Params(param).String()
	const mostOnALine = 4
	call := jen.Options{Open: "(", Close: ")", Separator: ",", Multi: len(parts) > mostOnALine}
	ret := jen.Return(f.emq("UniqueKey").Custom(call, parts...))
	if len(before) > 0 || call.Multi {
		return fn.Block(append(before, ret)...)
	}
	return fn.Add(oneLine(ret))
}

func (f *file) cron(c *model.Cron) *jen.Statement {
	return jen.Index().Add(f.emq("Cron")).Values(jen.CustomFunc(jen.Options{Open: "{", Close: "}", Separator: ","}, func(g *jen.Group) {
		g.Id("Spec").Op(":").Lit(c.Spec.Value)
		if c.TZ.Set {
			g.Id("TZ").Op(":").Lit(c.TZ.Value)
		}
		switch c.Missed.Value {
		case "once":
			g.Id("Missed").Op(":").Add(f.emq("RunOnce"))
		case "all":
			g.Id("Missed").Op(":").Add(f.emq("RunAll"))
		}
		if c.Overlap.Value == "skip" {
			g.Id("Overlap").Op(":").Add(f.emq("SkipOverlap"))
		}
	}))
}

// oneLine is a function body on the line of its signature.
func oneLine(code jen.Code) *jen.Statement {
	return jen.Custom(jen.Options{Open: "{ ", Close: " }"}, code)
}
