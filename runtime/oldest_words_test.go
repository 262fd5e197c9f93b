package emq

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
)

// oldWords is a client of a server that answers as one before 7.0 does when a command of a script is refused.
type oldWords struct {
	rueidis.Client
	heard func(string) // each such answer
}

var refusedInScript = regexp.MustCompile(`^([A-Z]+ .*) script: (?:([0-9a-f]+), )?on @user_script:(\d+)\.$`)

func (o oldWords) old(res rueidis.RedisResult) rueidis.RedisResult {
	reply, ok := rueidis.IsRedisErr(res.Error())
	if !ok {
		return res
	}
	m := refusedInScript.FindStringSubmatch(reply.Error())
	if m == nil {
		return res
	}
	o.heard(m[1])
	said := fmt.Sprintf("ERR Error running script (call to f_%s): @user_script:%s: @user_script: %s: -%s   ", m[2], m[3], m[3], m[1])
	say := o.Client.B().Eval().Script("return redis.error_reply(ARGV[1])").Numkeys(0).Arg(said).Build()
	return o.Client.Do(context.Background(), say)
}

// Do is that of the client.
func (o oldWords) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return o.old(o.Client.Do(ctx, cmd))
}

// DoMulti is that of the client.
func (o oldWords) DoMulti(ctx context.Context, cmds ...rueidis.Completed) []rueidis.RedisResult {
	results := o.Client.DoMulti(ctx, cmds...)
	for i := range results {
		results[i] = o.old(results[i])
	}
	return results
}

// Before 7.0 a server wraps what a script's command is refused with. A full server is still ErrFull, and one that was
// demoted waited for, by those who enqueue and those who settle.
func TestTheWordsOfServersBefore7AreReadToo(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	must := func(words ...string) {
		t.Helper()
		if _, err := server.Command(words...); err != nil {
			t.Error(words, err)
		}
	}
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	var heard atomic.Int32
	var then atomic.Pointer[func()]
	c, err := NewClient(oldWords{raw, func(string) {
		if heard.Add(1) == 3 {
			(*then.Load())()
		}
	}}, WithLogger(quiet()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	after := func(f func()) { then.Store(&f); heard.Store(0) }

	nothing := func() {}
	after(nothing)
	must("CONFIG", "SET", "maxmemory", "1")
	one, err := Enqueue(t.Context(), c, modest{"full"})
	if !errors.Is(err, ErrFull) || one.Status != Refused {
		t.Errorf("at the maximum of memory: %v, %v", one.Status, err)
	}
	many, err := c.Enqueue(t.Context(), New(modest{"full"}), New(frugal{N: 1}), New(modest{"later"}, In(time.Hour)))
	for _, r := range many {
		if !errors.Is(err, ErrFull) || r.Status != Refused {
			t.Errorf("a batch at the maximum of memory: %v, %v", r.Status, err)
		}
	}
	if n := heard.Load(); n != 4 {
		t.Errorf("%d of 4 refusals were in the old words", n)
	}
	must("CONFIG", "SET", "maxmemory", "0")

	// a replica refuses the first tries, and is made a master then
	after(func() { must("REPLICAOF", "NO", "ONE") })
	must("REPLICAOF", "127.0.0.1", "1")
	if one, err = Enqueue(t.Context(), c, modest{"plain"}); err != nil || one.Status != Enqueued {
		t.Errorf("while the server was a replica: %v, %v", one.Status, err)
	}
	after(func() { must("REPLICAOF", "NO", "ONE") })
	must("REPLICAOF", "127.0.0.1", "1")
	if many, err = c.Enqueue(t.Context(), New(frugal{N: 2}), New(frugal{N: 3})); err != nil || many[1].Status != Enqueued {
		t.Errorf("a batch while the server was a replica: %v", err)
	}
	after(nothing)
	must("REPLICAOF", "127.0.0.1", "1")
	if one, err = Enqueue(t.Context(), c, modest{"never"}); err == nil || one.Status != Refused {
		t.Errorf("on a server that stays a replica: %v, %v", one.Status, err)
	}
	must("REPLICAOF", "NO", "ONE")
	if counts, err := c.Queue("frugal").Counts(t.Context()); err != nil || counts.Pending != 2 {
		t.Errorf("%+v, %v", counts, err)
	}
}
