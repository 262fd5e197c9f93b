package emq

import (
	"context"
	"time"
)

// Latency is how long the jobs that are next in line have waited: the longest wait among the 100 oldest
// ids without a lane and the oldest id of each of the 400 lanes that are served next. Lanes that are
// paused or at their limits do not count. A wait begins at the due time, or else at the enqueue by the producer's clock;
// a job that was handed back has waited since its enqueue. It is 0 when nothing waits.
//
// The cost is bounded and small, whatever the size of the queue, so a metric may ask for it every few
// seconds. Safe to repeat.
func (q *Queue) Latency(ctx context.Context) (time.Duration, error) {
	var longest time.Duration
	err := q.each(ctx, func(part *Queue) error {
		wait, err := part.latency(ctx)
		longest = max(longest, wait)
		return err
	})
	if err != nil {
		return 0, err
	}
	return longest, nil
}

func (q *Queue) latency(ctx context.Context) (time.Duration, error) {
	now, jobs, err := q.q.Next(ctx)
	if err != nil {
		return 0, err
	}
	var longest time.Duration
	for _, j := range jobs {
		since := j.Due
		if since.IsZero() {
			since = ID(j.ID).Time()
		}
		if !since.IsZero() {
			longest = max(longest, now.Sub(since))
		}
	}
	return longest, nil
}
