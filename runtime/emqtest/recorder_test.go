package emqtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/emqtest"
)

func TestARecorderKeepsJobsAndAnswersReceipts(t *testing.T) {
	rec := emqtest.NewRecorder(t)
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	receipts, err := rec.Enqueue(t.Context(),
		emq.New(greet{Name: "ada"}, emq.In(time.Hour), emq.WithHeader("trace", "1")),
		emq.New(charge{Cents: 5}, emq.At(noon), emq.InLane("eu")),
		emq.New(daily{User: 1}), emq.New(daily{User: 1}))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range receipts {
		if _, err := emq.ParseID(string(r.ID)); err != nil || r.Status != emq.Stored || i > 0 && r.ID <= receipts[i-1].ID {
			t.Errorf("receipt %d is %+v: %v", i, r, err)
		}
	}
	if got := emqtest.One[greet](t, rec); got.Name != "ada" {
		t.Errorf("enqueued %+v", got)
	}
	if got := emqtest.Enqueued[daily](rec); !slices.Equal(got, []daily{{1}, {1}}) {
		t.Errorf("enqueued %+v; a recorder knows of no conflict", got)
	}
	jobs := rec.Jobs()
	if jobs[0].Delay() != time.Hour || jobs[0].Headers()["trace"] != "1" || !jobs[1].DueAt().Equal(noon) || jobs[1].Lane() != "eu" {
		t.Errorf("the options of the jobs are %+v", jobs)
	}
	emqtest.None[greet](t, emqtest.NewRecorder(t))
}

func TestAssertionsSayWhatWasEnqueuedInstead(t *testing.T) {
	rec := emqtest.NewRecorder(t)
	expect(t, true, func(t testing.TB) { emqtest.One[greet](t, rec) }, "want one emqtest_test.greet (mail/greet)", "got 0", "was nothing")
	enqueue(t, rec, daily{User: 7}, emq.In(time.Minute))
	enqueue(t, rec, charge{Cents: 3}, emq.InLane("eu"))
	expect(t, true, func(t testing.TB) { emqtest.One[greet](t, rec) }, "got 0", `mail/daily {"User":7} in 1m0s`, `billing/charge {"cents":3} in lane eu`)
	enqueue(t, rec, charge{Cents: 4}, emq.At(time.Now().Add(time.Hour)))
	expect(t, true, func(t testing.TB) { emqtest.One[charge](t, rec) }, "got 2", `{"cents":4} at 20`)
	expect(t, false, func(t testing.TB) { emqtest.None[charge](t, rec) }, "want no emqtest_test.charge", "got 2", `{"cents":4}`)
	for range 30 {
		enqueue(t, rec, greet{Name: strings.Repeat("a", 1000)})
	}
	expect(t, true, func(t testing.TB) { emqtest.One[greet](t, rec) }, "got 30", "aaa…", "… and 13 more")
}

