package emq

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// State is where a job stands.
type State string

// The states.
const (
	StatePending          State = "pending"           // it may be claimed
	StateScheduled        State = "scheduled"         // it waits for its time
	StateActive           State = "active"            // it runs
	StateDead             State = "dead"              // a dead letter
	StateCompleted        State = "completed"         // done, and kept for its retention
	StateAwaitingChildren State = "awaiting_children" // it waits for the jobs that it depends on
	StateAbsent           State = "absent"            // there is no such job, or no longer
	StateUnknown          State = "unknown"           // its row and the queue's lists disagree: somebody has changed keys
)

// State tells where a job stands, by its row and by the queue's lists. A job that has ended and is not
// kept is StateAbsent, which is no error. Safe to repeat.
func (q *Queue) State(ctx context.Context, id ID) (State, error) {
	if err := q.checkID(id); err != nil {
		return "", err
	}
	parts, err := q.parts(ctx)
	if err != nil {
		return "", err
	}
	likely := wire.Shard(string(id), len(parts))
	for i := range parts {
		word, err := parts[(likely+i)%len(parts)].q.State(ctx, string(id))
		if err != nil || State(word) != StateAbsent {
			return State(word), err
		}
	}
	return StateAbsent, nil
}

func (q *Queue) checkID(id ID) error {
	if err := q.usable(); err != nil {
		return err
	}
	_, err := ParseID(string(id))
	return err
}

// BrowseOptions says which jobs a page shows.
type BrowseOptions struct {
	// State is StatePending, StateScheduled, StateActive, StateDead or StateCompleted.
	State State
	// Lane shows the waiting jobs of one lane; only with StatePending. Without it StatePending shows the
	// jobs that have no lane: all of a queue are those and the ones of each lane that Lanes lists.
	Lane string
	// Oldest begins at the other end: at the oldest id, the earliest due time, the lease or the retention
	// that ends first, the first death. Otherwise the newest and latest come first.
	Oldest bool
	// Cursor is Page.Next of the page before; empty is the beginning.
	Cursor string
	// N is how many jobs a page has, 1 to 500; 0 is 50.
	N int
}

// Page is a part of the jobs of one state.
type Page struct {
	Jobs []JobSummary
	Next string // the cursor of the next page; empty at the end
}

// JobSummary is a job as a page shows it. Queue.Job has the rest.
type JobSummary struct {
	ID         ID
	State      State // StateAbsent or StateUnknown where the row is gone or says another state
	Kind, Lane string
	Attempts   int       // counted ones
	Lapses     int       // leases that ran out
	EnqueuedAt time.Time // from the id: the producer's clock
	At         time.Time // scheduled: when it is due; active: when its lease ends; dead: when it died; completed: until when it is kept; else zero
	LastError  string    // its beginning, 300 bytes at most
	Cancelled  bool      // somebody has cancelled it while it runs
}

const (
	defaultPage = 50
	maxPage     = scripts.MaxPage
)

// Browse shows a page of the jobs of one state. Waiting jobs are in the order of their ids; scheduled, active and
// completed ones in that of their times (due, end of the lease, end of the retention); dead ones in that of their
// deaths. Pages hold while jobs come and go: one that stays where it is comes once, whatever becomes of the others.
//
// A state without a list, a page over 500 and a cursor of another queue, state, lane or direction, or that was changed, are
// ErrInvalid.
// Safe to repeat.
func (q *Queue) Browse(ctx context.Context, o BrowseOptions) (Page, error) {
	after, err := q.checkBrowse(&o)
	if err != nil {
		return Page{}, err
	}
	parts, err := q.parts(ctx)
	if err != nil {
		return Page{}, err
	}
	var jobs []scripts.Listed
	more := false
	for _, part := range parts {
		found, further, err := part.q.Browse(ctx, string(o.State), o.Lane, o.Oldest, o.N, after)
		if err != nil {
			return Page{}, err
		}
		jobs, more = append(jobs, found...), more || further
	}
	if len(parts) > 1 {
		slices.SortStableFunc(jobs, func(a, b scripts.Listed) int { return inOrder(a.Place, b.Place, o.Oldest) })
		if len(jobs) > o.N {
			jobs, more = jobs[:o.N], true
		}
	}
	page := Page{Jobs: make([]JobSummary, len(jobs))}
	for i, j := range jobs {
		page.Jobs[i] = summary(o.State, j)
	}
	if more && len(jobs) > 0 {
		last := jobs[len(jobs)-1]
		page.Next = q.cursor(listOf(o), last.Score+"/"+last.ID)
	}
	return page, nil
}

// inOrder compares the places of two jobs in a list, as a shard has it in order.
func inOrder(a, b scripts.Place, oldest bool) int {
	x, _ := strconv.ParseFloat(a.Score, 64) // a server's own text of a number
	y, _ := strconv.ParseFloat(b.Score, 64)
	order := cmp.Or(cmp.Compare(x, y), strings.Compare(a.ID, b.ID))
	if !oldest {
		return -order
	}
	return order
}

func summary(listed State, j scripts.Listed) JobSummary {
	s := JobSummary{
		ID: ID(j.ID), State: listed, Kind: j.Kind, Lane: j.Lane, Attempts: int(j.Attempts - j.Forgiven), Lapses: int(j.Lapses),
		EnqueuedAt: ID(j.ID).Time(), At: j.At, LastError: strings.ToValidUTF8(j.LastError, ""), Cancelled: j.Cancelled,
	}
	switch State(j.State) {
	case listed:
	case "":
		s.State = StateAbsent
	default:
		s.State = StateUnknown
	}
	return s
}

// checkBrowse fills in the defaults and reads the cursor.
func (q *Queue) checkBrowse(o *BrowseOptions) (*scripts.Place, error) {
	if err := q.usable(); err != nil {
		return nil, err
	}
	switch o.State {
	case StatePending, StateScheduled, StateActive, StateDead, StateCompleted:
	default:
		return nil, fmt.Errorf("%w: browse: there is no list of jobs in state %s", ErrInvalid, wire.Quote(string(o.State)))
	}
	if o.N == 0 {
		o.N = defaultPage
	}
	if o.N < 1 || o.N > maxPage {
		return nil, fmt.Errorf("%w: browse: a page of %d jobs: 1 to %d", ErrInvalid, o.N, maxPage)
	}
	if o.Lane != "" {
		if o.State != StatePending {
			return nil, fmt.Errorf("%w: browse: only pending jobs are listed by lane, not %s ones", ErrInvalid, o.State)
		}
		if err := q.checkLane(o.Lane); err != nil {
			return nil, err
		}
	}
	if o.Cursor == "" {
		return nil, nil
	}
	place, err := q.place(listOf(*o), o.Cursor)
	if err != nil {
		return nil, err
	}
	score, id, _ := strings.Cut(place, "/")
	if f, err := strconv.ParseFloat(score, 64); err != nil || math.IsNaN(f) || strings.ContainsAny(score, "xX_") || id == "" {
		return nil, q.noCursor(listOf(*o), o.Cursor)
	}
	return &scripts.Place{Score: score, ID: id}, nil
}

// listOf names the list of one browse for its cursors.
func listOf(o BrowseOptions) string {
	way := "newest"
	if o.Oldest {
		way = "oldest"
	}
	list := string(o.State) + " jobs, " + way + " first"
	if o.Lane != "" {
		list += ", of lane " + strconv.QuoteToASCII(o.Lane)
	}
	return list
}
