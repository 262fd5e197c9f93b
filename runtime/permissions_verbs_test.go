package emq

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
)

// frugal is a plain job of the user with few permissions; its text says what its handler does.
type frugal struct {
	N  int
	Do string
}

func (frugal) EmqSpec() Spec[frugal] {
	return Spec[frugal]{Queue: "frugal", Kind: "frugal", Attempts: 1, Timeout: time.Minute, Retain: time.Minute}
}

func (frugal) EmqResult() (n int) { return }

// userVerb is something that a user of the package can call, by the name that the package has for it.
type userVerb struct {
	name string
	call func(context.Context) error
}

// exportedVerbs are what a new one is found by: every exported method of what a user holds, and every exported
// function that takes a context and can fail.
func exportedVerbs(t *testing.T) (names []string) {
	t.Helper()
	for _, holder := range []reflect.Type{reflect.TypeFor[*Client](), reflect.TypeFor[*Queue](), reflect.TypeFor[*Worker]()} {
		for i := range holder.NumMethod() {
			names = append(names, holder.Elem().Name()+"."+holder.Method(i).Name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "Worker.WaitsForASlot" }) // export_test.go has it
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() && takesContext(f.Type) && canFail(f.Type) {
				names = append(names, f.Name.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func takesContext(f *ast.FuncType) bool {
	if len(f.Params.List) == 0 {
		return false
	}
	s, ok := f.Params.List[0].Type.(*ast.SelectorExpr)
	return ok && s.Sel.Name == "Context"
}

func canFail(f *ast.FuncType) bool {
	if f.Results == nil {
		return false
	}
	last, ok := f.Results.List[len(f.Results.List)-1].Type.(*ast.Ident)
	return ok && last.Name == "error"
}

// Experiment 27 for every verb that there is: whoever adds one must call it here.
func TestEveryVerbWorksForAUserWithOnlyTheListedCommandsAndKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	limited(t, server, "")
	calls := monitored(t, server)
	c, err := openModest(t.Context(), server)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := &modestScene{client: c, queue: c.Queue("frugal"), server: server, waits: make(chan struct{}, 10)}
	var called []string
	for _, part := range [][]userVerb{s.producing(), s.looking(), s.lanes(), s.settings(), s.crons(), s.working(), s.ending()} {
		for _, v := range part {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			if err := v.call(ctx); err != nil {
				t.Errorf("%s: %v", v.name, err)
			}
			cancel()
			called = append(called, v.name)
		}
	}
	slices.Sort(called)
	called = slices.Compact(called)
	for _, name := range exportedVerbs(t) {
		if !slices.Contains(called, name) {
			t.Errorf("%s is exported, and this test does not call it: add it", name)
		}
	}
	nothingDenied(t, server)
	for _, what := range newerThanOldest(t, server, calls()) {
		// these are asked for only where they are there, or a refusal changes nothing
		if what != "acl|dryrun" && what != "cluster|shards" && !strings.HasPrefix(what, "client|setinfo") {
			t.Errorf("%s is newer than Redis 6.2", what)
		}
	}
}

// modestScene is what the verbs are called on.
type modestScene struct {
	client *Client
	queue  *Queue
	server *redistest.Server
	waits  chan struct{} // a handler waits for the end of its context
	later  Ref           // a job that waits for its time
	kept   Ref           // one that completes and is kept
}

func (s *modestScene) producing() []userVerb {
	return []userVerb{
		{"Client.Queue", func(context.Context) error { return s.client.Queue("frugal").usable() }},
		{"Client.NewID", func(context.Context) error { _, err := s.client.NewID(); return err }},
		{"Client.Enqueue", func(ctx context.Context) error {
			r, err := s.client.Enqueue(ctx, New(frugal{N: 1, Do: "tell"}), New(frugal{N: 2, Do: "die"}), New(frugal{N: 3}, In(time.Hour)), New(frugal{N: 4}, InLane("a")),
				New(spaced{1}), New(spaced{2})) // the second meets the first one's key
			if err == nil {
				s.kept, s.later = r[0].Ref, r[2].Ref
			}
			return err
		}},
		{"Enqueue", func(ctx context.Context) error { _, err := Enqueue(ctx, s.client, frugal{N: 5}); return err }},
		{"UpdatePayload", func(ctx context.Context) error { return UpdatePayload(ctx, s.client, s.later, frugal{N: 6}) }},
		{"Client.Cancel", func(ctx context.Context) error {
			r, err := Enqueue(ctx, s.client, frugal{N: 7}, In(time.Hour))
			return errors.Join(err, s.client.Cancel(ctx, r.Ref))
		}},
		{"Queue.Remove", func(ctx context.Context) error {
			r, err := Enqueue(ctx, s.client, frugal{N: 8}, In(time.Hour))
			return errors.Join(err, s.queue.Remove(ctx, r.ID))
		}},
	}
}

func (s *modestScene) looking() []userVerb {
	return []userVerb{
		{"Queue.Counts", func(ctx context.Context) error { _, err := s.queue.Counts(ctx); return err }},
		{"Queue.Latency", func(ctx context.Context) error { _, err := s.queue.Latency(ctx); return err }},
		{"Queue.State", func(ctx context.Context) error { _, err := s.queue.State(ctx, s.later.ID); return err }},
		{"Queue.Job", func(ctx context.Context) error { _, err := s.queue.Job(ctx, s.later.ID); return err }},
		{"Queue.Logs", func(ctx context.Context) error { _, err := s.queue.Logs(ctx, s.later.ID, -5, 5); return err }},
		{"Queue.Browse", func(ctx context.Context) error {
			for _, state := range []State{StatePending, StateScheduled, StateActive, StateDead, StateCompleted} {
				for _, oldest := range []bool{false, true} {
					if _, err := s.queue.Browse(ctx, BrowseOptions{State: state, Oldest: oldest}); err != nil {
						return err
					}
				}
			}
			_, err := s.queue.Browse(ctx, BrowseOptions{State: StatePending, Lane: "a"})
			return err
		}},
	}
}

func (s *modestScene) lanes() []userVerb {
	q := s.queue
	return []userVerb{
		{"Queue.SetLaneLimit", func(ctx context.Context) error { return q.SetLaneLimit(ctx, "a", 2) }},
		{"Queue.SetLaneWeight", func(ctx context.Context) error { return q.SetLaneWeight(ctx, "a", 3) }},
		{"Queue.PauseLane", func(ctx context.Context) error { return q.PauseLane(ctx, "a") }},
		{"Queue.Lanes", func(ctx context.Context) error {
			page, err := q.Lanes(ctx, "", 10)
			for err == nil && page.Next != "" {
				page, err = q.Lanes(ctx, page.Next, 10)
			}
			return err
		}},
		{"Queue.Lane", func(ctx context.Context) error { _, err := q.Lane(ctx, "a"); return err }},
		{"Queue.ResumeLane", func(ctx context.Context) error { return q.ResumeLane(ctx, "a") }},
		{"Queue.ClearLaneLimit", func(ctx context.Context) error { return q.ClearLaneLimit(ctx, "a") }},
		{"Queue.ReassignLane", func(ctx context.Context) error {
			_, err := q.ReassignLane(ctx, "a", "b")
			return err
		}},
		{"Queue.ReapLane", func(ctx context.Context) error { _, err := q.ReapLane(ctx, "b"); return err }},
		{"Queue.DrainLane", func(ctx context.Context) error { _, err := q.DrainLane(ctx, "b"); return err }},
	}
}

func (s *modestScene) settings() []userVerb {
	q := s.queue
	return []userVerb{
		{"Queue.Pause", q.Pause},
		{"Queue.Resume", q.Resume},
		{"Queue.SetConcurrency", func(ctx context.Context) error { return q.SetConcurrency(ctx, 5) }},
		{"Queue.SetRate", func(ctx context.Context) error { return q.SetRate(ctx, 100_000, time.Second) }},
		{"Queue.SetMaxLength", func(ctx context.Context) error { return q.SetMaxLength(ctx, 50) }},
		{"Queue.SetDeadCaps", func(ctx context.Context) error { return q.SetDeadCaps(ctx, 50, time.Hour) }},
		{"Queue.SetCrashBudget", func(ctx context.Context) error { return q.SetCrashBudget(ctx, 4) }},
		{"Queue.SetEvents", func(ctx context.Context) error { return q.SetEvents(ctx, true) }},
		{"Queue.Settings", func(ctx context.Context) error { _, err := q.Settings(ctx); return err }},
	}
}

func (s *modestScene) crons() []userVerb {
	q := s.queue
	return []userVerb{
		{"Queue.AddCron", func(ctx context.Context) error {
			return q.AddCron(ctx, "yearly", Cron{Spec: "0 0 1 1 *"}, New(frugal{N: 9}))
		}},
		{"Queue.Crons", func(ctx context.Context) error { _, err := q.Crons(ctx, "", 10); return err }},
		{"Queue.PauseCron", func(ctx context.Context) error { return q.PauseCron(ctx, "yearly") }},
		{"Queue.ResumeCron", func(ctx context.Context) error { return q.ResumeCron(ctx, "yearly") }},
		{"Queue.RunCronNow", func(ctx context.Context) error { _, err := q.RunCronNow(ctx, "yearly"); return err }},
		{"Queue.RemoveCron", func(ctx context.Context) error { return q.RemoveCron(ctx, "yearly") }},
	}
}

// worker has handlers that call what a handler can call; told is what they were answered.
func (s *modestScene) worker(told *error) (*Worker, error) {
	return NewWorker(s.client, WorkerConfig{Concurrency: 3, Logger: quiet()}, Bind(HandleResult(func(ctx context.Context, f frugal) (int, error) {
		switch f.Do {
		case "tell":
			*told = errors.Join(SetProgress(ctx, f.N), AppendLog(ctx, "a line"))
		case "die":
			return 0, errors.New("fails")
		case "wait":
			s.waits <- struct{}{}
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return f.N, nil
	})))
}

func (s *modestScene) working() []userVerb {
	var told error
	var idle *Worker
	return []userVerb{
		{"Worker.RunUntilIdle", func(ctx context.Context) (err error) {
			if idle, err = s.worker(&told); err != nil {
				return err
			}
			return idle.RunUntilIdle(ctx)
		}},
		{"Worker.Health", func(context.Context) error { idle.Health(); return nil }},
		{"SetProgress", func(context.Context) error { return told }},
		{"AppendLog", func(context.Context) error { return told }},
		{"Worker.Run", func(ctx context.Context) error { return s.untilDone(ctx, (*Worker).Run) }},
		{"RunUntilSignal", func(ctx context.Context) error {
			return s.untilDone(ctx, func(w *Worker, ctx context.Context) error { return RunUntilSignal(ctx, w) })
		}},
		{"Worker.Abort", s.aborted},
		{"Client.AwaitResult", func(ctx context.Context) error { _, err := s.client.AwaitResult(ctx, s.kept); return err }},
		{"Await", s.awaited},
		{"Queue.Subscribe", s.subscribed},
	}
}

// untilDone runs a worker, one job and one that is cancelled in it, and ends it.
func (s *modestScene) untilDone(ctx context.Context, run func(*Worker, context.Context) error) error {
	var told error
	w, err := s.worker(&told)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- run(w, running) }()
	r, err := s.client.Enqueue(ctx, New(frugal{N: 10}), New(frugal{Do: "wait"}))
	if err == nil {
		_, err = s.client.AwaitResult(ctx, r[0].Ref)
	}
	if err == nil {
		select {
		case <-s.waits:
		case <-ctx.Done():
		}
		err = s.client.Cancel(ctx, r[1].Ref)
	}
	if err == nil {
		_, err = s.client.AwaitResult(ctx, r[1].Ref)
		if errors.Is(err, ErrGone) {
			err = nil
		}
	}
	stop()
	return errors.Join(err, <-ended, told)
}

func (s *modestScene) aborted(ctx context.Context) error {
	var told error
	w, err := s.worker(&told)
	if err != nil {
		return err
	}
	w.Abort()
	return w.Run(ctx)
}

func (s *modestScene) awaited(ctx context.Context) error {
	r, err := Enqueue(ctx, s.client, frugal{N: 11})
	if err != nil {
		return err
	}
	answer := make(chan error, 1)
	go func() {
		_, err := Await[frugal](ctx, s.client, r.Ref)
		answer <- err
	}()
	var told error
	w, err := s.worker(&told)
	if err != nil {
		return err
	}
	return errors.Join(w.RunUntilIdle(ctx), <-answer)
}

func (s *modestScene) subscribed(ctx context.Context) error {
	hears, stop := context.WithCancel(ctx)
	defer stop()
	var enqueue error
	heard := false
	err := s.queue.Subscribe(hears, func(e JobEvent) {
		switch {
		case e.Name == EventSubscribed && enqueue == nil && !heard:
			_, enqueue = Enqueue(ctx, s.client, frugal{N: 12}, In(time.Hour))
		case e.Name != EventSubscribed:
			heard = true
			stop()
		}
		if enqueue != nil {
			stop()
		}
	})
	if !heard {
		return errors.Join(err, enqueue, errors.New("no event was heard"))
	}
	return errors.Join(err, enqueue)
}

func (s *modestScene) ending() []userVerb {
	q := s.queue
	return []userVerb{
		{"Queue.Reprocess", func(ctx context.Context) error {
			page, err := q.Browse(ctx, BrowseOptions{State: StateDead})
			if err != nil || len(page.Jobs) == 0 {
				return errors.Join(err, errors.New("there is no dead letter"))
			}
			return q.Reprocess(ctx, page.Jobs[0].ID)
		}},
		{"Queue.ReprocessAll", func(ctx context.Context) error {
			var told error
			w, err := s.worker(&told)
			if err != nil {
				return err
			}
			if err := w.RunUntilIdle(ctx); err != nil { // it is dead once more
				return err
			}
			_, err = q.ReprocessAll(ctx, ReprocessOptions{})
			return err
		}},
		{"Queue.ClearConcurrency", q.ClearConcurrency},
		{"Queue.ClearRate", q.ClearRate},
		{"Queue.ClearMaxLength", q.ClearMaxLength},
		{"Queue.ClearDeadCaps", q.ClearDeadCaps},
		{"Queue.ClearCrashBudget", q.ClearCrashBudget},
		{"Queue.Audit", func(ctx context.Context) error {
			_, err := s.server.Command("DEL", "emq:{frugal}:pending") // so that it has something to mend
			report, err2 := q.Audit(ctx, AuditOptions{})
			if report.Pending == 0 {
				err2 = errors.Join(err2, errors.New("nothing was mended"))
			}
			return errors.Join(err, err2)
		}},
		{"Queue.Drain", func(ctx context.Context) error { _, err := q.Drain(ctx, DrainOptions{Scheduled: true}); return err }},
		{"Queue.SetShards", func(ctx context.Context) error {
			return errors.Join(q.SetShards(ctx, 3), q.SetShards(ctx, 1))
		}},
		{"Queue.Shards", func(ctx context.Context) error { _, err := q.Shards(ctx); return err }},
		{"Queue.Obliterate", func(ctx context.Context) error {
			if err := q.Pause(ctx); err != nil {
				return err
			}
			_, err := q.Obliterate(ctx, ObliterateOptions{})
			return err
		}},
		{"Open", func(ctx context.Context) error {
			c, err := openModest(ctx, s.server)
			if err == nil {
				c.Close()
			}
			return err
		}},
		{"Client.Close", func(context.Context) error { s.client.Close(); return nil }},
	}
}