func TestARecorderRefusesWhatAClientRefuses(t *testing.T) {
	rec := emqtest.NewRecorder(t)
	id := enqueue(t, rec, greet{Name: "first"}).ID
	receipts, err := rec.Enqueue(t.Context(), emq.New(greet{}), emq.New(greet{}, emq.In(-1)), emq.Job{},
		emq.New(daily{}, emq.WithID(id)), emq.New(daily{}, emq.WithID(id)), emq.New(greet{Name: strings.Repeat("a", 600<<10)}))
	var batch *emq.BatchError
	if !errors.As(err, &batch) || len(batch.Errs) != 4 || batch.Errs[1] == nil || batch.Errs[2] == nil || batch.Errs[4] == nil || !errors.Is(batch.Errs[5], emq.ErrTooLarge) {
		t.Fatalf("the batch is refused by %v", err)
	}
	if len(receipts) != 6 || receipts[0].Status != emq.Refused || len(rec.Jobs()) != 1 {
		t.Errorf("receipts %+v and %d jobs: a batch is refused whole", receipts, len(rec.Jobs()))
	}
	again, err := emq.Enqueue(t.Context(), rec, greet{Name: "again"}, emq.WithID(id))
	if err != nil || again.Status != emq.Duplicate || len(rec.Jobs()) != 1 {
		t.Errorf("the same id again: %+v, %v, %d jobs", again, err, len(rec.Jobs()))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := emq.Enqueue(ended, rec, greet{}); !errors.Is(err, context.Canceled) || r.Status != emq.Refused {
		t.Errorf("under an ended context: %+v, %v", r, err)
	}
}

func TestARecorderFailsWhenToldTo(t *testing.T) {
	rec := emqtest.NewRecorder(t)
	errNet := errors.New("connection reset")
	for err, status := range map[error]emq.Status{errNet: emq.Unknown, emq.ErrFull: emq.Refused} {
		rec.SetErr(err)
		if r, got := emq.Enqueue(t.Context(), rec, greet{}); !errors.Is(got, err) || r.Status != status {
			t.Errorf("told to fail with %v: %+v, %v", err, r, got)
		}
	}
	rec.SetErr(nil)
	enqueue(t, rec, greet{Name: "ada"})
	if got := emqtest.One[greet](t, rec); got.Name != "ada" {
		t.Errorf("enqueued %+v", got)
	}
}

func TestARecorderGivesResults(t *testing.T) {
	rec := emqtest.NewRecorder(t)
	await := func(ref emq.Ref) (r receipt, err error) {
		text, err := rec.AwaitResult(t.Context(), ref)
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		return r, err
	}
	first := enqueue(t, rec, charge{Cents: 5})
	got := make(chan receipt)
	go func() {
		r, err := await(first.Ref)
		if err != nil {
			t.Error(err)
		}
		got <- r
	}()
	rec.SetResult(first.Ref, receipt{"by ref"})
	if r := <-got; r.Number != "by ref" {
		t.Errorf("the result is %+v", r)
	}
	emqtest.Answer(rec, func(job charge) (receipt, error) {
		if job.Cents < 0 {
			return receipt{}, errNegative
		}
		return receipt{"by answer"}, nil
	})
	if r, err := await(enqueue(t, rec, charge{Cents: 6}).Ref); err != nil || r.Number != "by answer" {
		t.Errorf("the result is %+v, %v", r, err)
	}
	if r, err := await(first.Ref); err != nil || r.Number != "by ref" {
		t.Errorf("the result is %+v, %v: what was set for one job stands", r, err)
	}
	if _, err := await(enqueue(t, rec, charge{Cents: -1}).Ref); !errors.Is(err, errNegative) {
		t.Errorf("the answer's error is %v", err)
	}
	if _, err := await(emq.Ref{Queue: "billing", ID: "JOB00000000001"}); !errors.Is(err, emq.ErrGone) {
		t.Errorf("a job that was not enqueued: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := rec.AwaitResult(ended, enqueue(t, rec, greet{}).Ref); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "call Answer or SetResult") {
		t.Errorf("no result: %v", err)
	}
	rec.SetResult(first.Ref, func() {})
	if _, err := await(first.Ref); err == nil || !strings.Contains(err.Error(), "cannot be encoded") {
		t.Errorf("a result that is none: %v", err)
	}
}

func TestARecorderIsSafeForConcurrentUse(t *testing.T) {
	rec := emqtest.NewRecorder(t)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 50 {
				r, err := emq.Enqueue(t.Context(), rec, greet{})
				if err != nil {
					t.Error(err)
				}
				rec.SetResult(r.Ref, 1)
				rec.SetErr(nil)
				rec.Jobs()
			}
		})
	}
	wg.Wait()
	if n := len(emqtest.Enqueued[greet](rec)); n != 1000 {
		t.Errorf("%d jobs, want 1000", n)
	}
}
