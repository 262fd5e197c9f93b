package emq

import (
	"context"
	"log/slog"
	"time"
)

// Observer is told what happens to jobs, in the goroutine in which it happens: be quick and safe for
// concurrent use. Metrics and tracing packages implement it.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// Event is one thing that happened.
type Event struct {
	Name    EventName
	Queue   string
	Kind    string        // empty where it concerns the queue
	ID      ID            // empty where it concerns the queue
	Attempt int           // counted, from 1; 0 where it concerns the queue
	Wait    time.Duration // how long the job had been due when it was claimed; 0 where it concerns the queue
	Took    time.Duration // since the job was claimed; 0 where it concerns the queue
	Err     error         // the handler's error, or what went wrong
	Count   int           // how many it stands for: leases of EventReaped, ticks of EventTickMissed; 1 of all others
}

// EventName says what happened.
type EventName string

// What happens.
const (
	EventCompleted   EventName = "completed" // a run ended well and was settled
	EventRetried     EventName = "retried"   // a run failed; the job waits for its backoff
	EventDead        EventName = "dead"      // the job is a dead letter
	EventSnoozed     EventName = "snoozed"
	EventDiscarded   EventName = "discarded"
	EventReleased    EventName = "released"     // handed back; no attempt was spent
	EventCancelled   EventName = "cancelled"    // ended because it was cancelled
	EventStale       EventName = "stale"        // a late settle was refused: somebody else has the job
	EventResent      EventName = "resent"       // a settle got no answer and was sent again
	EventLost        EventName = "lost"         // a heartbeat found that the lease was lost
	EventStuck       EventName = "stuck"        // a handler ignores its context; its slot stays taken
	EventReaped      EventName = "reaped"       // the pump took lapsed leases back
	EventTickFired   EventName = "tick_fired"   // a cron tick was fired: its job is in the queue
	EventTickSkipped EventName = "tick_skipped" // a cron tick came to nothing: overlap, a unique key, a full queue
	EventTickMissed  EventName = "tick_missed"  // cron ticks at which nobody was there were dropped
	EventRefused     EventName = "refused"      // the server could not be reached or refused a call
)

// observers are told in turn; one that panics keeps nothing from the others.
type observers []Observer

func (os observers) Observe(ctx context.Context, e Event) {
	for _, o := range os {
		o.Observe(ctx, e)
	}
}

// careful keeps a panic of the user's observer from ending a worker.
type careful struct {
	observer Observer
	log      *slog.Logger
}

func (c careful) Observe(ctx context.Context, e Event) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("emq: the observer panicked", "event", e.Name, "panic", p)
		}
	}()
	e.Count = max(e.Count, 1)
	c.observer.Observe(ctx, e)
}
