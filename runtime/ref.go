package emq

import (
	"fmt"
	"strings"
	"time"

	"github.com/echomq/emq/internal/wire"
)

// ID names a job: JOB and eleven base62 digits, in the order in which the ids were minted.
type ID string

// ParseID checks the form of an id that came from outside.
func ParseID(s string) (ID, error) {
	if _, err := wire.DecodeJob(s); err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return ID(s), nil
}

// Time is when the id was minted, by the clock of the process that minted it, in milliseconds.
// It is the zero time for what is not an id.
func (id ID) Time() time.Time {
	n, err := wire.DecodeJob(string(id))
	if err != nil {
		return time.Time{}
	}
	return wire.MintedAt(n)
}

// Ref is the place of a job: its queue and its id. Its text is "queue/id", for HTTP, logs and command
// lines.
type Ref struct {
	Queue string
	ID    ID
}

func (r Ref) String() string { return r.Queue + "/" + string(r.ID) }

// MarshalText writes "queue/id".
func (r Ref) MarshalText() ([]byte, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	return []byte(r.String()), nil
}

// UnmarshalText reads "queue/id" and refuses everything else.
func (r *Ref) UnmarshalText(text []byte) error {
	queue, id, _ := strings.Cut(string(text), "/")
	ref := Ref{Queue: queue, ID: ID(id)}
	if err := ref.check(); err != nil {
		return err
	}
	*r = ref
	return nil
}

func (r Ref) check() error {
	if err := wire.CheckQueue(r.Queue); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	_, err := ParseID(string(r.ID))
	return err
}

// Status is what became of one job of an enqueue.
type Status uint8

// What becomes of a job.
const (
	Unknown   Status = iota // not known: the call failed before its answer; safe to repeat with the same ids
	Enqueued                // it is in the queue
	Stored                  // it was handed on, to an outbox or a recorder
	Duplicate               // a job with this id (WithID) is there already; nothing was changed
	Conflict                // another job holds the unique key; nothing was enqueued
	Replaced                // the holder of the debounced unique key waited, and is this job now
	Refused                 // it is not in the queue, and the call's error says why
)

func statusWords() []string {
	return []string{"unknown", "enqueued", "stored", "duplicate", "conflict", "replaced", "refused"}
}

func (s Status) String() string { return wordOf("Status", statusWords(), s) }

// MarshalText writes the text of String; what is no constant is ErrInvalid.
func (s Status) MarshalText() ([]byte, error) { return textOf("status", statusWords(), s) }

// UnmarshalText reads the text of String; anything else is ErrInvalid.
func (s *Status) UnmarshalText(text []byte) error { return readWord("status", statusWords(), text, s) }

// Receipt is the answer for one job of an enqueue.
type Receipt struct {
	Ref
	//lint:ignore U1000 see whole
	whole
	Status Status
	Holder ID // with Conflict and Replaced: the job that holds the unique key; no job has the receipt's own id
}
