package emq_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echomq/emq/internal/wire"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/scripts"
)

// exhibit is a job of the tests that look at queues; its lane and its unique key are optional.
type exhibit struct {
	N     int    `json:"n"`
	Owner string `json:"owner,omitempty"`
}

func (exhibit) EmqSpec() emq.Spec[exhibit] {
	return emq.Spec[exhibit]{Queue: "exhibits", Kind: "exhibit", Version: 2, Attempts: 3, Timeout: time.Minute, Redacted: []string{"owner"},
		Lane: func(e exhibit) string { return e.Owner }}
}

// hall is a queue whose jobs the test moves from state to state by the scripts.
type hall struct {
	*store
	q  *scripts.Queue
	by string
}

func newHall(t *testing.T, s *store, queue string) *hall {
	t.Helper()
	server, err := scripts.NewServer(s.raw, "")
	if err != nil {
		t.Fatal(err)
	}
	return &hall{s, server.Queue(queue), "mine0001"}
}

func (h *hall) claim(t *testing.T, n int) []scripts.ClaimedJob {
	t.Helper()
	got, err := h.q.Claim(t.Context(), scripts.Claim{Lease: time.Hour, N: n, By: h.by})
	if err != nil || len(got.Jobs) != n {
		t.Fatalf("claimed %d of %d: %v", len(got.Jobs), n, err)
	}
	return got.Jobs
}

// bring moves the jobs, which wait, to a state.
func (h *hall) bring(t *testing.T, n int, state emq.State) {
	t.Helper()
	if state == emq.StatePending {
		return
	}
	for _, j := range h.claim(t, n) {
		var v scripts.Verdict
		var err error
		switch state {
		case emq.StateScheduled:
			v, err = h.q.Retry(t.Context(), j.Fence, time.Hour, 9, "broken "+j.ID)
		case emq.StateDead:
			v, err = h.q.Kill(t.Context(), j.Fence, "poisoned "+j.ID)
		case emq.StateCompleted:
			v, err = h.q.Complete(t.Context(), j.Fence, time.Hour, []byte(`{"ok":true}`))
		}
		if err != nil || v.Again {
			t.Fatal(v, err)
		}
	}
}

var browsed = []emq.State{emq.StatePending, emq.StateScheduled, emq.StateActive, emq.StateDead, emq.StateCompleted}

// pages reads a whole browse; between two pages it does what the test says.
func pages(t *testing.T, q *emq.Queue, o emq.BrowseOptions, between func()) []emq.JobSummary {
	t.Helper()
	var all []emq.JobSummary
	for {
		page, err := q.Browse(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Jobs) > max(o.N, 1) && o.N > 0 || len(page.Jobs) < o.N && page.Next != "" {
			t.Fatalf("a page of %d has %d jobs, and goes on at %q", o.N, len(page.Jobs), page.Next)
		}
		all = append(all, page.Jobs...)
		if page.Next == "" {
			return all
		}
		o.Cursor = page.Next
		if between != nil {
			between()
		}
	}
}

func idsOf(jobs []emq.JobSummary) []emq.ID {
	ids := make([]emq.ID, len(jobs))
	for i, j := range jobs {
		ids[i] = j.ID
	}
	return ids
}

func TestEachStateIsBrowsedFromBothEnds(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const n = 23
		for _, state := range browsed {
			s.flush(t)
			h := newHall(t, s, "exhibits")
			refs := putMany(t, s, n, func(i int) exhibit { return exhibit{N: i} })
			h.bring(t, n, state)
			before := s.everything(t)
			q := s.Queue("exhibits")
			for _, size := range []int{1, 5, n - 1, n, n + 1, 500} {
				up := pages(t, q, emq.BrowseOptions{State: state, Oldest: true, N: size}, nil)
				down := pages(t, q, emq.BrowseOptions{State: state, N: size}, nil)
				for i := range refs {
					if len(up) != n || len(down) != n || !seen(up, refs[i].ID) || up[i].ID != down[n-1-i].ID {
						t.Fatalf("%s in pages of %d: %v, and from the other end %v", state, size, idsOf(up), idsOf(down))
					}
				}
				if state == emq.StatePending && !slices.IsSorted(idsOf(up)) {
					t.Errorf("pending jobs come as %v", idsOf(up))
				}
				for i := 1; i < n; i++ {
					if up[i].At.Before(up[i-1].At) {
						t.Errorf("%s: %v comes before %v", state, up[i-1].At, up[i].At)
					}
				}
			}
			first := pages(t, q, emq.BrowseOptions{State: state}, nil)[0] // 50 by default
			want := emq.JobSummary{ID: first.ID, State: state, Kind: "exhibit", EnqueuedAt: first.ID.Time(), At: first.At, Attempts: 1, LastError: first.LastError}
			words := map[emq.State]string{emq.StateScheduled: "broken " + string(first.ID), emq.StateDead: "poisoned " + string(first.ID)}
			if state == emq.StatePending {
				want.Attempts = 0
			}
			if first != want || first.LastError != words[state] || first.At.IsZero() != (state == emq.StatePending) {
				t.Errorf("%s: %+v", state, first)
			}
			ahead := first.At.Sub(s.nowOf(t, "exhibits"))
			if state == emq.StateDead && (ahead > 0 || ahead < -time.Minute) || state != emq.StateDead && state != emq.StatePending && (ahead > time.Hour || ahead < 59*time.Minute) {
				t.Errorf("%s: the time is %v ahead", state, ahead)
			}
			if d := differing(before, s.everything(t)); len(d) > 0 {
				t.Errorf("browsing has changed %v", d)
			}
		}
	})
}

