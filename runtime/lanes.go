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
	at := scripts.LanesBegin
	if cursor != "" {
		place, err := q.place(laneList, cursor)
		if err != nil {
			return LanePage{}, err
		}
		stage, scan, _ := strings.Cut(place, "/")
		if !validLaneCursor(stage, scan) {
			return LanePage{}, q.noCursor(laneList, cursor)
		}
		at = scripts.LanesAt{Stage: stage, Cursor: scan}
	}
	lanes, next, err := q.q.Lanes(ctx, at, n)
	if err != nil {
		return LanePage{}, err
	}
	page := LanePage{Lanes: make([]Lane, len(lanes))}
	for i, l := range lanes {
		page.Lanes[i] = Lane(l)
	}
	if next.Stage != "" {
		page.Next = q.cursor(laneList, next.Stage+"/"+next.Cursor)
	}
	return page, nil
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
	l, err := q.q.Lane(ctx, name)
	return Lane(l), err
}

// PauseLane keeps the waiting jobs of a lane from being claimed, and those that come; what runs goes on.
// Safe to repeat.
func (q *Queue) PauseLane(ctx context.Context, name string) error {
	if err := q.checkLane(name); err != nil {
		return err
	}
	return q.q.Tune(ctx, name, "pause", 0)
}

// ResumeLane ends a pause. Safe to repeat.
func (q *Queue) ResumeLane(ctx context.Context, name string) error {
	if err := q.checkLane(name); err != nil {
		return err
	}
	return q.q.Tune(ctx, name, "resume", 0)
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
	return q.q.Tune(ctx, name, "limit", limit)
}

// ClearLaneLimit takes a lane's limit away. Safe to repeat.
func (q *Queue) ClearLaneLimit(ctx context.Context, name string) error {
	if err := q.checkLane(name); err != nil {
		return err
	}
	return q.q.Tune(ctx, name, "limit", 0)
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
	return q.q.Tune(ctx, name, "weight", weight)
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
