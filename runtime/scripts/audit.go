package scripts

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// scanCount is how many keys of the server one step of a scan passes.
const scanCount = 1000

// Scan passes every key of the queue to page, some at a time and some of them twice. It goes through all
// keys of the server, on a cluster of the node that has the queue. A key that comes or goes meanwhile, or
// moves to another node, may be missed.
func (q *Queue) Scan(ctx context.Context, page func(keys []string) error) error {
	nodes := q.client.Nodes()
	var elsewhere error
	found := false
	for addr, node := range nodes {
		if len(nodes) > 1 {
			// a queue is on one node; the others redirect, and one that is dead does not matter
			if err := node.Do(ctx, node.B().Exists().Key(q.keys.Fixed("meta")).Build()).Error(); err != nil {
				elsewhere = errors.Join(elsewhere, fmt.Errorf("%s: %w", addr, err))
				continue
			}
		}
		found = true
		for cursor := uint64(0); ; {
			cmd := node.B().Scan().Cursor(cursor).Match(q.keys.Base() + "*").Count(scanCount).Build()
			entry, err := node.Do(ctx, cmd).AsScanEntry()
			if err != nil {
				return q.wrap("scan of "+addr, "", err)
			}
			if len(entry.Elements) > 0 {
				if err := page(entry.Elements); err != nil {
					return err
				}
			}
			if cursor = entry.Cursor; cursor == 0 {
				break
			}
		}
	}
	if !found {
		return q.wrap("scan: no node has the queue", "", elsewhere)
	}
	return nil
}

// Found is what the keys of a queue are, by their names.
type Found struct {
	Rows, Uniques, Waiting, Running []string // ids, unique keys, lanes
	Subkeys                         []string // of jobs: ids and the keys' names, in pairs
}

// Sort tells what keys of the queue name. Lists and settings of the whole queue are left out.
func (q *Queue) Sort(keys []string) Found {
	var f Found
	for _, key := range keys {
		name := strings.TrimPrefix(key, q.keys.Base())
		if id, ok := strings.CutPrefix(name, "job:"); ok {
			if id, sub, ok := strings.Cut(id, ":"); ok {
				f.Subkeys = append(f.Subkeys, id, sub)
			} else {
				f.Rows = append(f.Rows, id)
			}
		} else if unique, ok := strings.CutPrefix(name, "de:"); ok {
			f.Uniques = append(f.Uniques, unique)
		} else if rest, ok := strings.CutPrefix(name, "g:"); ok {
			if lane, ok := strings.CutSuffix(rest, ":pending"); ok {
				f.Waiting = append(f.Waiting, lane)
			} else if lane, ok := strings.CutSuffix(rest, ":active"); ok {
				f.Running = append(f.Running, lane)
			}
		}
	}
	return f
}

// AuditedRows is how many rows were in no set, by what they were.
type AuditedRows struct{ Pending, Scheduled, Active, Dead, Completed, Slots, Foreign int }

// AuditRows puts rows back that no set holds, those that run under a new lease; with look it only counts.
// Safe to repeat.
func (q *Queue) AuditRows(ctx context.Context, look bool, lease time.Duration, ids []string) (AuditedRows, error) {
	args := append([]string{q.keys.Base(), whether(look), ms(lease)}, ids...)
	ns, err := q.ints(ctx, "audit", 7, q.prepare("audit_rows", "", "", args...))
	if err != nil {
		return AuditedRows{}, err
	}
	return AuditedRows{int(ns[0]), int(ns[1]), int(ns[2]), int(ns[3]), int(ns[4]), int(ns[5]), int(ns[6])}, nil
}

// AuditedLists are the lists of a whole queue that AuditMembers knows.
var AuditedLists = []string{"pending", "active", "schedule", "dead", "dead_at", "completed"}

// AuditMembers drops members of a page of a list that have no such job; it answers how many it has looked
// at and dropped, and the next cursor, "0" at the end. Beside AuditedLists there are "waiting" and
// "running", of a lane. Safe to repeat.
func (q *Queue) AuditMembers(ctx context.Context, look bool, list, lane, cursor string) (looked, dropped int, next string, err error) {
	c := q.prepare("audit_members", "", "", q.keys.Base(), whether(look), list, lane, cursor, strconv.Itoa(MaxBulk))
	reply, err := q.run(ctx, c).ToArray()
	if err == nil && len(reply) != 3 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return 0, 0, "", q.wrap("audit", "", err)
	}
	return int(number(reply[1])), int(number(reply[2])), text(reply[0]), nil
}

// AuditRing mends the places of a page of the ring's lanes; it answers how many, and the next cursor, "0"
// at the end. Safe to repeat.
func (q *Queue) AuditRing(ctx context.Context, look bool, cursor string) (int, string, error) {
	return q.auditRing(ctx, look, "scan", cursor)
}

// AuditLanes mends the places in the ring of these lanes; it answers how many. Safe to repeat.
func (q *Queue) AuditLanes(ctx context.Context, look bool, lanes []string) (int, error) {
	n, _, err := q.auditRing(ctx, look, "lanes", lanes...)
	return n, err
}

// AuditLaned mends the count of the jobs that wait in lanes; it answers whether it was wrong. Over 4000
// lanes nothing is done. Safe to repeat.
func (q *Queue) AuditLaned(ctx context.Context, look bool) (bool, error) {
	n, _, err := q.auditRing(ctx, look, "count")
	return n > 0, err
}

func (q *Queue) auditRing(ctx context.Context, look bool, how string, rest ...string) (int, string, error) {
	args := append([]string{q.keys.Base(), whether(look), how}, rest...)
	reply, err := q.run(ctx, q.prepare("audit_ring", "", "", args...)).ToArray()
	if err == nil && len(reply) != 2 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return 0, "", q.wrap("audit", "", err)
	}
	return int(number(reply[1])), text(reply[0]), nil
}

// AuditUnique frees the unique keys whose holders are gone; it answers how many. Safe to repeat.
func (q *Queue) AuditUnique(ctx context.Context, look bool, keys []string) (int, error) {
	args := append([]string{q.keys.Base(), whether(look)}, keys...)
	n, err := q.run(ctx, q.prepare("audit_unique", "", "", args...)).AsInt64()
	return int(n), q.wrap("audit", "", err)
}

// AuditSubkeys deletes keys of jobs whose rows are gone, given as ids and names in pairs; it answers how many.
// Safe to repeat.
func (q *Queue) AuditSubkeys(ctx context.Context, look bool, pairs []string) (int, error) {
	args := append([]string{q.keys.Base(), whether(look)}, pairs...)
	n, err := q.run(ctx, q.prepare("audit_subkeys", "", "", args...)).AsInt64()
	return int(n), q.wrap("audit", "", err)
}

func whether(on bool) string {
	if on {
		return "1"
	}
	return ""
}
