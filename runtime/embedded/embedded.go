// Package embedded runs emq without a server: an in-process one for development and tests. Its jobs
// live in memory and end with the process. It is a package of its own, so that no production binary
// links it.
package embedded

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/echomq/emq/internal/inprocess"
	emq "github.com/echomq/emq/runtime"
)

// Server is an in-process server. Several clients may use it by its URL.
type Server struct {
	redis *miniredis.Miniredis
	stop  chan struct{}
	clock sync.WaitGroup
	once  sync.Once
}

// tick is how often keys that expire are looked at: the server's own TTLs stand still by themselves.
const tick = 50 * time.Millisecond

// Start starts a server on a free port of the loopback interface.
func Start() (*Server, error) {
	r := miniredis.NewMiniRedis()
	if err := r.Start(); err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	s := &Server{redis: r, stop: make(chan struct{})}
	s.clock.Go(func() {
		t := time.NewTicker(tick)
		defer t.Stop()
		for last := time.Now(); ; {
			select {
			case <-s.stop:
				return
			case now := <-t.C:
				r.FastForward(now.Sub(last))
				last = now
			}
		}
	})
	return s, nil
}

// URL is what emq.Open takes, for a client in another process; the checks of Open want a real server,
// so use Open of this package in the same process.
func (s *Server) URL() string { return "redis://" + s.redis.Addr() }

// Close stops the server; its jobs are gone. Safe to repeat.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.stop)
		s.clock.Wait()
		s.redis.Close()
	})
}

// Open makes a client of this server.
func (s *Server) Open(ctx context.Context, opts ...emq.ClientOption) (*emq.Client, error) {
	return s.open(ctx, nil, opts)
}

func (s *Server) open(ctx context.Context, stop func(), opts []emq.ClientOption) (*emq.Client, error) {
	own := append([]emq.ClientOption{emq.InProcess(&inprocess.Server{Stop: stop})}, opts...)
	return emq.Open(ctx, s.URL(), own...)
}

// Open starts a server and makes a client of it; closing the client stops the server.
func Open(ctx context.Context, opts ...emq.ClientOption) (*emq.Client, error) {
	s, err := Start()
	if err != nil {
		return nil, err
	}
	c, err := s.open(ctx, s.Close, opts)
	if err != nil {
		s.Close()
		return nil, err
	}
	return c, nil
}
