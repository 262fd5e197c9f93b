package emq_test

import (
	"strings"
	"testing"

	"github.com/echomq/emq/internal/redistest"
)

// proxy loses the replies of commands that the server has already run, or refuses commands in the
// server's place.
type proxy struct{ *redistest.Proxy }

func startProxy(t *testing.T, serverURL string) proxy {
	t.Helper()
	p, err := redistest.NewProxy(strings.TrimPrefix(serverURL, "redis://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return proxy{p}
}

// losing sets which replies are lost from now on; nil: none. It answers how many were lost so far.
func (p proxy) losing(lose func(words []string) bool) int { return p.meeting(redistest.Lose, lose) }

// denying sets which commands are refused from now on; nil: none. It answers how many were so far.
func (p proxy) denying(deny func(words []string) bool) int { return p.meeting(redistest.Refuse, deny) }

func (p proxy) meeting(fate redistest.Fate, who func(words []string) bool) int {
	p.Judge(func(words []string) redistest.Fate {
		if who != nil && who(words) {
			return fate
		}
		return redistest.Pass
	})
	return p.Count(fate)
}

// touchesRow tells the scripts whose second key is a row: complete and discard.
func touchesRow(words []string) bool {
	return len(words) > 4 && strings.HasPrefix(strings.ToUpper(words[0]), "EVAL") && strings.Contains(words[4], ":job:")
}

// admits tells the scripts that take jobs in: their first key is the row, or they have the four keys of a
// gathered call.
func admits(words []string) bool {
	return len(words) > 3 && strings.HasPrefix(strings.ToUpper(words[0]), "EVAL") &&
		(strings.Contains(words[3], ":job:") || words[2] == "4" && strings.HasSuffix(words[3], ":pending"))
}

// times lets a predicate be true n times.
func times(n int, is func([]string) bool) func([]string) bool {
	return func(words []string) bool {
		if n == 0 || !is(words) {
			return false
		}
		n--
		return true
	}
}

// settles tells the scripts that settle: those that touch a row, and the gathered call, whose first keys are the
// running and the waiting jobs.
func settles(words []string) bool {
	return touchesRow(words) || len(words) > 4 && strings.HasPrefix(strings.ToUpper(words[0]), "EVAL") &&
		strings.HasSuffix(words[3], ":active") && strings.HasSuffix(words[4], ":pending")
}
