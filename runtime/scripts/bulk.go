package scripts

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// MaxBulk is how many jobs one call of a verb over many jobs looks at.
const MaxBulk = 500

// Remove deletes a job that does not run. ErrGone, ErrLocked (it runs). Safe to repeat: the second call is
// ErrGone.
func (q *Queue) Remove(ctx context.Context, id string) error {
	return q.wrap("remove", id, q.run(ctx, q.prepare("remove", id, "", id, q.keys.Base())).Error())
}

// Guard is what must hold before a whole queue may be deleted.
type Guard string

// The guards.
const (
	Unguarded  Guard = ""
	Paused     Guard = "paused" // the queue is paused and nothing runs
	PausedOnly Guard = "force"  // the queue is paused
)

// Drain is one call that empties a list: "pending", "lane" (that of Lane), "lanes", "schedule", "dead",
// "completed" or "active".
type Drain struct {
	List, Lane string
	Limit      int
	Guard      Guard
	Verb       string // what the user called, for errors; "drain" if it is empty
}

// Drained is the answer of one call.
type Drained struct {
	Removed, Dropped int
	More             bool
}

// Drain deletes up to Limit jobs of a list. ErrState for what the guard keeps out. Safe to repeat.
func (q *Queue) Drain(ctx context.Context, d Drain) (Drained, error) {
	c := q.prepare("drain", "", "", q.keys.Base(), d.List, d.Lane, strconv.Itoa(d.Limit), string(d.Guard))
	verb := d.Verb
	if verb == "" {
		verb = "drain"
	}
	ns, err := q.ints(ctx, verb, 3, c)
	if err != nil {
		return Drained{}, err
	}
	return Drained{int(ns[0]), int(ns[1]), ns[2] == 1}, nil
}

// ReviveAt is a place among the dead letters; its zero value is the beginning. A caller passes on what it
// got.
type ReviveAt struct{ until, after, time string }

// Anew is the beginning again, up to the same time of death.
func (a ReviveAt) Anew() ReviveAt { return ReviveAt{until: a.until} }

// Revive is one call that reprocesses dead letters, of one kind or of all.
type Revive struct {
	At       ReviveAt
	Kind     string
	Look, Up int // how many are looked at, and reprocessed, at most
}

// Revived is the answer of one call.
type Revived struct {
	Done, Refused, Other, Dropped int
	Next                          ReviveAt
	More                          bool
}

// Revive reprocesses dead letters, the oldest deaths first. Safe to repeat.
func (q *Queue) Revive(ctx context.Context, r Revive) (Revived, error) {
	up := r.Up
	if up <= 0 {
		up = math.MaxInt32
	}
	c := q.prepare("revive", "", "", q.keys.Base(), r.At.until, r.At.after, r.At.time, r.Kind, strconv.Itoa(r.Look), strconv.Itoa(up))
	reply, err := q.run(ctx, c).ToArray()
	if err == nil && len(reply) != 8 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return Revived{}, q.wrap("reprocess all", "", err)
	}
	return Revived{
		Done: int(number(reply[1])), Refused: int(number(reply[2])), Other: int(number(reply[3])), Dropped: int(number(reply[4])),
		Next: ReviveAt{strconv.FormatInt(number(reply[0]), 10), text(reply[5]), text(reply[6])}, More: number(reply[7]) == 1,
	}, nil
}

// ReassignAt is a place in the move of a lane; an empty Stage is its end.
type ReassignAt struct{ Stage, Cursor string }

// ReassignBegin is where a move begins.
var ReassignBegin = ReassignAt{"waiting", "0"}

// Reassigned is the answer of one call.
type Reassigned struct {
	Known          bool // the lane has jobs that wait or run, or a control
	Moved, Dropped int
	Next           ReassignAt
}

// Reassign moves up to limit jobs from one lane to another; to may be empty. Safe to repeat.
func (q *Queue) Reassign(ctx context.Context, from, to string, at ReassignAt, limit int) (Reassigned, error) {
	c := q.prepare("reassign", "", "", q.keys.Base(), from, to, at.Stage, at.Cursor, strconv.Itoa(limit))
	reply, err := q.run(ctx, c).ToArray()
	if err == nil && len(reply) != 5 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return Reassigned{}, q.wrap("reassign lane", "", err)
	}
	return Reassigned{number(reply[0]) == 1, int(number(reply[1])), int(number(reply[2])),
		ReassignAt{text(reply[3]), text(reply[4])}}, nil
}

// ReapLane takes back the lapsed leases on one page of a lane's running jobs; it answers how many, the next
// cursor ("0" at the end), and how long the grace lasts that came before. Safe to repeat.
func (q *Queue) ReapLane(ctx context.Context, lane, cursor string, budget, limit int, lease time.Duration) (int, string, time.Duration, error) {
	c := q.prepare("reap_lane", "", "", q.keys.Base(), lane, cursor, strconv.Itoa(budget), strconv.Itoa(limit), ms(lease))
	reply, err := q.run(ctx, c).ToArray()
	if err == nil && len(reply) != 3 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return 0, "", 0, q.wrap("reap lane", "", err)
	}
	return int(number(reply[0])), text(reply[1]), time.Duration(number(reply[2])) * time.Millisecond, nil
}

// Obliterate deletes keys of the queue if no list has a job; false while one has. ErrState for what the
// guard keeps out. Safe to repeat.
func (q *Queue) Obliterate(ctx context.Context, guard Guard, keys []string) (bool, error) {
	c := q.prepare("obliterate", "", "", string(guard))
	c.keys = append(c.keys[:len(c.keys):len(c.keys)], keys...)
	ns, err := q.run(ctx, c).AsIntSlice()
	if err == nil && len(ns) == 0 {
		err = errors.New("an empty answer")
	}
	if err != nil {
		return false, q.wrap("obliterate", "", err)
	}
	return ns[0] == 1, nil
}

// MetaKey is the key of the queue's settings, its pause among them.
func (q *Queue) MetaKey() string { return q.keys.Fixed("meta") }

// ints runs a call that answers n numbers.
func (q *Queue) ints(ctx context.Context, name string, n int, c call) ([]int64, error) {
	return q.readInts(name, n, q.run(ctx, c))
}

func (q *Queue) readInts(name string, n int, res rueidis.RedisResult) ([]int64, error) {
	ns, err := res.AsIntSlice()
	if err == nil && len(ns) != n {
		err = fmt.Errorf("unexpected answer %v", ns)
	}
	return ns, q.wrap(name, "", err)
}
