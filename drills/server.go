package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
)

// redis starts a server for the length of the drill.
func (st *stage) redis(args ...string) *redistest.Server {
	dir, err := os.MkdirTemp(st.dir, "redis-")
	st.must("make a directory", err)
	return st.redisIn(dir, args...)
}

func (st *stage) redisIn(dir string, args ...string) *redistest.Server {
	s, err := redistest.New(dir, args...)
	st.must("start a server", err)
	st.cleanup(s.Stop)
	return s
}

// proxy stands before a server for the length of the drill.
func (st *stage) proxy(s *redistest.Server) *redistest.Proxy {
	p, err := redistest.NewProxy(s.Addr())
	st.must("start a proxy", err)
	st.cleanup(p.Close)
	return p
}

// command is a control command that must succeed.
func (st *stage) command(s *redistest.Server, words ...string) string {
	reply, err := s.Command(words...)
	st.must(strings.Join(words, " "), err)
	return reply
}

// look is a client of the auditor's own; it repeats reads, and nothing of emq is in it.
func (st *stage) look(url string) rueidis.Client {
	option, err := rueidis.ParseURL(url)
	st.must("read a URL", err)
	option.DisableCache = true
	option.ConnWriteTimeout = 10 * time.Second
	var c rueidis.Client
	var last error
	st.need("the auditor connects", 20*time.Second, func() bool {
		c, last = rueidis.NewClient(option)
		return last == nil
	})
	st.cleanup(c.Close)
	return c
}

// sentinels is a master with two replicas, watched by three sentinels.
type sentinels struct {
	nodes, watchers []*redistest.Server
}

func (st *stage) sentinels() *sentinels {
	s := &sentinels{}
	for i := range 3 {
		args := []string{"--appendonly", "yes", "--repl-diskless-sync-delay", "0", "--min-replicas-to-write", "0"}
		if i > 0 {
			args = append(args, "--replicaof", "127.0.0.1 "+strconv.Itoa(s.nodes[0].Port))
		}
		s.nodes = append(s.nodes, st.redis(args...))
	}
	for range 3 {
		dir, err := os.MkdirTemp(st.dir, "sentinel-")
		st.must("make a directory", err)
		conf := filepath.Join(dir, "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor main 127.0.0.1 %d 2\nsentinel down-after-milliseconds main 1000\n"+
			"sentinel failover-timeout main 6000\nsentinel parallel-syncs main 2\n", s.nodes[0].Port)
		st.must("write a configuration", os.WriteFile(conf, []byte(text), 0o600))
		w, err := redistest.NewSentinel(dir, conf)
		st.must("start a sentinel", err)
		st.cleanup(w.Stop)
		s.watchers = append(s.watchers, w)
	}
	st.need("the sentinels know each other and the replicas", 30*time.Second, func() bool {
		for _, w := range s.watchers {
			info, err := infoOf(w, "sentinel")
			if err != nil || !strings.Contains(info["master0"], "slaves=2,sentinels=3") || !strings.Contains(info["master0"], "status=ok") {
				return false
			}
		}
		return true
	})
	return s
}

func (s *sentinels) url() string {
	return fmt.Sprintf("redis://%s?master_set=main&addr=%s&addr=%s", s.watchers[0].Addr(), s.watchers[1].Addr(), s.watchers[2].Addr())
}

// master is the node that says so and has a replica, or nil while there is none.
func (s *sentinels) master() *redistest.Server {
	for _, n := range s.nodes {
		if info, err := infoOf(n, "replication"); err == nil && info["role"] == "master" && info["connected_slaves"] != "0" {
			return n
		}
	}
	return nil
}

// infoOf is a section of INFO.
func infoOf(s *redistest.Server, section string) (map[string]string, error) {
	text, err := s.Bulk("INFO", section)
	if err != nil {
		return nil, err
	}
	info := make(map[string]string)
	for l := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(l), ":"); ok {
			info[k] = v
		}
	}
	return info, nil
}

// whole waits until one master has both replicas again.
func (s *sentinels) whole(st *stage) {
	st.need("the old master is a replica", 40*time.Second, func() bool {
		followers := 0
		for _, n := range s.nodes {
			if info, err := infoOf(n, "replication"); err == nil && info["role"] == "slave" && info["master_link_status"] == "up" {
				followers++
			}
		}
		return followers == 2 && s.master() != nil
	})
}
