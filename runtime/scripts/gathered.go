package scripts

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

const (
	// MaxGathered is how many jobs one gathered call carries: more gains little and makes the others wait.
	MaxGathered = 64
	// MaxGatheredBytes is how much of their payloads.
	MaxGatheredBytes = 128 << 10
)

// Plain tells whether a job can be enqueued in a gathered call.
func (j *NewJob) Plain() bool { return j.Lane == "" && j.Unique == "" && !j.Later }

// Bytes is about what a job adds to a call.
func (j *NewJob) Bytes() int {
	n := len(j.Payload) + 64
	for _, f := range j.Fields {
		n += len(f)
	}
	return n
}

// gathered makes one call for plain jobs of this queue, at most MaxGathered.
func (q *Queue) gathered(jobs []*NewJob) call {
	args := make([]string, 1, 1+8*len(jobs))
	args[0] = q.keys.Base()
	for _, j := range jobs {
		args = append(args, j.ID, rueidis.BinaryString(j.Payload), j.Src, strconv.Itoa(len(j.Fields)))
		args = append(args, j.Fields...)
	}
	return q.prepare("enqueue_all", "", "", args...)
}

// EnqueueGathered admits plain jobs of this queue in one call; one verdict each, in order. Safe to repeat
// with the same Src.
func (q *Queue) EnqueueGathered(ctx context.Context, jobs []*NewJob) []Admitted {
	return q.readGathered(ctx, jobs, q.runDirect(ctx, q.gathered(jobs)))
}

// readGathered reads the verdicts; a job that was out of reach is sent alone.
func (q *Queue) readGathered(ctx context.Context, jobs []*NewJob, res rueidis.RedisResult) []Admitted {
	answers := make([]Admitted, len(jobs))
	parts, err := res.ToArray()
	if err == nil && len(parts) != len(jobs) {
		err = fmt.Errorf("%d answers for %d jobs", len(parts), len(jobs))
	}
	for i, j := range jobs {
		if err != nil {
			answers[i].Err = q.wrap("enqueue", j.ID, err)
			continue
		}
		if parts[i].IsInt64() {
			answers[i].Status = "enqueued"
			continue
		}
		words, err := parts[i].AsStrSlice()
		switch {
		case err == nil && len(words) == 1 && words[0] == "again":
			answers[i].Admission, answers[i].Err = q.Enqueue(ctx, *j)
		case err == nil && len(words) == 2 && words[0] == "duplicate":
			answers[i].Status, answers[i].Src = words[0], words[1]
		case err == nil && len(words) == 2 && classOf(words[0]) != nil:
			answers[i].Err = &Refusal{classOf(words[0]), q.name, j.ID, words[1]}
		default:
			answers[i].Err = q.wrap("enqueue", j.ID, fmt.Errorf("unexpected answer %q: %w", words, err))
		}
	}
	return answers
}

// parcel is the part of a batch that goes in one call: one job, or plain ones of one queue.
type parcel struct {
	queue   *Queue
	members []int
	jobs    []*NewJob
	bytes   int
}

// parcels cuts a batch. The jobs of one queue keep their order.
func parcels(jobs []Admit) []*parcel {
	var all []*parcel
	open := make(map[*Queue]*parcel)
	for i := range jobs {
		job := &jobs[i].NewJob
		p := open[jobs[i].Queue]
		if p == nil || !job.Plain() || len(p.jobs) == MaxGathered || p.bytes+job.Bytes() > MaxGatheredBytes {
			p = &parcel{queue: jobs[i].Queue}
			all = append(all, p)
			open[p.queue] = p
			if !job.Plain() {
				delete(open, p.queue)
			}
		}
		p.members, p.jobs, p.bytes = append(p.members, i), append(p.jobs, job), p.bytes+job.Bytes()
	}
	return all
}

// EnqueueAll admits many jobs, of any queues, in one pipeline; one verdict each, in order. The jobs of one
// queue take effect in their order, but for those whose script the server has lost, or that it could not take
// at first: they follow the others.
func (s *Server) EnqueueAll(ctx context.Context, jobs []Admit) []Admitted {
	all := parcels(jobs)
	calls := make([]call, len(all))
	for i, p := range all {
		if len(p.jobs) == 1 {
			calls[i] = p.queue.admission(p.jobs[0])
		} else {
			calls[i] = p.queue.gathered(p.jobs)
		}
	}
	answers := make([]Admitted, len(jobs))
	for i, res := range s.runAll(ctx, calls) {
		p := all[i]
		if len(p.jobs) == 1 {
			a := &answers[p.members[0]]
			a.Admission, a.Err = p.queue.readAdmission(p.jobs[0].ID, res)
			continue
		}
		for n, a := range p.queue.readGathered(ctx, p.jobs, res) {
			answers[p.members[n]] = a
		}
	}
	return answers
}
