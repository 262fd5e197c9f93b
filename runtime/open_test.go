package emq_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

const secret = "s3cr3t-w0rd"

func TestAURLThatIsNoneIsRefusedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"",
		"localhost:6379",
		"user:" + secret + "@localhost:6379",
		"http://user:" + secret + "@localhost:6379",
		"redis://user:" + secret + "@localhost:port",
		"redis://user:" + secret + "/x@localhost",
		"redis://user:" + secret + "#x@localhost",
		"redis://user:" + secret + "?x@localhost",
		"redis://user:12345/" + secret + "@localhost",
		"redis://user:12345?db=" + secret + "@localhost",
		"redis://user:" + secret + "@localhost/database",
		"redis://user:" + secret + "@localhost/0/1",
		"redis://user:" + secret + "@localhost?db=first",
		"redis://user:" + secret + "@localhost?dial_timeout=" + "soon",
		"redis://user:" + secret + "%zz@localhost",
		"redis://user:" + secret + "@[::1",
		"redis:" + secret + "@localhost",
		"\x00redis://user:" + secret + "@localhost",
	} {
		_, err := emq.Open(t.Context(), url)
		if !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("%q: %v", url, err)
			continue
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("the password is in the error: %v", err)
		}
	}
}

func TestAServerThatIsNotThereIsAnErrorThatNamesItButNotThePassword(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	for _, url := range []string{
		"redis://user:" + secret + "@" + addr, "redis://" + addr + "/0?client_name=" + secret, "unix:///nowhere/redis.sock?password=" + secret,
		"redis://user:1/" + secret + "@x@" + addr,
	} {
		_, err := emq.Open(t.Context(), url)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%v", err)
		}
	}
	if _, err := emq.Open(t.Context(), "redis://user:"+secret+"@"+addr); err == nil || !strings.Contains(err.Error(), addr) {
		t.Errorf("the address is missing: %v", err)
	}
}

func TestAWrongPasswordIsTheServersWord(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	if _, err := server.Command("CONFIG", "SET", "requirepass", "right"); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{":" + secret + "@", "somebody:" + secret + "@", ""} {
		_, err := emq.Open(t.Context(), "redis://"+user+server.Addr())
		if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "WRONGPASS") && !strings.Contains(err.Error(), "NOAUTH") {
			t.Errorf("%q: %v", user, err)
		}
	}
	client, err := emq.Open(t.Context(), "redis://:right@"+server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	client.Close()
	client.Close()
	if _, err := emq.Enqueue(t.Context(), client, job{}); err == nil {
		t.Error("a closed client takes jobs")
	}
}

