package main

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/echomq/emq/examples/readme/mail"
	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// enqueueMore shows what else an enqueue can say.
func enqueueMore(ctx context.Context, client *emq.Client, jobs mail.Producer, noon time.Time) error {
	// many at once, of any kinds, each with its own options; receipts are in the same order
	receipts, err := jobs.Enqueue(ctx,
		emq.New(mail.Welcome{UserID: 7, Email: "ada@example.org"}, emq.At(noon)),
		emq.New(mail.Welcome{UserID: 8, Email: "bob@example.org"}, emq.WithHeader("trace", "4bf92f35")))
	if err != nil {
		return err
	}
	if receipts[0].Status == emq.Conflict {
		slog.Info("somebody greets her already", "job", receipts[0].Holder)
	}

	// a call that can be made again: the second answers emq.Duplicate
	id, err := client.NewID()
	if err != nil {
		return err
	}
	_, err = jobs.EnqueueWelcome(ctx, mail.Welcome{UserID: 9, Email: "eve@example.org"}, emq.WithID(id))
	return err
}

var errNotYet, errNoAddress = errors.New("the provider has no quota left"), errors.New("no such address")

// verdicts shows what a handler can return besides nil and an error.
func verdicts(what string) error {
	switch what {
	case "slow down":
		return emq.RetryIn(time.Minute, errNotYet) // this delay, not the backoff's; counts as an attempt
	case "not now":
		return emq.Snooze(time.Hour) // nothing is wrong; counts as no attempt
	case "hopeless":
		return emq.Dead(errNoAddress) // a dead letter at once
	case "pointless":
		return emq.Discard(nil) // gone; nothing is kept
	}
	return nil
}

// operate shows an operator's verbs.
func operate(ctx context.Context, client *emq.Client, dead emq.ID, unwanted emq.Ref) error {
	queue := client.Queue(mail.QueueMail)
	counts, err := queue.Counts(ctx) // in constant time
	if err != nil {
		return err
	}
	slog.Info("mail", "wait", counts.Pending, "run", counts.Active, "dead", counts.Dead, "ever", counts.Totals["completed"])

	if err := queue.Reprocess(ctx, dead); err != nil { // a dead letter gets a new life
		return err
	}
	err = client.Cancel(ctx, unwanted) // one that runs: its context ends with emq.ErrCancelled
	if errors.Is(err, emq.ErrGone) {
		return nil // it has ended already
	}
	return err
}

// metrics counts events; the real one has counters of your library.
type metrics struct{ events chan emq.Event }

func (m metrics) Observe(_ context.Context, e emq.Event) {
	select {
	case m.events <- e: // e.Name, e.Queue, e.Kind, e.Wait, e.Took, e.Err
	default:
	}
}

func openInProduction(ctx context.Context, url string, m metrics) (*emq.Client, error) {
	return emq.Open(ctx, url,
		emq.WithPrefix("shop"),   // required reading: see below
		emq.WithStrictEviction(), // a server that may evict jobs is an error
		emq.WithObserver(m))
}

// ready answers a readiness probe.
func ready(queue *emq.Queue) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Second)
		defer cancel()
		if _, err := queue.Counts(ctx); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	}
}

func TestEachVerdictOfAHandlerDoesWhatItsCommentSays(t *testing.T) {
	for what, want := range map[string]struct {
		total string
		in    func(emq.Counts) int64
	}{
		"slow down": {"retried", func(c emq.Counts) int64 { return c.Scheduled }},
		"not now":   {"snoozed", func(c emq.Counts) int64 { return c.Scheduled }},
		"hopeless":  {"failed", func(c emq.Counts) int64 { return c.Dead }},
		"pointless": {"discarded", func(c emq.Counts) int64 { return 1 - c.Dead - c.Scheduled - c.Pending - c.Active }},
		"well done": {"completed", func(c emq.Counts) int64 { return 1 - c.Dead - c.Scheduled - c.Pending - c.Active }},
	} {
		client, err := embedded.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		if _, err := mail.NewProducer(client).EnqueueWelcome(t.Context(), mail.Welcome{Email: what}); err != nil {
			t.Fatal(err)
		}
		counts := until(t, client, func(context.Context, string) error { return verdicts(what) },
			func(c emq.Counts) bool { return c.Totals[want.total] == 1 })
		if want.in(counts) != 1 {
			t.Errorf("%s: %+v", what, counts)
		}
	}
}

// until runs a worker until the queue's counts are as wanted.
func until(t *testing.T, client *emq.Client, greet func(context.Context, string) error, wanted func(emq.Counts) bool) emq.Counts {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	working, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- work(working, client, greet) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		counts, err := client.Queue(mail.QueueMail).Counts(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if wanted(counts) {
			return counts
		}
		<-tick.C
	}
}

func TestEnqueueAndOperateAsTheREADMEShows(t *testing.T) {
	m := metrics{make(chan emq.Event, 100)}
	client, err := embedded.Open(t.Context(), emq.WithObserver(m))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	jobs := mail.NewProducer(client)
	if err := enqueueMore(t.Context(), client, jobs, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	dead, err := jobs.EnqueueWelcome(t.Context(), mail.Welcome{Email: "nobody"})
	if err != nil {
		t.Fatal(err)
	}
	until(t, client, func(_ context.Context, email string) error {
		if email == "nobody" {
			return emq.Dead(errNoAddress)
		}
		return nil
	}, func(c emq.Counts) bool { return c.Dead == 1 && c.Totals["completed"] == 2 })
	later, err := jobs.EnqueueWelcome(t.Context(), mail.Welcome{Email: "later"}, emq.In(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if err := operate(t.Context(), client, dead.ID, later.Ref); err != nil {
		t.Fatal(err)
	}
	counts, err := client.Queue(mail.QueueMail).Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if counts.Dead != 0 || counts.Pending != 1 || counts.Totals["cancelled"] != 1 {
		t.Errorf("%+v", counts)
	}
	close(m.events)
	seen := make(map[emq.EventName]bool)
	for e := range m.events {
		seen[e.Name] = true
	}
	if !seen[emq.EventDead] || !seen[emq.EventCompleted] {
		t.Errorf("events %v", seen)
	}
}

func TestOpenInProductionAndReadiness(t *testing.T) {
	server := redistest.Start(t, "--maxmemory-policy", "noeviction")
	client, err := openInProduction(t.Context(), server.URL(), metrics{make(chan emq.Event, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	probe := func() int {
		answer := httptest.NewRecorder()
		ready(client.Queue(mail.QueueMail))(answer, httptest.NewRequest(http.MethodGet, "/ready", nil))
		return answer.Code
	}
	if code := probe(); code != http.StatusOK {
		t.Errorf("%d while the server is there", code)
	}
	server.Kill()
	if code := probe(); code != http.StatusServiceUnavailable {
		t.Errorf("%d while the server is away", code)
	}
}
