package scripts

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// The classes of refusals; each is the first word of an error reply.
var (
	ErrKind    = errors.New("emq: not a job's id")
	ErrStale   = errors.New("emq: stale claim")
	ErrGone    = errors.New("emq: no such job")
	ErrState   = errors.New("emq: wrong state")
	ErrLocked  = errors.New("emq: locked")
	ErrFull    = errors.New("emq: queue is full")
	ErrVersion = errors.New("emq: version")

	ErrClosed = errors.New("emq: the client is closed") // not a script's word
)

// Refusal is a script's refusal: its class, where it was given, and the server's text.
type Refusal struct {
	Class     error
	Queue, ID string
	Text      string
}

func (r *Refusal) Error() string {
	if r.ID == "" {
		return fmt.Sprintf("%v: queue %s: %s", r.Class, r.Queue, r.Text)
	}
	if r.Class == ErrGone {
		return fmt.Sprintf("%v: queue %s, job %s: it has ended, or never was", r.Class, r.Queue, r.ID)
	}
	return fmt.Sprintf("%v: queue %s, job %s: %s", r.Class, r.Queue, r.ID, r.Text)
}

// Unwrap gives the class.
func (r *Refusal) Unwrap() error { return r.Class }

// IsRefusal tells a script's own word from every other error. Only the first is a verdict: a network
// error, LOADING, OOM or NOPERM says nothing about the job.
func IsRefusal(err error) bool {
	var r *Refusal
	return errors.As(err, &r)
}

// Word splits a server's error reply, which begins with the word for its kind; it is empty for every other error.
// A server before 7.0 wraps what a command of a script was refused with: "ERR Error running script (call to
// f_8f55…): @user_script:41: @user_script: 41: -OOM command not allowed …".
func Word(err error) (word, text string) {
	var reply *rueidis.RedisError
	if !errors.As(err, &reply) {
		return "", ""
	}
	said := reply.Error() // without the word ERR
	if strings.HasPrefix(said, "Error running script") {
		if _, inner, wrapped := strings.Cut(said, ": -"); wrapped {
			said = inner
		}
	}
	word, text, _ = strings.Cut(said, " ")
	return word, text
}

func classOf(word string) error {
	switch word {
	case "EMQKIND":
		return ErrKind
	case "EMQSTALE":
		return ErrStale
	case "EMQGONE":
		return ErrGone
	case "EMQSTATE":
		return ErrState
	case "EMQLOCK":
		return ErrLocked
	case "EMQFULL":
		return ErrFull
	case "EMQVERSION":
		return ErrVersion
	}
	return nil
}

// wrap gives an error its place: what the user called, the queue, and the job if it concerns one.
func (q *Queue) wrap(call, id string, err error) error {
	if err == nil {
		return nil
	}
	word, text := Word(err)
	if class := classOf(word); class != nil {
		return &Refusal{class, q.name, id, text}
	}
	if errors.Is(err, rueidis.ErrClosing) {
		err = ErrClosed
	}
	if id != "" {
		return fmt.Errorf("emq: %s: queue %s, job %s: %w", call, q.name, id, err)
	}
	return fmt.Errorf("emq: %s: queue %s: %w", call, q.name, err)
}
