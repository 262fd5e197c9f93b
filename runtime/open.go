package emq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/wire"
	"github.com/echomq/emq/runtime/scripts"
)

// Version of the protocol that this library speaks: major and minor.
const protocol = "emq:1.0"

const (
	dialTimeout  = 5 * time.Second
	checkTimeout = 5 * time.Second
	// An idle process is to cost a server next to nothing; a connection whose end was never told is
	// found within this and a call's timeout.
	quietBeforePing = 5 * time.Second
	// Another sentinel is asked when one has not taken a connection, or was quiet, for so long.
	sentinelTimeout = 2 * time.Second
	// A call that was redirected so often waits a while before it goes on.
	mostRedirections = 16
	// Pausing a flush for so long gathers the calls of many goroutines into one write. It more than
	// doubles small scripts at 128 goroutines and costs a lone caller nothing.
	flushDelay = 20 * time.Microsecond
)

// Open connects to a server and checks that it can be trusted with jobs: its version, the version fence
// of its keys, its eviction policy, and the permissions of its user.
//
//	redis://user:password@host:6379/0           one server; rediss:// with TLS
//	unix:///run/redis.sock                      a socket
//	redis://host:26379/0?master_set=main        Sentinel; more with &addr=host2:26379
//	redis://host:7000?addr=host2:7000           a cluster is recognised by itself
//
// It fails within the dial timeout (5 s, or dial_timeout=1s in the URL) or with ctx. ErrInvalid is a
// bad URL or option, ErrVersion a wrong server, ErrPermission a user that lacks a command.
func Open(ctx context.Context, rawURL string, opts ...ClientOption) (*Client, error) {
	option, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	r, err := connect(ctx, option)
	if err != nil {
		return nil, fmt.Errorf("emq: open %s: %w", redacted(rawURL), explained(err))
	}
	c, err := newClient(ctx, r, true, cfg)
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("emq: open %s: %w", redacted(rawURL), explained(err))
	}
	return c, nil
}

// explained says what to do about the errors of a first connection.
func explained(err error) error {
	switch word, _ := scripts.Word(err); {
	case word == "WRONGPASS" || word == "NOAUTH":
		return fmt.Errorf("%w: the server refuses the user or the password: put them into the URL, redis://user:password@host:6379: %w", ErrPermission, err)
	case word == "NOPERM" && !errors.Is(err, ErrPermission):
		return fmt.Errorf("%w: the server's user lacks a command or a key that emq needs: %w", ErrPermission, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer in time: is it a Redis server, and does the URL say rediss:// if it speaks TLS? %w", err)
	}
	return err
}

// NewClient makes a Client over a client of the library rueidis that the caller made and will close.
// It makes the same checks as Open, within 5 s. Fastest are PipelineMultiplex: -1 and MaxFlushDelay:
// 20 µs; client-side caching is not used.
func NewClient(r rueidis.Client, opts ...ClientOption) (*Client, error) {
	if r == nil {
		return nil, fmt.Errorf("%w: NewClient: the rueidis client is nil", ErrInvalid)
	}
	cfg, err := configure(opts)
	if err != nil {
		return nil, err
	}
	return newClient(context.Background(), r, false, cfg)
}

func parseURL(rawURL string) (rueidis.ClientOption, error) {
	if rawURL == "" {
		return rueidis.ClientOption{}, fmt.Errorf("%w: the URL is empty: give redis://host:6379, or use embedded.Open", ErrInvalid)
	}
	u, err := url.Parse(rawURL)
	// a password with a character that ends it, as / or #, would be taken for something else and printed
	if err != nil || u.Opaque != "" || u.User == nil && strings.Contains(rawURL, "@") {
		return rueidis.ClientOption{}, fmt.Errorf("%w: the URL cannot be read: give redis://user:password@host:6379/0, with %%XX for special characters of the password", ErrInvalid)
	}
	if err := checkParameters(u); err != nil {
		return rueidis.ClientOption{}, fmt.Errorf("%w: URL %s: %w", ErrInvalid, redacted(rawURL), err)
	}
	option, err := rueidis.ParseURL(rawURL)
	if err == nil && option.SelectDB < 0 {
		err = fmt.Errorf("the database number is negative: %d", option.SelectDB)
	}
	if err != nil {
		return option, fmt.Errorf("%w: URL %s: %w", ErrInvalid, redacted(rawURL), err)
	}
	option.DisableCache = true
	// the callers repeat what may be repeated; the library's own retry of reads recycles a command that
	// its broken connection may still be writing
	option.DisableRetry = true
	option.PipelineMultiplex = -1
	option.MaxFlushDelay = flushDelay
	// the library pings each connection that is quiet for so long, and gives it up after the timeout
	option.Dialer.KeepAlive = quietBeforePing
	// two nodes that send each other's clients to and fro would keep a call for ever
	option.ClusterOption.MaxMovedRedirections = mostRedirections
	// a sentinel may freeze, too, or its message that there is a new master be lost
	option.Sentinel.Dialer = net.Dialer{Timeout: sentinelTimeout, KeepAlive: sentinelTimeout}
	option.Sentinel.TopologyRefreshInterval = quietBeforePing
	if option.ConnWriteTimeout == 0 {
		option.ConnWriteTimeout = callTimeout
	}
	if option.Dialer.Timeout == 0 {
		option.Dialer.Timeout = dialTimeout
	}
	return option, nil
}

// checkParameters finds what the client library would pass over in silence.
func checkParameters(u *url.URL) error {
	schemes := []string{"redis", "rediss", "valkey", "valkeys", "unix"}
	if !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("the scheme %s is none of %s", wire.Quote(u.Scheme), strings.Join(schemes, ", "))
	}
	known := []string{"addr", "client_cache", "client_name", "db", "dial_timeout", "master_set", "max_retries", "protocol", "skip_verify", "write_timeout"}
	for name := range u.Query() {
		if !slices.Contains(known, name) {
			return fmt.Errorf("the parameter %s is none of %s", wire.Quote(name), strings.Join(known, ", "))
		}
	}
	return nil
}

