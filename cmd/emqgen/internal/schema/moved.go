package schema

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// server finds the job that answers to a kind on a queue, in this package or another of the run, and
// the review as it is made in that job's package; the job is nil if there is none.
func (r *Review) server(kind, queue string) (*Review, *model.Job) {
	if j := answering(r.Package, kind, queue); j != nil {
		return r, j
	}
	for _, p := range r.Others {
		if j := answering(p, kind, queue); j != nil {
			there := *r
			there.Package, there.Now = p, Build(p)
			there.Now.Retired = append(there.Now.Retired, r.Now.Retired...) // they may have stayed behind
			return &there, j
		}
	}
	return nil, nil
}

func answering(p *model.Package, kind, queue string) *model.Job {
	if p == nil {
		return nil
	}
	is := func(name string) func(model.Given[string]) bool {
		return func(g model.Given[string]) bool { return g.Value == name }
	}
	for _, j := range p.Jobs {
		named := j.Kind.Value == kind || slices.ContainsFunc(j.Aliases, is(kind))
		if named && (j.Queue.Name.Value == queue || slices.ContainsFunc(j.From, is(queue))) {
			return j
		}
	}
	return nil
}

// takenOver reports that jobs which wait for one job go to another now, if there is one that answers
// to their kind: an error if they do not fit it.
func (r *Review) takenOver(old Kind, kind, queue string, code diag.Code) bool {
	there, j := r.server(kind, queue)
	if j == nil {
		return false
	}
	text := fmt.Sprintf("jobs of the kind %s that wait in queue %s were for job %s, and go to job %s now", kind, queue, old.Type, j.Name)
	if why := there.unfit(old, j); why != "" {
		r.Diags.Errorf(j.At, code, fmt.Sprintf("leave the kind to %s, or let %s take their payload%s", old.Type, j.Name, orAccept(old)),
			"%s, which they do not fit: %s", text, why)
		return true
	}
	r.Diags.Warnf(j.At, code, "", "%s, which their payload fits", text)
	return true
}

// unfit says why payloads that were enqueued under an entry of the lock would not reach a job whole.
func (r *Review) unfit(old Kind, j *model.Job) string {
	waiting := waiting(old)
	for _, v := range slices.Sorted(maps.Keys(waiting)) {
		now := r.payloadOf(j, v)
		if now == nil {
			return fmt.Sprintf("they may be of version %s, and it takes none of that", v)
		}
		for _, c := range Compare(waiting[v], now) {
			if c.Kind == Added {
				continue
			}
			name := "the payload"
			if c.Path != "" {
				name = fmt.Sprintf("field %q", c.Path)
			}
			return c.words(name)
		}
	}
	return ""
}

// waiting are the payloads that jobs of an entry may have, by version.
func waiting(old Kind) map[string]*Schema {
	all := map[string]*Schema{strconv.Itoa(old.Version): old.Payload}
	maps.Copy(all, old.Old)
	return all
}

// payloadOf is what a job takes under a version; nil if it takes none.
func (r *Review) payloadOf(j *model.Job, version string) *Schema {
	if version == strconv.Itoa(j.Version.Value) {
		return Of(j.Type, r.Package.Types)
	}
	for _, o := range j.Olds {
		if version == strconv.Itoa(o.Version.Value) && o.Type != nil {
			return Of(o.Type, r.Package.Types)
		}
	}
	return nil
}

// unretired warns of kinds that were retired and are not any more: no schema says what is left of them.
// The lock remembers them until a job takes them, or until they are accepted, and answers these.
func (r *Review) unretired() (accepted []string) {
	for _, x := range slices.Concat(r.Old.Retired, r.Old.Past) {
		if r.retired(x) {
			continue
		}
		if slices.Contains(r.Accept, x.Kind) {
			accepted = append(accepted, x.Kind)
			continue
		}
		if _, j := r.server(x.Kind, x.Queue); j != nil {
			r.Diags.Warnf(j.At, diag.RetiredAlive, "take another kind, unless nothing is left of the old one",
				"kind %s was retired on queue %s, and job %s has it now: what is left of the old jobs goes to it, and no schema of them is known to compare", x.Kind, x.Queue, j.Name)
			continue
		}
		if slices.Contains(r.Old.Retired, x) {
			r.Diags.Warnf(r.line(x.Kind), diag.RetiredAlive, "keep //emq:retired until nothing is left; only then let another job take the kind",
				"kind %s is not retired on queue %s any more: what is left of it would find no handler", x.Kind, x.Queue)
		}
		r.Now.Past = append(r.Now.Past, x)
	}
	slices.SortFunc(r.Now.Past, func(a, b Retired) int { return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Kind, b.Kind)) })
	r.Now.Past = slices.Compact(r.Now.Past)
	return accepted
}

// retired says whether a package of the run declares a kind retired.
func (r *Review) retired(x Retired) bool {
	return slices.ContainsFunc(r.Others, func(p *model.Package) bool {
		return slices.ContainsFunc(p.Retired, func(d *model.Retired) bool { return d.Kind.Value == x.Kind && d.Queue.Value == x.Queue })
	})
}
