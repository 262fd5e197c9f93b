package emq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// ErrPartialQueue is a worker that binds one package of a queue which is known to carry the jobs of
// another. Those would go round and round as unknown kinds.
var ErrPartialQueue = errors.New("emq: the queue carries jobs of packages that are not bound")

// kindEntry is what the registry of a queue (emq:{q}:kinds) says of one kind. Clients write it at their
// first enqueue of a kind, workers at their start; pages and command lines read the redacted paths.
type kindEntry struct {
	Version  int      `json:"v"`
	Package  string   `json:"pkg"`
	Redacted []string `json:"redacted,omitempty"`
}

// announce enters the kinds of jobs that this client has not sent before. The registry is advice: a
// server that refuses it refuses the enqueue too, or the next call tries again.
func (c *Client) announce(ctx context.Context, jobs []Job) {
	fresh := make(map[string]map[string]kindEntry)
	shards := make(map[string]int)
	for _, j := range jobs {
		if _, known := c.announced.Load(j.queue + "/" + j.kind); known {
			continue
		}
		if fresh[j.queue] == nil {
			fresh[j.queue] = make(map[string]kindEntry)
		}
		fresh[j.queue][j.kind] = j.entry
		shards[j.queue] = max(shards[j.queue], j.shards)
	}
	for queue, kinds := range fresh {
		if err := c.register(ctx, queue, kinds, shards[queue]); err != nil {
			c.log.Debug("emq: kinds were not entered into the registry", "queue", queue, "error", err)
			continue
		}
		for kind := range kinds {
			c.announced.Store(queue+"/"+kind, true)
		}
	}
}

// register enters kinds on each shard of a queue, and learns how many there are.
func (c *Client) register(ctx context.Context, queue string, kinds map[string]kindEntry, want int) error {
	entries, err := entriesOf(kinds)
	if err != nil {
		return err
	}
	n, err := c.shard(queue, 0).Register(ctx, entries)
	if err != nil {
		return err
	}
	shards, err := c.ensureShards(ctx, queue, n, want)
	for i := 1; err == nil && i < len(shards); i++ {
		_, err = shards[i].Register(ctx, entries)
	}
	return err
}

func entriesOf(kinds map[string]kindEntry) (map[string]string, error) {
	entries := make(map[string]string, len(kinds))
	for kind, e := range kinds {
		text, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		entries[kind] = string(text)
	}
	return entries, nil
}

// Retired binds a kind that is gone on purpose (//emq:retired): what is left of it in the queue is
// discarded.
func Retired(queue, kind string) Binding {
	return Binding{[]*boundKind{{queue: queue, kind: kind, version: 1, retired: true}}}
}

// join compares the queue's registry with what this worker binds, and enters the bound kinds. It fails
// with ErrPartialQueue if a package's jobs are known here and none of that package is bound.
func (c *consumer) join(ctx context.Context) error {
	entries, shards, err := c.q.Registry(ctx)
	if err != nil {
		return err
	}
	if c.shard == 0 {
		all, err := c.w.client.ensureShards(ctx, c.q.Name(), shards, c.served.shards)
		if err != nil {
			return err
		}
		c.w.widen(c.served, len(all))
	}
	own := make(map[string]kindEntry)
	packages := make(map[string]bool)
	for _, k := range c.kinds {
		packages[k.entry.Package] = true
		if !k.retired {
			own[k.kind] = k.entry
		}
	}
	var foreign []string
	for _, kind := range slices.Sorted(maps.Keys(entries)) {
		var e kindEntry
		if err := json.Unmarshal([]byte(entries[kind]), &e); err != nil || e.Package == "" {
			continue // written by somebody else's library: it cannot be placed
		}
		if c.kinds[kind] == nil && !packages[e.Package] {
			foreign = append(foreign, kind+" ("+e.Package+")")
		}
	}
	if len(foreign) > 0 && !c.w.cfg.AllowPartial {
		return fmt.Errorf("%w: queue %s: %s: bind those packages too, or set AllowPartial, or bind a kind that is gone with emq.Retired",
			ErrPartialQueue, c.q.Name(), strings.Join(foreign, ", "))
	}
	if len(own) == 0 {
		return nil
	}
	texts, err := entriesOf(own)
	if err != nil {
		return err
	}
	_, err = c.q.Register(ctx, texts)
	var reply *rueidis.RedisError
	if errors.As(err, &reply) {
		// the registry is advice: a server at its maxmemory refuses the entry, and must be drained
		c.w.log.Warn("emq: the server refuses to note the kinds of a worker, which serves them all the same", "queue", c.q.Name(), "error", err)
		return nil
	}
	return err
}
