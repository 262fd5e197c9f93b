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
