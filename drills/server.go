package main

import (
	"context"
	"fmt"
	"os"
	"slices"
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

// pidOf is the process of a server.
func (st *stage) pidOf(s *redistest.Server) int {
	info, err := s.Info("server")
	st.must("find the server's process", err)
	pid, err := strconv.Atoi(info["process_id"])
	st.must("find the server's process", err)
	return pid
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

// direct is a connection to one server, whatever it is part of.
func (st *stage) direct(s *redistest.Server) node {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()}, ForceSingleClient: true, DisableCache: true, DisableRetry: true})
	st.must("connect", err)
	st.cleanup(c.Close)
	return node{c}
}

// node is one server, asked without going through another.
type node struct{ raw rueidis.Client }

func (n node) do(words ...string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return n.raw.Do(ctx, n.raw.B().Arbitrary(words...).Build())
}

// sentinels is a master with two replicas, watched by three sentinels.
type sentinels struct{ *redistest.Sentinels }

func (st *stage) sentinels(args ...string) sentinels {
	s, err := redistest.NewSentinels(st.dir, append([]string{"--appendonly", "yes"}, args...)...)
	st.must("start sentinels", err)
	st.cleanup(s.Stop)
	return sentinels{s}
}

// urlFrom names the sentinels in another order; that of URL begins with the first.
func (s sentinels) urlFrom(i int) string {
	w := slices.Concat(s.Watchers[i:], s.Watchers[:i])
	return fmt.Sprintf("redis://%s?master_set=main&addr=%s&addr=%s", w[0].Addr(), w[1].Addr(), w[2].Addr())
}

// master is the node that says so and has a replica, or nil while there is none.
func (s sentinels) master() *redistest.Server {
	for _, n := range s.Nodes {
		if info, err := n.Info("replication"); err == nil && info["role"] == "master" && info["connected_slaves"] != "0" {
			return n
		}
	}
	return nil
}

func (s sentinels) watchers(st *stage) []node {
	watchers := make([]node, len(s.Watchers))
	for i, w := range s.Watchers {
		watchers[i] = st.direct(w)
	}
	return watchers
}

// told waits until every sentinel gives clients the new master.
func (s sentinels) told(st *stage) {
	watchers := s.watchers(st)
	st.need("the sentinels name the new master", 30*time.Second, func() bool {
		now := s.master()
		return now != nil && !slices.ContainsFunc(watchers, func(w node) bool {
			at, err := w.do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main").AsStrSlice()
			return err != nil || strings.Join(at, ":") != now.Addr()
		})
	})
}

// whole waits until one master has both replicas again.
func (s sentinels) whole(st *stage) {
	st.need("the old master is a replica", 40*time.Second, func() bool {
		followers := 0
		for _, n := range s.Nodes {
			if info, err := n.Info("replication"); err == nil && info["role"] == "slave" && info["master_link_status"] == "up" {
				followers++
			}
		}
		return followers == 2 && s.master() != nil
	})
}

// settled waits until every sentinel has seen that both replicas are replicas. One that has not, because they
// were made so a moment ago, takes the next failover's new master for the old one, and demotes it again.
func (s sentinels) settled(st *stage) {
	s.told(st)
	watchers := s.watchers(st)
	st.need("the sentinels have seen the replicas", 40*time.Second, func() bool {
		now := s.master()
		return now != nil && !slices.ContainsFunc(watchers, func(w node) bool {
			replicas, err := w.do("SENTINEL", "REPLICAS", "main").ToArray()
			if err != nil || len(replicas) != 2 {
				return true
			}
			return slices.ContainsFunc(replicas, func(r rueidis.RedisMessage) bool {
				seen, err := r.AsStrMap()
				return err != nil || seen["flags"] != "slave" || seen["role-reported"] != "slave" || seen["master-port"] != strconv.Itoa(now.Port)
			})
		})
	})
}
