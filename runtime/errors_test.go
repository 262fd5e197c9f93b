package emq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// An error names the verb that its reader has called, and the queue; never a script, never an empty id.
func TestErrorsNameWhatWasCalled(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	q := s.Queue("work")
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // so all fail
	id := emq.ID("JOB00000000001")
	of := func(_ any, err error) error { return err }
	for verb, err := range map[string]error{
		"pause":              q.Pause(ctx),
		"resume":             q.Resume(ctx),
		"set concurrency":    q.SetConcurrency(ctx, 1),
		"clear concurrency":  q.ClearConcurrency(ctx),
		"set rate":           q.SetRate(ctx, 1, time.Second),
		"clear rate":         q.ClearRate(ctx),
		"set maximum length": q.SetMaxLength(ctx, 1),
		"set dead caps":      q.SetDeadCaps(ctx, 1, time.Hour),
		"clear crash budget": q.ClearCrashBudget(ctx),
		"set events":         q.SetEvents(ctx, false),
		"settings":           of(q.Settings(ctx)),
		"pause lane":         q.PauseLane(ctx, "a"),
		"resume lane":        q.ResumeLane(ctx, "a"),
		"set lane limit":     q.SetLaneLimit(ctx, "a", 1),
		"clear lane limit":   q.ClearLaneLimit(ctx, "a"),
		"set lane weight":    q.SetLaneWeight(ctx, "a", 1),
		"lanes":              of(q.Lanes(ctx, "", 1)),
		"lane":               of(q.Lane(ctx, "a")),
		"add cron a":         q.AddCron(ctx, "a", emq.Cron{Spec: "@daily"}, emq.New(job{})),
		"pause cron a":       q.PauseCron(ctx, "a"),
		"remove cron a":      q.RemoveCron(ctx, "a"),
		"cron entry a":       q.ResumeCron(ctx, "a"),
		"crons":              of(q.Crons(ctx, "", 1)),
		"job":                of(q.Job(ctx, id)),
		"state":              of(q.State(ctx, id)),
		"remove":             q.Remove(ctx, id),
		"reprocess":          q.Reprocess(ctx, id),
		"counts":             of(q.Counts(ctx)),
		"update payload":     emq.UpdatePayload(ctx, s.Client, emq.Ref{Queue: "work", ID: id}, job{}),
		"drain":              of(q.Drain(ctx, emq.DrainOptions{})),
		"drain lane":         of(q.DrainLane(ctx, "a")),
		"reassign lane":      of(q.ReassignLane(ctx, "a", "b")),
		"reap lane":          of(q.ReapLane(ctx, "a")),
		"obliterate":         of(q.Obliterate(ctx, emq.ObliterateOptions{})),
		"audit":              of(q.Audit(ctx, emq.AuditOptions{})),
	} {
		if !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), "emq: "+verb+": queue work") || strings.Contains(err.Error(), "job :") {
			t.Errorf("%s: %v", verb, err)
		}
	}
}

func TestRefusalsWithoutAJobNameNone(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("work")
		_, obliterate := q.Obliterate(ctx, emq.ObliterateOptions{})
		_, nobody := q.RunCronNow(ctx, "none")
		_, from := q.ReassignLane(ctx, "", "b")
		for _, test := range []struct {
			err, is error
			says    string
		}{
			{obliterate, emq.ErrState, "queue work: "},
			{nobody, emq.ErrGone, "no such cron entry: queue work has none of the name none"},
			{q.PauseCron(ctx, "none"), emq.ErrGone, "no such cron entry"},
			{q.ResumeCron(ctx, "none"), emq.ErrGone, "no such cron entry"},
			{from, emq.ErrInvalid, "from is empty"},
			{q.AddCron(ctx, "Nightly Close", emq.Cron{Spec: "@daily"}, emq.New(job{})), emq.ErrInvalid, `cron entry "Nightly Close": it has 1 to 128 of the characters`},
			{q.AddCron(ctx, "a", emq.Cron{Spec: "0 2 * * 7"}, emq.New(job{})), emq.ErrInvalid, `0 for Sunday), like "15 2 * * *"`},
		} {
			if !errors.Is(test.err, test.is) || !strings.Contains(test.err.Error(), test.says) || strings.Contains(test.err.Error(), "job :") || strings.Contains(test.err.Error(), "no such job") {
				t.Errorf("%v does not say %s", test.err, test.says)
			}
		}
	})
}

func TestABulkVerbThatIsStoppedSaysHowFarItCame(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		for i := range 500 {
			put(t, s.Client, job{i})
		}
		why := errors.New("the deploy comes first")
		ctx, stop := context.WithCancelCause(t.Context())
		_, err := s.Queue("work").Drain(ctx, emq.DrainOptions{Progress: func(emq.BulkProgress) { stop(why) }})
		if !errors.Is(err, why) || !strings.Contains(err.Error(), "emq: drain: queue work: stopped after 200 jobs") {
			t.Error(err)
		}
	})
}

// The text of a dead letter is what its handler said.
func TestTheLastErrorOfADeadLetterIsItsHandlersText(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ids := []emq.ID{put(t, s.Client, job{0}).ID, put(t, s.Client, job{1}).ID, put(t, s.Client, job{2}).ID}
		hopeless := errors.New("no such account")
		run(t, s.Client, emq.WorkerConfig{}, emq.Handle(func(_ context.Context, j job) error {
			return []error{emq.Dead(hopeless), emq.Dead(nil), errors.Join(emq.Dead(hopeless))}[j.N]
		}))
		eventually(t, "all are dead", func() bool { return s.counts(t, "work").Dead == 3 })
		for i, want := range []string{"no such account", "dead", "dead: no such account"} {
			if d, err := s.Queue("work").Job(t.Context(), ids[i]); err != nil || d.LastError != want {
				t.Errorf("%d: %q, %v", i, d.LastError, err)
			}
		}
	})
}
