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
