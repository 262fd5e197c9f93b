package emq_test

import (
	"fmt"
	"strings"
)

// scriptCalls reads from INFO commandstats how many script calls a server has run, and in how many
// microseconds.
func scriptCalls(stats string) (calls, usec int64) {
	for line := range strings.Lines(stats) {
		name, values, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || name != "cmdstat_evalsha" && name != "cmdstat_eval" {
			continue
		}
		var c, u int64
		if _, err := fmt.Sscanf(values, "calls=%d,usec=%d", &c, &u); err == nil {
			calls, usec = calls+c, usec+u
		}
	}
	return calls, usec
}
