package emq

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// listener is the one connection on which a client hears what is published on the channels of its
// queues: their events, the ends of jobs, cancellations. It is open while somebody listens. What is
// published while it is cut is lost, so who listens looks at the store when it is renewed.
type listener struct {
	client *Client
	warn   sparse
	change chan struct{} // who listens has changed

	mu     sync.Mutex
	topics map[string]*topic // by channel
	ended  chan struct{}     // closed when the goroutine of the connection has ended; nil: there is none
	closed bool
}

// topic is one channel.
type topic struct {
	on      bool // the connection is subscribed to it
	hearers map[string]map[*hearer]bool
}

// hearer is somebody who listens on one channel. Its functions are called in the goroutine of the
// connection or under a lock of it: they must not block, nor listen.
type hearer struct {
	channel string
	first   string               // only messages whose first word it is; empty: all
	heard   func(message string) // a message has come
	renewed func()               // from now on nothing is missed; again after a cut
	refused func(err error)      // the server does not let this user subscribe, or the client is closed
}

func newListener(c *Client) *listener {
	return &listener{client: c, change: make(chan struct{}, 1), topics: make(map[string]*topic)}
}

// listen adds a hearer until stop is called; after that it hears nothing more but what is under way.
func (l *listener) listen(h *hearer) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		h.refused(ErrClosed)
		return func() {}
	}
	t := l.topics[h.channel]
	if t == nil {
		t = &topic{hearers: make(map[string]map[*hearer]bool)}
		l.topics[h.channel] = t
	}
	if t.hearers[h.first] == nil {
		t.hearers[h.first] = make(map[*hearer]bool)
	}
	t.hearers[h.first][h] = true
	if t.on {
		h.renewed()
	} else {
		signalOne(l.change)
	}
	if l.ended == nil {
		l.ended = make(chan struct{})
		go l.run(l.ended)
	}
	return func() { l.forget(h) }
}

func (l *listener) forget(h *hearer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[h.channel]
	if t == nil || !t.hearers[h.first][h] {
		return
	}
	delete(t.hearers[h.first], h)
	if len(t.hearers[h.first]) == 0 {
		delete(t.hearers, h.first)
	}
	if len(t.hearers) == 0 {
		delete(l.topics, h.channel)
		signalOne(l.change)
	}
}

// hear gives a message to those who listen for it.
func (l *listener) hear(m rueidis.PubSubMessage) {
	first, _, _ := strings.Cut(m.Message, " ")
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.topics[m.Channel]; t != nil {
		for _, word := range []string{first, ""} {
			for h := range t.hearers[word] {
				h.heard(m.Message)
			}
		}
	}
}

// everybody calls f for each hearer of the topics that it lets through.
func (l *listener) everybody(which func(channel string, t *topic) bool, f func(*hearer)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for channel, t := range l.topics {
		if which(channel, t) {
			for _, hearers := range t.hearers {
				for h := range hearers {
					f(h)
				}
			}
		}
	}
}

// linger is how long the connection stays open for whoever listens next.
const linger = time.Second

// run keeps a connection while somebody listens.
func (l *listener) run(ended chan struct{}) {
	defer close(ended)
	pause := firstPause
	for {
		began := time.Now()
		err := l.connect()
		if l.over(err == nil) {
			return
		}
		if err == nil { // somebody came just then
			continue
		}
		l.everybody(func(_ string, t *topic) bool { t.on = false; return false }, nil)
		if _, refused := rueidis.IsRedisErr(err); refused {
			l.everybody(func(string, *topic) bool { return true }, func(h *hearer) { h.refused(err) })
		}
		if l.warn.allow("cut") {
			l.client.log.Warn("emq: the subscription is cut: ends, cancellations and events are heard late or not at all until it is renewed", "error", err)
		}
		if time.Since(began) > longestPause {
			pause = firstPause
		}
		t := time.NewTimer(jitter(pause))
		for waiting := true; waiting && !l.over(false); {
			select {
			case <-t.C:
				waiting = false
			case <-l.change: // or Close
			}
		}
		pause = min(2*pause, longestPause)
	}
}

// over tells whether the goroutine of the connection is to end, which idle allows if nobody listens.
func (l *listener) over(idle bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || idle && len(l.topics) == 0 {
		l.ended = nil
		return true
	}
	return false
}

// connect subscribes to what is listened to, and answers nil when nobody has listened for a while.
func (l *listener) connect() error {
	conn, _ := l.client.rueidis.Dedicate()
	cut := conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: l.hear})
	defer quit(conn, cut)
	on := make(map[string]bool)
	idle := time.NewTimer(linger)
	defer idle.Stop()
	for {
		if err := l.subscribe(conn, on); err != nil {
			return err
		}
		l.everybody(func(channel string, t *topic) bool {
			fresh := on[channel] && !t.on
			t.on = on[channel]
			return fresh
		}, func(h *hearer) { h.renewed() })
		idle.Reset(linger)
		over := idle.C
		if l.isHeard() {
			over = nil
		}
		select {
		case err := <-cut:
			return fmt.Errorf("the connection was cut: %w", err)
		case <-l.change:
			if l.isClosed() {
				return nil
			}
		case <-over:
			return nil
		}
	}
}

func (l *listener) isHeard() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.topics) > 0
}

func (l *listener) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// quit ends a connection by QUIT, and waits for that. A connection that still works is unsubscribed by the
// client library when it is closed, with a PING behind it; and the library panics when a server whose disk
// is full, or which lacks replicas, refuses the PING.
func quit(conn rueidis.DedicatedClient, cut <-chan error) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	_ = conn.Do(ctx, conn.B().Quit().Build()).Error() // one that is cut off is what is wanted
	select {
	case <-cut:
	case <-ctx.Done():
	}
}

// subscribe adds to the subscriptions of a connection what is listened to now. What is no longer listened
// to stays until the connection ends, and is dropped by hear: see quit for why nothing is unsubscribed.
func (l *listener) subscribe(conn rueidis.DedicatedClient, on map[string]bool) error {
	var more []string
	l.mu.Lock()
	for channel := range l.topics {
		if !on[channel] {
			more = append(more, channel)
		}
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	for part := range slices.Chunk(more, 100) {
		if err := conn.Do(ctx, conn.B().Subscribe().Channel(part...).Build()).Error(); err != nil {
			return err
		}
		for _, channel := range part {
			on[channel] = true
		}
	}
	return nil
}

// close ends the connection and tells those who still listen.
func (l *listener) close() {
	l.mu.Lock()
	l.closed = true
	ended := l.ended
	l.mu.Unlock()
	l.everybody(func(string, *topic) bool { return true }, func(h *hearer) { h.refused(ErrClosed) })
	signalOne(l.change)
	if ended != nil {
		within(ended, farewell)
	}
}
