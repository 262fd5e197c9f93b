package emq

import (
	"context"
	"log/slog"
	"time"
)

// Info is what a handler can know of its run.
type Info struct {
	Ref
	//lint:ignore U1000 see whole
	whole
	Kind, Lane  string
	Attempt     int               // counted attempts with this one, from 1; snoozes and hand-backs do not count
	MaxAttempts int               // after that many the job is a dead letter
	EnqueuedAt  time.Time         // from the id: the producer's clock
	Due         time.Time         // when it was last due; EnqueuedAt if it was never scheduled
	Tick        time.Time         // the cron tick that the run stands for; zero without one
	Headers     map[string]string // what WithHeader attached; not to be changed
}

type infoKey struct{}
type runKey struct{}

// InfoFrom finds the Info of the run whose context this is. Outside a handler it answers false.
func InfoFrom(ctx context.Context) (Info, bool) {
	if i, ok := ctx.Value(infoKey{}).(Info); ok {
		return i, true
	}
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		return r.info, true
	}
	return Info{}, false
}

// ContextWithInfo makes a context as a handler would see it; it is for tests.
func ContextWithInfo(ctx context.Context, i Info) context.Context {
	return context.WithValue(ctx, infoKey{}, i)
}

// Logger is the worker's logger with the run's queue, kind, id, attempt, lane if it has one, and wait: how
// long the job had been due when it was claimed, by the server's clock; of a job that was never scheduled
// since its id was minted. Outside a handler it is slog's default.
func Logger(ctx context.Context) *slog.Logger {
	if r, ok := ctx.Value(runKey{}).(*run); ok {
		return r.logger()
	}
	if i, ok := InfoFrom(ctx); ok {
		return slog.Default().With(i.attrs()...)
	}
	return slog.Default()
}

func (i Info) attrs() []any {
	attrs := []any{"queue", i.Queue, "kind", i.Kind, "id", string(i.ID), "attempt", i.Attempt}
	if i.Lane != "" {
		attrs = append(attrs, "lane", i.Lane)
	}
	return attrs
}
