package emq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// wild is a job whose declaration is the payload's own: what generated code would never say.
type wild struct {
	Queue, Kind  string
	Key, LaneKey string
	Text         string
	Unencodable  bool `json:"-"`
}

func (w wild) EmqSpec() emq.Spec[wild] {
	s := emq.Spec[wild]{Queue: w.Queue, Kind: w.Kind, Attempts: 1, Timeout: time.Minute}
	if w.Key != "" {
		s.UniqueKey = func(w wild) string { return w.Key }
	}
	if w.LaneKey != "" {
		s.Lane = func(w wild) string { return w.LaneKey }
	}
	return s
}

// MarshalJSON fails on demand.
func (w wild) MarshalJSON() ([]byte, error) {
	if w.Unencodable {
		return nil, errors.New("no text for this")
	}
	return fmt.Appendf(nil, `{"Text":%q}`, w.Text), nil
}

// keys is everything that is on the server.
func (s *store) keys(t *testing.T) []string {
	t.Helper()
	return s.keysLike(t, "*")
}

// Experiment 26.
func TestHostileNamesAreRefusedBeforeAnythingIsSent(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		fine := wild{Queue: "q", Kind: "k"}
		hostile := []string{"a{b", "a}b", "{a}", "a:b\x00", "a\nb", "a b", "ä", "\xff", "a*", strings.Repeat("x", 10<<10)}
		before := len(s.keys(t))
		refused := func(what string, j emq.Job) {
			t.Helper()
			receipts, err := s.Enqueue(t.Context(), j)
			var batch *emq.BatchError
			if !errors.Is(err, emq.ErrInvalid) || !errors.As(err, &batch) || len(receipts) != 1 || receipts[0].Status != emq.Refused {
				t.Errorf("%.100q: %v, %v", what, receipts, err)
				return
			}
			if len(err.Error()) > 1000 {
				t.Errorf("%.100q: an error of %d bytes", what, len(err.Error()))
			}
			for _, c := range err.Error() {
				if c < ' ' && c != '\n' {
					t.Errorf("%.100q: a control character in the error", what)
				}
			}
		}
		for _, name := range hostile {
			w := fine
			w.Queue = name
			refused("queue "+name, emq.New(w))
			w = fine
			w.Kind = name
			refused("kind "+name, emq.New(w))
			w = fine
			w.Key = name
			refused("unique key "+name, emq.New(w))
		}
		for _, name := range []string{"", "emq"} {
			refused("queue "+name, emq.New(wild{Queue: name, Kind: "k"}))
		}
		refused("kind in capitals", emq.New(wild{Queue: "q", Kind: "K"}))
		for _, lane := range []string{"a\x00", "a\nb", "\xff", strings.Repeat("x", 10<<10)} {
			w := fine
			w.LaneKey = lane
			refused("lane of the payload "+lane, emq.New(w))
			refused("header "+lane, emq.New(fine, emq.WithHeader(lane, "v")))
		}
		refused("an empty header", emq.New(fine, emq.WithHeader("", "v")))
		refused("a long header", emq.New(fine, emq.WithHeader("k", strings.Repeat("v", 4097))))
		refused("a header that is no text", emq.New(fine, emq.WithHeader("k", "\xff")))
		for _, id := range []string{"", "job", "USR0NgWEfAEJfs", "JOBzzzzzzzzzzz", "JOB0NgWEfAEJf", "JOB0NgWEfAEJf}", strings.Repeat("JOB", 5000)} {
			refused("id "+id, emq.New(fine, emq.WithID(emq.ID(id))))
		}
		if after := s.keys(t); len(after) != before {
			t.Errorf("something was written: %v", after)
		}
		// what is odd but legal goes through, whole
		odd := []emq.Option{emq.WithHeader("Ünïcødé {trace}: 1", "\x00\n{}")}
		receipts, err := s.Enqueue(t.Context(), emq.New(fine, odd...))
		if err != nil || receipts[0].Status != emq.Enqueued {
			t.Errorf("%v %v", receipts, err)
		}
	})
}

