package emqtest

import (
	"strconv"
	"strings"
)

// sawEverybody notes in each queue with jobs in flight that others are alive now, and ends a grace that
// has begun, as the heartbeats of other processes would have by the time that the clock shows (docs/wire.md, reap).
func (e *Env) sawEverybody() {
	for _, key := range e.redis.Keys() {
		base, found := strings.CutSuffix(key, "}:active")
		if !found {
			continue
		}
		meta := base + "}:meta"
		e.redis.HSet(meta, "seen", strconv.FormatInt(e.now.UnixMilli(), 10))
		e.redis.HDel(meta, "grace")
	}
}