func seen(jobs []emq.JobSummary, id emq.ID) bool { return slices.Contains(idsOf(jobs), id) }

// Jobs of one millisecond stand in one place of a time, in the order of the bytes of their ids.
func TestJobsOfOneInstantAreBrowsedInTheOrderOfTheirBytes(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		at := time.Now().Add(time.Hour)
		var ids []emq.ID
		for _, end := range []string{"0", "9", "A", "B", "Z", "a", "b", "z"} {
			for _, mid := range []string{"Z", "a", "0"} {
				id := emq.ID("JOB0000000" + mid + "00" + end)
				ids = append(ids, id)
				put(t, s, exhibit{}, emq.WithID(id), emq.At(at))
			}
		}
		slices.Sort(ids)
		for _, n := range []int{1, 2, 7} {
			up := pages(t, s.Queue("exhibits"), emq.BrowseOptions{State: emq.StateScheduled, Oldest: true, N: n}, nil)
			down := pages(t, s.Queue("exhibits"), emq.BrowseOptions{State: emq.StateScheduled, N: n}, nil)
			slices.Reverse(down)
			if !slices.Equal(idsOf(up), ids) || !slices.Equal(idsOf(down), ids) {
				t.Errorf("pages of %d: up %v\ndown %v\nwant %v", n, idsOf(up), idsOf(down), ids)
			}
		}
	})
}

// While pages are turned jobs come, go and move, those of the cursor too. What stays comes once.
func TestPagesHoldWhileJobsComeAndGo(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		r := rand.New(rand.NewPCG(7, 11))
		for round := range 12 {
			s.flush(t)
			list := []string{"pending", "schedule", "dead:at"}[round%3]
			state := []emq.State{emq.StatePending, emq.StateScheduled, emq.StateDead}[round%3]
			score := func() string { // few scores, so that many jobs share one
				if list == "pending" {
					return "0"
				}
				return fmt.Sprint(1_764_660_000_000 + r.IntN(3))
			}
			live, stay := map[emq.ID]bool{}, map[emq.ID]bool{}
			add := func() emq.ID {
				id := emq.ID(wire.Encode(wire.JobBrand, r.Uint64N(1<<62)))
				s.do(t, "ZADD", "emq:{exhibits}:"+list, score(), string(id))
				live[id] = true
				return id
			}
			for range 60 {
				stay[add()] = true
			}
			o := emq.BrowseOptions{State: state, Oldest: r.IntN(2) == 0, N: 1 + r.IntN(9)}
			all := pages(t, s.Queue("exhibits"), o, func() {
				for range 5 {
					add()
				}
				for _, id := range slices.Sorted(maps.Keys(live)) {
					if r.IntN(10) == 0 {
						s.do(t, "ZREM", "emq:{exhibits}:"+list, string(id))
						delete(live, id)
						delete(stay, id)
					}
				}
			})
			times := map[emq.ID]int{}
			for _, id := range idsOf(all) {
				times[id]++
			}
			for id, n := range times {
				if n > 1 {
					t.Fatalf("%+v: %s comes %d times", o, id, n)
				}
			}
			for id := range stay {
				if times[id] == 0 {
					t.Fatalf("%+v: %s, which stays, is missing", o, id)
				}
			}
		}
	})
}

func TestTheJobsOfALaneAreBrowsedByItsName(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		for n := range 9 {
			put(t, s, exhibit{N: n})
			put(t, s, exhibit{N: n, Owner: `a/"é/ b`})
		}
		q := s.Queue("exhibits")
		lane := pages(t, q, emq.BrowseOptions{State: emq.StatePending, Lane: `a/"é/ b`, Oldest: true, N: 2}, nil)
		flat := pages(t, q, emq.BrowseOptions{State: emq.StatePending, N: 2}, nil)
		if len(lane) != 9 || len(flat) != 9 || lane[0].Lane != `a/"é/ b` || flat[0].Lane != "" || !slices.IsSorted(idsOf(lane)) {
			t.Errorf("%d of the lane and %d without one: %+v", len(lane), len(flat), lane)
		}
		if none := pages(t, q, emq.BrowseOptions{State: emq.StatePending, Lane: "other"}, nil); len(none) != 0 {
			t.Errorf("another lane has %v", none)
		}
		if c := s.counts(t, "exhibits"); c.Pending != 18 || c.InLanes != 9 {
			t.Errorf("%+v", c)
		}
	})
}

