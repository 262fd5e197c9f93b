package emq

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
)

// modest is a job of the user with few permissions; its text says what its handler does.
type modest struct{ Do string }

func (modest) EmqSpec() Spec[modest] {
	return Spec[modest]{Queue: "modest", Kind: "modest", Attempts: 2, Timeout: time.Minute, Backoff: Fixed(10 * time.Millisecond),
		Retain: 50 * time.Millisecond, UniqueKey: func(m modest) string { return UniqueKey("modest", m.Do) }}
}

func (modest) EmqResult() (s string) { return }

// hurried is unique until it starts.
type hurried struct{ N int }

func (hurried) EmqSpec() Spec[hurried] {
	return Spec[hurried]{Queue: "modest", Kind: "hurried", Attempts: 1, Timeout: time.Minute, UniqueFor: UntilStart(),
		UniqueKey: func(hurried) string { return "hurried" }}
}

// spaced is unique for a time.
type spaced struct{ N int }

func (spaced) EmqSpec() Spec[spaced] {
	return Spec[spaced]{Queue: "modest", Kind: "spaced", Attempts: 1, Timeout: time.Minute, UniqueFor: ForWindow(time.Minute),
		UniqueKey: func(spaced) string { return "spaced" }}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// limited makes a user with the listed commands but those that are left out.
func limited(t *testing.T, server *redistest.Server, without string, more ...string) {
	t.Helper()
	words := []string{"ACL", "SETUSER", "modest", "reset", "on", ">word", "~emq:*", "~{emq}:*", "resetchannels", "&emq:*"}
	for _, command := range needed() {
		if command[0] != without {
			words = append(words, "+"+strings.ToLower(command[0]))
		}
	}
	if _, err := server.Command(append(words, more...)...); err != nil {
		t.Fatal(err)
	}
}

func openModest(ctx context.Context, server *redistest.Server) (*Client, error) {
	return Open(ctx, "redis://modest:word@"+server.Addr(), WithLogger(quiet()))
}

// Experiment 27, second half.
func TestAUserWhoLacksOneCommandIsRefusedByItsName(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	ask := []string{"+acl|whoami", "+acl|dryrun"}
	limited(t, server, "", ask...)
	c, err := openModest(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	for _, command := range needed() {
		limited(t, server, command[0], ask...)
		_, err := openModest(t.Context(), server)
		if command[0] == "INFO" && errors.Is(err, ErrPermission) {
			continue // refused INFO is a warning where the server cannot be asked
		}
		if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), " "+command[0]+" ") || !strings.Contains(err.Error(), `"modest"`) {
			t.Errorf("%s: %v", command[0], err)
		}
	}
	limited(t, server, "", append(ask, "resetkeys", "~other:*", "~{emq}:*")...)
	if _, err := openModest(t.Context(), server); !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "emq:{x}:") {
		t.Errorf("a user of other keys: %v", err)
	}
}

