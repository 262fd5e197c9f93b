package scripts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// step is one call of a transition, or something that happens beside them. The same step always
// sends the same bytes.
type step interface {
	call(ctx context.Context, s *target) answer
	expect(m *model, now stamp) answer
}

// answer is what a step gives, in words, and the time that it names.
type answer struct {
	Says string
	In   stamp
}

// refused gives the word of a refusal, or the text of another error; empty for none.
func refused(err error) string {
	if err == nil {
		return ""
	}
	for _, word := range []string{"EMQKIND", "EMQSTALE", "EMQGONE", "EMQSTATE", "EMQLOCK", "EMQFULL"} {
		if IsRefusal(err) && errors.Is(err, classOf(word)) {
			return word
		}
	}
	return "error " + err.Error()
}

func says(word string, err error) answer {
	if err != nil {
		word = refused(err)
	}
	return answer{Says: word}
}

func saysVerdict(v Verdict, err error) answer {
	if v.Again {
		return says(strings.TrimSpace("again "+v.Status), err)
	}
	return says(v.Status, err)
}

func millis(d time.Duration) stamp { return stamp(d.Milliseconds()) }

// The steps. Their names are those of the scripts.
type (
	enqueue  NewJob
	claim    Claim
	complete struct {
		Fence
		Retain time.Duration
		Result string
	}
	retry struct {
		Fence
		Delay  time.Duration
		Limit  int
		Reason string
	}
	snooze struct {
		Fence
		Delay time.Duration
	}
	release struct {
		Fence
		Delay time.Duration
	}
	kill struct {
		Fence
		Reason string
	}
	discard struct{ Fence }
	extend  struct {
		Lease  time.Duration
		Fences []Fence
	}
	promote struct{ Limit int }
	reap    struct {
		Budget, Limit int
		Lease         time.Duration
	}
	expire    struct{ Limit int }
	pump      Pump
	handover  struct{ Tag string }
	wakeOne   struct{}
	nudge     struct{ Tag string }
	reprocess struct{ ID string }
	cancel    struct{ ID string }
)

func (e enqueue) call(ctx context.Context, s *target) answer {
	a, err := s.queue.Enqueue(ctx, NewJob(e))
	return saysAdmission(a, err)
}

func saysAdmission(a Admission, err error) answer {
	return says(strings.TrimSpace(a.Status+" "+a.Src+a.Holder), err)
}

func (c claim) call(ctx context.Context, s *target) answer {
	got, err := s.queue.Claim(ctx, Claim(c))
	if err != nil {
		return says("", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "idle=%t", got.Idle)
	for _, j := range got.Jobs {
		var due int64
		if !j.Due.IsZero() {
			due = j.Due.UnixMilli()
		}
		fmt.Fprintf(&b, "; %s#%d by %s: %s %s forgiven %d lapses %d max %d v%d due %d headers %v tick %q lane %q",
			j.ID, j.Attempts, j.By, j.Kind, j.Payload, j.Forgiven, j.Lapses, j.Max, j.Version, due, j.Headers, saysTick(j.Tick), j.Lane)
	}
	return answer{b.String(), saysWait(got.Wait)}
}

// saysWait keeps a negative wait apart from a short one, whatever the slop.
func saysWait(d time.Duration) stamp {
	if d < 0 {
		return never
	}
	return millis(d)
}

const never = stamp(-1e9)

func (c complete) call(ctx context.Context, s *target) answer {
	return s.settle(ctx, Completion(c.Fence, c.Retain, []byte(c.Result)))
}

func (r retry) call(ctx context.Context, s *target) answer {
	return s.settle(ctx, Failure(r.Fence, r.Delay, r.Limit, r.Reason))
}

func (z snooze) call(ctx context.Context, s *target) answer {
	return s.settle(ctx, Pause(z.Fence, z.Delay))
}

func (r release) call(ctx context.Context, s *target) answer {
	return s.settle(ctx, HandBack(r.Fence, r.Delay))
}

func (k kill) call(ctx context.Context, s *target) answer {
	return s.settle(ctx, Burial(k.Fence, k.Reason))
}

func (d discard) call(ctx context.Context, s *target) answer {
	return s.settle(ctx, Disposal(d.Fence))
}

// settle sends a settle by its own script, or gathered if the target is one for that.
func (s *target) settle(ctx context.Context, one Settle) answer {
	if !s.gathered {
		return saysVerdict(s.queue.Settle(ctx, one))
	}
	a := s.queue.SettleAll(ctx, []Settle{one})[0]
	if a.Again && one.verb == "complete" {
		a.Status = "" // which complete.lua does not tell
	}
	return saysVerdict(a.Verdict, a.Err)
}

func (e extend) call(ctx context.Context, s *target) answer {
	beats, err := s.queue.Extend(ctx, e.Lease, e.Fences)
	return says(strings.Trim(fmt.Sprint(beats), "[]"), err)
}

func moved(n int, next time.Duration, err error) answer {
	if err != nil {
		return says("", err)
	}
	return answer{fmt.Sprintf("moved %d", n), saysWait(next)}
}

func (p promote) call(ctx context.Context, s *target) answer {
	return moved(s.queue.Promote(ctx, p.Limit))
}

func (r reap) call(ctx context.Context, s *target) answer {
	return moved(s.queue.Reap(ctx, r.Budget, r.Limit, r.Lease))
}

func (e expire) call(ctx context.Context, s *target) answer {
	return moved(s.queue.Expire(ctx, e.Limit))
}

func (p pump) call(ctx context.Context, s *target) answer {
	got, err := s.queue.Pump(ctx, Pump(p))
	if err != nil {
		return says("", err)
	}
	if !got.Holder {
		return answer{"another pumps", saysWait(got.Due)}
	}
	word := ""
	switch {
	case got.Cron == 0:
		word = ", a cron entry is due"
	case got.Cron > 0:
		word = ", a cron entry will be due"
	}
	return answer{fmt.Sprintf("pumped %d %d %d%s", got.Promoted, got.Reaped, got.Expired, word), saysWait(got.Due)}
}

func (h handover) call(ctx context.Context, s *target) answer {
	return says("left", s.queue.Handover(ctx, h.Tag))
}

func (wakeOne) call(ctx context.Context, s *target) answer {
	return says("woke", s.queue.Wake(ctx))
}

func (n nudge) call(ctx context.Context, s *target) answer {
	return says("nudged", s.queue.Nudge(ctx, n.Tag))
}

func (r reprocess) call(ctx context.Context, s *target) answer {
	return says("revived", s.queue.Reprocess(ctx, r.ID))
}

func (c cancel) call(ctx context.Context, s *target) answer {
	return says(s.queue.Cancel(ctx, c.ID))
}
