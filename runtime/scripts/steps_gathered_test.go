package scripts

import (
	"context"
	"fmt"
	"strings"
)

// The steps that carry many jobs in one call. Each of their jobs is expected to fare as it would alone.
type (
	batch struct {
		Jobs   []enqueue
		Beside []elsewhere // jobs of other queues in the same pipeline
	}
	elsewhere struct {
		on  *scene
		Job enqueue
	}
	handful struct{ Settles []settled }
)

const between = "; "

func together(answers []answer) answer {
	var words []string
	for _, a := range answers {
		words = append(words, a.Says)
	}
	return answer{Says: strings.Join(words, between)}
}

func (e elsewhere) String() string {
	return fmt.Sprintf("%s%+v", e.on.queue.keys.Base(), e.Job)
}

func (b batch) call(ctx context.Context, s *target) answer {
	var calls []Admit
	for i := range max(len(b.Jobs), len(b.Beside)) {
		if i < len(b.Beside) {
			calls = append(calls, Admit{b.Beside[i].on.queue, NewJob(b.Beside[i].Job)})
		}
		if i < len(b.Jobs) {
			calls = append(calls, Admit{s.queue, NewJob(b.Jobs[i])})
		}
	}
	// a call that finds no script in the server's cache is sent again, after the others
	for _, p := range parcels(calls) {
		script := p.queue.admission(p.jobs[0]).script
		if len(p.jobs) > 1 {
			script = p.queue.gathered(p.jobs).script
		}
		s.must("SCRIPT", "LOAD", script.text)
	}
	var own, beside []answer
	for i, a := range s.queue.EnqueueAll(ctx, calls) {
		if calls[i].Queue == s.queue {
			own = append(own, saysAdmission(a.Admission, a.Err))
		} else {
			beside = append(beside, saysAdmission(a.Admission, a.Err))
		}
	}
	return together(append(own, beside...))
}

func (b batch) expect(m *model, now stamp) answer {
	var all []answer
	for _, j := range b.Jobs {
		all = append(all, j.expect(m, now))
		m.refresh()
	}
	for _, e := range b.Beside {
		all = append(all, e.Job.expect(e.on.m, now))
		e.on.m.refresh()
	}
	return together(all)
}

func (h handful) call(ctx context.Context, s *target) answer {
	var calls []Settle
	for _, st := range h.Settles {
		calls = append(calls, st.one())
	}
	var all []answer
	for i, a := range s.queue.SettleAll(ctx, calls) {
		if _, completes := h.Settles[i].(complete); completes && a.Again {
			a.Status = "" // which complete does not tell
		}
		all = append(all, saysVerdict(a.Verdict, a.Err))
	}
	return together(all)
}

func (h handful) expect(m *model, now stamp) answer {
	var all []answer
	for _, st := range h.Settles {
		all = append(all, st.expect(m, now))
		m.refresh()
	}
	return together(all)
}

// many enqueues jobs in one batch, and together sends settles in one call.
func (s *scene) many(jobs ...enqueue)        { s.do(batch{Jobs: jobs}) }
func (s *scene) together(settles ...settled) { s.do(handful{settles}) }
