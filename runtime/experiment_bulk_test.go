package emq_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// fillText makes rows of a state from a number on, and lists them: KEY is the base, ARGV from, n, state, the
// list, the lane or ”.
const fillText = `
for i = ARGV[1], ARGV[1] + ARGV[2] - 1 do
  local id = string.format('JOB%011d', i)
  local row = KEYS[1] .. 'job:' .. id
  redis.call('HSET', row, 'state', ARGV[3], 'attempts', 1, 'payload', '{"n":' .. i .. ',"pad":"0123456789012345678901234567890123456789"}',
    'src', 'src00001', 'kind', 'chore', 'unique', 'sole:' .. i)
  if ARGV[5] ~= '' then
    redis.call('HSET', row, 'group', ARGV[5])
  end
  if ARGV[3] == 'dead' then
    redis.call('HSET', row, 'settled_at', i, 'last_error', 'broken')
    redis.call('ZADD', KEYS[1] .. 'dead:at', i, id)
  else
    redis.call('SET', KEYS[1] .. 'de:sole:' .. i, id)
  end
  redis.call('ZADD', KEYS[1] .. ARGV[4], ARGV[3] == 'scheduled' and 9e12 + i or 0, id)
end`

// Experiment 16, the verbs of an operator: at any number of jobs each of their server commands is short.
// EMQ_TEST_JOBS is how many; the experiment is at 1000000, which takes some minutes and 1 GB.
func TestExperimentVerbsOverManyJobs(t *testing.T) {
	t.Parallel()
	jobs := 3000
	if n, err := strconv.Atoi(os.Getenv("EMQ_TEST_JOBS")); err == nil {
		jobs = n
	}
	s := realStore(t, "--slowlog-log-slower-than", "1000", "--slowlog-max-len", "100000")
	ctx, q := t.Context(), s.Queue("chores")
	fill := func(state, list string, lane func(part int) string) {
		t.Helper()
		const part = 1000
		for from := 0; from < jobs; from += part {
			name := lane(from / part)
			at := list
			if at == "lane" {
				at = "g:" + name + ":pending"
				s.do(t, "ZADD", "emq:{chores}:ring", "1", name)
				s.do(t, "HINCRBY", "emq:{chores}:meta", "laned", fmt.Sprint(min(part, jobs-from)))
			}
			s.do(t, "EVAL", fillText, "1", "emq:{chores}:", fmt.Sprint(from), fmt.Sprint(min(part, jobs-from)), state, at, name)
		}
	}
	timed := func(verb string, want int, run func() (int, error)) {
		t.Helper()
		s.do(t, "SLOWLOG", "RESET")
		s.do(t, "CONFIG", "RESETSTAT")
		began := time.Now()
		done, err := run()
		took := time.Since(began)
		if err != nil || done != want {
			t.Errorf("%s: %d jobs of %d, %v", verb, done, want, err)
		}
		slow, err := s.do(t, "SLOWLOG", "GET", "-1").ToArray()
		if err != nil {
			t.Fatal(err)
		}
		longest, over5, over10 := int64(0), 0, 0
		for _, entry := range slow {
			parts, err := entry.ToArray()
			if err != nil || len(parts) < 4 {
				t.Fatal(parts, err)
			}
			us, err := parts[2].AsInt64()
			if err != nil {
				t.Fatal(err)
			}
			longest = max(longest, us)
			if us > 5000 {
				over5++
			}
			if us > 10000 {
				over10++
			}
		}
		stats, err := s.do(t, "INFO", "commandstats").ToString()
		if err != nil {
			t.Fatal(err)
		}
		calls, usec := scriptCalls(stats)
		t.Logf("experiment 16: %-34s %8d jobs in %6.1f s; %6d script calls of %5.0f µs, the longest command %5.1f ms (%d over 5 ms, %d over 10)",
			verb, done, took.Seconds(), calls, float64(usec)/float64(max(calls, 1)), float64(longest)/1000, over5, over10)
	}
	timed("nothing but 1 ms of a script", 0, func() (int, error) { // what the machine adds
		for range max(jobs/1000, 3) {
			s.do(t, "EVAL", "local x = 0 for i = 1, 200000 do x = x + i end return x", "0")
		}
		return 0, nil
	})
	none := func(int) string { return "" }
	bulk := func(run func() (emq.BulkProgress, error)) func() (int, error) {
		return func() (int, error) { p, err := run(); return p.Done, err }
	}

	fill("dead", "dead", func(part int) string { return fmt.Sprint("lane", part%1000) })
	timed("ReprocessAll, of another kind", 0, bulk(func() (emq.BulkProgress, error) {
		return q.ReprocessAll(ctx, emq.ReprocessOptions{Kind: "other"})
	}))
	timed("ReprocessAll, into lanes", jobs, bulk(func() (emq.BulkProgress, error) { return q.ReprocessAll(ctx, emq.ReprocessOptions{}) }))
	timed("Drain, of lanes", jobs, bulk(func() (emq.BulkProgress, error) { return q.Drain(ctx, emq.DrainOptions{}) }))

	fill("pending", "lane", func(int) string { return "big" })
	timed("ReassignLane", jobs, bulk(func() (emq.BulkProgress, error) { return q.ReassignLane(ctx, "big", "other") }))
	timed("DrainLane", jobs, bulk(func() (emq.BulkProgress, error) { return q.DrainLane(ctx, "other") }))

	fill("scheduled", "schedule", func(int) string { return "big" })
	timed("ReassignLane, of scheduled jobs", jobs, bulk(func() (emq.BulkProgress, error) { return q.ReassignLane(ctx, "big", "") }))
	timed("Audit, with nothing to mend", jobs, func() (int, error) { r, err := q.Audit(ctx, emq.AuditOptions{}); return r.Rows, err })
	s.do(t, "UNLINK", "emq:{chores}:schedule")
	timed("Audit, without the schedule", jobs, func() (int, error) { r, err := q.Audit(ctx, emq.AuditOptions{}); return r.Scheduled, err })
	timed("Drain, of scheduled jobs", jobs, bulk(func() (emq.BulkProgress, error) { return q.Drain(ctx, emq.DrainOptions{Scheduled: true}) }))

	fill("pending", "pending", none)
	s.do(t, "UNLINK", "emq:{chores}:pending")
	timed("Audit, without what waits", jobs, func() (int, error) { r, err := q.Audit(ctx, emq.AuditOptions{}); return r.Pending, err })
	timed("Drain", jobs, bulk(func() (emq.BulkProgress, error) { return q.Drain(ctx, emq.DrainOptions{}) }))

	fill("active", "active", func(int) string { return "big" })
	timed("Audit, without a lane's slots", jobs, func() (int, error) { r, err := q.Audit(ctx, emq.AuditOptions{}); return r.Slots, err })
	s.do(t, "HSET", "emq:{chores}:meta", "seen", fmt.Sprint(s.now(t).UnixMilli()), "grace", "0")
	timed("ReapLane", jobs, func() (int, error) { return q.ReapLane(ctx, "big") })
	s.do(t, "HSET", "emq:{chores}:meta", "paused", "1")
	timed("Obliterate", jobs, bulk(func() (emq.BulkProgress, error) { return q.Obliterate(ctx, emq.ObliterateOptions{}) }))
	if left := s.keysOf(t, "chores"); len(left) > 0 {
		t.Errorf("%d keys are left", len(left))
	}
}
