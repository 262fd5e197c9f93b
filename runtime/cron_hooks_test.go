package emq

import "time"

// FireEvery makes a client read every schedule as the multiples of a duration.
func FireEvery(c *Client, d time.Duration) {
	c.parse = func(Cron) (schedule, error) { return every(d), nil }
}

// CronTimes gives a worker that has not run other times than a minute for the refresh of declared entries and
// two for the patience with those of others.
func CronTimes(w *Worker, refresh, hold time.Duration) { w.cron.refresh, w.cron.hold = refresh, hold }
