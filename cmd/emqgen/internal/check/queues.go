package check

import (
	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// queues checks the queues of a package against each other.
func queues(p *model.Package, diags *diag.List) {
	byName, byIdent := map[string]*model.Queue{}, map[string]*model.Queue{}
	for _, q := range p.Queues {
		name := q.Name.Value
		if first := byName[name]; first != nil {
			diags.Errorf(q.Name.Pos, diag.QueueTwice, "", "queue %s is declared twice in this package, first at %s", name, diag.Place(first.Name.Pos, p.Dir))
			continue
		}
		byName[name] = q
		if first := byIdent[q.Ident]; first != nil && q.Ident != "" {
			diags.Errorf(q.Name.Pos, diag.NamesMeet, "give one of them another Go name: name=Something",
				"queues %s and %s both become %s in Go", first.Name.Value, name, q.Ident)
		}
		byIdent[q.Ident] = q
	}
}

// emptyQueues reports queues that no job goes to.
func emptyQueues(p *model.Package, diags *diag.List) {
	for _, q := range p.Queues {
		name := q.Name.Value
		if len(p.JobsOf(q)) == 0 {
			diags.Errorf(q.Name.Pos, diag.QueueEmpty, "remove it, or annotate a struct with //emq:job queue="+name,
				"no job of this package goes to queue %s", name)
		}
	}
}
