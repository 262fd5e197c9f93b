package emq

import (
	"math/rand/v2"
	"time"

	"github.com/echomq/emq/internal/wire"
)

// GeneratedV1 is named by generated code, so that code and library of different ages do not compile
// together. It goes when the shape of generated code changes.
const GeneratedV1 = true

// Payload is a job: a struct for which emqgen has generated EmqSpec. It is self-typed, so that a
// struct that merely embeds a job, or a pointer to one, does not compile as its argument.
type Payload[J any] interface{ EmqSpec() Spec[J] }

// Returner is a job with a result of type R, declared by result=.
type Returner[J, R any] interface {
	Payload[J]
	EmqResult() R
}

// Upgrader is the struct of an old version of a job; Upgrade makes the current one from it.
// An error sends the job to the dead letters as undecodable.
type Upgrader[Next any] interface{ Upgrade() (Next, error) }

// Spec is what a job's declaration says. Generated code returns it by value from EmqSpec; tools may
// read it, and nothing can change it.
type Spec[J any] struct {
	Queue   string   // the queue that the job goes to
	Shards  int      // how many shards the queue has at least; 0: one
	Kind    string   // its name on the wire
	Aliases []string // older kinds that are still accepted
	Version int      // of the payload's shape, from 1

	Attempts int           // how often it runs in all before it is a dead letter
	Timeout  time.Duration // of one run
	Backoff  Backoff       // between runs; the zero value is Exponential(time.Second, time.Hour)
	Retain   time.Duration // how long a completed job is kept; 0 deletes it at once

	UniqueFor UniqueMode     // how long UniqueKey is held
	UniqueKey func(J) string // nil: not unique
	Lane      func(J) string // nil: no lane
	// UniqueInLane says that jobs of different lanes never have the same UniqueKey: what a job that is unique
	// and in a lane needs on a queue with shards.
	UniqueInLane bool

	Cron     []Cron
	Redacted []string // JSON paths hidden in logs and pages
}

// Backoff says how long a failed job waits before it runs again.
// The zero value is Exponential(time.Second, time.Hour).
type Backoff struct {
	base, limit time.Duration
	doubles     bool
	jitter      bool
}

// Exponential waits base after the first failure and twice as long after each further one, limit at
// most. Each wait is drawn from the upper half of its span, so that jobs which failed together do not
// come back together.
func Exponential(base, limit time.Duration) Backoff {
	return Backoff{base: base, limit: limit, doubles: true, jitter: true}
}

// Fixed waits d after each failure, exactly.
func Fixed(d time.Duration) Backoff { return Backoff{base: d, limit: d} }

// WithJitter draws each wait from the upper half of its span.
func (b Backoff) WithJitter() Backoff {
	b.jitter = true
	return b
}

// delay is the wait after the failure of a counted attempt, the first being 1.
// random gives numbers from 0 to 1.
func (b Backoff) delay(attempt int, random func() float64) time.Duration {
	if b == (Backoff{}) {
		b = Exponential(time.Second, time.Hour)
	}
	d := b.limited(attempt)
	if b.jitter {
		d = d/2 + time.Duration(random()*float64(d-d/2))
	}
	return d
}

// limited is the wait without jitter.
func (b Backoff) limited(attempt int) time.Duration {
	d := b.base
	if !b.doubles {
		return d
	}
	for i := 1; i < attempt && d < b.limit; i++ {
		d *= 2
	}
	return min(d, b.limit)
}

// jitter spreads d over its upper half.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// UniqueMode says how long a job holds its unique key. The zero value is until it has ended.
type UniqueMode struct {
	start     bool
	window    time.Duration
	debounced bool
}

// UntilDone holds the key until the job has ended, in whichever way.
func UntilDone() UniqueMode { return UniqueMode{} }

// UntilStart holds the key until the job's first claim. A job that waits again does not take it back.
func UntilStart() UniqueMode { return UniqueMode{start: true} }

// ForWindow holds the key for d from the enqueue, whatever becomes of the job.
func ForWindow(d time.Duration) UniqueMode { return UniqueMode{window: d} }

// Debounced lets the last of several enqueues win: while the holder of the key waits, it takes over the
// payload, headers, lane and time of the new job, and the receipt says Replaced. A holder that runs is a
// Conflict, as without it. It is for UntilDone and UntilStart; with ForWindow a job is invalid.
func (m UniqueMode) Debounced() UniqueMode {
	m.debounced = true
	return m
}

// Cron is one schedule of a job that enqueues itself.
type Cron struct {
	Spec    string // five fields, or @daily and the like
	TZ      string // a zone's name; empty is UTC
	Missed  Missed
	Overlap Overlap
}

// UniqueKey joins a kind and the texts of its unique fields into one key of at most 255 bytes.
// Different parts give different keys.
func UniqueKey(kind string, parts ...string) string { return wire.UniqueKey(kind, parts...) }
