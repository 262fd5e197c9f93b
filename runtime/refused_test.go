package emq_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// explosive panics when it is encoded.
type explosive struct{}

func (explosive) EmqSpec() emq.Spec[explosive] {
	return emq.Spec[explosive]{Queue: "work", Kind: "explosive", Version: 1, Attempts: 1, Timeout: time.Minute}
}
func (explosive) MarshalJSON() ([]byte, error) { panic("bang") }

func embeddedClient(t *testing.T, opts ...emq.ClientOption) *emq.Client {
	t.Helper()
	client, err := embedded.Open(t.Context(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestWhatIsCertainlyNotInTheQueueIsRefused(t *testing.T) {
	client := embeddedClient(t, emq.WithMaxPayload(1000))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx  context.Context
		jobs []emq.Job
		want error
	}{
		"the whole batch of an invalid job":     {t.Context(), []emq.Job{emq.New(job{1}), emq.New(job{2}, emq.In(-1))}, emq.ErrInvalid},
		"a nil option":                          {t.Context(), []emq.Job{emq.New(job{1}, nil)}, emq.ErrInvalid},
		"a payload that panics when encoded":    {t.Context(), []emq.Job{emq.New(explosive{})}, emq.ErrInvalid},
		"headers over the limit":                {t.Context(), []emq.Job{emq.New(job{1}, emq.WithHeader("h", strings.Repeat("x", 1000)))}, emq.ErrTooLarge},
		"a call whose context has ended before": {ended, []emq.Job{emq.New(job{1})}, context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			receipts, err := client.Enqueue(test.ctx, test.jobs...)
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, not %v", err, test.want)
			}
			for i, r := range receipts {
				if r.Status != emq.Refused {
					t.Errorf("job %d is %v, not refused", i, r.Status)
				}
			}
		})
	}
	if c, err := client.Queue("work").Counts(t.Context()); err != nil || c.Pending != 0 {
		t.Errorf("%d jobs were written (%v)", c.Pending, err)
	}
}

func TestBadOptionsAndURLsAreFoundBeforeTheServerIsAsked(t *testing.T) {
	const nobody = "redis://127.0.0.1:1" // a refused connection would not be ErrInvalid
	for name, open := range map[string]func() (*emq.Client, error){
		"prefix":         func() (*emq.Client, error) { return emq.Open(t.Context(), nobody, emq.WithPrefix("a b")) },
		"nil option":     func() (*emq.Client, error) { return emq.Open(t.Context(), nobody, nil) },
		"nil middleware": func() (*emq.Client, error) { return emq.Open(t.Context(), nobody, emq.WithEnqueueMiddleware(nil)) },
		"scheme":         func() (*emq.Client, error) { return emq.Open(t.Context(), "http://127.0.0.1:1") },
		"parameter":      func() (*emq.Client, error) { return emq.Open(t.Context(), nobody+"?master_sett=x") },
		"database":       func() (*emq.Client, error) { return emq.Open(t.Context(), nobody+"/-1") },
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := open(); !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

type panicking struct{ seen atomic.Int32 }

func (p *panicking) Observe(context.Context, emq.Event) {
	p.seen.Add(1)
	panic("observer")
}

func TestAnObserverThatPanicsStopsNothing(t *testing.T) {
	client := embeddedClient(t)
	o := &panicking{}
	run(t, client, emq.WorkerConfig{Observer: o}, emq.Handle(func(context.Context, job) error { return nil }))
	if _, err := emq.Enqueue(t.Context(), client, job{1}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the job completes and is observed", func() bool {
		c, err := client.Queue("work").Counts(t.Context())
		return err == nil && c.Totals["completed"] == 1 && o.seen.Load() > 0
	})
}

func TestNilMiddlewareIsAFaultOfTheConfiguration(t *testing.T) {
	client := embeddedClient(t)
	handle := emq.Handle(func(context.Context, job) error { return nil })
	if _, err := emq.NewWorker(client, emq.WorkerConfig{Middleware: []emq.Middleware{nil}}, handle); !errors.Is(err, emq.ErrInvalid) {
		t.Errorf("in the configuration: %v", err)
	}
	if _, err := emq.NewWorker(client, emq.WorkerConfig{}, handle.With(nil)); !errors.Is(err, emq.ErrInvalid) {
		t.Errorf("around a binding: %v", err)
	}
}

// A job for which no connection could be made is certainly not there; one that a server may have got before
// the connection was lost may be.
func TestAnEnqueueThatFindsNobodyIsRefused(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	put(t, s.Client, job{1})
	s.server.Kill()
	eventually(t, "the client has seen that nobody is there", func() bool {
		_, err := s.Queue("work").Counts(t.Context())
		return err != nil && strings.Contains(err.Error(), "refused")
	})
	for _, jobs := range [][]emq.Job{{emq.New(job{2})}, {emq.New(job{3}), emq.New(job{4}, emq.InLane("a"))}} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		receipts, err := s.Enqueue(ctx, jobs...)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "was sent, as no connection") {
			t.Errorf("%d jobs: %v", len(jobs), err)
		}
		for _, r := range receipts {
			if r.Status != emq.Refused {
				t.Errorf("%v is %v, not refused", r.Ref, r.Status)
			}
		}
	}
}

// A call over a connection of its own does not see the end of its context, but ends soon, and says why.
func TestAnEnqueueAtAFrozenServerEndsSoonAfterItsContext(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	for n := range 3 { // the calls of a queue in use
		put(t, s.Client, job{n})
	}
	if err := s.server.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	began := time.Now()
	receipts, err := s.Enqueue(ctx, emq.New(job{3}))
	took := time.Since(began)
	if receipts[0].Status != emq.Unknown || !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", receipts, err)
	}
	if took > 10*time.Second { // 2 s, on a machine that has time
		t.Errorf("it took %v", took)
	}
	if err := s.server.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server reads what came meanwhile", func() bool { return s.counts(t, "work").Pending == 4 })
}

func TestAnEnqueueThatWasSentOnceIsUnknownAlsoIfNobodyIsThereLater(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	p := startProxy(t, s.url)
	client, err := emq.Open(t.Context(), p.Proxy.URL(), emq.WithLogger(new(logbook).logger()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	put(t, client, job{1})
	p.Judge(func(words []string) redistest.Fate {
		if !strings.EqualFold(words[0], "EVALSHA") {
			return redistest.Pass
		}
		go p.Close() // and nobody is there for the tries that follow
		return redistest.Lose
	})
	receipts, err := client.Enqueue(t.Context(), emq.New(job{2}))
	if err == nil || receipts[0].Status != emq.Unknown || !strings.Contains(err.Error(), "fate") {
		t.Errorf("%+v, %v", receipts, err)
	}
}
