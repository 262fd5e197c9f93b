package scripts

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// State tells the state of one job: that of its row, "absent" or "unknown". Safe to repeat.
func (q *Queue) State(ctx context.Context, id string) (string, error) {
	word, err := q.run(ctx, q.prepare("state", id, "", q.keys.Base(), id)).ToString()
	return word, q.wrap("state", id, err)
}

// Detail is everything that is known of a job.
type Detail struct {
	State string
	Score time.Time // in its list: when its lease, its wait or its retention ends; else zero
	Entry string    // what the registry says of its kind
	Row   map[string]string
}

// Detail reads a job. ErrGone. Safe to repeat.
func (q *Queue) Detail(ctx context.Context, id string) (Detail, error) {
	reply, err := q.run(ctx, q.prepare("detail", id, "", q.keys.Base(), id)).ToArray()
	if err == nil && len(reply) != 4 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return Detail{}, q.wrap("job", id, err)
	}
	row, err := reply[3].AsStrMap()
	if err != nil {
		return Detail{}, q.wrap("job", id, err)
	}
	return Detail{text(reply[0]), Instant(text(reply[1])), text(reply[2]), row}, nil
}

// Place is where a page goes on: behind a score and an id.
type Place struct{ Score, ID string }

// Listed is a job as a page shows it.
type Listed struct {
	Place
	At                         time.Time // the score as a time; zero for a score of 0
	State                      string    // of the row; empty without one
	Kind, Lane                 string
	Attempts, Forgiven, Lapses int64
	Cancelled                  bool
	LastError                  string // its beginning
}

// MaxPage is the most that a page takes.
const MaxPage = 500

// Browse reads up to n jobs of a state, or of the waiting ones of a lane, behind a place if there is one.
// It answers whether there are more. Safe to repeat.
func (q *Queue) Browse(ctx context.Context, state, lane string, up bool, n int, after *Place) ([]Listed, bool, error) {
	way := "down"
	if up {
		way = "up"
	}
	args := []string{q.keys.Base(), state, lane, way, strconv.Itoa(n)}
	if after != nil {
		args = append(args, after.Score, after.ID)
	}
	reply, err := q.run(ctx, q.prepare("browse", "", "", args...)).ToArray()
	const parts = 10
	if err == nil && len(reply)%parts != 1 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return nil, false, q.wrap("browse", "", err)
	}
	jobs := make([]Listed, 0, len(reply)/parts)
	for r := reply[1:]; len(r) > 0; r = r[parts:] {
		jobs = append(jobs, Listed{
			Place: Place{Score: text(r[1]), ID: text(r[0])}, At: Instant(text(r[1])), State: text(r[2]), Kind: text(r[3]), Lane: text(r[4]),
			Attempts: number(r[5]), Forgiven: number(r[6]), Lapses: number(r[7]), Cancelled: text(r[8]) != "", LastError: text(r[9]),
		})
	}
	return jobs, number(reply[0]) == 1, nil
}

// Waiting is a job that is next in line.
type Waiting struct {
	ID  string
	Due time.Time // zero if it was never scheduled
}

// Next reads the jobs that are next in line, of the flat list and of the lanes, and the server's clock.
// Safe to repeat.
func (q *Queue) Next(ctx context.Context) (now time.Time, jobs []Waiting, err error) {
	reply, err := q.run(ctx, q.prepare("latency", "", "", q.keys.Base())).ToArray()
	if err == nil && len(reply)%2 != 1 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return time.Time{}, nil, q.wrap("latency", "", err)
	}
	for r := reply[1:]; len(r) > 0; r = r[2:] {
		jobs = append(jobs, Waiting{text(r[0]), Instant(text(r[1]))})
	}
	return time.UnixMilli(number(reply[0])), jobs, nil
}

// Instant reads a time of the server's clock, which a server may print as a float; what is missing or
// malformed is the zero time.
func Instant(s string) time.Time {
	ms, err := strconv.ParseFloat(s, 64)
	if err != nil || !(ms > 0 && ms < 1<<53) {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms))
}
