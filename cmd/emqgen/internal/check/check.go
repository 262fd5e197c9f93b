// Package check holds the rules that a package's declarations must keep, one file for each family.
// Rules report; none changes the model.
package check

import (
	"go/types"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// Packages checks all packages of a run, each by itself and against each other.
func Packages(pkgs []*model.Package, diags *diag.List) {
	for _, p := range pkgs {
		queues(p, diags)
		said := once{}
		for _, j := range p.Jobs {
			job(p, j, said, diags)
		}
		for _, j := range p.Jobs { // after all payloads: what is said of a field of theirs is not said again
			result(p, j, said, diags)
		}
		generatedNames(p, diags)
	}
	kinds(pkgs, diags)
	retired(pkgs, diags)
	if !diags.Failed() { // a queue without jobs is most often what another error has made
		for _, p := range pkgs {
			emptyQueues(p, diags)
		}
	}
}

// once are the faults of fields that have been reported: a struct that several jobs hold or embed is
// mended in one place.
type once map[report]bool

// report is a fault at a field, however it was reached.
type report struct {
	field      *types.Var
	code       diag.Code
	below, why string
}

// first says whether a fault is new, and keeps it.
func (o once) first(r report) bool {
	known := o[r]
	o[r] = true
	return !known
}

// job checks one job.
func job(p *model.Package, j *model.Job, said once, diags *diag.List) {
	queueKnown(p, j, diags)
	settings(j, diags)
	kindName(j, diags)
	from(j, diags)
	versions(p, j, said, diags)
	if j.Type == nil || j.Payload == nil {
		return // what is wrong with the type itself has been reported
	}
	members(p, j, diags)
	inherited := embedsJob(p, j, diags)
	locks := lockByValue(p, j, inherited, diags)
	encodable(p, j.Type, parts{locks: locks, inherited: inherited}, said, diags)
	keys(p, j, inherited, said, diags)
	cron(p, j, inherited, diags)
}
