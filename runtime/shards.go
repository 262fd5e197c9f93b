package emq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// MaxShards is how many shards a queue may have.
const MaxShards = wire.MaxShards

// ErrShards is what the shards of a queue keep a verb from: they are on different servers. The error says why.
var ErrShards = errors.New("emq: not over shards")

// spread is what a client knows of the shards of a queue. It is never changed, but replaced by another one.
type spread struct {
	shards []*clientQueue
	want   int       // the largest number that was asked for, if the server keeps a smaller one
	asked  time.Time // when the server said so
}

// staleSpread is how old the knowledge of an operator's verb may be: else one of a process that lives for long
// would leave out the shards that came later. Workers learn with each claim.
const staleSpread = 10 * time.Second

func (c *Client) known(name string) *spread {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spreads[name]
}

// shards are the shards of a queue whose name has passed its check. The first use of a queue asks the server how
// many it has, and makes them as many as are declared (want).
func (c *Client) shards(ctx context.Context, name string, want int) ([]*clientQueue, error) {
	if s := c.known(name); s != nil && (len(s.shards) >= want || s.want >= want) {
		return s.shards, nil
	}
	return c.askShards(ctx, name, want)
}

func (c *Client) askShards(ctx context.Context, name string, want int) ([]*clientQueue, error) {
	n, err := c.shard(name, 0).Shards(ctx)
	if err != nil {
		return nil, err
	}
	return c.ensureShards(ctx, name, n, want)
}

// ensureShards makes a queue that has n shards, as the server said just now, have want, and keeps how many it has.
func (c *Client) ensureShards(ctx context.Context, name string, n, want int) ([]*clientQueue, error) {
	if err := checkShards(name, n); err != nil {
		return nil, err
	}
	if n < want {
		grown, err := c.Queue(name).growShards(ctx, n, want)
		switch {
		case errors.Is(err, ErrState):
			c.log.Warn("emq: the queue does not get the shards that are declared", "queue", name, "shards", n, "declared", want, "error", err)
		case err != nil:
			return nil, err
		default:
			n = grown
			if err := moveCrons(ctx, c.Queue(name).first(n)); err != nil {
				c.log.Warn("emq: some cron entries are not in the shards of their jobs yet: SetShards with the same number moves them", "queue", name, "shards", n, "error", err)
			}
		}
	}
	return c.learnShards(name, n, want), nil
}

// learnShards keeps how many shards a queue has. What a process has learned it does not forget: a smaller number
// may be an older answer, and a shard too many is only empty.
func (c *Client) learnShards(name string, n, want int) []*clientQueue {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := spread{want: want, asked: time.Now()}
	if old := c.spreads[name]; old != nil {
		s.shards, s.want = old.shards, max(old.want, want)
	}
	s.shards = slices.Clip(s.shards)
	for i := len(s.shards); i < n; i++ {
		s.shards = append(s.shards, c.shardLocked(name, i))
	}
	c.spreads[name] = &s
	return s.shards
}

// forgetShards lets a queue be asked anew.
func (c *Client) forgetShards(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.spreads, name)
}

// shard calls scripts on one shard of a queue.
func (c *Client) shard(name string, i int) *clientQueue {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shardLocked(name, i)
}

func (c *Client) shardLocked(name string, i int) *clientQueue {
	tag := wire.Tag(name, i)
	q := c.queues[tag]
	if q == nil {
		q = newClientQueue(c.server.Shard(name, i))
		c.queues[tag] = q
	}
	return q
}

// home is the shard of a job: that of its lane, so that whatever holds for a lane holds exactly; else that of its
// unique key, which nobody else can hold then; else the one that its id says, and there -1.
func home(lane, unique string, shards int) int {
	switch {
	case lane != "":
		return wire.Shard(lane, shards)
	case unique != "":
		return wire.Shard(unique, shards)
	}
	return -1
}

// checkHome refuses a job whose lane and whose unique key would each need a shard of their own.
func checkHome(job *Job, shards int) error {
	if shards <= 1 || job.lane == "" || job.unique == "" || job.uniqueInLane {
		return nil
	}
	return fmt.Errorf("%w: queue %s, kind %s: the job is unique and in a lane, and the queue has %d shards: make the lane one of its unique fields, or it could be there twice, in two lanes",
		ErrInvalid, job.queue, job.kind, shards)
}

// place gives a job its shard, and mints an id that says which, if the caller gave none.
func (c *Client) place(job *Job, shards []*clientQueue, receipt *Receipt) (*clientQueue, error) {
	n := len(shards)
	if err := checkHome(job, n); err != nil {
		return nil, err
	}
	at := home(job.lane, job.unique, n)
	if receipt.ID == "" {
		id, err := c.mintFor(at, n)
		if err != nil {
			return nil, err
		}
		receipt.ID = id
	}
	if at < 0 {
		at = wire.Shard(string(receipt.ID), n)
	}
	return shards[at], nil
}

// mintFor mints an id that tells its shard; any shard if it is negative.
func (c *Client) mintFor(shard, shards int) (ID, error) {
	for {
		id, err := c.NewID()
		if err != nil || shards <= 1 || shard < 0 || wire.Shard(string(id), shards) == shard {
			return id, err
		}
	}
}