func TestWhatANewJobGotWrongIsSaidAtOnceAndTogether(t *testing.T) {
	t.Parallel()
	fine := wild{Queue: "q", Kind: "k"}
	for want, j := range map[string]emq.Job{
		"negative":          emq.New(fine, emq.In(-1)),
		"together":          emq.New(fine, emq.In(time.Second), emq.At(time.Now())),
		"zero":              emq.New(fine, emq.At(time.Time{})),
		"too far away":      emq.New(fine, emq.At(time.Unix(1<<40, 0))),
		"cannot be encoded": emq.New(wild{Queue: "q", Kind: "k", Unencodable: true}),
		"lane field":        emq.New(wild{Queue: "q", Kind: "k", LaneKey: "a"}, emq.InLane("b")),
		"an empty emq.Job":  {},
	} {
		if err := j.Err(); !errors.Is(err, emq.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	err := emq.New(wild{Queue: "q q", Kind: "K", Unencodable: true}, emq.In(-1)).Err()
	for _, want := range []string{"queue", "kind", "encoded", "negative"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing: %v", want, err)
		}
	}
	for _, j := range []emq.Job{
		emq.New(fine, emq.In(0)), emq.New(fine, emq.In(math.MaxInt64)), emq.New(fine, emq.At(time.Unix(-1<<33, 0))),
	} {
		if j.Err() != nil {
			t.Error(j.Err())
		}
	}
}

func TestTheFarthestTimesAreTakenAndThePastIsNow(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		far := []emq.Ref{put(t, s, job{1}, emq.In(math.MaxInt64)), put(t, s, job{2}, emq.At(time.UnixMilli(math.MaxInt64/int64(time.Millisecond))))}
		var ran atomic.Int32
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(_ context.Context, j job) error {
			if j.N < 3 {
				t.Errorf("job %d ran", j.N)
			}
			ran.Add(1)
			return nil
		}))
		put(t, s, job{3}, emq.At(time.Unix(-1<<33, 0)))
		put(t, s, job{4}, emq.At(time.Now().Add(-time.Hour)))
		put(t, s, job{5}, emq.In(0))
		eventually(t, "what is past runs", func() bool { return ran.Load() == 3 })
		for _, ref := range far {
			if row := s.row(t, ref); row["state"] != "scheduled" {
				t.Errorf("%v", row)
			}
		}
	})
}

func TestOneBadJobRefusesABatchWholeByItsIndex(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		before := len(s.keys(t))
		id, err := s.NewID()
		if err != nil {
			t.Fatal(err)
		}
		receipts, err := s.Enqueue(t.Context(),
			emq.New(job{0}), emq.New(job{1}, emq.In(-1)), emq.New(job{2}, emq.WithID(id)), emq.New(wild{Queue: "q", Kind: "k", Text: strings.Repeat("x", 1<<20)}), emq.Job{})
		var batch *emq.BatchError
		if !errors.As(err, &batch) || len(batch.Errs) != 3 || batch.Errs[1] == nil || batch.Errs[3] == nil || batch.Errs[4] == nil {
			t.Fatalf("%v", err)
		}
		if !errors.Is(batch.Errs[1], emq.ErrInvalid) || !errors.Is(batch.Errs[3], emq.ErrTooLarge) || !errors.Is(err, emq.ErrTooLarge) || !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("%v", batch.Errs)
		}
		if len(receipts) != 5 || receipts[2].ID != id || receipts[3].Queue != "q" {
			t.Errorf("the receipts are %v", receipts)
		}
		for _, r := range receipts {
			if r.Status != emq.Refused {
				t.Errorf("%v", r)
			}
		}
		if after := s.keys(t); len(after) != before {
			t.Errorf("something was sent: %v", after)
		}
		if r, err := s.Enqueue(t.Context()); err != nil || len(r) != 0 {
			t.Errorf("an empty batch: %v %v", r, err)
		}
	})
}

func TestAPayloadOfAMegabyteIsRefusedByItsSizeUnlessTheClientAllowsIt(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		big := wild{Queue: "q", Kind: "k", Text: strings.Repeat("x", 1<<20)}
		_, err := emq.Enqueue(t.Context(), s.Client, big)
		var batch *emq.BatchError
		if !errors.Is(err, emq.ErrTooLarge) || errors.As(err, &batch) || !strings.Contains(err.Error(), "1048587 bytes") || !strings.Contains(err.Error(), "524288") {
			t.Errorf("%v", err)
		}
		if c := s.counts(t, "q"); c.Pending != 0 {
			t.Errorf("%+v", c)
		}
		opts := []emq.ClientOption{emq.WithMaxPayload(2 << 20), emq.WithLogger(new(logbook).logger())}
		if s.embedded {
			opts = append(opts, emq.InProcess(nil))
		}
		ref := put(t, openClient(t, s.url, opts...), big)
		if got := len(s.row(t, ref)["payload"]); got != 1048587 {
			t.Errorf("%d bytes arrived", got)
		}
	})
}

