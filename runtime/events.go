package emq

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// JobEvent is one thing that has become of a job, as the server published it.
type JobEvent struct {
	Name EventName
	Ref
	//lint:ignore U1000 see whole
	whole
	Kind     string
	At       time.Time       // by the server's clock
	Attempt  int             // counted, from 1; 0 where the script does not know it
	Reason   string          // why, at most 1000 bytes; of EventSubscribed why events are missing
	Progress json.RawMessage // of EventProgress: what the handler reported
}

// What only the events of a queue tell; an Observer's other names mean the same here.
const (
	EventScheduled   EventName = "scheduled"   // a job was enqueued for a later time
	EventFailed      EventName = "failed"      // a handler failed; EventRetried or EventDead follows
	EventProgress    EventName = "progress"    // a handler reported its progress
	EventReprocessed EventName = "reprocessed" // a dead letter has a new life
	EventRemoved     EventName = "removed"     // an operator has removed the job
	// EventSubscribed says that from here on events are heard: at first, and again wherever some may be
	// missing, because the connection was cut or the callback was too slow.
	EventSubscribed EventName = "subscribed"
)

// SetEvents switches the events of the queue on or off, for every process. They are off at first, and cost
// a message for each transition when they are on, whoever listens. Safe to repeat.
func (q *Queue) SetEvents(ctx context.Context, on bool) error {
	if err := q.usable(); err != nil {
		return err
	}
	value := ""
	if on {
		value = "1"
	}
	return q.set(ctx, scripts.FieldEvents, value)
}

// mostEvents is how many events wait for a slow callback before they are dropped.
const mostEvents = 4096

// Subscribe calls heard for each event of the queue, one after the other, until ctx ends; then it
// returns nil; the cause of a ctx that has ended before. Events are told at most once, and only while SetEvents has switched them on: use them to
// show what happens, not to decide. After a cut connection it subscribes again and says so with
// EventSubscribed, which also comes first. Shards that a queue gets later are not heard: subscribe anew.
//
// ErrInvalid, ErrPermission (the user may not subscribe); an error also when the client is closed.
func (q *Queue) Subscribe(ctx context.Context, heard func(JobEvent)) error {
	if err := q.usable(); err != nil {
		return err
	}
	if heard == nil {
		return fmt.Errorf("%w: Subscribe: the callback is nil", ErrInvalid)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("emq: subscribe: queue %s: nothing was heard: %w", q.name, context.Cause(ctx))
	}
	parts, err := q.parts(ctx)
	if err != nil {
		return err
	}
	in := inbox{come: make(chan struct{}, 1), queue: q.name, channels: len(parts), stand: make(map[int]bool)}
	fault := make(chan error, 1)
	for i, part := range parts {
		defer q.client.listener.listen(&hearer{
			channel: part.q.Channel("events"),
			heard:   in.take,
			renewed: func() { in.renewed(i) },
			refused: func(err error) {
				select {
				case fault <- err:
				default:
				}
			},
		})()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-fault:
			if word, _ := scripts.Word(err); word == "NOPERM" {
				err = fmt.Errorf("%w: allow the channels of the queue: %w", ErrPermission, err)
			}
			return fmt.Errorf("emq: subscribe: queue %s: %w", q.name, err)
		case <-in.come:
		}
		for _, e := range in.empty() {
			if ctx.Err() != nil {
				return nil
			}
			heard(e)
		}
	}
}

// inbox is what waits for a callback.
type inbox struct {
	queue    string
	channels int // one for each shard
	come     chan struct{}

	mu      sync.Mutex
	stand   map[int]bool // those that were renewed, until all were
	events  []JobEvent
	begun   bool
	dropped int
}

// take puts a message into the inbox, or drops it when the callback is too far behind.
func (in *inbox) take(message string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	defer signalOne(in.come)
	if len(in.events) >= mostEvents {
		in.dropped++
		return
	}
	in.admitDropped()
	if e, err := eventOf(in.queue, message); err == nil {
		in.events = append(in.events, e)
	} // else somebody else publishes on this channel
}

func (in *inbox) admitDropped() {
	if in.dropped > 0 {
		in.subscribed(fmt.Sprintf("%d events were dropped: the callback is slower than they come", in.dropped))
		in.dropped = 0
	}
}

// renewed notes that the subscription of one channel stands.
func (in *inbox) renewed(channel int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.stand[channel] = true
	if len(in.stand) < in.channels {
		return
	}
	clear(in.stand)
	reason := ""
	if in.begun {
		reason = "the connection was cut"
	}
	in.begun = true
	in.subscribed(reason)
	signalOne(in.come)
}

func (in *inbox) subscribed(reason string) {
	in.events = append(in.events, JobEvent{Name: EventSubscribed, Ref: Ref{Queue: in.queue}, At: time.Now(), Reason: reason})
}

// empty takes everything out.
func (in *inbox) empty() []JobEvent {
	in.mu.Lock()
	defer in.mu.Unlock()
	events := in.events
	in.events = nil
	if in.dropped > 0 {
		in.admitDropped()
		signalOne(in.come)
	}
	return events
}

// eventOf reads what the scripts publish.
func eventOf(queue, message string) (JobEvent, error) {
	var m struct {
		ID       string
		Kind     string
		Event    string
		TS       float64
		Attempt  float64
		Reason   string
		Progress string
	}
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		return JobEvent{}, err
	}
	e := JobEvent{
		Name: EventName(m.Event), Ref: Ref{queue, ID(m.ID)}, Kind: m.Kind, At: time.UnixMilli(int64(m.TS)),
		Attempt: int(m.Attempt), Reason: strings.TrimRight(m.Reason, "\ufffd"), // cut within a character
	}
	if json.Valid([]byte(m.Progress)) {
		e.Progress = json.RawMessage(m.Progress)
	}
	return e, nil
}