// find calls f on the shards of a queue until one has the job, first on the one that its id says. It is ErrGone
// if none has.
func (c *Client) find(ctx context.Context, ref Ref, f func(*scripts.Queue) error) error {
	parts, err := c.Queue(ref.Queue).parts(ctx)
	if err != nil {
		return err
	}
	likely := wire.Shard(string(ref.ID), len(parts))
	gone := f(parts[likely].q)
	for i, part := range parts {
		if !errors.Is(gone, ErrGone) {
			return gone
		}
		if i != likely {
			if err := f(part.q); !errors.Is(err, ErrGone) {
				return err
			}
		}
	}
	return gone
}

// find is Client.find of a job of this queue.
func (q *Queue) find(ctx context.Context, id ID, f func(*scripts.Queue) error) error {
	return q.client.find(ctx, Ref{q.name, id}, f)
}

// parts are handles of the queue's shards alone.
func (q *Queue) parts(ctx context.Context) ([]*Queue, error) {
	if err := q.usable(); err != nil {
		return nil, err
	}
	if s := q.client.known(q.name); s != nil && time.Since(s.asked) <= staleSpread {
		return q.handles(s.shards), nil
	}
	return q.askedParts(ctx)
}

// askedParts are the parts that there are now: for verbs that do harm where they leave out a shard.
func (q *Queue) askedParts(ctx context.Context) ([]*Queue, error) {
	if err := q.usable(); err != nil {
		return nil, err
	}
	shards, err := q.client.askShards(ctx, q.name, 0)
	switch {
	case err != nil && ctx.Err() != nil: // the verb's own call fails too, and the error has its name
		return q.first(1), nil
	case err != nil:
		return nil, err
	}
	return q.handles(shards), nil
}

func (q *Queue) handles(shards []*clientQueue) []*Queue {
	parts := make([]*Queue, len(shards))
	for i, s := range shards {
		parts[i] = &Queue{client: q.client, name: q.name, q: s.Queue}
	}
	return parts
}

// each calls f for every shard in turn, until it fails.
func (q *Queue) each(ctx context.Context, f func(part *Queue) error) error {
	parts, err := q.parts(ctx)
	for i := 0; err == nil && i < len(parts); i++ {
		err = f(parts[i])
	}
	return err
}

// page reads a page of a list that goes through the shards in turn: read gives a page of one shard and the place
// where the next one begins; an empty place is the beginning, or that there is none.
func (q *Queue) page(ctx context.Context, list, cursor string, read func(part *Queue, shards int, place string) (next string, err error)) (string, error) {
	at, place := 0, ""
	if cursor != "" {
		var err error
		if place, err = q.place(list, cursor); err != nil {
			return "", err
		}
		if shard, rest, ok := strings.Cut(place, "#"); ok {
			if at, err = strconv.Atoi(shard); err != nil || at < 1 || at >= MaxShards {
				return "", q.noCursor(list, cursor)
			}
			place = rest
		} else if place == "" {
			return "", q.noCursor(list, cursor)
		}
	}
	parts, err := q.parts(ctx)
	if err == nil && at >= len(parts) { // the page before was told by somebody who knows of more
		parts, err = q.askedParts(ctx)
	}
	if err != nil || at >= len(parts) { // they have become fewer
		return "", err
	}
	next, err := read(parts[at], len(parts), place)
	if err != nil {
		return "", err
	}
	if next == "" {
		if at++; at >= len(parts) {
			return "", nil
		}
	}
	if at > 0 {
		next = strconv.Itoa(at) + "#" + next
	}
	return q.cursor(list, next), nil
}

// bulk calls a verb over many jobs on every shard in turn, and adds up how far it came. The verb goes on counting
// from what it is given.
func (q *Queue) bulk(ctx context.Context, f func(part *Queue, p *BulkProgress) error) (p BulkProgress, err error) {
	err = q.each(ctx, func(part *Queue) error { return f(part, &p) })
	return p, err
}

// Shards is how many shards the queue has. Safe to repeat.
func (q *Queue) Shards(ctx context.Context) (int, error) {
	if err := q.usable(); err != nil {
		return 0, err
	}
	return q.q.Shards(ctx)
}

// SetShards gives the queue more shards, or takes away the last ones, which must be empty. A worker serves new
// ones from its next claim on, and a process that enqueues jobs of another declaration learns of them when it
// starts. To take some away stop all processes first, since those that run keep to the number that they know, and
// one that starts with a larger declared number brings it back; the totals of the shards that go are lost.
//
// ErrInvalid: n outside 1 to MaxShards. ErrState: a shard that is to go has jobs or cron entries, or a limit of the
// queue is too small to be split (Settings); nothing has changed then, unless jobs came while shards went. Safe to
// repeat, which also goes on with a call that broke off.
func (q *Queue) SetShards(ctx context.Context, n int) error {
	if n < 1 || n > MaxShards {
		return q.refuse("%d shards: a queue has 1 to %d", n, MaxShards)
	}
	has, err := q.Shards(ctx)
	if err == nil {
		err = checkShards(q.name, has)
	}
	if err != nil {
		return err
	}
	q.client.learnShards(q.name, has, 0)
	if n < has {
		if err := q.shrinkShards(ctx, has, n); err != nil {
			return err
		}
		q.client.forgetShards(q.name)
		q.client.learnShards(q.name, n, 0)
		return nil
	}
	grown, err := q.growShards(ctx, has, n)
	if err != nil {
		return err
	}
	q.client.learnShards(q.name, grown, n)
	return moveCrons(ctx, q.first(grown))
}

