package emq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/inprocess"
	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// Client enqueues jobs and gives access to queues. It is safe for concurrent use; one for a process is
// enough.
type Client struct {
	rueidis rueidis.Client
	owned   bool // Close closes it
	server  *scripts.Server
	minter  *wire.Minter
	log     *slog.Logger
	clientConfig

	enqueuer Enqueuer // the client itself under its middleware
	listener *listener

	mu      sync.Mutex
	queues  map[string]*clientQueue // by tag
	spreads map[string]*spread      // by name
	closed  sync.Once
	ended   atomic.Bool // Close was called

	observer Observer // all of the configuration's

	parse func(Cron) (schedule, error) // parseCron, but for tests

	announced sync.Map // "queue/kind" of the kinds that the registry knows from this client
}

type clientConfig struct {
	prefix         string
	logger         *slog.Logger
	maxPayload     int
	strictEviction bool
	embedded       bool
	inProcess      inprocess.Server // if embedded
	middleware     []EnqueueMiddleware
	observers      []Observer
	errs           []error
}

// ClientOption says something of a whole client.
type ClientOption func(*clientConfig)

// WithPrefix separates deployments on one server: it stands in front of every key. It has the
// characters of a queue's name. The empty prefix, the default, is none.
func WithPrefix(prefix string) ClientOption {
	return func(c *clientConfig) {
		if err := wire.CheckPrefix(prefix); err != nil {
			c.errs = append(c.errs, err)
		}
		c.prefix = prefix
	}
}

// WithLogger is where the client and its workers log; slog's default otherwise.
func WithLogger(l *slog.Logger) ClientOption { return func(c *clientConfig) { c.logger = l } }

// WithMaxPayload is the largest encoded payload in bytes that Enqueue takes. The default is 512 KiB.
func WithMaxPayload(bytes int) ClientOption {
	return func(c *clientConfig) {
		if bytes < 1 {
			c.errs = append(c.errs, fmt.Errorf("WithMaxPayload(%d): the limit must be positive", bytes))
		}
		c.maxPayload = bytes
	}
}

// WithStrictEviction makes a server that may evict keys (any maxmemory-policy but noeviction) an error
// of Open instead of a warning: an evicted job is lost without a trace.
func WithStrictEviction() ClientOption { return func(c *clientConfig) { c.strictEviction = true } }

// WithEnqueueMiddleware decorates the client's Enqueue; the first is the outermost.
func WithEnqueueMiddleware(m ...EnqueueMiddleware) ClientOption {
	return func(c *clientConfig) { c.middleware = append(c.middleware, m...) }
}

// WithObserver is told what happens to jobs, beside the logs: what metrics and traces are made of. Given
// more than once, each observer is told, in that order.
func WithObserver(o Observer) ClientOption {
	return func(c *clientConfig) {
		if o != nil {
			c.observers = append(c.observers, o)
		}
	}
}

// InProcess says that the server lives in this process: what Open asks a real server (version,
// eviction, permissions) is not asked, and Close stops it at last. Packages embedded and emqtest use it;
// nil is a server that somebody else stops.
func InProcess(s *inprocess.Server) ClientOption {
	return func(c *clientConfig) {
		c.embedded = true
		if s != nil {
			c.inProcess = *s
		}
	}
}

const defaultMaxPayload = 512 << 10

// configure applies the options and reports what is wrong with them, before any I/O.
func configure(opts []ClientOption) (clientConfig, error) {
	cfg := clientConfig{maxPayload: defaultMaxPayload}
	for _, opt := range opts {
		if opt == nil {
			cfg.errs = append(cfg.errs, errors.New("a ClientOption is nil"))
			continue
		}
		opt(&cfg)
	}
	for _, m := range cfg.middleware {
		if m == nil {
			cfg.errs = append(cfg.errs, errors.New("WithEnqueueMiddleware: a middleware is nil"))
		}
	}
	if len(cfg.errs) > 0 {
		return cfg, fmt.Errorf("%w: %w", ErrInvalid, errors.Join(cfg.errs...))
	}
	return cfg, nil
}

func newClient(ctx context.Context, r rueidis.Client, owned bool, cfg clientConfig) (*Client, error) {
	server, err := scripts.NewServer(r, cfg.prefix)
	if err != nil {
		return nil, err
	}
	node, err := rand.Int(rand.Reader, big.NewInt(wire.MaxNode+1))
	if err != nil {
		return nil, fmt.Errorf("emq: no random numbers: %w", err)
	}
	minter, err := wire.NewMinter(int(node.Int64()), time.Now)
	if err != nil {
		return nil, err
	}
	c := &Client{
		rueidis: r, owned: owned, server: server, minter: minter, clientConfig: cfg, log: cfg.logger,
		queues: make(map[string]*clientQueue), spreads: make(map[string]*spread), parse: parseCron,
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	c.listener = newListener(c)
	all := make(observers, len(cfg.observers))
	for i, o := range cfg.observers {
		all[i] = careful{o, c.log}
	}
	c.observer = all
	c.enqueuer = door{c}
	for i := len(cfg.middleware) - 1; i >= 0; i-- {
		c.enqueuer = cfg.middleware[i](c.enqueuer)
	}
	if err := c.checkServer(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// NewID mints an id for WithID. Ids of one client are strictly increasing.
func (c *Client) NewID() (ID, error) {
	id, err := c.minter.Mint()
	if err != nil {
		return "", fmt.Errorf("emq: %w", err)
	}
	return ID(id), nil
}

// clientQueue is a queue, or one shard of it, as one client sees it.
type clientQueue struct {
	*scripts.Queue
	gather[*scripts.NewJob, scripts.Admitted] // of what many goroutines enqueue at once
}

func newClientQueue(q *scripts.Queue) *clientQueue {
	return &clientQueue{Queue: q, gather: gather[*scripts.NewJob, scripts.Admitted]{
		life: context.Background, call: q.EnqueueGathered,
		bytes: (*scripts.NewJob).Bytes, limit: scripts.MaxGatheredBytes, most: scripts.MaxGathered,
	}}
}

// Cancel ends a job that must not run, or not run on. One that waits is gone at once; the context of
// one that runs is cancelled with ErrCancelled within milliseconds, for its worker is notified (and finds
// the cancellation at its next heartbeat if the notice is lost), and it ends as cancelled unless it
// completes first. ErrGone, ErrState (it has ended already). Safe to repeat.
func (c *Client) Cancel(ctx context.Context, ref Ref) error {
	if err := c.check(ref); err != nil {
		return err
	}
	return c.find(ctx, ref, func(q *scripts.Queue) error {
		_, err := q.Cancel(ctx, string(ref.ID))
		return err
	})
}

// check refuses what names no job, and every call after Close.
func (c *Client) check(ref Ref) error {
	if err := ref.check(); err != nil {
		return err
	}
	return c.Queue(ref.Queue).usable()
}

// Close frees the connections that Open made. A client of NewClient stays its maker's. Stop the workers
// first. Safe to repeat.
func (c *Client) Close() {
	c.ended.Store(true)
	c.closed.Do(func() {
		c.listener.close()
		if c.owned {
			c.rueidis.Close()
		}
		c.mu.Lock()
		queues := slices.Collect(maps.Values(c.queues))
		c.mu.Unlock()
		for _, q := range queues {
			within(done(&q.flights), farewell)
		}
		if stop := c.inProcess.Stop; stop != nil {
			stop()
		}
	})
}
