package emq_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/echomq/emq/internal/wire"
	emq "github.com/echomq/emq/runtime"
)

// browseJobs is how many jobs experiment 16 puts into each state; its full size is 1000000.
var browseJobs = flag.Int("emq.browse", 20_000, "jobs in each state for experiment 16 of the reading verbs")

// fillAll writes n jobs into each list by a script, faster than any client could.
const fillAll = `
	local base, digits, state, list = ARGV[1], '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', ARGV[2], ARGV[3]
	for i = tonumber(ARGV[4]), tonumber(ARGV[5]) do
	  local n, id = i, ''
	  for _ = 1, 8 do
	    id = string.sub(digits, n % 62 + 1, n % 62 + 1) .. id
	    n = math.floor(n / 62)
	  end
	  id = 'JOB' .. ARGV[6] .. id
	  redis.call('HSET', base .. 'job:' .. id, 'state', state, 'attempts', 1, 'payload', '{"n":1}', 'src', 'src00001', 'kind', 'exhibit', 'last_error', ARGV[7])
	  for name in string.gmatch(list, '%S+') do
	    redis.call('ZADD', base .. name, (name == 'pending' or name == 'dead') and 0 or 1764660000000 + math.floor(i / 1000), id)
	  end
	end`

// Experiment 16, the verbs that read: no server command over 10 ms, however many jobs there are.
func TestExperimentReadingAmongManyJobs(t *testing.T) {
	s := realStore(t)
	n := *browseJobs
	lists := map[emq.State]string{emq.StatePending: "pending", emq.StateScheduled: "schedule", emq.StateActive: "active", emq.StateDead: "dead dead:at", emq.StateCompleted: "completed"}
	ids := map[emq.State]string{}
	for i, state := range browsed {
		ids[state] = fmt.Sprintf("0S%d", i)
		for from := 0; from < n; from += 5000 {
			s.do(t, "EVAL", fillAll, "0", "emq:{exhibits}:", string(state), lists[state], fmt.Sprint(from), fmt.Sprint(min(from+5000, n)-1), ids[state], "the disk is full, as it was yesterday")
		}
	}
	for i := range 1000 {
		put(t, s, exhibit{Owner: fmt.Sprint("lane ", i)})
	}
	q, ctx := s.Queue("exhibits"), context.Background()
	type cost struct {
		calls      int
		cpu, worst time.Duration
	}
	costs := map[string]*cost{}
	const threshold = 300 * time.Microsecond // entries of the commands within scripts would cost more than they do
	s.do(t, "CONFIG", "SET", "slowlog-log-slower-than", fmt.Sprint(threshold.Microseconds()), "slowlog-max-len", "10000")
	// the server's own time on a processor: what it waits for one, on a busy machine, is not its cost
	cpu := func() time.Duration {
		text, err := s.do(t, "INFO", "cpu").ToString()
		if err != nil {
			t.Fatal(err)
		}
		var sum float64
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name == "used_cpu_user_main_thread" || name == "used_cpu_sys_main_thread" {
				seconds, err := strconv.ParseFloat(value, 64)
				if err != nil {
					t.Fatal(err)
				}
				sum += seconds
			}
		}
		return time.Duration(sum * float64(time.Second))
	}
	measure := func(verb string, call func() error) {
		t.Helper()
		s.do(t, "SLOWLOG", "RESET")
		before := cpu()
		const times = 20
		for range times {
			if err := call(); err != nil {
				t.Fatal(verb, err)
			}
		}
		c := costs[verb]
		if c == nil {
			c = new(cost)
			costs[verb] = c
		}
		c.cpu, c.calls = c.cpu+cpu()-before, c.calls+times
		entries, err := s.do(t, "SLOWLOG", "GET", "-1").ToArray()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			parts, err := e.ToArray()
			if err != nil {
				t.Fatal(err)
			}
			words, _ := parts[3].AsStrSlice() // a command is at least its name
			usec, _ := parts[2].AsInt64()
			if words[0] != "SLOWLOG" && words[0] != "INFO" {
				c.worst = max(c.worst, time.Duration(usec)*time.Microsecond)
			}
		}
	}
	for _, state := range browsed {
		for _, oldest := range []bool{true, false} {
			o := emq.BrowseOptions{State: state, Oldest: oldest, N: 500}
			turn := func() error {
				page, err := q.Browse(ctx, o)
				if err == nil && len(page.Jobs) == 0 {
					err = errors.New("an empty page")
				}
				o.Cursor = page.Next
				return err
			}
			measure("Browse, 500 jobs", turn)
			// from the middle of the list
			middle := fmt.Sprintf("JOB%s%s", ids[state], strings.TrimPrefix(wire.Encode("", uint64(n/2)), "\x00\x00\x00")[3:])
			score := fmt.Sprint(1764660000000 + n/2/1000)
			if state == emq.StatePending {
				score = "0"
			}
			o.Cursor = emq.CursorAt(q, o, score, middle)
			measure("Browse, 500 jobs", turn)
			o.N = 50
			measure("Browse, 50 jobs", func() error { _, err := q.Browse(ctx, o); return err })
		}
		first, err := q.Browse(ctx, emq.BrowseOptions{State: state, N: 1})
		if err != nil {
			t.Fatal(err)
		}
		measure("State", func() error {
			got, err := q.State(ctx, first.Jobs[0].ID)
			if err == nil && got != state {
				err = fmt.Errorf("%s instead of %s", got, state)
			}
			return err
		})
		measure("Job", func() error { _, err := q.Job(ctx, first.Jobs[0].ID); return err })
		measure("Logs", func() error { _, err := q.Logs(ctx, first.Jobs[0].ID, 0, 500); return err })
	}
	measure("Latency, 1000 lanes", func() error { _, err := q.Latency(ctx); return err })
	measure("Counts", func() error { _, err := q.Counts(ctx); return err })
	measure("Lanes, 500", func() error { _, err := q.Lanes(ctx, "", 500); return err })
	for _, verb := range slices.Sorted(maps.Keys(costs)) {
		c := costs[verb]
		mean := c.cpu / time.Duration(c.calls)
		t.Logf("%d jobs in each state: %s: %v of the server's processor; the slowest command by the clock: %v (0: under %v)", n, verb, mean, c.worst, threshold)
		if mean > 10*time.Millisecond {
			t.Errorf("%s takes %v", verb, mean)
		}
	}
}
