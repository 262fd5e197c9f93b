package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// keyspace is everything that a server holds for one queue, read with plain commands.
type keyspace struct {
	queue string
	rows  map[string]map[string]string // by id
	sets  map[string]map[string]string // sorted sets with scores, sets, hashes; by the key's name
	lists map[string]int64             // lengths
	texts map[string]string
}

// readKeyspace reads a queue while nothing writes to it.
func readKeyspace(ctx context.Context, c rueidis.Client, queue string) (*keyspace, error) {
	ks := &keyspace{queue, make(map[string]map[string]string), make(map[string]map[string]string), make(map[string]int64), make(map[string]string)}
	base := "emq:{" + queue + "}:"
	keys, err := scan(ctx, c, base+"*")
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(keys, 500) {
		cmds := make([]rueidis.Completed, len(part))
		for i, key := range part {
			cmds[i] = c.B().Type().Key(key).Build()
		}
		reads, kinds := make([]rueidis.Completed, len(part)), make([]string, len(part))
		for i, reply := range c.DoMulti(ctx, cmds...) {
			if kinds[i], err = reply.ToString(); err != nil {
				return nil, err
			}
			if reads[i], err = readOf(c, kinds[i], part[i]); err != nil {
				return nil, err
			}
		}
		for i, reply := range c.DoMulti(ctx, reads...) {
			if err := ks.take(strings.TrimPrefix(part[i], base), kinds[i], reply); err != nil {
				return nil, fmt.Errorf("%s: %w", part[i], err)
			}
		}
	}
	return ks, nil
}

