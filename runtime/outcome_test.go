package emq_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// patient is a job with a timeout that no test waits for; hasty is one whose timeout passes.
type (
	patient struct{ N int }
	hasty   struct{ N int }
)

func (patient) EmqSpec() emq.Spec[patient] {
	return emq.Spec[patient]{Queue: "out", Kind: "patient", Attempts: 3, Timeout: time.Minute, Backoff: emq.Fixed(time.Hour)}
}

func (hasty) EmqSpec() emq.Spec[hasty] {
	return emq.Spec[hasty]{Queue: "out", Kind: "hasty", Attempts: 3, Timeout: 100 * time.Millisecond, Backoff: emq.Fixed(time.Hour)}
}

// effect is what a settle has left behind.
type effect struct {
	total    string // the counter that has moved
	state    string // of the row; empty: gone
	forgiven string
	delay    time.Duration // of a scheduled one
}

var (
	completes = effect{total: "completed"}
	retries   = effect{"retried", "scheduled", "", time.Hour}
	retriesIn = effect{"retried", "scheduled", "", 2 * time.Hour}
	snoozes   = effect{"snoozed", "scheduled", "1", 3 * time.Hour}
	discards  = effect{total: "discarded"}
	kills     = effect{"failed", "dead", "", 0}
	releases  = effect{"released", "pending", "1", 0}
	cancels   = effect{total: "cancelled"}
	untouched = effect{"", "active", "", 0}
)

// returns is everything that a handler can say, with its effect where nothing has cancelled its context.
func returns() []struct {
	name string
	err  error
	does effect
} {
	inner := errors.New("the reason")
	wrap := func(err error) error { return fmt.Errorf("in the handler: %w", err) }
	return []struct {
		name string
		err  error
		does effect
	}{
		{"nil", nil, completes},
		{"a plain error", inner, retries},
		{"a wrapped plain error", wrap(inner), retries},
		{"RetryIn", emq.RetryIn(2*time.Hour, inner), retriesIn},
		{"RetryIn wrapped", wrap(emq.RetryIn(2*time.Hour, inner)), retriesIn},
		{"RetryIn of nil", emq.RetryIn(2*time.Hour, nil), retriesIn},
		{"Snooze", emq.Snooze(3 * time.Hour), snoozes},
		{"Snooze wrapped", wrap(emq.Snooze(3 * time.Hour)), snoozes},
		{"Discard", emq.Discard(inner), discards},
		{"Discard wrapped", wrap(emq.Discard(inner)), discards},
		{"Discard of nil", emq.Discard(nil), discards},
		{"Dead", emq.Dead(inner), kills},
		{"Dead wrapped", wrap(emq.Dead(inner)), kills},
		{"Dead of nil", emq.Dead(nil), kills},
		{"a policy in a policy", emq.Discard(emq.Dead(inner)), discards},
		{"joined with a policy", errors.Join(inner, emq.Dead(inner)), kills},
	}
}

// scene runs one job for each thing that a handler can return, all at once, and brings about a cause
// that cancels their contexts while they run.
type scene struct {
	*store
	refs    []emq.Ref
	stop    func()
	watcher watcher
	log     logbook
}

func play[J emq.Payload[J]](t *testing.T, s *store, payload func(int) J, number func(J) int, cause error, bring func(*scene)) *scene {
	t.Helper()
	said := returns()
	sc := &scene{store: s}
	var running, ended sync.WaitGroup
	running.Add(len(said))
	ended.Add(len(said))
	bound := emq.Handle(func(ctx context.Context, j J) error {
		defer ended.Done()
		running.Done()
		if cause != nil {
			<-ctx.Done()
		}
		if got := context.Cause(ctx); !errors.Is(got, cause) {
			t.Errorf("%s: the cause is %v, want %v", said[number(j)].name, got, cause)
		}
		return said[number(j)].err
	})
	sc.refs = putMany(t, s, len(said), payload)
	sc.stop = run(t, s.Client, emq.WorkerConfig{
		Concurrency: len(said), Lease: 600 * time.Millisecond, SoftStop: 20 * time.Millisecond,
		Observer: &sc.watcher, Logger: sc.log.logger(),
	}, bound)
	running.Wait()
	bring(sc)
	ended.Wait()
	sc.stop()
	return sc
}

