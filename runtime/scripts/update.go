package scripts

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// Update is another payload for a job.
type Update struct {
	ID      string
	Payload []byte
	Version int
	Unique  string  // its unique key; empty: none
	Lane    *string // its lane; nil: whichever the job has
	Kinds   []string
}

// Update writes another payload into a job that does not run. It answers "updated", or what differs
// ("kind", "unique", "lane") and the job's own. ErrGone, ErrLocked (it runs), ErrState (it has completed).
// Safe to repeat.
func (q *Queue) Update(ctx context.Context, u Update) (word, own string, err error) {
	lane := "any"
	if u.Lane != nil {
		lane = "=" + *u.Lane
	}
	args := append([]string{u.ID, rueidis.BinaryString(u.Payload), strconv.Itoa(u.Version), u.Unique, lane}, u.Kinds...)
	words, err := q.run(ctx, q.prepare("update", u.ID, "", args...)).AsStrSlice()
	switch {
	case err != nil:
		return "", "", q.wrap("update payload", u.ID, err)
	case len(words) == 1:
		return words[0], "", nil
	case len(words) == 2:
		return words[0], words[1], nil
	}
	return "", "", q.wrap("update payload", u.ID, fmt.Errorf("unexpected answer %q", words))
}
