package emq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// settlement is one settle, ready to be sent as often as it takes.
type settlement struct {
	event EventName
	err   error // why; for the observer
	one   scripts.Settle
	ends  bool // the job is deleted, so "gone" after a resend is this settle's own doing
}

// judge is outcome, where the user's methods may panic: an error's text may sit on a nil pointer, a
// result may have a method that encodes it.
func (r *run) judge(cause error) (s *settlement) {
	defer func() {
		if p := recover(); p != nil {
			r.err = fmt.Errorf("the handler returned a %T that cannot be read: %w", r.err, r.panicked(p))
			s = r.outcome(cause)
		}
	}()
	if r.err != nil {
		_ = r.err.Error() // here and not where it is logged
	}
	return r.outcome(cause)
}

// outcome chooses the settle for what the handler returned, under the cause that ended its context.
// nil: nothing is sent.
func (r *run) outcome(cause error) *settlement {
	if r.err == nil {
		return r.complete()
	}
	if errors.Is(cause, ErrCancelled) {
		return r.discard(EventCancelled)
	}
	if p := policyOf(r.err); p != nil {
		switch p.verb {
		case verbRetryIn:
			return r.retry(p.delay)
		case verbSnooze:
			return &settlement{EventSnoozed, nil, scripts.Pause(r.job.Fence, p.delay), false}
		case verbDiscard:
			r.logger().Info("emq: the handler discarded the job", "error", p.err)
			return r.discard(EventDiscarded)
		case verbDead:
			return r.kill(r.err)
		}
	}
	switch {
	case errors.Is(cause, ErrShutdown):
		return r.handBack(0)
	case errors.Is(cause, ErrLeaseLost):
		return nil
	}
	return r.retry(r.kind.backoff.delay(r.info.Attempt, rand.Float64))
}

func (r *run) complete() *settlement {
	var result []byte
	if r.kind.retain > 0 && r.delivery.Result != nil {
		var err error
		if result, err = encodeResult(r.delivery.Result, r.c.w.client.maxPayload); err != nil {
			// another run would do the work once more, for the same
			r.err = err
			r.logger().Error("emq: the handler succeeded, but the job is a dead letter", "error", err)
			return r.kill(err)
		}
	}
	return &settlement{EventCompleted, nil, scripts.Completion(r.job.Fence, r.kind.retain, result), r.kind.retain == 0}
}

// encodeResult gives what is kept of a result, whose own method may do it, and panic.
func encodeResult(result any, most int) (text []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			text, err = nil, fmt.Errorf("the result cannot be kept: panic: %v\n%s", p, debug.Stack())
		}
	}()
	text, err = json.Marshal(result)
	if err == nil && len(text) > most {
		err = fmt.Errorf("%w: it has %d bytes, at most %d: put it elsewhere, and return where it is", ErrTooLarge, len(text), most)
	}
	if err != nil {
		return nil, fmt.Errorf("the result cannot be kept: %w", err)
	}
	return text, nil
}

func (r *run) retry(delay time.Duration) *settlement {
	reason := r.err.Error()
	return &settlement{EventRetried, r.err, scripts.Failure(r.job.Fence, delay, r.info.MaxAttempts, reason), false}
}

func (r *run) kill(err error) *settlement {
	reason := err
	if p, ok := err.(*policy); ok && p.err != nil { // that it is dead, its list says
		reason = p.err
	}
	return &settlement{EventDead, err, scripts.Burial(r.job.Fence, reason.Error()), false}
}

func (r *run) discard(event EventName) *settlement {
	return &settlement{event, r.err, scripts.Disposal(r.job.Fence), true}
}

func (r *run) handBack(delay time.Duration) *settlement {
	return &settlement{EventReleased, nil, scripts.HandBack(r.job.Fence, delay), false}
}

// settle sends a settlement until it has a verdict. A network error or an error reply (LOADING, OOM,
// NOPERM, …) says nothing about the job; from then on the slot is held, and heartbeats go on meanwhile.
func (r *run) settle(s *settlement) {
	if s == nil {
		return
	}
	r.lent = r.c.w.slots.lend(r.c.share)
	pause := firstPause
	for try := 0; ; try++ {
		if r.abandoned.Load() || r.c.w.life.Err() != nil {
			return
		}
		answer, err := r.c.settles.do(r.c.w.life, s.one)
		if err == nil {
			err = answer.Err
		}
		if err == nil || scripts.IsRefusal(err) {
			r.settled(s, answer.Verdict, err, try)
			return
		}
		if r.lent {
			r.lent = false
			r.c.w.slots.recall(r.c.share)
		}
		r.observe(EventResent, err)
		if r.c.warn.allow("settle") {
			r.logger().Warn("emq: a settle got no verdict and is sent again until it does", "settle", s.event, "error", err)
		}
		r.c.w.loops.sleep(r.c.w.life, pause)
		pause = min(2*pause, longestPause)
	}
}

// settled reports a verdict.
func (r *run) settled(s *settlement, v scripts.Verdict, err error, resends int) {
	switch {
	case r.abandoned.Load(): // the stop has handed the job back before
	case errors.Is(err, ErrGone) && resends > 0 && s.ends:
		r.ended(s.event, s.err)
	case errors.Is(err, ErrStale):
		r.logger().Warn("emq: a late settle was refused: somebody else has the job", "settle", s.event, "error", err)
		r.observe(EventStale, err)
	case err != nil:
		r.logger().Warn("emq: a settle was refused", "settle", s.event, "error", err)
		r.observe(EventStale, err)
	case v.Again && resends == 0:
		r.logger().Warn("emq: a settle came twice under one token and changed nothing", "settle", s.event, "state", v.Status)
	case v.Status == "dead":
		r.logger().Error("emq: the job is a dead letter", "run", time.Since(r.began), "error", firstLine(s.err))
		r.observe(EventDead, s.err)
	case v.Status == "cancelled":
		r.ended(EventCancelled, s.err)
	default:
		r.ended(s.event, s.err)
	}
}

// ended tells of a run that was settled.
func (r *run) ended(event EventName, err error) {
	if log := r.c.w.log; log.Enabled(r.ctx, slog.LevelDebug) {
		attrs := []any{"run", time.Since(r.began)}
		if err != nil {
			attrs = append(attrs, "error", firstLine(err))
		}
		r.logger().Debug("emq: job "+string(event), attrs...)
	}
	r.observe(event, err)
}

// firstLine is what a log line needs of an error whose whole text is kept in the row.
func firstLine(err error) string {
	const most = 500
	if err == nil {
		return ""
	}
	line, rest, _ := strings.Cut(err.Error(), "\n")
	if len(line) > most || rest != "" {
		return strings.ToValidUTF8(line[:min(len(line), most)], "") + " …"
	}
	return line
}

// abandon hands a job back while its handler may still run; whatever that returns is not sent.
func (r *run) abandon(ctx context.Context) {
	if !r.abandoned.CompareAndSwap(false, true) {
		return
	}
	r.cancel(ErrShutdown)
	v, err := r.c.q.Release(ctx, r.job.Fence, 0)
	if v.Again || scripts.IsRefusal(err) {
		return // its settle came first, or somebody else has it
	}
	if err != nil {
		r.logger().Warn("emq: a job was not handed back at the stop; it runs again when its lease ends", "error", err)
		return
	}
	r.ended(EventReleased, nil)
}
