package emq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// parcel is version 3 of a kind that was once called "package".
type parcel struct {
	N      int
	Weight string
}

func (parcel) EmqSpec() emq.Spec[parcel] {
	return emq.Spec[parcel]{Queue: "post", Kind: "parcel", Aliases: []string{"package"}, Version: 3, Attempts: 2, Timeout: time.Minute, Backoff: emq.Fixed(time.Hour)}
}

// parcelV1 and parcelV2 are its old shapes.
type (
	parcelV1 struct{ Kilos int }
	parcelV2 struct{ Grams int }
)

func (p parcelV1) Upgrade() (parcel, error) {
	return parcel{Weight: fmt.Sprintf("%d kg", p.Kilos)}, nil
}

func (p parcelV2) Upgrade() (parcel, error) {
	if p.Grams < 0 {
		return parcel{}, errors.New("a negative weight")
	}
	return parcel{Weight: fmt.Sprintf("%d g", p.Grams)}, nil
}

// UnmarshalJSON is hostile on demand.
func (p *parcel) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"panic"`:
		panic("no parcel at all")
	case `"goexit"`:
		runtime.Goexit()
	}
	if _, err := fmt.Sscanf(string(b), `{"N":%d,"Weight":""}`, &p.N); err != nil {
		return errors.New("not a parcel")
	}
	return nil
}

// edit changes a waiting job's row by hand, as another program might have written it.
func (s *store) edit(t *testing.T, ref emq.Ref, pairs ...string) {
	t.Helper()
	s.do(t, append([]string{"HSET", "emq:{" + ref.Queue + "}:job:" + string(ref.ID)}, pairs...)...)
}

// Experiment 20.
func TestAPayloadThatCannotBeDecodedIsADeadLetterWithItsBytesAndTheOthersOfItsClaimRun(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		refs := putMany(t, s, 54, func(i int) parcel { return parcel{N: i} })
		garbage := map[int][]string{
			0:  {"payload", "\x00\xff{not json"},
			13: {"payload", `"panic"`},
			26: {"payload", `"goexit"`},
			39: {"payload", `{"Grams":-1}`, "v", "2"},
			53: {"payload", ""},
		}
		for i, pairs := range garbage {
			s.edit(t, refs[i], pairs...)
		}
		var log logbook
		var ran sync.Map
		run(t, s.Client, emq.WorkerConfig{Concurrency: 100, Logger: log.logger()}, emq.Handle(func(ctx context.Context, p parcel) error {
			ran.Store(p.N, true)
			return nil
		}, emq.Upgrade[parcelV2](2)))
		eventually(t, "49 complete and 5 are dead", func() bool {
			c := s.counts(t, "post")
			return c.Totals["completed"] == 49 && c.Dead == 5
		})
		for i, pairs := range garbage {
			if _, bad := ran.Load(i); bad && i > 0 {
				t.Errorf("job %d reached the handler", i)
			}
			row := s.row(t, refs[i])
			if !strings.HasPrefix(row["last_error"], "undecodable: ") || row["payload"] != pairs[1] || row["attempts"] != "1" {
				t.Errorf("job %d: %v", i, row)
			}
			if len(log.with(string(refs[i].ID), "cannot be decoded")) != 1 {
				t.Errorf("job %d: not logged once: %v", i, log.with(string(refs[i].ID)))
			}
		}
	})
}

func TestAnAliasAndOldVersionsReachTheHandlerInTheirCurrentShape(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		refs := putMany(t, s, 4, func(int) parcel { return parcel{N: 7} })
		s.edit(t, refs[0], "kind", "package")
		s.edit(t, refs[1], "payload", `{"Kilos":5}`, "v", "1")
		s.edit(t, refs[2], "payload", `{"Grams":6}`, "v", "2", "kind", "package")
		s.edit(t, refs[3], "payload", `{"Kilos":8}`)
		s.do(t, "HDEL", "emq:{post}:job:"+string(refs[3].ID), "v") // absent is 1
		var mu sync.Mutex
		seen := make(map[string]string)
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(ctx context.Context, p parcel) error {
			info, _ := emq.InfoFrom(ctx)
			mu.Lock()
			defer mu.Unlock()
			seen[string(info.ID)] = fmt.Sprint(p.N, " ", p.Weight)
			return nil
		}, emq.Upgrade[parcelV1](1), emq.Upgrade[parcelV2](2)))
		eventually(t, "all complete", func() bool { return s.counts(t, "post").Totals["completed"] == 4 })
		for i, want := range []string{"7 ", "0 5 kg", "0 6 g", "0 8 kg"} {
			if got := seen[string(refs[i].ID)]; got != want {
				t.Errorf("job %d: the handler saw %q, want %q", i, got, want)
			}
		}
	})
}

func TestAnUnknownKindOrNewerVersionIsHandedBackWithoutAnAttemptAndWithOneWarning(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		refs := putMany(t, s, 20, func(i int) parcel { return parcel{N: i} })
		for i, ref := range refs {
			if i%2 == 0 {
				s.edit(t, ref, "kind", "unheard-of")
			} else {
				s.edit(t, ref, "v", "4")
			}
		}
		var log logbook
		stop := run(t, s.Client, emq.WorkerConfig{Logger: log.logger()}, emq.Handle(func(context.Context, parcel) error {
			t.Error("a job that this worker does not know reached a handler")
			return nil
		}))
		// the first delay is half a second to one, so some come a second time
		eventually(t, "all are handed back, some twice", func() bool { return s.counts(t, "post").Totals["released"] > 24 })
		stop()
		for i, ref := range refs {
			row := s.row(t, ref)
			if row["state"] == "dead" || row["attempts"] != row["forgiven"] || row["forgiven"] == "" {
				t.Errorf("job %d: %v", i, row)
			}
		}
		if k, v := log.with("kind of a job is unknown", "unheard-of"), log.with("version of a job is unknown", "version=4"); len(k) != 1 || len(v) != 1 {
			t.Errorf("warnings: %d for the kind, %d for the version, want one each", len(k), len(v))
		}
		// a worker that knows them runs them
		s.edit(t, refs[0], "kind", "parcel")
		run(t, s.Client, emq.WorkerConfig{Logger: log.logger(), Lease: 500 * time.Millisecond}, emq.Handle(func(ctx context.Context, _ parcel) error {
			if info, _ := emq.InfoFrom(ctx); info.Attempt != 1 {
				t.Errorf("attempt %d", info.Attempt)
			}
			return nil
		}))
		eventually(t, "the renamed job completes", func() bool { return len(s.row(t, refs[0])) == 0 })
	})
}

func TestAJobForADeadLetterOfAWorkerWithoutItsUpgradeKeepsItsBytes(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, parcel{})
		s.edit(t, ref, "v", "2", "payload", `{"Grams":6}`)
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(context.Context, parcel) error { return nil }))
		eventually(t, "it is dead", func() bool { return s.counts(t, "post").Dead == 1 })
		row := s.row(t, ref)
		if row["payload"] != `{"Grams":6}` || !strings.Contains(row["last_error"], "version 2") {
			t.Errorf("the row is %v", row)
		}
	})
}

func TestSuspectsRunOneAtATimeBesideJobsThatNeverLostALease(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		refs := putMany(t, s, 12, func(i int) job { return job{i} })
		for _, ref := range refs[:4] {
			s.edit(t, ref, "lapses", "2")
		}
		s.edit(t, refs[4], "lapses", "1") // one may be bad luck
		var suspects, mostSuspects, others, mostOthers atomic.Int32
		enter := func(now, most *atomic.Int32) func() {
			n := now.Add(1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			return func() { now.Add(-1) }
		}
		full := make(chan struct{})
		var filled, first sync.Once
		run(t, s.Client, emq.WorkerConfig{Concurrency: 12, Lease: 500 * time.Millisecond, Logger: new(logbook).logger()}, emq.Handle(func(_ context.Context, j job) error {
			if j.N < 4 {
				defer enter(&suspects, &mostSuspects)()
				<-full
				first.Do(func() {
					eventually(t, "the other suspects are handed back", func() bool { return s.counts(t, "work").Totals["released"] == 3 })
				})
				return nil
			}
			defer enter(&others, &mostOthers)()
			if mostOthers.Load() == 8 {
				filled.Do(func() { close(full) })
			}
			<-full
			return nil
		}))
		eventually(t, "all complete", func() bool { return s.counts(t, "work").Totals["completed"] == 12 })
		if mostSuspects.Load() != 1 || mostOthers.Load() != 8 {
			t.Errorf("up to %d suspects ran at once, want 1, and %d others, want 8", mostSuspects.Load(), mostOthers.Load())
		}
	})
}
