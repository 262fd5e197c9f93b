// Package check holds the rules that a package's declarations must keep, one file for each family.
// Rules report; none changes the model.
package check

import (
	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// Packages checks all packages of a run, each by itself and against each other.
func Packages(pkgs []*model.Package, diags *diag.List) {
	for _, p := range pkgs {
		queues(p, diags)
		for _, j := range p.Jobs {
			job(p, j, diags)
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

// job checks one job.
func job(p *model.Package, j *model.Job, diags *diag.List) {
	queueKnown(p, j, diags)
	settings(j, diags)
	kindName(j, diags)
	from(j, diags)
	versions(p, j, diags)
	result(p, j, diags)
	if j.Type == nil || j.Payload == nil {
		return // what is wrong with the type itself has been reported
	}
	members(p, j, diags)
	embedsJob(p, j, diags)
	encodable(p, j.Type, lockByValue(p, j, diags), diags)
	keys(p, j, diags)
	cron(p, j, diags)
}