func TestAPageShowsRowsThatAreGoneOrSaySomethingElse(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		refs := putMany(t, s, 4, func(i int) exhibit { return exhibit{N: i} })
		row := func(i int) string { return "emq:{exhibits}:job:" + string(refs[i].ID) }
		s.do(t, "DEL", row(0))
		s.do(t, "HSET", row(1), "state", "dead", "attempts", "many", "last_error", strings.Repeat("é", 400))
		s.do(t, "SET", row(2), "spoilt")
		s.do(t, "ZADD", "emq:{exhibits}:pending", "inf", "JOB\xff/\"", "-5.5", "")
		all := pages(t, s.Queue("exhibits"), emq.BrowseOptions{State: emq.StatePending, Oldest: true, N: 2}, nil)
		var states []emq.State
		for _, j := range all {
			states = append(states, j.State)
		}
		want := []emq.State{emq.StateAbsent, emq.StateAbsent, emq.StateUnknown, emq.StateAbsent, emq.StatePending, emq.StateAbsent}
		if !slices.Equal(states, want) || all[2].LastError != strings.Repeat("é", 150) || all[2].Attempts != 0 {
			t.Errorf("%+v", all)
		}
	})
}

func TestWhatCannotBeBrowsedIsRefusedBeforeAnyIO(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		putMany(t, s, 4, func(i int) exhibit { return exhibit{N: i, Owner: "a"} })
		putMany(t, s, 4, func(i int) exhibit { return exhibit{N: i} })
		q := s.Queue("exhibits")
		cursor := func(o emq.BrowseOptions) string {
			page, err := q.Browse(t.Context(), o)
			if err != nil || page.Next == "" {
				t.Fatal(page, err)
			}
			return page.Next
		}
		flat := cursor(emq.BrowseOptions{State: emq.StatePending, N: 2})
		lane := cursor(emq.BrowseOptions{State: emq.StatePending, Lane: "a", N: 2})
		ended, cancel := context.WithCancel(t.Context()) // with it every I/O is another error
		cancel()
		bad := map[string]emq.BrowseOptions{
			"no state":            {},
			"a hostile state":     {State: "pending\x00"},
			"absent jobs":         {State: emq.StateAbsent},
			"waiting for others":  {State: emq.StateAwaitingChildren},
			"a page below 0":      {State: emq.StatePending, N: -1},
			"a page over 500":     {State: emq.StatePending, N: 501},
			"a lane of dead jobs": {State: emq.StateDead, Lane: "a"},
			"a hostile lane":      {State: emq.StatePending, Lane: "a\x00"},
			"another state":       {State: emq.StateActive, Cursor: flat},
			"another direction":   {State: emq.StatePending, Oldest: true, Cursor: flat},
			"a lane's cursor":     {State: emq.StatePending, Cursor: lane},
			"the flat cursor":     {State: emq.StatePending, Lane: "a", Cursor: flat},
			"another lane":        {State: emq.StatePending, Lane: "b", Cursor: lane},
		}
		for _, c := range []string{"x", flat[:len(flat)-15], flat[:len(flat)-14], strings.Replace(flat, "/0/", "/zero/", 1), strings.Replace(flat, "/0/", "//", 1), flat + strings.Repeat("x", 300)} {
			bad["cursor "+c] = emq.BrowseOptions{State: emq.StatePending, Cursor: c}
		}
		for what, o := range bad {
			if _, err := q.Browse(ended, o); !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := s.Queue("other").Browse(ended, emq.BrowseOptions{State: emq.StatePending, Cursor: flat}); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("another queue: %v", err)
		}
		for what, hostile := range map[string]*emq.Queue{"queue": s.Queue("a:{b}"), "id": q} {
			id := emq.ID("JOB{}\x00")
			_, err1 := hostile.State(ended, id)
			_, err2 := hostile.Job(ended, id)
			for _, err := range []error{err1, err2} {
				if !errors.Is(err, emq.ErrInvalid) {
					t.Errorf("a hostile %s: %v", what, err)
				}
			}
		}
		if _, err := s.Queue("a:{b}").Latency(ended); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("the latency of a hostile queue: %v", err)
		}
	})
}

// everything is the content of each key.
func (s *store) everything(t *testing.T) map[string]string {
	t.Helper()
	const text = `
		local out = {}
		for _, k in ipairs(redis.call('KEYS', '*')) do
		  local t = redis.call('TYPE', k)
		  t = t.ok or t
		  local v
		  if t == 'hash' then v = redis.call('HGETALL', k)
		  elseif t == 'zset' then v = redis.call('ZRANGE', k, 0, -1, 'WITHSCORES')
		  elseif t == 'set' then v = redis.call('SMEMBERS', k)
		  elseif t == 'list' then v = redis.call('LRANGE', k, 0, -1)
		  else v = {redis.call('GET', k)} end
		  out[#out + 1] = k
		  out[#out + 1] = table.concat(v, '\n')
		end
		return out`
	all := make(map[string]string)
	for _, res := range s.each(t, "EVAL", text, "0") {
		found, err := res.AsStrMap()
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, found)
	}
	return all
}

func differing(before, after map[string]string) (keys []string) {
	for k, v := range before {
		if after[k] != v {
			keys = append(keys, k)
		}
	}
	for k := range after {
		if _, there := before[k]; !there {
			keys = append(keys, k)
		}
	}
	return keys
}
