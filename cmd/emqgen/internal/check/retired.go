package check

import (
	"path/filepath"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// retired checks the kinds that are gone on purpose, in all packages of the run: a worker that binds
// them together would discard what another package's handler waits for.
func retired(pkgs []*model.Package, diags *diag.List) {
	type place struct{ queue, kind string }
	alive := map[place]claim{}
	for _, p := range pkgs {
		for _, j := range p.Jobs {
			for _, c := range claimsOf(j) {
				alive[place{c.queue, c.kind}] = c
			}
		}
	}
	seen := map[place]*model.Retired{}
	for _, p := range pkgs {
		for _, x := range p.Retired {
			at := place{x.Queue.Value, x.Kind.Value}
			if c, ok := alive[at]; ok {
				hint := "remove one of the two"
				if filepath.Dir(c.pos.Filename) != p.Dir {
					hint = "if the job has moved to the other package, remove this, and name both packages in one call"
				}
				diags.Errorf(x.Kind.Pos, diag.RetiredAlive, hint, "kind %s is retired, but job %s has it on queue %s, at %s",
					x.Kind.Value, c.job.Name, x.Queue.Value, diag.Place(c.pos, dirOf(pkgs)))
			}
			if first := seen[at]; first != nil {
				diags.Errorf(x.Pos, diag.DirectiveTwice, "", "kind %s is retired twice on queue %s, first at %s",
					x.Kind.Value, x.Queue.Value, diag.Place(first.Pos, dirOf(pkgs)))
				continue
			}
			seen[at] = x
		}
	}
}
