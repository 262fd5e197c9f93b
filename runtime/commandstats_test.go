package emq_test

import (
	"fmt"
	"slices"
	"strings"
)

// scriptCalls reads from INFO commandstats how many script calls a server has run, and in how many
// microseconds.
func scriptCalls(stats string) (calls, usec int64) { return callsOf(stats, "eval", "evalsha") }

// callsOf sums up what INFO commandstats says of some commands.
func callsOf(stats string, commands ...string) (calls, usec int64) {
	for line := range strings.Lines(stats) {
		name, values, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || !slices.Contains(commands, strings.TrimPrefix(name, "cmdstat_")) {
			continue
		}
		var c, u int64
		if _, err := fmt.Sscanf(values, "calls=%d,usec=%d", &c, &u); err == nil {
			calls, usec = calls+c, usec+u
		}
	}
	return calls, usec
}
