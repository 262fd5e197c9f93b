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
	used  atomic.Int64  // when the last call was made
	clock func() time.Time
}

const (
	directConnections = 4 // two for what is enqueued, two for what is settled
	// directTimeout bounds such a call, since it does not see that its context is cancelled. What has no
	// answer by then its caller sends again, over the shared connection. A shorter time would send what a
	// bad network has only delayed.
	directTimeout = 2 * time.Second
	directRest    = 5 * time.Second
	// directBrisk is how soon calls must follow each other. Nobody watches an idle connection of this kind, so a
	// call would be written to one whose server is long gone, and it could not be told that nothing was sent.
	directBrisk = time.Second
)

func newDirect() *direct {
	return &direct{free: make(chan struct{}, directConnections), clock: time.Now}
}

// runDirect is run, over a connection of the call's own if one is free.
func (s *Server) runDirect(ctx context.Context, c call) rueidis.RedisResult {
	now := s.direct.clock().UnixNano()
	if before := s.direct.used.Swap(now); now-before > int64(directBrisk) || now < s.direct.rests.Load() {
		return s.run(ctx, c)
	}
	select {
	case s.direct.free <- struct{}{}:
		defer func() { <-s.direct.free }()
	default:
		return s.run(ctx, c)
	}
	own, cancel := context.WithTimeout(ctx, directTimeout)
	defer cancel()
	res := s.client.Do(own, s.buildDirect(c))
	err := res.Error()
	if isNoScript(err) || IsPassing(err) {
		return s.run(ctx, c)
	}
	if _, answered := rueidis.IsRedisErr(err); err != nil && !answered {
		s.direct.rests.Store(now + int64(directRest))
	}
	return res
}

// buildDirect marks a call as one that blocks, which is how the client library gives it a connection.
func (s *Server) buildDirect(c call) rueidis.Completed {
	return s.client.B().Arbitrary("EVALSHA", c.script.sha, strconv.Itoa(len(c.keys))).Keys(c.keys...).Args(c.args...).Blocking()
}