// scan lists keys on every master.
func scan(ctx context.Context, c rueidis.Client, pattern string) ([]string, error) {
	found := make(map[string]bool)
	for addr, node := range c.Nodes() {
		role, err := node.Do(ctx, node.B().Role().Build()).ToArray()
		if err != nil {
			if c.Mode() == rueidis.ClientModeCluster { // a dead one; what it had is on another
				continue
			}
			return nil, fmt.Errorf("%s: %w", addr, err)
		}
		if word, err := role[0].ToString(); err != nil || word != "master" {
			continue
		}
		for cursor := uint64(0); ; {
			e, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(pattern).Count(1000).Build()).AsScanEntry()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", addr, err)
			}
			for _, key := range e.Elements {
				found[key] = true
			}
			if cursor = e.Cursor; cursor == 0 {
				break
			}
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

func readOf(c rueidis.Client, kind, key string) (rueidis.Completed, error) {
	switch kind {
	case "hash":
		return c.B().Hgetall().Key(key).Build(), nil
	case "zset":
		return c.B().Zrange().Key(key).Min("0").Max("-1").Withscores().Build(), nil
	case "set":
		return c.B().Smembers().Key(key).Build(), nil
	case "list":
		return c.B().Llen().Key(key).Build(), nil
	case "string", "none": // none: it has expired since
		return c.B().Get().Key(key).Build(), nil
	}
	return rueidis.Completed{}, fmt.Errorf("the key %s has the type %s", key, kind)
}

func (ks *keyspace) take(name, kind string, reply rueidis.RedisResult) error {
	members := make(map[string]string)
	switch kind {
	case "hash":
		fields, err := reply.AsStrMap()
		if err != nil {
			return err
		}
		if id, isRow := strings.CutPrefix(name, "job:"); isRow && !strings.Contains(id, ":") {
			ks.rows[id] = fields
			return nil
		}
		members = fields
	case "zset":
		scores, err := reply.AsZScores()
		if err != nil {
			return err
		}
		for _, z := range scores {
			members[z.Member] = fmt.Sprintf("%.0f", z.Score)
		}
	case "set":
		all, err := reply.AsStrSlice()
		if err != nil {
			return err
		}
		for _, m := range all {
			members[m] = ""
		}
	case "list":
		n, err := reply.AsInt64()
		ks.lists[name] = n
		return err
	default:
		text, err := reply.ToString()
		if rueidis.IsRedisNil(err) {
			return nil
		}
		ks.texts[name] = text
		return err
	}
	ks.sets[name] = members
	return nil
}

// total is one of the queue's counters.
func (ks *keyspace) total(name string) int {
	n := 0
	_, _ = fmt.Sscan(ks.sets["metrics:"+name]["count"], &n) // absent: 0
	return n
}

// census is how many jobs are where.
type census struct{ waiting, active, scheduled, dead, completed int }

// unfinished are those that will still run.
func (c census) unfinished() int { return c.waiting + c.active + c.scheduled }

// faults checks the key space against itself: every row is listed where its state says and nowhere else,
// every listed id has its row, and what is counted is what is there.
func (ks *keyspace) faults() (faults []string) {
	failf := func(format string, args ...any) {
		faults = append(faults, fmt.Sprintf("queue %s: ", ks.queue)+fmt.Sprintf(format, args...))
	}
	listed := make(map[string][]string) // the sets that hold an id
	for _, name := range slices.Sorted(maps.Keys(ks.sets)) {
		for id := range ks.sets[name] {
			switch {
			case name == "pending", name == "active", name == "schedule", name == "dead", name == "completed",
				strings.HasPrefix(name, "g:") && strings.HasSuffix(name, ":pending"):
				listed[id] = append(listed[id], name)
			}
		}
	}
	for id, row := range ks.rows {
		home := map[string]string{"active": "active", "scheduled": "schedule", "dead": "dead", "completed": "completed"}[row["state"]]
		if row["state"] == "pending" {
			home = "pending"
			if lane, laned := row["group"]; laned {
				home = "g:" + lane + ":pending"
			}
		}
		if home == "" || len(listed[id]) != 1 || listed[id][0] != home {
			failf("job %s has the state %q and is listed in %v", id, row["state"], listed[id])
		}
		delete(listed, id)
	}
	for id, names := range listed {
		failf("job %s is listed in %v and has no row", id, names)
	}
	ks.laneFaults(failf)
	if a, b := ks.sets["dead"], ks.sets["dead:at"]; !maps.EqualFunc(a, b, func(string, string) bool { return true }) {
		failf("dead has %d ids, dead:at %d", len(a), len(b))
	}
	for name, holder := range ks.texts {
		if key, isLock := strings.CutPrefix(name, "de:"); isLock && ks.rows[holder]["unique"] != key {
			failf("the unique key %s is held by %s, which does not name it", key, holder)
		}
	}
	for id, row := range ks.rows {
		// the drills have no key that ends before its job
		if key, isUnique := row["unique"]; isUnique && row["state"] != "completed" && row["state"] != "dead" && ks.texts["de:"+key] != id {
			failf("job %s is %s without its unique key %s, which %q holds", id, row["state"], key, ks.texts["de:"+key])
		}
	}
	for name := range ks.lists {
		if id, isLog := strings.CutPrefix(name, "job:"); isLog && ks.rows[strings.TrimSuffix(id, ":logs")] == nil {
			failf("%s has lines, and its job has no row", name)
		}
	}
	for _, wake := range []string{"wake", "wake:pump"} {
		if n := ks.lists[wake]; n > 1 {
			failf("%s has %d tokens", wake, n)
		}
	}
	return faults
}

func (ks *keyspace) laneFaults(failf func(string, ...any)) {
	laned := 0
	for name, members := range ks.sets {
		switch {
		case strings.HasPrefix(name, "g:") && strings.HasSuffix(name, ":pending"):
			laned += len(members)
			lane := strings.TrimSuffix(strings.TrimPrefix(name, "g:"), ":pending")
			if _, listed := ks.sets["ring"][lane]; !listed {
				failf("%d jobs wait in the lane %q, which is not in the ring", len(members), lane)
			}
		case strings.HasPrefix(name, "g:") && strings.HasSuffix(name, ":active"):
			lane := strings.TrimSuffix(strings.TrimPrefix(name, "g:"), ":active")
			for id := range members {
				if _, runs := ks.sets["active"][id]; !runs || ks.rows[id]["group"] != lane {
					failf("job %s takes a place of the lane %q and does not run there", id, lane)
				}
			}
		}
	}
	for id := range ks.sets["active"] {
		if lane, isIn := ks.rows[id]["group"]; isIn {
			if _, counted := ks.sets["g:"+lane+":active"][id]; !counted {
				failf("job %s runs and takes no place of its lane %q", id, lane)
			}
		}
	}
	for lane := range ks.sets["ring"] {
		if len(ks.sets["g:"+lane+":pending"]) == 0 {
			failf("the lane %q is in the ring and no job waits in it", lane)
		}
	}
	if counted := ks.sets["meta"]["laned"]; counted != fmt.Sprint(laned) && (counted != "" || laned != 0) {
		failf("meta.laned is %q, and %d jobs wait in lanes", counted, laned)
	}
}