func (sc *scene) check(t *testing.T, want func(plain effect) effect) {
	t.Helper()
	totals := make(map[string]int64)
	now := sc.now(t)
	for i, said := range returns() {
		w := want(said.does)
		if w.total != "" {
			totals[w.total]++
		}
		row := sc.row(t, sc.refs[i])
		attempts := ""
		if w.state != "" {
			attempts = "1"
		}
		if row["state"] != w.state || row["attempts"] != attempts || row["forgiven"] != w.forgiven {
			t.Errorf("%s: state %q attempts %q forgiven %q, want %q %q %q", said.name,
				row["state"], row["attempts"], row["forgiven"], w.state, attempts, w.forgiven)
		}
		if w.delay > 0 {
			score, err := sc.do(t, "ZSCORE", "emq:{out}:schedule", string(sc.refs[i].ID)).ToString()
			due, perr := strconv.ParseFloat(score, 64)
			if err != nil || perr != nil {
				t.Fatal(said.name, err, perr)
			}
			if d := time.UnixMilli(int64(due)).Sub(now); d > w.delay || d < w.delay-20*time.Second {
				t.Errorf("%s: due in %v, want %v", said.name, d, w.delay)
			}
		}
		if w == kills && row["last_error"] != strings.TrimPrefix(said.err.Error(), "dead: ") {
			t.Errorf("%s: last_error %q", said.name, row["last_error"])
		}
	}
	for name, n := range sc.counts(t, "out").Totals {
		if n != totals[name] {
			t.Errorf("%s is %d, want %d", name, n, totals[name])
		}
	}
	events := map[string]emq.EventName{"completed": emq.EventCompleted, "retried": emq.EventRetried, "snoozed": emq.EventSnoozed,
		"discarded": emq.EventDiscarded, "failed": emq.EventDead, "released": emq.EventReleased, "cancelled": emq.EventCancelled}
	for total, event := range events {
		if n := len(sc.watcher.named(event)); int64(n) != totals[total] {
			t.Errorf("%d events %s, want %d", n, event, totals[total])
		}
	}
}

func playPatient(t *testing.T, s *store, cause error, bring func(*scene)) *scene {
	t.Helper()
	return play(t, s, func(i int) patient { return patient{i} }, func(p patient) int { return p.N }, cause, bring)
}

func TestWhatAHandlerReturnsIsSettledAsItSays(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		playPatient(t, s, nil, func(*scene) {}).check(t, func(plain effect) effect { return plain })
	})
}

func TestAfterATimeoutWhatTheHandlerReturnsStillHolds(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		sc := play(t, s, func(i int) hasty { return hasty{i} }, func(h hasty) int { return h.N }, emq.ErrTimeout, func(*scene) {})
		sc.check(t, func(plain effect) effect { return plain })
	})
}

func TestAfterAShutdownAPlainErrorHandsTheJobBackAndEverythingElseHolds(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		sc := playPatient(t, s, emq.ErrShutdown, func(sc *scene) { sc.stop() })
		sc.check(t, func(plain effect) effect {
			if plain == retries {
				return releases
			}
			return plain
		})
	})
}

func TestACancelledJobEndsWhateverItsHandlerSaysUnlessItCompletes(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		sc := playPatient(t, s, emq.ErrCancelled, func(sc *scene) {
			for _, ref := range sc.refs {
				if err := sc.Cancel(t.Context(), ref); err != nil {
					t.Error(err)
				}
			}
		})
		sc.check(t, func(plain effect) effect {
			if plain == completes {
				return completes
			}
			return cancels
		})
	})
}

func TestAfterALostLeaseAPlainErrorSendsNothingAndEverythingElseIsSent(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		sc := playPatient(t, s, emq.ErrLeaseLost, func(sc *scene) {
			sc.do(t, "DEL", "emq:{out}:active")
		})
		sc.check(t, func(plain effect) effect {
			if plain == retries {
				return untouched
			}
			return plain
		})
		if n := len(sc.watcher.named(emq.EventLost)); n != len(returns()) {
			t.Errorf("%d leases were reported as lost, want %d", n, len(returns()))
		}
	})
}

// A lost lease whose job somebody else has claimed since: whatever is sent is refused.
func TestUnderAnotherClaimNothingThatALateHandlerSaysIsTaken(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		sc := playPatient(t, s, emq.ErrLeaseLost, func(sc *scene) {
			for _, ref := range sc.refs {
				sc.do(t, "HSET", "emq:{out}:job:"+string(ref.ID), "by", "somebody")
			}
		})
		sent := int64(0)
		for i, said := range returns() {
			if said.does != retries {
				sent++
			}
			if row := sc.row(t, sc.refs[i]); row["state"] != "active" || row["attempts"] != "1" || row["forgiven"] != "" {
				t.Errorf("%s: the row became %v", said.name, row)
			}
		}
		for name, n := range sc.counts(t, "out").Totals {
			if want := map[string]int64{"stale": sent}[name]; n != want {
				t.Errorf("%s is %d, want %d", name, n, want)
			}
		}
		if n := len(sc.watcher.named(emq.EventStale)); int64(n) != sent {
			t.Errorf("%d stale settles were reported, want %d", n, sent)
		}
	})
}

func TestTheLastAttemptThatFailsIsADeadLetter(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, job{})
		var w watcher
		run(t, s.Client, emq.WorkerConfig{Observer: &w, Logger: new(logbook).logger()}, emq.Handle(func(ctx context.Context, _ job) error {
			info, _ := emq.InfoFrom(ctx)
			return fmt.Errorf("failure %d of %d", info.Attempt, info.MaxAttempts)
		}))
		eventually(t, "the job is dead", func() bool { return len(w.named(emq.EventDead)) == 1 })
		if row := s.row(t, ref); row["state"] != "dead" || row["attempts"] != "3" || row["last_error"] != "failure 3 of 3" {
			t.Errorf("the row is %v", row)
		}
		if n := len(w.named(emq.EventRetried)); n != 2 {
			t.Errorf("%d retries, want 2", n)
		}
	})
}