// Experiment 27, first half. The user may not even ask for its permissions.
func TestAUserWithOnlyTheListedCommandsAndKeysCanDoEverything(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limited(t, server, "")
	c, err := openModest(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	var refused atomic.Value
	watch := observerFunc(func(e Event) {
		if e.Name == EventRefused || e.Name == EventResent {
			refused.Store(e.Err)
		}
	})
	until := func(what string, ok func(Counts) bool) {
		t.Helper()
		deadline := time.Now().Add(20 * time.Second)
		for {
			counts, err := c.Queue("modest").Counts(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if ok(counts) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("not within 20 s: %s: %+v, %v", what, counts, refused.Load())
			}
			time.Sleep(2 * time.Millisecond) // polling with a deadline
		}
	}
	waits := make(chan struct{}, 1)
	var slept atomic.Bool
	handlers := Bind(HandleResult(func(ctx context.Context, m modest) (string, error) {
		if info, _ := InfoFrom(ctx); m.Do == "fail" || m.Do == "retry" && info.Attempt == 1 {
			return "", errors.New("fails")
		}
		switch m.Do {
		case "snooze":
			if slept.CompareAndSwap(false, true) {
				return "", Snooze(10 * time.Millisecond)
			}
		case "discard":
			return "", Discard(nil)
		case "kill":
			return "", Dead(nil)
		case "wait":
			waits <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}
		return "ok", nil
	}), Handle(func(context.Context, hurried) error { return nil }), Handle(func(context.Context, spaced) error { return nil }))
	w, err := NewWorker(c, WorkerConfig{Concurrency: 2, Lease: 300 * time.Millisecond, Logger: quiet(), Observer: watch}, handlers)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	runCtx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() { ended <- w.Run(runCtx) }()

	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	receipts, err := c.Enqueue(ctx, New(modest{"plain"}), New(modest{"retry"}), New(modest{"snooze"}), New(modest{"discard"}), New(modest{"kill"}),
		New(modest{"fail"}), New(modest{"later"}, In(20*time.Millisecond)), New(hurried{}), New(spaced{}), New(modest{"wait"}))
	must(err)
	<-waits
	must(c.Cancel(ctx, receipts[9].Ref))
	waiting, err := Enqueue(ctx, c, modest{"cancelled while it waits"}, In(time.Hour))
	must(err)
	must(c.Cancel(ctx, waiting.Ref))
	until("every ending is reached", func(n Counts) bool {
		return n.Totals["completed"] == 6 && n.Dead == 2 && n.Totals["discarded"] == 1 && n.Totals["cancelled"] == 2 && n.Completed == 0 && n.Active == 0
	})
	must(c.Queue("modest").Reprocess(ctx, receipts[4].ID))
	until("the reprocessed one is dead again", func(n Counts) bool { return n.Totals["failed"] == 3 && n.Dead == 2 })
	// a claim of a process that died
	if _, err := server.Command("ZADD", "emq:{modest}:active", "1", string(receipts[4].ID)); err != nil {
		t.Fatal(err)
	}
	until("the orphan is reaped", func(n Counts) bool { return n.Totals["orphan"] == 1 })
	// lanes
	q := c.Queue("modest")
	must(q.SetLaneLimit(ctx, "a", 1))
	must(q.SetLaneWeight(ctx, "a", 2))
	must(q.PauseLane(ctx, "a"))
	if _, err := Enqueue(ctx, c, spaced{}, InLane("a")); err != nil {
		t.Fatal(err)
	}
	for cursor, more := "", true; more; {
		page, err := q.Lanes(ctx, cursor, 10)
		must(err)
		cursor, more = page.Next, page.Next != ""
	}
	must(q.ResumeLane(ctx, "a"))
	must(q.ClearLaneLimit(ctx, "a"))
	// limits
	for _, field := range []string{"concurrency", "rate_max", "max_len"} {
		if _, err := server.Command("HSET", "emq:{modest}:meta", field, "50", "rate_ms", "1000"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Enqueue(ctx, c, modest{"limited"}); err != nil {
		t.Fatal(err)
	}
	until("it runs under limits", func(n Counts) bool { return n.Totals["completed"] == 7 })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	// removing, replaying, repairing
	parked, err := Enqueue(ctx, c, spaced{}, InLane("b"), In(time.Hour))
	must(err)
	if parked.Status == Enqueued {
		must(q.Remove(ctx, parked.ID))
	}
	if _, err := Enqueue(ctx, c, modest{"moves"}, InLane("b")); err != nil {
		t.Fatal(err)
	}
	_, err = q.ReassignLane(ctx, "b", "")
	must(err)
	if _, err := server.Command("DEL", "emq:{modest}:pending"); err != nil {
		t.Fatal(err)
	}
	if report, err := q.Audit(ctx, AuditOptions{}); err != nil || report.Pending == 0 {
		t.Errorf("audit: %+v, %v", report, err)
	}
	_, err = q.ReprocessAll(ctx, ReprocessOptions{})
	must(err)
	_, err = q.Drain(ctx, DrainOptions{Scheduled: true})
	must(err)
	must(q.Pause(ctx))
	_, err = q.Obliterate(ctx, ObliterateOptions{})
	must(err)
	if err := refused.Load(); err != nil {
		t.Errorf("something was refused: %v", err)
	}
	nothingDenied(t, server)
}

// nothingDenied looks at what the server denied: the client library's own questions when it connects, and nothing else.
func nothingDenied(t *testing.T, server *redistest.Server) {
	t.Helper()
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	entries, err := raw.Do(t.Context(), raw.B().Arbitrary("ACL", "LOG", "128").Build()).ToArray()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		m, err := e.AsStrMap()
		if err != nil {
			t.Fatal(err)
		}
		switch word, _, _ := strings.Cut(strings.ToLower(m["object"]), "|"); word {
		case "acl", "client", "cluster", "ping":
		default:
			t.Errorf("denied: %v", m)
		}
	}
}

type observerFunc func(Event)

// Observe calls the function.
func (f observerFunc) Observe(_ context.Context, e Event) { f(e) }

var commandOfScript = regexp.MustCompile(`redis\.p?call\(\s*'([A-Z]+)'`)

func commandsOfScripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("scripts/*.lua")
	shared, err2 := filepath.Glob("scripts/shared/*.lua")
	if err != nil || err2 != nil || len(files) < 10 || len(shared) < 5 {
		t.Fatal(files, shared, err, err2)
	}
	var names []string
	for _, f := range append(files, shared...) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range commandOfScript.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// The channels are as much a permission as the commands.
func TestAUserWhoLacksTheChannelsIsRefusedByTheirName(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limited(t, server, "", "+acl|whoami", "+acl|dryrun", "resetchannels", "&other:*")
	if _, err := openModest(t.Context(), server); !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "channel") {
		t.Errorf("without its channels: %v", err)
	}
}

// The list must not grow stale: every command that a script calls is on it.
func TestEveryCommandOfAScriptIsOnTheListOfPermissions(t *testing.T) {
	t.Parallel()
	var listed []string
	for _, command := range needed() {
		listed = append(listed, command[0])
	}
	for _, name := range commandsOfScripts(t) {
		if !slices.Contains(listed, name) {
			t.Errorf("%s is called by a script and is not on the list", name)
		}
	}
	if len(listed) != len(slices.Compact(slices.Sorted(slices.Values(listed)))) {
		t.Error("a command is listed twice")
	}
}
