package scripts

import (
	"context"

	"github.com/redis/rueidis"
)

// Reprocess gives a dead letter a new life: no attempt and no lapse counts. ErrGone, ErrState (not
// dead), ErrLocked (its unique key has another holder). Safe to repeat: the second call is ErrState.
func (q *Queue) Reprocess(ctx context.Context, id string) error {
	n, err := q.run(ctx, q.prepare("reprocess", id, "", id, q.keys.Base())).AsInt64()
	if err != nil {
		return q.wrap("reprocess", id, err)
	}
	if n < 0 {
		return &Refusal{ErrGone, q.name, id, "no job " + id}
	}
	return nil
}

// Cancel deletes a job that waits and marks one that runs; it answers "cancelled" or "cancelling".
// ErrGone, ErrState (ended already). Safe to repeat.
func (q *Queue) Cancel(ctx context.Context, id string) (string, error) {
	word, err := q.run(ctx, q.prepare("cancel", id, "", id, q.keys.Base())).ToString()
	return word, q.wrap("cancel", id, err)
}

// Counts is how many jobs are in each state, and the queue's totals by name.
type Counts struct {
	Pending, Active, Scheduled, Dead, Completed int64
	InLanes                                     int64 // those of Pending that wait in lanes
	Totals                                      map[string]int64
}

// Counts asks the server in one pipeline of commands that take constant time. The numbers are read one
// after the other. Safe to repeat.
func (q *Queue) Counts(ctx context.Context) (Counts, error) {
	c := Counts{Totals: make(map[string]int64)}
	sets := []struct {
		key string
		n   *int64
	}{{"pending", &c.Pending}, {"active", &c.Active}, {"schedule", &c.Scheduled}, {"dead", &c.Dead}, {"completed", &c.Completed}}
	b := q.client.B
	// Pinned: the client library sends reads again when a connection breaks, and would recycle a command
	// that the broken connection's writer may still hold.
	var cmds []rueidis.Completed
	for _, s := range sets {
		cmds = append(cmds, b().Zcard().Key(q.keys.Fixed(s.key)).Build().Pin())
	}
	for _, t := range totals() {
		cmds = append(cmds, b().Hget().Key(q.keys.Fixed("metrics:"+t)).Field("count").Build().Pin())
	}
	cmds = append(cmds, b().Hget().Key(q.keys.Fixed("meta")).Field("laned").Build())
	for i, res := range q.client.DoMulti(ctx, cmds...) {
		n, err := res.AsInt64()
		if err != nil && !rueidis.IsRedisNil(err) {
			return Counts{}, q.wrap("counts", "", err)
		}
		switch {
		case i < len(sets):
			*sets[i].n = n
		case i == len(cmds)-1:
			c.InLanes = max(n, 0)
			c.Pending += c.InLanes
		default:
			c.Totals[totals()[i-len(sets)]] = n
		}
	}
	return c, nil
}
