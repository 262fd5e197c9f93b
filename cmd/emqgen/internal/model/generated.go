package model

import (
	"fmt"
	"slices"

	"github.com/echomq/emq/cmd/emqgen/internal/names"
)

// Name is one exported name that will be generated, with what asks for it.
type Name struct {
	Text  string
	Queue *Queue // nil: the package as a whole
}

// ProducerName is the name of the package's producer interface.
func (p *Package) ProducerName() string { return p.Prefix.Value + "Producer" }

// NewProducerName is the name of its constructor.
func (p *Package) NewProducerName() string { return "New" + p.ProducerName() }

// HandlerName is the name of the handler interface of the whole package.
func (p *Package) HandlerName() string { return p.Prefix.Value + "Handler" }

// BindName is the name of the function that binds a handler of the whole package.
func (p *Package) BindName() string { return "Bind" + p.Prefix.Value }

// ConstName is the name of the queue's constant.
func (q *Queue) ConstName() string { return "Queue" + q.Ident }

// QueueHandlerName is the name of the handler interface of one queue.
func (p *Package) QueueHandlerName(q *Queue) string { return p.Prefix.Value + q.Ident + "Handler" }

// QueueBindName is the name of the function that binds a handler of one queue.
func (p *Package) QueueBindName(q *Queue) string { return "Bind" + p.Prefix.Value + q.Ident }

// GeneratedNames lists the exported names of the generated file.
func (p *Package) GeneratedNames() []Name {
	if len(p.Jobs) == 0 {
		return []Name{{Text: p.BindName()}}
	}
	list := []Name{{Text: p.ProducerName()}, {Text: p.NewProducerName()}, {Text: p.HandlerName()}, {Text: p.BindName()}}
	for _, q := range p.Queues {
		list = append(list, Name{q.ConstName(), q})
		if len(p.Queues) > 1 {
			list = append(list, Name{p.QueueHandlerName(q), q}, Name{p.QueueBindName(q), q})
		}
	}
	return list
}

// ProducerType is the name of the unexported producer; it gives way to names that are taken.
func (p *Package) ProducerType() string {
	first := names.Unexported(p.ProducerName())
	name := first
	for i := 2; p.taken(name); i++ {
		name = fmt.Sprintf("%s%d", first, i)
	}
	return name
}

func (p *Package) taken(name string) bool {
	_, declared := p.Scope[name]
	_, imported := p.Imports[name]
	return declared || imported
}

// Generates says whether the package gets a generated file: for its jobs, or for what is left of them.
func (p *Package) Generates() bool { return len(p.Jobs)+len(p.Retired) > 0 }

// RetiredOn lists the retired kinds of a queue.
func (p *Package) RetiredOn(q *Queue) (kinds []*Retired) {
	for _, x := range p.Retired {
		if x.Queue.Value == q.Name.Value {
			kinds = append(kinds, x)
		}
	}
	return kinds
}

// RetiredElsewhere lists the retired kinds of queues to which no job of the package goes any more.
func (p *Package) RetiredElsewhere() (kinds []*Retired) {
	for _, x := range p.Retired {
		if !slices.ContainsFunc(p.Queues, func(q *Queue) bool { return q.Name.Value == x.Queue.Value }) {
			kinds = append(kinds, x)
		}
	}
	return kinds
}

// JobsOf lists the jobs of a queue, in the order of their types.
func (p *Package) JobsOf(q *Queue) (jobs []*Job) {
	for _, j := range p.Jobs {
		if j.Queue == q {
			jobs = append(jobs, j)
		}
	}
	return jobs
}