// fakeServer answers a few commands as an old server does.
func fakeServer(t *testing.T, info string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			wg.Go(func() {
				in := bufio.NewReader(conn)
				for {
					raw, err := redistest.ReadReply(in)
					if err != nil {
						return
					}
					answer := "-ERR unknown command\r\n"
					switch words := redistest.WordsOf(raw); strings.ToUpper(words[0]) {
					case "HELLO":
						answer = "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n$7\r\nversion\r\n$6\r\n6.0.16\r\n"
					case "INFO":
						answer = fmt.Sprintf("$%d\r\n%s\r\n", len(info), info)
					case "CLIENT":
						answer = "+OK\r\n"
					case "CLUSTER":
						answer = "-ERR This instance has cluster support disabled\r\n"
					case "PING":
						answer = "+PONG\r\n"
					}
					if _, err := conn.Write([]byte(answer)); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		wg.Wait()
	})
	return "redis://" + l.Addr().String()
}

func TestAServerThatIsTooOldIsRefusedByItsVersion(t *testing.T) {
	t.Parallel()
	for version, old := range map[string]bool{"6.0.16": true, "5.0.7": true, "6.1.99": true, "2.8": true, "soon": true, "6.2.0": false, "7.4.1": false, "10.0.0": false} {
		_, err := emq.Open(t.Context(), fakeServer(t, "# Server\r\nredis_version:"+version+"\r\n"))
		if errors.Is(err, emq.ErrVersion) != old || err == nil {
			t.Errorf("%s: %v", version, err) // the new ones fail later, as the fake knows nothing else
		}
		if old && !strings.Contains(err.Error(), version) {
			t.Errorf("the error does not name %s: %v", version, err)
		}
	}
}

func TestKeysOfAnotherMajorVersionAreRefusedAndOneDeploymentIsMarkedOnce(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		opts := []emq.ClientOption{emq.WithLogger(new(logbook).logger())}
		if s.embedded {
			opts = append(opts, emq.InProcess(nil))
		}
		if v, err := s.do(t, "GET", "{emq}:version").ToString(); err != nil || v != "emq:1.0" {
			t.Errorf("the first client wrote %q, %v", v, err)
		}
		for found, ok := range map[string]bool{"emq:1.7": true, "emq:1.0": true, "emq:2.0": false, "emq:10.0": false, "1.0": false, "rubbish": false, "emq:1": true} {
			s.do(t, "SET", "{emq}:version", found)
			c, err := emq.Open(t.Context(), s.url, opts...)
			if err == nil {
				c.Close()
			}
			if (err == nil) != ok || err != nil && (!errors.Is(err, emq.ErrVersion) || !strings.Contains(err.Error(), found) || !strings.Contains(err.Error(), "emq:1.0")) {
				t.Errorf("%s: %v", found, err)
			}
		}
		// another prefix is another deployment
		c, err := emq.Open(t.Context(), s.url, append(opts, emq.WithPrefix("mine"))...)
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if v, err := s.do(t, "GET", "mine:{emq}:version").ToString(); err != nil || v != "emq:1.0" {
			t.Errorf("%q, %v", v, err)
		}
	})
}

func TestAServerThatMayEvictIsAWarningOrWithStrictEvictionAnError(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	var log logbook
	c, err := emq.Open(t.Context(), server.URL(), emq.WithLogger(log.logger()))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if lines := log.with("EVICT", "allkeys-lru"); len(lines) != 1 {
		t.Errorf("the log says %v", log.lines)
	}
	if _, err := emq.Open(t.Context(), server.URL(), emq.WithStrictEviction()); err == nil || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("strict: %v", err)
	}
	if _, err := server.Command("CONFIG", "SET", "maxmemory-policy", "noeviction"); err != nil {
		t.Fatal(err)
	}
	c, err = emq.Open(t.Context(), server.URL(), emq.WithStrictEviction(), emq.WithLogger(log.logger()))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if len(log.with("")) != 1 {
		t.Errorf("a good server was logged: %v", log.lines)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // accepts by the kernel alone and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	reason := errors.New("no more patience")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
	began := time.Now()
	if _, err := emq.Open(ctx, "redis://"+l.Addr().String()); !errors.Is(err, reason) {
		t.Errorf("%v", err)
	}
	if d := time.Since(began); d > 4*time.Second { // the dial timeout is 5 s
		t.Errorf("it took %v", d)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(reason)
	if c, err := emq.Open(ctx, redistest.Start(t).URL()); err == nil {
		c.Close()
		t.Error("Open with a context that had ended before succeeded")
	}
}

func TestBadOptionsAreRefusedBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	for name, opt := range map[string]emq.ClientOption{
		"a prefix with braces": emq.WithPrefix("{a}"), "a prefix with a colon": emq.WithPrefix("a:b"), "a long prefix": emq.WithPrefix(strings.Repeat("a", 129)),
		"no payload": emq.WithMaxPayload(0), "a negative payload": emq.WithMaxPayload(-1),
	} {
		if _, err := emq.NewClient(s.raw, opt); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := emq.NewClient(nil); !errors.Is(err, emq.ErrInvalid) {
		t.Errorf("a nil client: %v", err)
	}
}

func TestAClientOverAnotherOnesConnectionLeavesItOpen(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	mine, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	c, err := emq.NewClient(mine, emq.WithLogger(new(logbook).logger()))
	if err != nil {
		t.Fatal(err)
	}
	put(t, c, job{})
	c.Close()
	if err := mine.Do(t.Context(), mine.B().Ping().Build()).Error(); err != nil {
		t.Errorf("closing emq's client closed its maker's: %v", err)
	}
}
