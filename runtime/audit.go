package emq

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

// AuditOptions say how Audit goes about it.
type AuditOptions struct {
	DryRun bool // only tell what would be mended

	// Lease is for jobs that run and that no list held: 15 s by default; take the workers' own if it is longer.
	Lease    time.Duration
	Progress func(AuditReport)
}

// AuditReport says what Audit has found, and mended unless it was a dry run: the same for the same damage. One
// damage may count in several places: the place of a lane depends on its jobs and slots, so it is wrong while
// some of them are lost. All but the first two are 0 for a queue that only emq has written to, on a server
// that has lost nothing.
type AuditReport struct {
	Rows    int // rows of jobs that were looked at
	Members int // members of lists that were looked at

	// Rows that no list held, by their states. Pending jobs wait again, and dead letters are listed again.
	// Scheduled jobs have lost their times and are due now; completed ones are kept for another day. Active
	// ones get a lease: a worker that lives renews it, and the pump takes back what belongs to none.
	Pending, Scheduled, Active, Dead, Completed int

	Slots   int  // jobs that run and were not in their lane's active set
	Dropped int  // members of lists whose jobs were gone or in another state
	Lanes   int  // lanes that had a wrong place in the ring, or none
	Laned   bool // the number of jobs that wait in lanes was wrong
	Unique  int  // unique keys whose holders were gone
	Subkeys int  // logs of jobs whose rows were gone
	Foreign int  // rows that are no jobs of emq: they are left alone
}

// Audit compares the rows of a queue with its lists, and mends what somebody has changed by hand, or the
// server has lost. It may run beside workers: everything is looked at and mended in one script, so it never
// meets a job that is on its way. It goes through all keys of the server in bounded steps, which may take
// long, and time from others, on a large one that is shared: once to look, and if there is something to mend
// once more. Keys that come or go meanwhile may be missed, or counted twice. With an error the report says
// what was found until then, of which some may not be mended. ErrInvalid: a negative lease. Progress, if
// there is one, is called after each part that was looked at, in this goroutine.
func (q *Queue) Audit(ctx context.Context, o AuditOptions) (AuditReport, error) {
	a := audit{o: o, look: true}
	if err := q.usable(); err != nil {
		return a.AuditReport, err
	}
	if o.Lease < 0 {
		return a.AuditReport, fmt.Errorf("%w: a lease of %v: it may not be negative", ErrInvalid, o.Lease)
	}
	if o.Lease == 0 {
		a.o.Lease = defaultLease
	}
	parts, err := q.parts(ctx)
	if err != nil {
		return a.AuditReport, err
	}
	// Mending one thing puts others right that depend on it, so all is counted before anything is mended.
	err = a.shards(ctx, parts)
	found := a.AuditReport
	if err == nil && !o.DryRun && found != (AuditReport{Rows: found.Rows, Members: found.Members, Foreign: found.Foreign}) {
		a.look, a.o.Progress = false, nil
		err = a.shards(ctx, parts)
	}
	if err != nil {
		return found, q.broken(ctx, "audit", found.Rows, err)
	}
	return found, nil
}

// audit is one call of Audit.
type audit struct {
	q    *scripts.Queue
	o    AuditOptions
	look bool // mend nothing
	AuditReport
}

// auditBatch keeps a call short: putting a row back takes the server longer than looking at one.
const auditBatch = 200

// shards audits all shards of a queue.
func (a *audit) shards(ctx context.Context, parts []*Queue) error {
	for _, part := range parts {
		a.q = part.q
		if err := a.all(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (a *audit) all(ctx context.Context) error {
	for _, list := range scripts.AuditedLists {
		if err := a.list(ctx, list, ""); err != nil {
			return err
		}
	}
	if err := a.q.Scan(ctx, func(keys []string) error { return a.keys(ctx, keys) }); err != nil {
		return err
	}
	for cursor, more := "0", true; more; {
		n, next, err := a.q.AuditRing(ctx, a.look, cursor)
		if err != nil {
			return err
		}
		a.Lanes += n
		cursor, more = next, next != "0"
	}
	laned, err := a.q.AuditLaned(ctx, a.look)
	a.Laned = a.Laned || laned
	a.tell()
	return err
}

func (a *audit) tell() {
	if a.o.Progress != nil {
		a.o.Progress(a.AuditReport)
	}
}

// list drops the members of a list that have no such job.
func (a *audit) list(ctx context.Context, list, lane string) error {
	for cursor, more := "0", true; more; {
		looked, dropped, next, err := a.q.AuditMembers(ctx, a.look, list, lane, cursor)
		if err != nil {
			return err
		}
		a.Members += looked
		a.Dropped += dropped
		cursor, more = next, next != "0"
		if looked > 0 {
			a.tell()
		}
	}
	return nil
}

// keys sees to what the scan has found.
func (a *audit) keys(ctx context.Context, keys []string) error {
	found := a.q.Sort(keys)
	for ids := range slices.Chunk(found.Rows, auditBatch) {
		r, err := a.q.AuditRows(ctx, a.look, a.o.Lease, ids)
		if err != nil {
			return err
		}
		a.Rows += len(ids)
		a.Pending += r.Pending
		a.Scheduled += r.Scheduled
		a.Active += r.Active
		a.Dead += r.Dead
		a.Completed += r.Completed
		a.Slots += r.Slots
		a.Foreign += r.Foreign
	}
	for uniques := range slices.Chunk(found.Uniques, auditBatch) {
		n, err := a.q.AuditUnique(ctx, a.look, uniques)
		if err != nil {
			return err
		}
		a.Unique += n
	}
	for pairs := range slices.Chunk(found.Subkeys, auditBatch) {
		n, err := a.q.AuditSubkeys(ctx, a.look, pairs)
		if err != nil {
			return err
		}
		a.Subkeys += n
	}
	for _, lane := range found.Waiting {
		if err := a.list(ctx, "waiting", lane); err != nil {
			return err
		}
	}
	for _, lane := range found.Running {
		if err := a.list(ctx, "running", lane); err != nil {
			return err
		}
	}
	for lanes := range slices.Chunk(found.Waiting, auditBatch) {
		n, err := a.q.AuditLanes(ctx, a.look, lanes)
		if err != nil {
			return err
		}
		a.Lanes += n
	}
	a.tell()
	return nil
}
