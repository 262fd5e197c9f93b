package emq

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/echomq/emq/runtime/scripts"
)

const (
	// chunk is how many jobs go into one pipeline.
	chunk = 512
	// resends is how often an enqueue whose answer was lost is sent again: over the second or two in which
	// a client learns that another node is the master now.
	resends = 6
)

// Enqueue sends jobs, of any kinds and queues, and answers one receipt each, in their order. Invalid
// jobs are refused before any I/O, by a *BatchError, and nothing is sent.
//
// Every job has its own verdict: with an error, the receipts say which jobs are in the queue. A call
// whose answer was lost is sent again and recognised by the server, so a job is enqueued once, unless
// it has already ended by then: an enqueue with an unknown outcome is at-least-once. Give jobs ids
// (WithID) or a unique field to repeat a call safely. Give ctx a deadline: at a server that does not answer a
// call without one takes up to about 50 s, and one whose ctx is cancelled up to 2 s. If no connection could be made, the receipts are Refused. ErrFull,
// ErrTooLarge, ErrInvalid.
func (c *Client) Enqueue(ctx context.Context, jobs ...Job) ([]Receipt, error) {
	return c.enqueuer.Enqueue(ctx, jobs...)
}

// door is the client's Enqueue beneath its middleware.
type door struct{ c *Client }

func (d door) Enqueue(ctx context.Context, jobs ...Job) ([]Receipt, error) {
	receipts := make([]Receipt, len(jobs))
	for i, job := range jobs {
		receipts[i].Ref = Ref{job.queue, job.id}
	}
	if err := checkBatch(jobs, d.c.maxPayload); err != nil {
		refuseAll(receipts)
		return receipts, err
	}
	if d.c.ended.Load() {
		refuseAll(receipts)
		return receipts, fmt.Errorf("emq: enqueue: nothing was sent: %w", ErrClosed)
	}
	if ctx.Err() != nil {
		refuseAll(receipts)
		return receipts, fmt.Errorf("emq: enqueue: nothing was sent: %w", context.Cause(ctx))
	}
	d.c.announce(ctx, jobs)
	src := newMark()
	var errs []error
	for start := 0; start < len(jobs); start += chunk {
		end := min(start+chunk, len(jobs))
		errs = append(errs, d.c.send(ctx, src, jobs[start:end], receipts[start:end])...)
	}
	return receipts, joinSome(errs)
}

func refuseAll(receipts []Receipt) {
	for i := range receipts {
		receipts[i].Status = Refused
	}
}

// Check finds what a client refuses before any I/O, with the default limit of a payload; it is for other
// Enqueuers, which promise the same. The error is a *BatchError.
func Check(jobs ...Job) error { return checkBatch(jobs, defaultMaxPayload) }

func checkBatch(jobs []Job, maxPayload int) error {
	var bad map[int]error
	var given map[Ref]int // ids that the caller chose
	for i := range jobs {
		job := &jobs[i]
		err := checkJob(job, maxPayload)
		if err == nil && job.id != "" && len(jobs) > 1 {
			ref := Ref{job.queue, job.id}
			if first, twice := given[ref]; twice {
				err = fmt.Errorf("%w: WithID: job %d of the batch has the same id %s", ErrInvalid, first, job.id)
			}
			if given == nil {
				given = make(map[Ref]int)
			}
			given[ref] = i
		}
		if err != nil {
			if bad == nil {
				bad = make(map[int]error)
			}
			bad[i] = err
		}
	}
	if len(bad) > 0 {
		return &BatchError{bad}
	}
	return nil
}

func checkJob(job *Job, maxPayload int) error {
	if err := job.Err(); err != nil {
		return err
	}
	if err := checkHome(job, job.shards); err != nil {
		return err
	}
	size := len(job.payload)
	for k, v := range job.headers {
		size += len(k) + len(v)
	}
	if size > maxPayload {
		return fmt.Errorf("%w: queue %s, kind %s: %d bytes with the headers, at most %d: store the data elsewhere and enqueue its name, or raise WithMaxPayload",
			ErrTooLarge, job.queue, job.kind, size, maxPayload)
	}
	return nil
}

// send admits one chunk: it mints again for colliding ids, and sends again what got no answer.
func (c *Client) send(ctx context.Context, src string, jobs []Job, receipts []Receipt) []error {
	open := make([]int, len(jobs)) // indexes of jobs without a verdict
	for i := range open {
		open[i] = i
	}
	sent := make([]bool, len(jobs))          // those that a server may have
	homes := make([]*clientQueue, len(jobs)) // a job that is sent again goes to the shard that may have it
	var errs []error
	for try := 0; len(open) > 0; try++ {
		var again, ready []int
		var lost error
		var away map[string]bool // queues of which the server did not say how many shards there are: asked once a try
		admits := make([]admit, 0, len(open))
		for _, i := range open {
			if away[jobs[i].queue] && homes[i] == nil {
				again = append(again, i)
				continue
			}
			unknown, err := c.settleHome(ctx, &jobs[i], &homes[i], &receipts[i])
			switch {
			case unknown:
				again, lost = append(again, i), err
				if away == nil {
					away = make(map[string]bool)
				}
				away[jobs[i].queue] = true
				continue
			case err != nil:
				receipts[i].Status = Refused
				errs = append(errs, err)
				continue
			}
			job, err := c.admission(src, jobs[i], receipts[i].ID)
			if err != nil {
				return append(errs, err)
			}
			ready = append(ready, i)
			admits = append(admits, admit{homes[i], job})
		}
		for n, a := range c.admit(ctx, admits) {
			i := ready[n]
			repeat, err := c.verdict(src, jobs[i], a, &receipts[i])
			switch {
			case repeat && err == nil: // an id that another client minted too
				again, homes[i] = append(again, i), nil
			case repeat:
				again, lost = append(again, i), err
				sent[i] = sent[i] || !undialled(err)
			case err != nil:
				errs = append(errs, err)
			}
		}
		open = again
		if lost != nil && (try >= resends || !pause(ctx, try)) {
			return append(errs, givenUp(open, sent, receipts, lost))
		}
	}
	return errs
}

