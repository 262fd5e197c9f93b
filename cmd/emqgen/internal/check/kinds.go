package check

import (
	"cmp"
	"go/token"
	"slices"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/internal/wire"
)

// claim is one kind that a job answers to on one queue.
type claim struct {
	queue, kind string
	job         *model.Job
	pos         token.Position
	alias       bool
}

// kinds reports two jobs with one kind on one queue, in all packages of the run: a worker could not
// tell them apart.
func kinds(pkgs []*model.Package, diags *diag.List) {
	var claims []claim
	for _, p := range pkgs {
		for _, j := range p.Jobs {
			claims = append(claims, claimsOf(j)...)
		}
	}
	slices.SortStableFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.queue, b.queue), cmp.Compare(a.kind, b.kind),
			cmp.Compare(a.pos.Filename, b.pos.Filename), cmp.Compare(a.pos.Offset, b.pos.Offset), cmp.Compare(a.pos.Line, b.pos.Line))
	})
	for i, c := range claims {
		if i == 0 || claims[i-1].queue != c.queue || claims[i-1].kind != c.kind {
			continue
		}
		first := claims[i-1]
		what := "kind"
		if c.alias {
			what = "alias"
		}
		if first.job == c.job {
			if first.alias { // the alias is what is too much
				c = first
			}
			diags.Errorf(c.pos, diag.KindTwice, "remove it", "alias %s of job %s is its kind already", c.kind, c.job.Name)
			continue
		}
		diags.Errorf(c.pos, diag.KindTwice, "give one of them another: kind=some_name", "%s %s on queue %s belongs to job %s already, at %s",
			what, c.kind, c.queue, first.job.Name, diag.Place(first.pos, dirOf(pkgs)))
	}
}

// dirOf is the directory that second positions are shown from.
func dirOf(pkgs []*model.Package) string { return pkgs[0].From }

func claimsOf(j *model.Job) (claims []claim) {
	if j.Queue == nil {
		return nil
	}
	queues := []string{j.Queue.Name.Value}
	for _, q := range j.From {
		if !slices.Contains(queues, q.Value) {
			queues = append(queues, q.Value)
		}
	}
	for _, q := range queues {
		if j.Kind.Set || !j.Refused { // the name of a type that can be no job is no kind
			claims = append(claims, claim{q, j.Kind.Value, j, j.Kind.Pos, false})
		}
		for _, a := range j.Aliases {
			claims = append(claims, claim{q, a.Value, j, a.Pos, true})
		}
		claims = slices.DeleteFunc(claims, func(c claim) bool { return wire.CheckKind(c.kind) != nil })
	}
	return claims
}
