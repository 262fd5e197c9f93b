package emq_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	emq "github.com/echomq/emq/runtime"
)

// logbook keeps every line that is logged.
type logbook struct {
	mu    sync.Mutex
	lines []string
	attrs string // of the child
	root  *logbook
}

func (l *logbook) logger() *slog.Logger { return slog.New(l) }

// Enabled is true: every level is kept.
func (l *logbook) Enabled(context.Context, slog.Level) bool { return true }

// Handle keeps a record as one text.
func (l *logbook) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s%s", r.Level, r.Message, l.attrs)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	root := l.top()
	root.mu.Lock()
	defer root.mu.Unlock()
	root.lines = append(root.lines, b.String())
	return nil
}

// WithAttrs makes a child that writes into the same book.
func (l *logbook) WithAttrs(attrs []slog.Attr) slog.Handler {
	child := &logbook{attrs: l.attrs, root: l.top()}
	for _, a := range attrs {
		child.attrs += fmt.Sprintf(" %s=%v", a.Key, a.Value)
	}
	return child
}

// WithGroup is not used by emq.
func (l *logbook) WithGroup(string) slog.Handler { return l }

func (l *logbook) top() *logbook {
	if l.root != nil {
		return l.root
	}
	return l
}

// with gives the lines that contain all of the words.
func (l *logbook) with(words ...string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
line:
	for _, line := range l.lines {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue line
			}
		}
		found = append(found, line)
	}
	return found
}

// watcher keeps every event.
type watcher struct {
	mu     sync.Mutex
	events []emq.Event
}

// Observe keeps an event.
func (w *watcher) Observe(_ context.Context, e emq.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// named gives the events of one name.
func (w *watcher) named(name emq.EventName) []emq.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []emq.Event
	for _, e := range w.events {
		if e.Name == name {
			found = append(found, e)
		}
	}
	return found
}
