package scripts

import (
	"context"
	"strconv"

	"github.com/redis/rueidis"
)

// fieldShards is the field of the first shard's meta that says how many there are.
const fieldShards = "shards"

// Shards reads how many shards the queue of this first shard has. Safe to repeat.
func (q *Queue) Shards(ctx context.Context) (int, error) {
	n, err := readShards(q.client.Do(ctx, q.askShards()))
	return n, q.wrap("shards", "", err)
}

// askShards is pinned: see Counts.
func (q *Queue) askShards() rueidis.Completed {
	return q.client.B().Hget().Key(q.MetaKey()).Field(fieldShards).Build().Pin()
}

func readShards(res rueidis.RedisResult) (int, error) {
	n, err := res.AsInt64()
	if rueidis.IsRedisNil(err) {
		return 1, nil
	}
	return int(n), err
}

// SetShards writes the number of shards, if the one that stands is was; it answers the one that stands then.
// Safe to repeat.
func (q *Queue) SetShards(ctx context.Context, was, n int) (int, error) {
	got, err := q.run(ctx, q.prepare("shards", "", "", strconv.Itoa(was), strconv.Itoa(n))).AsInt64()
	return int(got), q.wrap("set shards", "", err)
}
