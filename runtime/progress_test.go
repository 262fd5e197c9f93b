package emq_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	emq "github.com/echomq/emq/runtime"
)

func TestAHandlerTellsHowFarItIsAndWritesLines(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q := s.Queue("work")
		ref := put(t, s, job{1})
		running, finish := make(chan context.Context), make(chan error)
		stop := run(t, s.Client, emq.WorkerConfig{LogLines: 3, Logger: new(logbook).logger()}, emq.Handle(func(ctx context.Context, _ job) error {
			running <- ctx
			return <-finish
		}))
		ctx := <-running
		for n := range 5 {
			if err := errors.Join(emq.SetProgress(ctx, map[string]int{"done": n}), emq.AppendLog(ctx, fmt.Sprint("line ", n))); err != nil {
				t.Fatal(err)
			}
		}
		d, err := q.Job(t.Context(), ref.ID)
		if err != nil || string(d.Progress) != `{"done":4}` || d.Logs != 5 {
			t.Errorf("%+v, %v", d, err)
		}
		is := func(from int64, n int, want ...string) {
			t.Helper()
			page, err := q.Logs(t.Context(), ref.ID, from, n)
			if err != nil || page.Total != 5 || strings.Join(page.Lines, ",") != strings.Join(want, ",") ||
				len(want) > 0 && want[0] != fmt.Sprint("line ", page.First) {
				t.Errorf("from %d: %+v, %v; want %v", from, page, err, want)
			}
		}
		is(0, 500, "line 2", "line 3", "line 4")
		is(0, 1, "line 2")
		is(3, 500, "line 3", "line 4")
		is(-1, 500, "line 4")
		is(5, 500)
		is(math.MaxInt64, 1)
		is(math.MinInt64, 1, "line 2")

		finish <- emq.Dead(errors.New("enough"))
		eventually(t, "the job is dead", func() bool { return s.counts(t, "work").Dead == 1 })
		for what, err := range map[string]error{"progress": emq.SetProgress(context.WithoutCancel(ctx), 9), "a line": emq.AppendLog(context.WithoutCancel(ctx), "late")} {
			if !errors.Is(err, emq.ErrStale) {
				t.Errorf("%s after the end: %v", what, err)
			}
		}
		is(0, 500, "line 2", "line 3", "line 4") // a dead letter keeps its lines
		if err := q.Reprocess(t.Context(), ref.ID); err != nil {
			t.Fatal(err)
		}
		ctx = <-running
		if err := emq.AppendLog(ctx, "again"); err != nil {
			t.Fatal(err)
		}
		finish <- nil
		eventually(t, "the job completes", func() bool { return s.counts(t, "work").Totals["completed"] == 1 })
		if err := emq.AppendLog(context.WithoutCancel(ctx), "late"); !errors.Is(err, emq.ErrGone) {
			t.Errorf("a line after the job is gone: %v", err)
		}
		if _, err := q.Logs(t.Context(), ref.ID, 0, 1); !errors.Is(err, emq.ErrGone) {
			t.Errorf("lines of a job that is gone: %v", err)
		}
		stop()
		for _, key := range s.keys(t) {
			if strings.Contains(key, ":job:") {
				t.Errorf("%s is left behind", key)
			}
		}
	})
}

func TestWhatAHandlerSaysIsBounded(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, job{1})
		errs := make(map[string]error)
		done := make(chan struct{})
		finish := make(chan struct{})
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(ctx context.Context, _ job) error {
			errs["a channel"] = emq.SetProgress(ctx, make(chan int))
			errs["a panic"] = emq.SetProgress(ctx, answer{Boom: true})
			errs["too large"] = emq.SetProgress(ctx, strings.Repeat("x", 16<<10-1))
			errs["as large as can be"] = emq.SetProgress(ctx, strings.Repeat("x", 16<<10-2))
			for _, line := range []string{strings.Repeat("é", 4<<10), "\xff\x00\n", "", strings.Repeat("x", 4<<10)} {
				errs["lines"] = errors.Join(errs["lines"], emq.AppendLog(ctx, line))
			}
			for range 200 {
				errs["lines"] = errors.Join(errs["lines"], emq.AppendLog(ctx, "more"))
			}
			close(done)
			<-finish
			return nil
		}))
		<-done
		want := map[string]error{"a channel": emq.ErrInvalid, "a panic": emq.ErrInvalid, "too large": emq.ErrTooLarge, "as large as can be": nil, "lines": nil}
		for what, err := range errs {
			if !errors.Is(err, want[what]) {
				t.Errorf("%s: %v", what, err)
			}
		}
		page, err := s.Queue("work").Logs(t.Context(), ref.ID, 0, 500)
		if err != nil || page.Total != 204 || page.First != 104 || len(page.Lines) != 100 {
			t.Errorf("%d lines from %d of %d, %v", len(page.Lines), page.First, page.Total, err)
		}
		close(finish)
		eventually(t, "the job completes", func() bool { return s.counts(t, "work").Totals["completed"] == 1 })
	})
}

func TestALongLineIsCutBetweenItsCharacters(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, job{1})
		finish := make(chan struct{})
		run(t, s.Client, emq.WorkerConfig{Logger: new(logbook).logger()}, emq.Handle(func(ctx context.Context, _ job) error {
			for _, line := range []string{strings.Repeat("é", 4<<10), "a\xff\n", "", strings.Repeat("x", 4<<10)} {
				if err := emq.AppendLog(ctx, line); err != nil {
					t.Error(err)
				}
			}
			<-finish
			return nil
		}))
		defer close(finish)
		var lines []string
		eventually(t, "the lines are there", func() bool {
			page, err := s.Queue("work").Logs(t.Context(), ref.ID, 0, 500)
			lines = page.Lines
			return err == nil && len(lines) == 4
		})
		if lines[0] != strings.Repeat("é", 2046)+"…" || lines[1] != "a\uFFFD\n" || lines[2] != "" || lines[3] != strings.Repeat("x", 4<<10) {
			t.Errorf("%d bytes, %q, %q, %d bytes", len(lines[0]), lines[1], lines[2], len(lines[3]))
		}
	})
}

func TestOutsideAHandlerNothingIsSaid(t *testing.T) {
	for _, ctx := range []context.Context{t.Context(), emq.ContextWithInfo(t.Context(), emq.Info{})} {
		if err := errors.Join(emq.SetProgress(ctx, make(chan int)), emq.AppendLog(ctx, "x")); err != nil {
			t.Error(err)
		}
	}
}

func TestLinesAreAskedForInPages(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, job{1})
		q := s.Queue("work")
		if page, err := q.Logs(t.Context(), ref.ID, 0, 10); err != nil || len(page.Lines) != 0 || page.Total != 0 {
			t.Errorf("a job without lines: %+v, %v", page, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for _, n := range []int{0, -1, 501} {
			if _, err := q.Logs(ended, ref.ID, 0, n); !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("%d lines: %v", n, err)
			}
		}
		if _, err := q.Logs(ended, "JOB", 0, 1); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("a bad id: %v", err)
		}
		for _, n := range []int{-1, 1001} {
			_, err := emq.NewWorker(s.Client, emq.WorkerConfig{LogLines: n}, emq.Handle(func(context.Context, job) error { return nil }))
			if !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("LogLines %d: %v", n, err)
			}
		}
	})
}
