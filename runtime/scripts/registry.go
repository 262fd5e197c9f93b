package scripts

import (
	"context"
)

// Registry reads the kinds that are known on the queue, and what was written of each. Safe to repeat.
func (q *Queue) Registry(ctx context.Context) (map[string]string, error) {
	entries, err := q.client.Do(ctx, q.client.B().Hgetall().Key(q.keys.Fixed("kinds")).Build()).AsStrMap()
	return entries, q.wrap("registry", "", err)
}

// Register enters kinds, and overwrites what was written of them before. Safe to repeat.
func (q *Queue) Register(ctx context.Context, entries map[string]string) error {
	if len(entries) == 0 {
		return nil
	}
	cmd := q.client.B().Hset().Key(q.keys.Fixed("kinds")).FieldValue()
	for kind, entry := range entries {
		cmd = cmd.FieldValue(kind, entry)
	}
	return q.wrap("register", "", q.client.Do(ctx, cmd.Build()).Error())
}
