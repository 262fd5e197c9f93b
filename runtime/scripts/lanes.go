package scripts

import (
	"context"
	"fmt"
	"strconv"
)

// Tune changes how a lane is served: "pause", "resume", "limit" (0: none) or "weight" (1 is the weight of
// a lane that has none of its own). Safe to repeat.
func (q *Queue) Tune(ctx context.Context, lane, verb string, value int) error {
	text := ""
	if value > 0 {
		text = strconv.Itoa(value)
	}
	what := verb + " lane"
	switch {
	case verb == "limit" && value == 0:
		what = "clear lane limit"
	case verb == "limit", verb == "weight":
		what = "set lane " + verb
	}
	return q.wrap(what, "", q.run(ctx, q.prepare("tune", "", "", q.keys.Base(), lane, verb, text)).Error())
}

// Lane is how one lane stands.
type Lane struct {
	Name            string
	Waiting, Active int64
	Weight, Limit   int // Limit 0: none
	Paused          bool
}

// LanesAt is a place in the browse of a queue's lanes; an empty Stage is its end.
type LanesAt struct{ Stage, Cursor string }

// LanesBegin is where a browse begins.
var LanesBegin = LanesAt{"ring", "0"}

// laneStage is the stage that answers the lane that its cursor names.
const laneStage = "one"

// Lanes gives about n lanes, those in which jobs wait or that have a control of their own, and where to
// go on. Safe to repeat.
func (q *Queue) Lanes(ctx context.Context, at LanesAt, n int) ([]Lane, LanesAt, error) {
	c := q.prepare("lanes", "", "", q.keys.Base(), at.Stage, at.Cursor, strconv.Itoa(n))
	reply, err := q.run(ctx, c).ToArray()
	if err == nil && len(reply)%6 != 2 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		what := "lanes"
		if at.Stage == laneStage {
			what = "lane"
		}
		return nil, LanesAt{}, q.wrap(what, "", err)
	}
	next := LanesAt{text(reply[0]), text(reply[1])}
	lanes := make([]Lane, 0, len(reply)/6)
	for r := reply[2:]; len(r) > 0; r = r[6:] {
		lanes = append(lanes, Lane{
			Name: text(r[0]), Waiting: number(r[1]), Active: number(r[2]),
			Weight: int(number(r[3])), Limit: int(number(r[4])), Paused: number(r[5]) == 1,
		})
	}
	return lanes, next, nil
}

// Lane gives one lane by its name, known or not. Safe to repeat.
func (q *Queue) Lane(ctx context.Context, name string) (Lane, error) {
	lanes, _, err := q.Lanes(ctx, LanesAt{laneStage, name}, 1)
	if err != nil {
		return Lane{}, err
	}
	if len(lanes) != 1 {
		return Lane{}, q.wrap("lane", "", fmt.Errorf("%d lanes for one name", len(lanes)))
	}
	return lanes[0], nil
}
