package emq

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
)

// shardless is a client of a server that does not answer how many shards a queue has.
type shardless struct {
	rueidis.Client
	asked *atomic.Int32
}

// Do is that of the client.
func (s shardless) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if words := cmd.Commands(); words[0] == "HGET" && slices.Contains(words, "shards") {
		s.asked.Add(1)
		return rueidis.NewErrorResult(errors.New("nothing comes"))
	}
	return s.Client.Do(ctx, cmd)
}

// DoMulti is that of the client.
func (s shardless) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	results := make([]rueidis.RedisResult, len(cmds))
	for i, cmd := range cmds {
		results[i] = s.Do(ctx, cmd)
	}
	return results
}

// A server that is silent is asked once a try, not once for each job of a batch, each of which would wait its time.
func TestABatchAsksOnceATryHowManyShardsThereAre(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	var asked atomic.Int32
	c, err := NewClient(shardless{raw, &asked}, WithLogger(quiet()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	jobs := make([]Job, 50)
	for i := range jobs {
		jobs[i] = New(frugal{N: i})
	}
	receipts, err := c.Enqueue(t.Context(), jobs...)
	for _, r := range receipts {
		if err == nil || r.Status == Enqueued {
			t.Fatalf("%v, %v", r.Status, err)
		}
	}
	if n := asked.Load(); n < 1 || n > resends+2 { // one with the registry
		t.Errorf("asked %d times", n)
	}
}
