package scripts

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

// direct is what a call needs to go over a connection that it has for itself while it lasts. There it is
// written and read by its caller. On the shared connection it wakes a writer and a reader on its way, which
// pays when many share it and not for one; and once many have shared it, it stays so.
type direct struct {
	free  chan struct{} // has room for as many calls as connections
	rests atomic.Int64  // until then, in ns since 1970, calls are shared: the last one failed
	clock func() time.Time
}

const (
	// directConnections are as many as a process may have beside the shared one, the one that listens and the one
	// that waits for work, if it is to have six at most.
	directConnections = 3
	// directTimeout bounds such a call, since it does not see that its context is cancelled. What has no
	// answer by then its caller sends again, over the shared connection. A shorter time would send what a
	// bad network has only delayed.
	directTimeout = 2 * time.Second
	directRest    = 5 * time.Second
	// directBrisk is how soon the calls of a queue must follow each other. Nobody watches an idle connection of this
	// kind, so a call would be written to one whose server is long gone, and it could not be told that nothing was sent.
	directBrisk = time.Second
)

func newDirect() *direct {
	return &direct{free: make(chan struct{}, directConnections), clock: time.Now}
}

// runDirect is run, over a connection of the call's own if one is free.
func (q *Queue) runDirect(ctx context.Context, c call) rueidis.RedisResult {
	now := q.direct.clock().UnixNano()
	if before := q.used.Swap(now); now-before > int64(directBrisk) || now < q.direct.rests.Load() {
		return q.run(ctx, c)
	}
	select {
	case q.direct.free <- struct{}{}:
		defer func() { <-q.direct.free }()
	default:
		return q.run(ctx, c)
	}
	own, cancel := context.WithTimeout(ctx, directTimeout)
	defer cancel()
	res := q.client.Do(own, q.buildDirect(c))
	if err := res.Error(); isNoScript(err) || IsPassing(err) {
		return q.run(ctx, c)
	}
	if res.NonRedisError() == nil {
		return res
	}
	q.direct.rests.Store(now + int64(directRest))
	if err := ctx.Err(); err != nil { // the caller's own end, which was not seen meanwhile
		return rueidis.NewErrorResult(err)
	}
	return res
}

// buildDirect marks a call as one that blocks, which is how the client library gives it a connection.
func (s *Server) buildDirect(c call) rueidis.Completed {
	return s.client.B().Arbitrary("EVALSHA", c.script.sha, strconv.Itoa(len(c.keys))).Keys(c.keys...).Args(c.args...).Blocking()
}