// givenUp is the error of jobs that have no verdict. Those that no connection was ever there for are Refused.
func givenUp(open []int, sent []bool, receipts []Receipt, lost error) error {
	unknown := 0
	for _, i := range open {
		if sent[i] {
			unknown++
		} else {
			receipts[i].Status = Refused
		}
	}
	if unknown == 0 {
		return fmt.Errorf("emq: nothing of %d job(s) was sent, as no connection could be made: %w", len(open), lost)
	}
	return fmt.Errorf("emq: the fate of %d job(s) is not known, as the server did not answer: %w", unknown, lost)
}

// undialled tells an error that came before there was a connection, so that nothing was sent.
func undialled(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// settleHome gives a job its shard and its id, if it has none yet. With unknown the server could not be asked how
// many shards there are.
func (c *Client) settleHome(ctx context.Context, job *Job, to **clientQueue, receipt *Receipt) (unknown bool, err error) {
	if *to != nil {
		return false, nil
	}
	shards, err := c.shards(ctx, job.queue, job.shards)
	if err != nil {
		word, _ := scripts.Word(err) // the library's own test does not look into an error that was wrapped
		return (word == "" || scripts.IsPassing(err)) && !errors.Is(err, ErrState), err
	}
	*to, err = c.place(job, shards, receipt)
	return false, err
}

// admit is a job and its shard.
type admit struct {
	*clientQueue
	job scripts.NewJob
}

func (c *Client) admit(ctx context.Context, admits []admit) []scripts.Admitted {
	switch len(admits) {
	case 0:
		return nil
	case 1:
	default:
		all := make([]scripts.Admit, len(admits))
		for i, a := range admits {
			all[i] = scripts.Admit{Queue: a.Queue, NewJob: a.job}
		}
		return c.server.EnqueueAll(ctx, all)
	}
	job, q := &admits[0].job, admits[0].clientQueue
	if job.Plain() {
		a, err := q.do(ctx, job)
		if err != nil {
			a.Err = err
		}
		return []scripts.Admitted{a}
	}
	a, err := q.Enqueue(ctx, *job)
	return []scripts.Admitted{{Admission: a, Err: err}}
}

// admission writes a job as the scripts take it.
func (c *Client) admission(src string, job Job, id ID) (scripts.NewJob, error) {
	fields := []string{"kind", job.kind}
	if job.version > 1 {
		fields = append(fields, "v", fmt.Sprint(job.version))
	}
	if len(job.headers) > 0 {
		headers, err := json.Marshal(job.headers)
		if err != nil {
			return scripts.NewJob{}, fmt.Errorf("%w: headers: %w", ErrInvalid, err)
		}
		fields = append(fields, "headers", string(headers))
	}
	return scripts.NewJob{
		ID: string(id), Payload: job.payload, Src: src, Fields: fields, Lane: job.lane,
		Unique: job.unique, Window: job.mode.window, UntilStart: job.mode.start, Debounce: job.mode.debounced && job.unique != "",
		Later: job.in > 0 || !job.at.IsZero(), Delay: job.in, At: job.at,
	}, nil
}

// verdict reads the answer for one job. With repeat the job must be sent again; the error then says why
// its fate is unknown, and is nil for a collision of ids.
func (c *Client) verdict(src string, job Job, a scripts.Admitted, receipt *Receipt) (repeat bool, err error) {
	if a.Err != nil {
		word, _ := scripts.Word(a.Err)
		switch {
		case scripts.IsRefusal(a.Err), scripts.IsPassing(a.Err), scripts.IsUntouched(a.Err):
			receipt.Status = Refused
			return false, a.Err
		case word == "OOM":
			receipt.Status = Refused
			return false, fmt.Errorf("%w: the server is at its maxmemory: %w", ErrFull, a.Err)
		case word != "": // an answer
			return false, a.Err
		}
		return true, a.Err
	}
	switch {
	case a.Status == "enqueued" || a.Src == src && a.Status == "duplicate":
		receipt.Status = Enqueued
	case a.Status == "conflict":
		receipt.Status, receipt.Holder = Conflict, ID(a.Holder)
	case a.Status == "replaced":
		receipt.Status, receipt.Holder = Replaced, ID(a.Holder)
	case job.id != "":
		receipt.Status = Duplicate
	default:
		receipt.ID = ""
		return true, nil
	}
	return false, nil
}

// pause waits before a resend; false when ctx ends first.
func pause(ctx context.Context, try int) bool {
	t := time.NewTimer(jitter(50 * time.Millisecond << try))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// joinSome joins the first errors of a batch and counts the rest.
func joinSome(errs []error) error {
	const most = 3
	switch {
	case len(errs) == 0:
		return nil
	case len(errs) == 1:
		return errs[0]
	case len(errs) <= most:
		return errors.Join(errs...)
	}
	return fmt.Errorf("%w\n… and %d more", errors.Join(errs[:most]...), len(errs)-most)
}

// newMark draws 8 random base62 characters: the mark of one enqueue call, or of one claim.
func newMark() string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	mark := make([]byte, 0, 8)
	var b [16]byte
	for len(mark) < cap(mark) {
		_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
		for _, x := range b {
			if x < 248 && len(mark) < cap(mark) { // 248 = 4 * 62: no digit is likelier than another
				mark = append(mark, digits[x%62])
			}
		}
	}
	return string(mark)
}