// checkShards refuses a number that only somebody's hand can have written.
func checkShards(queue string, n int) error {
	if n < 1 || n > MaxShards {
		return fmt.Errorf("%w: queue %s: its meta says that it has %d shards: somebody has changed it", ErrState, queue, n)
	}
	return nil
}

// growShards gives a queue of has shards want ones, which begin with the settings of the others. Others may do the
// same at once, for another number: who finds one that he did not write for begins again.
func (q *Queue) growShards(ctx context.Context, has, want int) (int, error) {
	for {
		if err := q.respread(ctx, has, want); err != nil {
			return 0, err
		}
		n, err := q.q.SetShards(ctx, has, want)
		if err != nil {
			return 0, err
		}
		if n == want {
			return n, nil
		}
		has, want = n, max(n, want)
	}
}

// first are handles of the first n shards, which there may not be yet.
func (q *Queue) first(n int) []*Queue {
	shards := make([]*clientQueue, n)
	for i := range shards {
		shards[i] = q.client.shard(q.name, i)
	}
	return q.handles(shards)
}

// respread gives the shards of a queue that is to have n the settings and the controls of lanes that it has now.
func (q *Queue) respread(ctx context.Context, has, n int) error {
	parts := q.first(n)
	set, err := settingsOf(ctx, parts[:has])
	if err == nil {
		err = q.checkSplit(set, n, ErrState)
	}
	if err != nil {
		return err
	}
	for i, part := range parts {
		if i == has { // what a growth that broke off has left in the new ones does not count
			set = withDefaults(set)
		}
		if err := part.setPart(ctx, set, i, n); err != nil {
			return err
		}
	}
	return spreadControls(ctx, parts[:has], parts)
}

// spreadControls gives what was set for lanes and cron entries to the shards in which they are among others.
func spreadControls(ctx context.Context, from, to []*Queue) error {
	for _, part := range from {
		if err := part.spreadLanes(ctx, to); err != nil {
			return err
		}
		if err := part.spreadPauses(ctx, to); err != nil {
			return err
		}
	}
	return nil
}

// shrinkShards deletes the last shards of a queue, if they are empty.
func (q *Queue) shrinkShards(ctx context.Context, has, n int) error {
	parts := q.first(has)
	left, leave := parts[:n], parts[n:]
	for _, part := range leave {
		if err := part.checkEmpty(ctx); err != nil {
			return err
		}
	}
	// a call that broke off has paused, or deleted, some that leave; the first one knows what all have together
	set, err := settingsOf(ctx, left)
	if err != nil {
		return err
	}
	if err := spreadControls(ctx, parts, left); err != nil {
		return err
	}
	for _, part := range slices.Backward(leave) {
		if err := part.q.Set(ctx, scripts.FieldPaused, "1"); err != nil {
			return err
		}
		gone, err := part.sweep(ctx, scripts.Paused)
		if err == nil && !gone {
			err = fmt.Errorf("%w: queue %s: a job has come to shard %s while it was deleted: stop the producers first, and then Resume", ErrState, q.name, part.q.Tag())
		}
		if err != nil {
			return err
		}
	}
	if err := q.setAll(ctx, left, set, ErrState); err != nil {
		return err
	}
	stand, err := q.q.SetShards(ctx, has, n)
	if err == nil && stand != n {
		err = fmt.Errorf("%w: queue %s: somebody else has given it %d shards meanwhile: stop the processes that declare more, and call it again", ErrState, q.name, stand)
	}
	if err != nil {
		return err
	}
	return moveCrons(ctx, left)
}

func (q *Queue) checkEmpty(ctx context.Context) error {
	c, err := q.q.Counts(ctx)
	if err != nil {
		return err
	}
	if jobs := c.Pending + c.Active + c.Scheduled + c.Dead + c.Completed; jobs > 0 {
		return fmt.Errorf("%w: queue %s: shard %s has %d jobs, of which %d wait, %d are dead letters and %d are kept: let them end, Drain those that wait, Remove or await the end of the others",
			ErrState, q.name, q.q.Tag(), jobs, c.Pending+c.Scheduled, c.Dead, c.Completed)
	}
	for cursor, more := "0", true; more; {
		entries, next, err := q.q.Crons(ctx, cursor, maxCronPage)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Refreshed == 0 {
				return fmt.Errorf("%w: queue %s: shard %s has the cron entry %s: remove it, and add it again afterwards", ErrState, q.name, q.q.Tag(), e.Name)
			}
		}
		cursor, more = next, next != "0"
	}
	return nil
}
