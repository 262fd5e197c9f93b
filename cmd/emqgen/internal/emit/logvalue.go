package emit

import (
	"go/types"

	"github.com/dave/jennifer/jen"

	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

const redacted = "[redacted]"

// logValue declares LogValue for a job with a redact tag, so that a log line of the job does not
// show what is hidden. A field that holds a hidden one somewhere inside is hidden whole.
func (f *file) logValue(j *model.Job) {
	if len(j.Payload.Redacted) == 0 {
		return
	}
	f.Add(doc("LogValue is the job in a log line, without the fields that are tagged redact."))
	hides := hiding(j)
	attrs := jen.CustomFunc(jen.Options{Open: "(", Close: ")", Separator: ",", Multi: true}, func(g *jen.Group) {
		seen := map[*types.Var]bool{}
		for _, field := range j.Payload.Fields {
			if field.ByPointer { // the embedded pointer may be nil
				if !seen[field.Outer] {
					g.Add(f.outerAttr(j, field))
				}
				seen[field.Outer] = true
				continue
			}
			if hides[field.JSON] {
				g.Add(f.slog("String").Call(jen.Lit(field.JSON), jen.Lit(redacted)))
				continue
			}
			g.Add(f.attr(field))
		}
	})
	recv := jen.Id("j").Id(j.Name)
	if len(hides) == len(j.Payload.Fields) {
		recv = jen.Id(j.Name)
	}
	f.Func().Params(recv).Id("LogValue").Params().Add(f.slog("Value")).Block(jen.Return(f.slog("GroupValue").Add(attrs)))
	f.Line()
}

func (f *file) slog(name string) *jen.Statement { return f.qual("log/slog", "slog", name) }

// hiding names the fields of a job that are redacted or hold something that is.
func hiding(j *model.Job) map[string]bool {
	hides := map[string]bool{}
	for _, field := range j.Payload.Fields {
		for _, path := range j.Payload.Redacted {
			if rest, ok := cutName(path, field.JSON); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				hides[field.JSON] = true
			}
		}
	}
	return hides
}

func cutName(path, name string) (string, bool) {
	if len(path) < len(name) || path[:len(name)] != name {
		return "", false
	}
	return path[len(name):], true
}

// outerAttr logs a struct that is embedded by pointer as a whole, or hides it as a whole.
func (f *file) outerAttr(j *model.Job, field *model.Field) *jen.Statement {
	hides := hiding(j)
	for _, other := range j.Payload.Fields {
		if other.Outer == field.Outer && hides[other.JSON] {
			return f.slog("String").Call(jen.Lit(field.Outer.Name()), jen.Lit(redacted))
		}
	}
	return f.slog("Any").Call(jen.Lit(field.Outer.Name()), jen.Id("j").Dot(field.Outer.Name()))
}

// attr logs one field, without boxing where slog knows its type.
func (f *file) attr(field *model.Field) *jen.Statement {
	fn := "Any"
	switch t := types.Unalias(field.Var.Type()).(type) {
	case *types.Basic:
		switch t.Kind() {
		case types.String:
			fn = "String"
		case types.Int:
			fn = "Int"
		case types.Int64:
			fn = "Int64"
		case types.Uint64:
			fn = "Uint64"
		case types.Float64:
			fn = "Float64"
		case types.Bool:
			fn = "Bool"
		}
	case *types.Named:
		if p := t.Obj().Pkg(); p != nil && p.Path() == "time" {
			switch t.Obj().Name() {
			case "Time", "Duration":
				fn = t.Obj().Name()
			}
		}
	}
	return f.slog(fn).Call(jen.Lit(field.JSON), jen.Id("j").Dot(field.Name))
}
