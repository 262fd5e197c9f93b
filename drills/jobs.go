package main

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// work is what a job of a drill does. The three kinds differ in what their queues keep; on a cluster of
// three masters each queue is on another one.
type work struct {
	N    int           `json:"n"`
	For  time.Duration `json:"for,omitempty"`
	Do   string        `json:"do,omitempty"`
	Gate string        `json:"gate,omitempty"`
}

// What a job does beside working for its time.
const (
	failFirst = "fail" // the first attempt fails
	windDown  = "wind" // needs For more when its context has ended
	kills     = "die"  // kills its process after For
	atGate    = "gate" // ignores its context and works until the file Gate exists
)

const (
	tasks   = "tasks"   // nothing is kept of what has completed; master 2 of 3
	keeps   = "kept"    // completed jobs are kept, with the run that did it; master 1
	parcels = "parcels" // lanes, delays and a retention; master 3
)

type task work

func (task) EmqSpec() emq.Spec[task] {
	return emq.Spec[task]{Queue: tasks, Kind: "task", Attempts: 5, Timeout: time.Minute, Backoff: emq.Fixed(50 * time.Millisecond)}
}

type kept work

func (kept) EmqSpec() emq.Spec[kept] {
	return emq.Spec[kept]{Queue: keeps, Kind: "kept", Attempts: 5, Timeout: time.Minute, Retain: time.Hour, Backoff: emq.Fixed(50 * time.Millisecond)}
}

// which run it was that completed a job.
type which struct {
	PID int   `json:"pid"`
	Run int64 `json:"run"`
}

func (kept) EmqResult() (w which) { return }

type parcel work

func (parcel) EmqSpec() emq.Spec[parcel] {
	return emq.Spec[parcel]{Queue: parcels, Kind: "parcel", Attempts: 5, Timeout: time.Minute, Retain: time.Hour, Backoff: emq.Fixed(50 * time.Millisecond)}
}

// laborer runs the jobs of one process and writes down what it does.
type laborer struct {
	book logbook
	runs atomic.Int64
}

func (l *laborer) bindings() emq.Binding {
	return emq.Bind(
		emq.Handle(func(ctx context.Context, t task) error { _, err := l.labor(ctx, work(t)); return err }),
		emq.HandleResult(func(ctx context.Context, k kept) (which, error) { return l.labor(ctx, work(k)) }),
		emq.Handle(func(ctx context.Context, p parcel) error { _, err := l.labor(ctx, work(p)); return err }),
	)
}

func (l *laborer) labor(ctx context.Context, w work) (which, error) {
	info, _ := emq.InfoFrom(ctx)
	run := l.runs.Add(1)
	entry := line{ID: string(info.ID), Queue: info.Queue, N: w.N, Try: info.Attempt, Run: run}
	note := func(what, text string) {
		e := entry
		e.What, e.Text = what, text
		l.book.write(e)
	}
	note(begins, "")
	stop := context.AfterFunc(ctx, func() { note(wasCut, context.Cause(ctx).Error()) })
	defer stop()
	err := w.do(ctx, info.Attempt)
	switch {
	case err == nil:
		note(ends, "ok")
	case ctx.Err() != nil:
		note(ends, "handed")
	default:
		note(ends, "failed")
	}
	return which{os.Getpid(), run}, err
}

var errFirst = errors.New("the first attempt fails")

func (w work) do(ctx context.Context, attempt int) error {
	if w.Do == atGate {
		for !exists(w.Gate) {
			time.Sleep(5 * time.Millisecond) // polling; the drill has the deadline
		}
		return nil
	}
	select {
	case <-time.After(w.For):
	case <-ctx.Done():
		if w.Do == windDown {
			time.Sleep(w.For) // the work that is left
		}
		return ctx.Err()
	}
	switch {
	case w.Do == kills:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case w.Do == failFirst && attempt == 1:
		return errFirst
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
