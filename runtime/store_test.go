package emq_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// store is a server with a client under test, and with a connection that looks at its keys from outside.
type store struct {
	*emq.Client
	url    string
	raw    rueidis.Client
	server *redistest.Server // nil for the embedded one
}

// onEachStore runs a test on a real server and on the embedded one, beside other tests.
func onEachStore(t *testing.T, test func(t *testing.T, s *store)) {
	t.Helper()
	t.Parallel()
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, realStore(t))
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		e, err := embedded.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		client, err := e.Open(t.Context(), emq.WithLogger(new(logbook).logger()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		test(t, &store{Client: client, url: e.URL(), raw: outside(t, e.URL())})
	})
}

// realStore starts a real server and opens a client of it.
func realStore(t *testing.T, args ...string) *store {
	t.Helper()
	server := redistest.Start(t, args...)
	return &store{Client: openClient(t, server.URL()), url: server.URL(), raw: outside(t, server.URL()), server: server}
}

// openClient opens a client that is closed when the test ends.
func openClient(t testing.TB, url string, opts ...emq.ClientOption) *emq.Client {
	t.Helper()
	client, err := emq.Open(t.Context(), url, append([]emq.ClientOption{emq.WithLogger(new(logbook).logger())}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func outside(t *testing.T, url string) rueidis.Client {
	t.Helper()
	raw, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{strings.TrimPrefix(url, "redis://")}, DisableCache: true, PipelineMultiplex: -1,
		Dialer: net.Dialer{Timeout: 5 * time.Second, KeepAlive: time.Hour}, // no PINGs among the counted commands
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	return raw
}

// do sends a command from outside; its reply must not be an error.
func (s *store) do(t *testing.T, words ...string) rueidis.RedisResult {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		res := s.raw.Do(ctx, s.raw.B().Arbitrary(words...).Build())
		err := res.Error()
		if err == nil || rueidis.IsRedisNil(err) {
			return res
		}
		// a connection that has outlived its server says so once
		if _, answered := rueidis.IsRedisErr(err); answered || ctx.Err() != nil {
			t.Fatalf("%v: %v", words, err)
		}
	}
}

// row is a job's row; empty when it is gone.
func (s *store) row(t *testing.T, ref emq.Ref) map[string]string {
	t.Helper()
	row, err := s.do(t, "HGETALL", "emq:{"+ref.Queue+"}:job:"+string(ref.ID)).AsStrMap()
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// counts are the queue's, at one moment.
func (s *store) counts(t *testing.T, queue string) emq.Counts {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := s.Queue(queue).Counts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// now is the server's clock.
func (s *store) now(t *testing.T) time.Time {
	t.Helper()
	words, err := s.do(t, "TIME").AsStrSlice()
	if err != nil || len(words) != 2 {
		t.Fatal("TIME answered ", words, err)
	}
	sec, err1 := strconv.ParseInt(words[0], 10, 64)
	usec, err2 := strconv.ParseInt(words[1], 10, 64)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	return time.Unix(sec, usec*1000)
}

// put enqueues one job that must be new.
func put[J emq.Payload[J]](t *testing.T, e emq.Enqueuer, payload J, opts ...emq.Option) emq.Ref {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, err := emq.Enqueue(ctx, e, payload, opts...)
	if err != nil || r.Status != emq.Enqueued {
		t.Fatalf("enqueue: %v, %v", r.Status, err)
	}
	return r.Ref
}

// putMany enqueues n jobs in batches.
func putMany[J emq.Payload[J]](t *testing.T, e emq.Enqueuer, n int, payload func(i int) J) []emq.Ref {
	t.Helper()
	batch := make([]emq.Job, n)
	for i := range batch {
		batch[i] = emq.New(payload(i))
	}
	receipts, err := e.Enqueue(t.Context(), batch...)
	if err != nil {
		t.Fatal(err)
	}
	refs := make([]emq.Ref, n)
	for i, r := range receipts {
		if r.Status != emq.Enqueued {
			t.Fatalf("job %d: %v", i, r.Status)
		}
		refs[i] = r.Ref
	}
	return refs
}

// commands counts the calls of each command that the server has run: those that clients sent and those
// that scripts called.
func (s *store) commands(t *testing.T) map[string]int64 {
	t.Helper()
	text, err := s.do(t, "INFO", "commandstats").ToString()
	if err != nil {
		t.Fatal(err)
	}
	calls := make(map[string]int64)
	for line := range strings.Lines(text) {
		name, values, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":")
		var n int64
		if !ok {
			continue
		}
		if _, err := fmt.Sscanf(values, "calls=%d,", &n); err == nil {
			calls[name] = n
		}
	}
	return calls
}

// info is a number that INFO tells.
func (s *store) info(t *testing.T, section, name string) int {
	t.Helper()
	text, err := s.do(t, "INFO", section).ToString()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), name); ok {
			n, err := strconv.Atoi(v)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("INFO %s has no %s", section, name)
	return 0
}
