package emq_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// storesVariable names the stores on which the tests run, with commas between them: redis, embedded, cluster,
// sentinel. Tests that need a server of their own, to kill it or to set it up, have it in any case.
const storesVariable = "EMQ_TEST_STORES"

// storesOf are the kinds of store that a test runs on.
func storesOf(t *testing.T) []string {
	t.Helper()
	known := []string{"redis", "embedded", "cluster", "sentinel"}
	text := os.Getenv(storesVariable)
	if text == "" {
		return known[:3]
	}
	kinds := strings.Split(text, ",")
	for _, kind := range kinds {
		if !slices.Contains(known, kind) {
			t.Fatalf("%s: %q is none of %v", storesVariable, kind, known)
		}
	}
	return kinds
}

// openStore gives a store of a kind to one test.
func openStore(t *testing.T, kind string) *store {
	t.Helper()
	switch kind {
	case "redis":
		return realStore(t)
	case "embedded":
		e, err := embedded.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		client, err := e.Open(t.Context(), emq.WithLogger(new(logbook).logger()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(client.Close)
		return newStore(t, &store{Client: client, url: e.URL(), embedded: true})
	}
	st := stands[kind].lend(t)
	return newStore(t, &store{Client: openClient(t, st.url), url: st.url, masters: st.masters})
}

// stand is several servers with one URL: a cluster, or a master and replicas behind sentinels. It takes
// seconds to start, so that tests use it one after another, each with no keys but its own.
type stand struct {
	url     string
	masters []*redistest.Server // those that hold keys
	stop    func()
}

// lot is all stands of a kind.
type lot struct {
	start func(dir string) (*stand, error)
	free  chan *stand // as many as there may be; nil is one that has not been started

	mu      sync.Mutex
	started []*stand
	dirs    []string
}

var stands = map[string]*lot{
	"cluster": newLot(func(dir string) (*stand, error) {
		// a machine that stands still for a second is no reason to fail over: tests of that have their own cluster
		c, err := redistest.NewCluster(dir, 3, true, "--cluster-node-timeout", "60000", "--cluster-replica-no-failover", "yes")
		if err != nil {
			return nil, err
		}
		st := &stand{url: c.URL(), stop: c.Stop}
		for _, n := range c.Nodes[:3] {
			st.masters = append(st.masters, n.Server)
		}
		return st, nil
	}),
	"sentinel": newLot(func(dir string) (*stand, error) {
		s, err := redistest.NewSentinels(dir)
		if err != nil {
			return nil, err
		}
		return &stand{url: s.URL(), masters: s.Nodes[:1], stop: s.Stop}, nil
	}),
}

func newLot(start func(dir string) (*stand, error)) *lot {
	l := &lot{start: start, free: make(chan *stand, 2)}
	for range cap(l.free) {
		l.free <- nil
	}
	return l
}

// lend gives an empty stand to a test until it ends.
func (l *lot) lend(t *testing.T) *stand {
	t.Helper()
	st := <-l.free
	t.Cleanup(func() { l.free <- st })
	if st == nil {
		var err error
		if st, err = l.another(); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range st.masters {
		// the client library of the test before closes the connections to a cluster in the background
		eventually(t, "nobody waits on the stand", func() bool {
			info, err := m.Info("clients")
			return err == nil && info["blocked_clients"] == "0"
		})
		if _, err := m.Command("FLUSHALL"); err != nil {
			t.Fatal(err)
		}
	}
	return st
}

func (l *lot) another() (*stand, error) {
	dir, err := os.MkdirTemp("", "emq-stand")
	if err != nil {
		return nil, err
	}
	st, err := l.start(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.started, l.dirs = append(l.started, st), append(l.dirs, dir)
	return st, nil
}

// stopStands ends what lend has started, when all tests are over.
func stopStands() {
	for _, l := range stands {
		for _, st := range l.started {
			st.stop()
		}
		for _, dir := range l.dirs {
			if err := os.RemoveAll(dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
}

// The stands are what they seem: several servers hold keys, and a test finds none of the one before.
func TestAStandIsLentEmptyAndSpreadsItsKeys(t *testing.T) {
	t.Parallel()
	for range cap(stands["cluster"].free) + 1 { // so that one comes twice
		t.Run("cluster", func(t *testing.T) {
			s := openStore(t, "cluster")
			if keys := s.keysLike(t, "*"); len(keys) != 1 {
				t.Errorf("there are keys beside the version: %v", keys)
			}
			for _, j := range []emq.Job{emq.New(north{}), emq.New(east{}), emq.New(south{})} {
				if _, err := s.Enqueue(t.Context(), j); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "every master holds keys", func() bool {
				return !slices.ContainsFunc(s.masters, func(m *redistest.Server) bool {
					keys, err := m.List("KEYS", "emq:*")
					return err != nil || len(keys) == 0
				})
			})
		})
	}
}