// redacted is what may be printed of a URL: neither its password nor its parameters.
func redacted(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "(unreadable)"
	}
	shown := url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: u.Path}
	return shown.Redacted()
}

// connect dials in a goroutine, because the client library knows no context here.
func connect(ctx context.Context, option rueidis.ClientOption) (rueidis.Client, error) {
	type answer struct {
		client rueidis.Client
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		client, err := rueidis.NewClient(option)
		answered <- answer{client, err}
	}()
	select {
	case a := <-answered:
		return a.client, a.err
	case <-ctx.Done():
		go func() {
			if a := <-answered; a.err == nil {
				a.client.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

func (c *Client) checkServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	if !c.embedded {
		for _, check := range []func(context.Context) error{c.checkInfo, c.checkPermissions} {
			if err := check(ctx); err != nil {
				return err
			}
		}
	}
	return c.checkFence(ctx)
}

// checkInfo asks INFO, not CONFIG, which managed services refuse.
func (c *Client) checkInfo(ctx context.Context) error {
	info := make(map[string]string)
	for _, section := range []string{"server", "memory"} {
		text, err := c.rueidis.Do(ctx, c.rueidis.B().Info().Section(section).Build()).ToString()
		if _, refused := rueidis.IsRedisErr(err); refused {
			c.log.Warn("emq: the server refuses INFO, so its version and its eviction policy are not checked", "error", err)
			return nil
		}
		if err != nil {
			return fmt.Errorf("emq: INFO: %w", err)
		}
		for line := range strings.Lines(text) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				info[k] = v
			}
		}
	}
	if v := info["redis_version"]; v != "" && !atLeast(v, 6, 2) {
		return fmt.Errorf("%w: the server is Redis %s; emq needs Redis 6.2 or Valkey", ErrVersion, v)
	}
	if p := info["maxmemory_policy"]; p != "" && p != "noeviction" {
		if c.strictEviction {
			return fmt.Errorf("%w: the server's maxmemory-policy is %s: it may evict jobs; set noeviction", ErrInvalid, p)
		}
		c.log.Warn("emq: THE SERVER MAY EVICT JOBS: set its maxmemory-policy to noeviction", "maxmemory_policy", p)
	}
	if cmp.Or(info["redis_mode"], info["server_mode"]) == "cluster" {
		return c.checkClusterQuestion(ctx)
	}
	return nil
}

func atLeast(version string, major, minor int) bool {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return false
	}
	a, err1 := strconv.Atoi(parts[0])
	b, err2 := strconv.Atoi(parts[1])
	return err1 == nil && err2 == nil && (a > major || a == major && b >= minor)
}

// checkFence asks again while the server is starting, failing over or moving slots, until ctx ends.
func (c *Client) checkFence(ctx context.Context) error {
	for try := 0; ; try++ {
		err := c.fence(ctx)
		if !scripts.IsPassing(err) || !pause(ctx, min(try, 3)) {
			return err
		}
	}
}

// fence keeps libraries of different major versions off each other's keys.
func (c *Client) fence(ctx context.Context) error {
	key := wire.VersionKey(c.prefix)
	get := func() (string, error) {
		v, err := c.rueidis.Do(ctx, c.rueidis.B().Get().Key(key).Build()).ToString()
		if rueidis.IsRedisNil(err) {
			return "", nil
		}
		return v, err
	}
	found, err := get()
	if err == nil && found == "" {
		err = c.rueidis.Do(ctx, c.rueidis.B().Set().Key(key).Value(protocol).Nx().Build()).Error()
		if err == nil || rueidis.IsRedisNil(err) {
			found, err = get()
		}
	}
	if err != nil {
		return fmt.Errorf("emq: version key %s: %w", key, err)
	}
	major := func(v string) string { m, _, _ := strings.Cut(v, "."); return m }
	if major(found) != major(protocol) {
		return fmt.Errorf("%w: the key %s holds %s and this library speaks %s: update the older side, or use another prefix",
			ErrVersion, key, wire.Quote(found), protocol)
	}
	return nil
}
