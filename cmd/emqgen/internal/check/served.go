package check

import (
	"go/token"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// Feature is something that a job can ask for and that the runtime may not serve.
type Feature struct {
	Name       string // as it is written
	asked      func(*model.Package, *model.Job) token.Position
	text, hint string
}

// NotServed is the table of features that are read and checked in full, but that the runtime of this
// version refuses, each at the first enqueue or at the worker's start. That is too late to learn it. An
// entry goes when the runtime serves the feature, and with it its golden, not_served_NAME, and its line
// in docs/generator.md (go test ./cmd/emqgen -run Docs -update). The last one takes EMQ068 along, and
// TestTheProgramKnowsWhatIsNotServed.
func NotServed() []Feature {
	return []Feature{
		{
			"//emq:cron", cronAt,
			"has a cron spec: cron directives are checked, but this version's runtime does not serve them yet, and no worker starts with the job",
			"take the directive away, and enqueue the job from a scheduler of your own",
		},
	}
}

// served reports what a job asks for in vain.
func served(p *model.Package, j *model.Job, notServed []Feature, diags *diag.List) {
	for _, f := range notServed {
		if pos := f.asked(p, j); pos.IsValid() {
			diags.Errorf(pos, diag.NotServed, f.hint, "job %s %s", j.Name, f.text)
		}
	}
}

func cronAt(_ *model.Package, j *model.Job) token.Position {
	if j.Cron == nil {
		return token.Position{}
	}
	return j.Cron.Pos
}
