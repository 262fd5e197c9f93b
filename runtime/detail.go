package emq

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// JobDetail is everything that is known of a job.
type JobDetail struct {
	Ref
	//lint:ignore U1000 see whole
	whole
	State      State
	Kind, Lane string
	Version    int    // of the payload's shape, from 1
	Payload    []byte // as it was enqueued; Redacted hides what its declaration says
	Headers    map[string]string

	Attempts    int // how often it was claimed
	Forgiven    int // claims that do not count: snoozes, hand-backs, lost leases, the ones before a reprocess
	Counted     int // Attempts without the forgiven ones
	MaxAttempts int // 0: what its declaration says
	Lapses      int // leases that ran out

	LastError string
	Progress  json.RawMessage // what its handler has last told by SetProgress
	Result    json.RawMessage // what its handler has returned, while it is kept
	Logs      int64           // how many lines its handlers have written by AppendLog; Queue.Logs has the last ones
	Unique    string          // the unique key that it holds, or takes again when it is reprocessed
	Cancelled bool            // somebody has cancelled it while it runs
	Awaited   bool            // somebody waits, or has waited, for its end

	EnqueuedAt time.Time // from the id: the producer's clock
	Due        time.Time // when it is due, or was last due; zero if it was never scheduled
	LeaseUntil time.Time // active: when its lease ends, unless a heartbeat comes first
	SettledAt  time.Time // when it completed or died
	KeptUntil  time.Time // completed: when it is deleted

	Timeline []Moment

	redacted []string // JSON paths
	declared bool     // the registry knows the kind, so the paths are all
}

// Moment is one thing that happened to a job, or that is to happen.
type Moment struct {
	At   time.Time
	What string // enqueued, due, lease ends, completed, died, kept until; settled where the state is unknown
}

// Job reads everything of one job. The timeline has what has a known time, in its order: when it was
// enqueued and due, when its lease ends, when it completed or died and until when it is kept. Claims and
// the failures between leave no times. ErrGone. Safe to repeat.
func (q *Queue) Job(ctx context.Context, id ID) (JobDetail, error) {
	if err := q.checkID(id); err != nil {
		return JobDetail{}, err
	}
	var d scripts.Detail
	err := q.find(ctx, id, func(q *scripts.Queue) (err error) {
		d, err = q.Detail(ctx, string(id))
		return err
	})
	if err != nil {
		return JobDetail{}, err
	}
	return q.detail(id, d), nil
}

func (q *Queue) detail(id ID, d scripts.Detail) JobDetail {
	row := d.Row
	j := JobDetail{
		Ref: Ref{q.name, id}, State: State(d.State), Kind: row["kind"], Lane: row["group"],
		Version: max(count(row["v"]), 1), Payload: []byte(row["payload"]),
		Attempts: count(row["attempts"]), Forgiven: count(row["forgiven"]), MaxAttempts: count(row["max"]), Lapses: count(row["lapses"]),
		LastError: row["last_error"], Progress: rawJSON(row["progress"]), Result: rawJSON(row["result"]),
		Logs: int64(count(row["logs"])), Unique: row["unique"], Cancelled: row["cancel"] != "", Awaited: row["awaited"] != "",
		EnqueuedAt: id.Time(), Due: scripts.Instant(row["due"]), SettledAt: scripts.Instant(row["settled_at"]),
	}
	j.Counted = j.Attempts - j.Forgiven
	if headers := row["headers"]; headers != "" {
		_ = json.Unmarshal([]byte(headers), &j.Headers) // what another program spoilt is not shown
	}
	var entry kindEntry
	if json.Unmarshal([]byte(d.Entry), &entry) == nil {
		j.redacted, j.declared = entry.Redacted, true
	}
	switch j.State {
	case StateScheduled:
		j.Due = d.Score
	case StateActive:
		j.LeaseUntil = d.Score
	case StateCompleted:
		j.KeptUntil = d.Score
	}
	j.Timeline = j.moments()
	return j
}

func (j *JobDetail) moments() []Moment {
	settled := "settled"
	switch j.State {
	case StateCompleted:
		settled = "completed"
	case StateDead:
		settled = "died"
	}
	var all []Moment
	for _, m := range []Moment{
		{j.EnqueuedAt, "enqueued"}, {j.Due, "due"}, {j.LeaseUntil, "lease ends"}, {j.SettledAt, settled}, {j.KeptUntil, "kept until"},
	} {
		if !m.At.IsZero() {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b Moment) int { return a.At.Compare(b.At) })
	return all
}

// count reads a number of a row, which anybody may have written: what is malformed is 0.
func count(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// rawJSON is a field that holds JSON; what is none is left out, as nothing could encode it again.
func rawJSON(s string) json.RawMessage {
	if !json.Valid([]byte(s)) {
		return nil
	}
	return json.RawMessage(s)
}
