package emq

import (
	"errors"
	"fmt"
	"time"
)

// A policy is what a handler's error asks for. It is found through wrapping; the outermost one wins.
type policy struct {
	verb  verb
	delay time.Duration
	err   error
}

type verb uint8

const (
	verbRetryIn verb = iota + 1
	verbSnooze
	verbDiscard
	verbDead
)

func (p *policy) Error() string {
	var text string
	switch p.verb {
	case verbRetryIn:
		text = fmt.Sprintf("retry in %v", p.delay)
	case verbSnooze:
		return fmt.Sprintf("snooze for %v", p.delay)
	case verbDiscard:
		text = "discard"
	case verbDead:
		text = "dead"
	}
	if p.err == nil {
		return text
	}
	return text + ": " + p.err.Error()
}

func (p *policy) Unwrap() error { return p.err }

// Is makes errors.Is(err, Snooze(time.Hour)) tell whether a handler has asked for just that. The error
// of Dead, Discard and RetryIn is compared too, unless target has none.
func (p *policy) Is(target error) bool {
	t, ok := target.(*policy)
	return ok && p.verb == t.verb && p.delay == t.delay && (t.err == nil || errors.Is(p.err, t.err))
}

// OutcomeOf says what becomes of a run whose handler returned err: EventCompleted for nil, EventRetried
// for an error and for RetryIn, EventSnoozed, EventDiscarded, EventDead; and the delay that RetryIn and
// Snooze name. It looks at the error alone: a job whose attempts are used up becomes a dead letter
// instead of being retried, and one that somebody has cancelled ends.
func OutcomeOf(err error) (EventName, time.Duration) {
	p := policyOf(err)
	switch {
	case err == nil:
		return EventCompleted, 0
	case p == nil:
		return EventRetried, 0
	}
	names := map[verb]EventName{verbRetryIn: EventRetried, verbSnooze: EventSnoozed, verbDiscard: EventDiscarded, verbDead: EventDead}
	return names[p.verb], p.delay
}

// RetryIn fails the attempt with err and runs the job again after d instead of the kind's backoff.
// It counts as an attempt; after the last one the job is a dead letter. A negative d is 0.
func RetryIn(d time.Duration, err error) error {
	return &policy{verb: verbRetryIn, delay: max(d, 0), err: err}
}

// Snooze runs the job again after d without spending an attempt: not now, but nothing is wrong.
// A negative d is 0.
func Snooze(d time.Duration) error { return &policy{verb: verbSnooze, delay: max(d, 0)} }

// Discard ends the job without running it again and without keeping it. err, which may be nil, is
// logged.
func Discard(err error) error { return &policy{verb: verbDiscard, err: err} }

// Dead sends the job to the dead letters at once, whatever attempts are left. err, which may be nil,
// is kept as its last error.
func Dead(err error) error { return &policy{verb: verbDead, err: err} }

func policyOf(err error) *policy {
	var p *policy
	errors.As(err, &p)
	return p
}
