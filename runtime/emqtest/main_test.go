package emqtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	emq "github.com/echomq/emq/runtime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// greet is a plain job, with all that time can do to one.
type greet struct {
	Name string `json:"name"`
}

func (greet) EmqSpec() emq.Spec[greet] {
	return emq.Spec[greet]{Queue: "mail", Kind: "greet", Version: 1, Attempts: 3, Timeout: time.Minute, Backoff: emq.Fixed(10 * time.Minute)}
}

// daily is unique for a day.
type daily struct{ User int }

func (daily) EmqSpec() emq.Spec[daily] {
	return emq.Spec[daily]{Queue: "mail", Kind: "daily", Version: 1, Attempts: 3, Timeout: time.Minute,
		UniqueFor: emq.ForWindow(24 * time.Hour), UniqueKey: func(j daily) string { return emq.UniqueKey("daily", fmt.Sprint(j.User)) }}
}

// charge has a result, an alias and an older version.
type charge struct {
	Cents int `json:"cents"`
}

type receipt struct{ Number string }

func (charge) EmqSpec() emq.Spec[charge] {
	return emq.Spec[charge]{Queue: "billing", Kind: "charge", Aliases: []string{"bill"}, Version: 2, Attempts: 3, Timeout: time.Minute, Retain: time.Hour}
}

func (charge) EmqResult() (r receipt) { return r }

type chargeV1 struct {
	Dollars int `json:"dollars"`
}

var errNegative = errors.New("a negative sum")

func (old chargeV1) Upgrade() (charge, error) {
	if old.Dollars < 0 {
		return charge{}, fmt.Errorf("%w: %w", emq.ErrInvalid, errNegative)
	}
	return charge{Cents: 100 * old.Dollars}, nil
}

// handled notes what a handler got.
type handled[J any] struct {
	mu   sync.Mutex
	jobs []J
	errs []error // what it returns, in turn; nil when they are used up
}

func (h *handled[J]) handle(_ context.Context, job J) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jobs = append(h.jobs, job)
	if n := len(h.jobs); n <= len(h.errs) {
		return h.errs[n-1]
	}
	return nil
}

// failing is a test that is expected to fail: it keeps what it would say.
type failing struct {
	testing.TB
	mu    sync.Mutex
	said  []string
	fatal bool
}

type stopped struct{}

func (f *failing) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

func (f *failing) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	f.fatal = true
	panic(stopped{})
}

func (f *failing) Fatal(args ...any) { f.Fatalf("%s", fmt.Sprint(args...)) }

// expect runs a piece of a test that must fail, fatally or not, and say each of the words.
func expect(t *testing.T, fatal bool, piece func(t testing.TB), words ...string) {
	t.Helper()
	f := &failing{TB: t}
	func() {
		defer func() {
			if p := recover(); p != nil && p != any(stopped{}) {
				panic(p)
			}
		}()
		piece(f)
	}()
	text := strings.Join(f.said, "\n")
	if len(f.said) == 0 || f.fatal != fatal {
		t.Errorf("failed: %v, fatally: %v; want it to fail, fatally: %v. It said: %s", len(f.said) > 0, f.fatal, fatal, text)
	}
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("the failure does not say %q: %s", word, text)
		}
	}
}

func enqueue[J emq.Payload[J]](t *testing.T, e emq.Enqueuer, job J, opts ...emq.Option) emq.Receipt {
	t.Helper()
	receipt, err := emq.Enqueue(t.Context(), e, job, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return receipt
}
