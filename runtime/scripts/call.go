package scripts

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/wire"
)

// Server calls scripts over one client of the client library. It is safe for concurrent use.
type Server struct {
	client  rueidis.Client
	prefix  string
	scripts map[string]*script
	direct  *direct
}

// NewServer makes a Server for a deployment prefix, which must have passed its check.
func NewServer(client rueidis.Client, prefix string) (*Server, error) {
	scripts, err := library()
	if err != nil {
		return nil, err
	}
	return &Server{client: client, prefix: prefix, scripts: scripts, direct: newDirect()}, nil
}

// Queue calls scripts on one queue, or on one shard of it. It is safe for concurrent use.
type Queue struct {
	*Server
	name string
	tag  string
	keys wire.Keys
	// lists holds the KEYS of each script, with the row's place left empty.
	lists map[string]keyList
	used  atomic.Int64 // when runDirect was called last, in ns since 1970
}

type keyList struct {
	keys  []string
	row   int // index of the row, or -1
	entry int // index of the cron entry, or -1
	last  int // index of the unique key or of the private list, or -1: always the last
}

// Queue names a queue, which must have passed its check. It does no I/O.
func (s *Server) Queue(name string) *Queue { return s.Shard(name, 0) }

// Shard names one shard of a queue. It does no I/O.
func (s *Server) Shard(name string, shard int) *Queue {
	tag := wire.Tag(name, shard)
	q := &Queue{Server: s, name: name, tag: tag, keys: wire.NewKeys(s.prefix, tag), lists: make(map[string]keyList, len(s.scripts))}
	fixed := fixedKeys()
	for _, sc := range s.scripts {
		l := keyList{make([]string, len(sc.keys)), -1, -1, -1}
		for i, k := range sc.keys {
			switch k {
			case rowKey:
				l.row = i
			case entryKey:
				l.entry = i
			case uniqueKey, privateKey:
				l.last = i
			default:
				l.keys[i] = q.keys.Fixed(fixed[k])
			}
		}
		q.lists[sc.name] = l
	}
	return q
}

// Name is the queue's name.
func (q *Queue) Name() string { return q.name }

// Tag is the queue's name, or that of one of its further shards.
func (q *Queue) Tag() string { return q.tag }

// WakeKey is the list on which parked workers wait.
func (q *Queue) WakeKey() string { return q.keys.Fixed("wake") }

// PrivateKey is the list on which the process with this tag waits alone.
func (q *Queue) PrivateKey(tag string) string { return q.keys.Fixed("wake:" + tag) }

// PumpKey is the list on which the pump's holder waits.
func (q *Queue) PumpKey() string { return q.keys.Fixed("wake:pump") }

// call is one call of a script, ready to be built as often as it must be sent.
type call struct {
	script *script
	keys   []string
	args   []string
}

// prepare fills in the row of the job id, where the script names it, and the last key, where it is one
// that only this call knows; an empty last key is left out.
func (q *Queue) prepare(name, id, last string, args ...string) call {
	l := q.lists[name]
	keys := l.keys
	if l.row >= 0 || l.last >= 0 {
		keys = append([]string(nil), l.keys...)
	}
	if l.row >= 0 {
		keys[l.row] = q.keys.Row(id)
	}
	if l.last >= 0 {
		if last == "" {
			keys = keys[:l.last]
		} else {
			keys[l.last] = last
		}
	}
	return call{q.scripts[name], keys, args}
}

// prepareEntry is prepare for a script that names a cron entry.
func (q *Queue) prepareEntry(name, entry, id, last string, args ...string) call {
	c := q.prepare(name, id, last, args...)
	c.keys = append([]string(nil), c.keys...)
	c.keys[q.lists[name].entry] = q.keys.Entry(entry)
	return c
}

func (s *Server) build(c call) rueidis.Completed {
	return s.client.B().Evalsha().Sha1(c.script.sha).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
}

// buildWhole sends the text along, which also loads it.
func (s *Server) buildWhole(c call) rueidis.Completed {
	return s.client.B().Eval().Script(c.script.text).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
}

// A server that is starting, failing over or moving slots answers these words before a script has
// written anything. They pass by themselves.
const (
	passingTries = 8
	firstPause   = 10 * time.Millisecond
	longestPause = 500 * time.Millisecond
)

// IsPassing tells the words of a server that is starting, failing over or moving slots. It answers them
// before a script has written anything.
func IsPassing(err error) bool {
	switch word, _ := Word(err); word {
	case "TRYAGAIN", "CLUSTERDOWN", "LOADING", "READONLY", "MASTERDOWN", "NOREPLICAS", "MOVED", "ASK":
		return true
	}
	return false
}

// IsUntouched tells the other words that a server answers before a script has written anything; they do
// not pass by themselves: MISCONF of a disk that is full or broken, BUSY of somebody's endless script.
func IsUntouched(err error) bool {
	word, _ := Word(err)
	return word == "MISCONF" || word == "BUSY"
}

func isNoScript(err error) bool {
	reply, ok := rueidis.IsRedisErr(err)
	return ok && reply.IsNoScript()
}

// run sends a call until it has an answer that is not a passing state of the server, or the tries or
// ctx are used up. A network error is returned as it is: only the caller knows whether to repeat.
func (s *Server) run(ctx context.Context, c call) rueidis.RedisResult {
	pause := firstPause
	for try := 1; ; try++ {
		res := s.client.Do(ctx, s.build(c))
		if isNoScript(res.Error()) {
			res = s.client.Do(ctx, s.buildWhole(c))
		}
		if try == passingTries || !IsPassing(res.Error()) || !sleep(ctx, pause) {
			return res
		}
		pause = min(2*pause, longestPause)
	}
}

// runAll sends many calls in one pipeline. Those that NOSCRIPT or a passing state struck, also in the
// middle, are sent again: one alone, which repairs the cause, and then the others together; the last time
// with their texts, should somebody flush the scripts again and again.
func (s *Server) runAll(ctx context.Context, calls []call) []rueidis.RedisResult {
	results := s.pipeline(ctx, calls, s.build)
	for try := 1; try < passingTries; try++ {
		var struck []int
		for i := range results {
			if err := results[i].Error(); isNoScript(err) || IsPassing(err) {
				struck = append(struck, i)
			}
		}
		if len(struck) == 0 {
			break
		}
		results[struck[0]] = s.run(ctx, calls[struck[0]])
		again := make([]call, 0, len(struck)-1)
		for _, i := range struck[1:] {
			again = append(again, calls[i])
		}
		build := s.build
		if try == passingTries-1 {
			build = s.buildWhole
		}
		for n, res := range s.pipeline(ctx, again, build) {
			results[struck[n+1]] = res
		}
	}
	return results
}

func (s *Server) pipeline(ctx context.Context, calls []call, build func(call) rueidis.Completed) []rueidis.RedisResult {
	cmds := make([]rueidis.Completed, len(calls))
	for i, c := range calls {
		cmds[i] = build(c)
	}
	return s.client.DoMulti(ctx, cmds...)
}

// sleep waits for a jittered pause; false when ctx ended first.
func sleep(ctx context.Context, pause time.Duration) bool {
	t := time.NewTimer(pause/2 + rand.N(pause/2+1))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
