package scripts

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// MaxClaim is how many jobs one Claim may take.
const MaxClaim = 500

// Claim asks for up to N jobs under a lease.
type Claim struct {
	Lease time.Duration
	N     int
	By    string // drawn anew for each call; the second half of the fence
}

// Claimed is the answer of a claim.
type Claimed struct {
	Now    time.Time     // the server's clock
	Wait   time.Duration // until it is worth claiming again; negative: when woken
	Idle   bool          // nobody pumps the queue; only told when nothing was claimed
	Shards int           // how many the queue has; 0: this shard does not say
	Jobs   []ClaimedJob
}

// ClaimedJob is all that running and settling a job needs.
type ClaimedJob struct {
	Fence
	Kind     string
	Payload  []byte
	Forgiven int64 // claims that do not count as attempts
	Lapses   int64 // leases that ran out
	Max      int   // attempts allowed by the row; 0: the worker's
	Version  int   // of the payload, 1 if the row does not say
	Due      time.Time
	Headers  map[string]string
	Lane     string    // empty: none
	At       time.Time // when it was claimed, by the server's clock
	Tick     time.Time // of the cron entry that enqueued it; zero without one
}

// Claim takes up to c.N jobs. Do not repeat it after a lost answer: those jobs come back when their
// leases end, and no attempt is counted.
func (q *Queue) Claim(ctx context.Context, c Claim) (Claimed, error) {
	args := []string{q.keys.Base(), ms(c.Lease), strconv.Itoa(c.N), c.By}
	reply, err := q.run(ctx, q.prepare("claim", "", "", args...)).ToArray()
	if err != nil {
		return Claimed{}, q.wrap("claim", "", err)
	}
	if len(reply) < 4 {
		return Claimed{}, q.wrap("claim", "", fmt.Errorf("an answer of %d parts", len(reply)))
	}
	now, err1 := reply[0].AsInt64()
	wait, err2 := reply[1].AsInt64()
	idle, err3 := reply[2].AsInt64()
	shards, err4 := reply[3].AsInt64()
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return Claimed{}, q.wrap("claim", "", err)
		}
	}
	claimed := Claimed{
		Now: time.UnixMilli(now), Wait: time.Duration(wait) * time.Millisecond, Idle: idle == 1, Shards: int(shards),
		Jobs: make([]ClaimedJob, 0, len(reply)-4),
	}
	for _, m := range reply[4:] {
		job, err := readJob(m)
		if err != nil {
			return Claimed{}, q.wrap("claim", job.ID, err)
		}
		job.By, job.At = c.By, claimed.Now
		claimed.Jobs = append(claimed.Jobs, job)
	}
	return claimed, nil
}

func readJob(m rueidis.RedisMessage) (ClaimedJob, error) {
	parts, err := m.ToArray()
	if err != nil {
		return ClaimedJob{}, err
	}
	if len(parts) != 12 {
		return ClaimedJob{}, fmt.Errorf("a job of %d parts", len(parts))
	}
	var job ClaimedJob
	job.ID = text(parts[0])
	job.Attempts = number(parts[1])
	job.Kind = text(parts[2])
	job.Payload = []byte(text(parts[3]))
	job.Forgiven = number(parts[4])
	job.Lapses = number(parts[5])
	job.Max = int(number(parts[6]))
	job.Version = max(int(number(parts[7])), 1)
	if due := number(parts[8]); due > 0 {
		job.Due = time.UnixMilli(due)
	}
	if headers := text(parts[9]); headers != "" {
		// headers that another producer spoilt are no reason not to run the job
		_ = json.Unmarshal([]byte(headers), &job.Headers)
	}
	job.Lane = text(parts[10])
	if tick := number(parts[11]); tick > 0 {
		job.Tick = time.UnixMilli(tick)
	}
	return job, nil
}

// text and number read optional fields of a row, which anybody may have written: what is missing or
// malformed is empty or 0.
func text(m rueidis.RedisMessage) string {
	s, err := m.ToString()
	if err != nil {
		return ""
	}
	return s
}

func number(m rueidis.RedisMessage) int64 {
	n, err := m.AsInt64()
	if err != nil {
		return 0
	}
	return n
}