func TestAnIDThatIsThereAlreadyIsADuplicateAndChangesNothing(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		id, err := s.NewID()
		if err != nil {
			t.Fatal(err)
		}
		ref := put(t, s, job{1}, emq.WithID(id))
		before := s.row(t, ref)
		r, err := emq.Enqueue(t.Context(), s.Client, job{2}, emq.WithID(id), emq.In(time.Hour))
		if err != nil || r.Status != emq.Duplicate || r.Ref != ref {
			t.Errorf("%v, %v", r, err)
		}
		if after := s.row(t, ref); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("the row became %v", after)
		}
		// in one batch it is the caller's mistake: one of the two payloads would be lost silently
		other, err := s.NewID()
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Enqueue(t.Context(), emq.New(job{3}, emq.WithID(other)), emq.New(left{3}, emq.WithID(other)), emq.New(job{4}, emq.WithID(other)))
		var batch *emq.BatchError
		if !errors.As(err, &batch) || len(batch.Errs) != 1 || !errors.Is(batch.Errs[2], emq.ErrInvalid) {
			t.Errorf("%v", err)
		}
		// the same id in two queues is two jobs
		receipts, err := s.Enqueue(t.Context(), emq.New(job{3}, emq.WithID(other)), emq.New(left{3}, emq.WithID(other)))
		if err != nil || receipts[0].Status != emq.Enqueued || receipts[1].Status != emq.Enqueued {
			t.Errorf("%v, %v", receipts, err)
		}
	})
}

func TestReceiptsAreAsManyAsJobsAndInTheirOrder(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		const n = 1300 // more than two pipelines
		batch := make([]emq.Job, n)
		for i := range batch {
			switch i % 3 {
			case 0:
				batch[i] = emq.New(job{i})
			case 1:
				batch[i] = emq.New(left{i}, emq.In(time.Hour))
			default:
				batch[i] = emq.New(right{i}, emq.WithHeader("n", fmt.Sprint(i)))
			}
		}
		receipts, err := s.Enqueue(t.Context(), batch...)
		if err != nil || len(receipts) != n {
			t.Fatal(len(receipts), err)
		}
		last := emq.ID("")
		for i, r := range receipts {
			if r.Status != emq.Enqueued || r.Queue != batch[i].Queue() || r.ID <= last {
				t.Fatalf("job %d: %v after %v", i, r, last)
			}
			last = r.ID
		}
		for _, i := range []int{0, 511, 512, 1024, n - 1} {
			if row := s.row(t, receipts[i].Ref); row["payload"] != string(batch[i].Payload()) || row["kind"] != batch[i].Kind() {
				t.Errorf("job %d: %v", i, row)
			}
		}
		if a, b, c := s.counts(t, "work"), s.counts(t, "left"), s.counts(t, "right"); a.Pending != 434 || b.Scheduled != 433 || c.Pending != 433 {
			t.Errorf("%+v %+v %+v", a, b, c)
		}
	})
}

func TestTwoDeploymentsOnOneServerDoNotSeeEachOther(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		opts := []emq.ClientOption{emq.WithLogger(new(logbook).logger())}
		if s.embedded {
			opts = append(opts, emq.InProcess(nil))
		}
		a, b := openClient(t, s.url, append(opts, emq.WithPrefix("a"))...), openClient(t, s.url, append(opts, emq.WithPrefix("b"))...)
		ref := put(t, a, job{1})
		var inA, inB, bare atomic.Int32
		count := func(n *atomic.Int32) emq.Binding {
			return emq.Handle(func(context.Context, job) error { n.Add(1); return nil })
		}
		run(t, b, emq.WorkerConfig{Logger: new(logbook).logger()}, count(&inB))
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, count(&bare))
		put(t, b, job{2})
		put(t, s, job{3})
		eventually(t, "each runs its own", func() bool { return inB.Load() == 1 && bare.Load() == 1 })
		if c, err := a.Queue("work").Counts(t.Context()); err != nil || c.Pending != 1 {
			t.Errorf("%+v %v", c, err)
		}
		if err := b.Cancel(t.Context(), ref); !errors.Is(err, emq.ErrGone) {
			t.Errorf("b cancelled a's job: %v", err)
		}
		run(t, a, emq.WorkerConfig{Logger: new(logbook).logger()}, count(&inA))
		eventually(t, "a runs its own", func() bool { return inA.Load() == 1 })
		for _, key := range s.keys(t) {
			if !strings.HasPrefix(key, "emq:{") && !strings.HasPrefix(key, "a:emq:{") && !strings.HasPrefix(key, "b:emq:{") && !strings.HasSuffix(key, "{emq}:version") {
				t.Errorf("a key outside the pattern: %s", key)
			}
		}
	})
}
