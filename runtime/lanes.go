package emq

import (
	"context"
	"fmt"
	"strings"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// Lane is how one lane of a queue stands.
type Lane struct {
	Name            string
	Waiting, Active int64
	Weight          int  // its share beside the other lanes; 1 unless set
	Limit           int  // how many of its jobs run at once; 0: no limit of its own
	Paused          bool // its jobs wait until it is resumed
}

// LanePage is a part of a queue's lanes.
type LanePage struct {
	Lanes []Lane
	Next  string // the cursor of the next page; empty at the end
}

const (
	// MaxLaneWeight is the largest weight of a lane.
	MaxLaneWeight = 1000
	maxLanePage   = 500
	laneList      = "lanes"
)

// Lanes lists the lanes in which jobs wait or which have a weight, a limit or a pause of their own, in no
// order, about n in a page (1 to 500; a page may have none and not be the last). The first cursor is empty; one of
// another queue, or that was changed, is ErrInvalid. A lane that changes meanwhile may come twice or not at all. Safe
// to repeat.
func (q *Queue) Lanes(ctx context.Context, cursor string, n int) (LanePage, error) {
	if err := q.usable(); err != nil {
		return LanePage{}, err
	}
	if n < 1 || n > maxLanePage {
		return LanePage{}, fmt.Errorf("%w: a page of %d lanes: 1 to %d", ErrInvalid, n, maxLanePage)
	}
	var page LanePage
	next, err := q.page(ctx, laneList, cursor, func(part *Queue, shards int, place string) (string, error) {
		at := scripts.LanesBegin
		if place != "" {
			stage, scan, _ := strings.Cut(place, "/")
			if !validLaneCursor(stage, scan) {
				return "", q.noCursor(laneList, cursor)
			}
			at = scripts.LanesAt{Stage: stage, Cursor: scan}
		}
		lanes, next, err := part.q.Lanes(ctx, at, n)
		if err != nil {
			return "", err
		}
		page.Lanes = make([]Lane, 0, len(lanes))
		for _, l := range lanes {
			// what is left of its controls where it was with another number of shards is no lane
			if l.Waiting+l.Active > 0 || wire.Tag(q.name, wire.Shard(l.Name, shards)) == part.q.Tag() {
				page.Lanes = append(page.Lanes, Lane(l))
			}
		}
		if next.Stage == "" {
			return "", nil
		}
		return next.Stage + "/" + next.Cursor, nil
	})
	page.Next = next
	return page, err
}

func validLaneCursor(stage, cursor string) bool {
	switch stage {
	case "ring", "paused", "glimit", "gweight":
		return isScanCursor(cursor)
	}
	return false
}

// Lane answers how one lane stands. A lane that was never used is empty, without a limit and of weight 1.
// Safe to repeat.
func (q *Queue) Lane(ctx context.Context, name string) (Lane, error) {
	if err := q.checkLane(name); err != nil {
		return Lane{}, err
	}
	parts, err := q.parts(ctx)
	if err != nil {
		return Lane{}, err
	}
	var lane Lane
	waiting, active := int64(0), int64(0)
	for i, part := range parts {
		l, err := part.q.Lane(ctx, name)
		if err != nil {
			return Lane{}, err
		}
		if i == wire.Shard(name, len(parts)) {
			lane = Lane(l)
		}
		waiting, active = waiting+l.Waiting, active+l.Active
	}
	lane.Waiting, lane.Active = waiting, active
	return lane, nil
}

// tune changes how a lane is served: in its shard, and where jobs of it are left from a time with fewer shards. The
// empty lane is in each.
func (q *Queue) tune(ctx context.Context, name, verb string, value int) error {
	parts, err := q.askedParts(ctx)
	if err != nil {
		return err
	}
	for i, part := range parts {
		if name != "" && i != wire.Shard(name, len(parts)) {
			l, err := part.q.Lane(ctx, name)
			if err != nil {
				return err
			}
			if l.Waiting+l.Active == 0 && !l.Paused && l.Limit == 0 && l.Weight == 1 {
				continue
			}
		}
		if err := part.q.Tune(ctx, name, verb, value); err != nil {
			return err
		}
	}
	return nil
}

// spreadLanes gives the controls of this shard's lanes to the shards in which the lanes are now.
func (q *Queue) spreadLanes(ctx context.Context, parts []*Queue) error {
	for at := scripts.LanesBegin; at.Stage != ""; {
		lanes, next, err := q.q.Lanes(ctx, at, maxLanePage)
		if err != nil {
			return err
		}
		for _, l := range lanes {
			to := parts[wire.Shard(l.Name, len(parts))].q
			if to.Tag() == q.q.Tag() {
				continue
			}
			if l.Paused {
				err = to.Tune(ctx, l.Name, "pause", 0)
			}
			if err == nil && l.Limit > 0 {
				err = to.Tune(ctx, l.Name, "limit", l.Limit)
			}
			if err == nil && l.Weight > 1 {
				err = to.Tune(ctx, l.Name, "weight", l.Weight)
			}
			if err != nil {
				return err
			}
		}
		at = next
	}
	return nil
}

// PauseLane keeps the waiting jobs of a lane from being claimed, and those that come; what runs goes on.
// Safe to repeat.
func (q *Queue) PauseLane(ctx context.Context, name string) error {
	if err := q.checkLane(name); err != nil {
		return err
	}
	return q.tune(ctx, name, "pause", 0)
}

// ResumeLane ends a pause. Safe to repeat.
func (q *Queue) ResumeLane(ctx context.Context, name string) error {
	if err := q.checkLane(name); err != nil {
		return err
	}
	return q.tune(ctx, name, "resume", 0)
}

// SetLaneLimit sets how many jobs of a lane run at once, in all processes together. A limit outside 1
// to MaxLimit is ErrInvalid: ClearLaneLimit takes a limit away, PauseLane lets nothing run. What runs above a lower
// limit goes on. Safe to repeat.
func (q *Queue) SetLaneLimit(ctx context.Context, name string, limit int) error {
	if err := q.checkLane(name); err != nil {
		return err
	}
	if limit < 1 || limit > MaxLimit {
		return q.refuse("a limit of %d for lane %s: 1 to 1000000000; ClearLaneLimit takes it away, PauseLane lets nothing run", limit, wire.Quote(name))
	}
	return q.tune(ctx, name, "limit", limit)
}

// ClearLaneLimit takes a lane's limit away. Safe to repeat.
func (q *Queue) ClearLaneLimit(ctx context.Context, name string) error {
	if err := q.checkLane(name); err != nil {
		return err
	}
	return q.tune(ctx, name, "limit", 0)
}

// SetLaneWeight sets the share of a lane: while both have jobs, a lane of weight 3 is served three times as
// often as one of weight 1, the default. The empty name sets the weight of the jobs without a lane. A
// weight outside 1 to MaxLaneWeight is ErrInvalid. Safe to repeat.
func (q *Queue) SetLaneWeight(ctx context.Context, name string, weight int) error {
	if err := q.usable(); err != nil {
		return err
	}
	if name != "" {
		if err := q.checkLane(name); err != nil {
			return err
		}
	}
	if weight < 1 || weight > MaxLaneWeight {
		return q.refuse("a weight of %d for lane %s: it must be from 1 to %d; 1 is the default, PauseLane lets nothing run", weight, wire.Quote(name), MaxLaneWeight)
	}
	return q.tune(ctx, name, "weight", weight)
}

func (q *Queue) checkLane(name string) error {
	if err := q.usable(); err != nil {
		return err
	}
	if err := wire.CheckLane(name); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return nil
}
