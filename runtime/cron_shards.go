package emq

import (
	"context"
	"errors"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// cronShard is the shard of a cron entry: that of its jobs, if they have a lane or a unique key.
func cronShard(name, lane, unique string, shards int) int {
	if at := home(lane, unique, shards); at >= 0 {
		return at
	}
	return wire.Shard(name, shards)
}

// misplaced are the names of those of this shard's cron entries that belong in another one of to.
func (q *Queue) misplaced(ctx context.Context, to []*Queue, which func(scripts.CronEntry) bool) (names []string, err error) {
	for cursor, more := "0", true; more; {
		entries, next, err := q.q.Crons(ctx, cursor, maxCronPage)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if which(e) && cronHome(e, to).Tag() != q.q.Tag() {
				names = append(names, e.Name)
			}
		}
		cursor, more = next, next != "0"
	}
	return names, nil
}

// cronHome is the shard of an entry among others.
func cronHome(e scripts.CronEntry, parts []*Queue) *scripts.Queue {
	return parts[cronShard(e.Name, e.Lane, e.Unique, len(parts))].q
}

// spreadPauses puts this shard's paused entries also where they will be: who puts them there later knows nothing of
// the pause. They tick in neither.
func (q *Queue) spreadPauses(ctx context.Context, to []*Queue) error {
	names, err := q.misplaced(ctx, to, func(e scripts.CronEntry) bool { return e.Paused })
	for i := 0; err == nil && i < len(names); i++ {
		_, err = q.copyCron(ctx, names[i], to)
	}
	return err
}

// moveCrons takes the entries that were added at run time to the shards in which their jobs are. The workers do it
// with those that they declare.
func moveCrons(ctx context.Context, parts []*Queue) error {
	for _, part := range parts {
		names, err := part.misplaced(ctx, parts, func(e scripts.CronEntry) bool { return e.Refreshed == 0 })
		for i := 0; err == nil && i < len(names); i++ {
			var there bool
			if there, err = part.copyCron(ctx, names[i], parts); there {
				err = part.dropCron(ctx, names[i])
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dropCron removes an entry from this shard, if it is there.
func (q *Queue) dropCron(ctx context.Context, name string) error {
	_, err := q.q.CronTune(ctx, name, "remove", "", 0)
	if errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// copyCron puts an entry of this shard, with its next tick or its pause, also into its shard among others; false if
// the name is taken there, or the entry is gone.
func (q *Queue) copyCron(ctx context.Context, name string, parts []*Queue) (there bool, err error) {
	e, _, err := q.q.Cron(ctx, name)
	if errors.Is(err, ErrGone) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if e.Paused {
		e.Next = scripts.Never // none may come before the pause is there; a resume finds the next one
	}
	to, declared := cronHome(e, parts), e.Refreshed > 0
	seen, err := to.CronRefresh(ctx, name, declared, e.CronDef)
	if errors.Is(err, ErrLocked) {
		return false, nil
	}
	if err == nil && seen.Rev == "" {
		_, err = to.CronPut(ctx, name, "", newMark(), e.Next, declared, e.CronDef)
	}
	if err == nil && e.Paused {
		_, err = to.CronTune(ctx, name, "pause", "", 0)
	}
	return err == nil, err
}
