package scripts

import (
	"context"
)

// Registry reads the kinds that are known on the queue, and what was written of each; and of the first shard
// how many there are, in the same round trip. Safe to repeat.
func (q *Queue) Registry(ctx context.Context) (map[string]string, int, error) {
	answers := q.client.DoMulti(ctx, q.client.B().Hgetall().Key(q.keys.Fixed("kinds")).Build().Pin(), q.askShards())
	entries, err := answers[0].AsStrMap()
	if err != nil {
		return nil, 0, q.wrap("registry", "", err)
	}
	shards, err := readShards(answers[1])
	return entries, shards, q.wrap("registry", "", err)
}

// Register enters kinds, at least one, and overwrites what was written of them before; it answers how many
// shards there are, as Registry does. Safe to repeat.
func (q *Queue) Register(ctx context.Context, entries map[string]string) (shards int, err error) {
	cmd := q.client.B().Hset().Key(q.keys.Fixed("kinds")).FieldValue()
	for kind, entry := range entries {
		cmd = cmd.FieldValue(kind, entry)
	}
	answers := q.client.DoMulti(ctx, cmd.Build(), q.askShards())
	shards, err = readShards(answers[1])
	if refused := answers[0].Error(); refused != nil {
		err = refused
	}
	return shards, q.wrap("register", "", err)
}
