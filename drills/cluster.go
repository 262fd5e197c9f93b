package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
)

// cluster is three masters with a replica each.
type cluster struct {
	st    *stage
	nodes []*node
}

// node is one server of a cluster, with a connection to it alone.
type node struct {
	*redistest.Server
	id  string
	bus int
	raw rueidis.Client
}

const (
	masters     = 3
	slots       = 16384
	nodeTimeout = 1500 * time.Millisecond
)

func (st *stage) cluster() *cluster {
	c := &cluster{st: st}
	for range 2 * masters {
		bus, err := redistest.FreePort()
		st.must("find a port", err)
		dir, err := os.MkdirTemp(st.dir, "node-")
		st.must("make a directory", err)
		s := st.redisIn(dir, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
			"--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0", "--appendonly", "yes")
		n := &node{Server: s, bus: bus}
		n.raw = st.direct(s)
		c.nodes = append(c.nodes, n)
	}
	for i, n := range c.nodes {
		var err error
		n.id, err = n.do("CLUSTER", "MYID").ToString()
		st.must("ask a node's name", err)
		st.must("set an epoch", n.do("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)).Error())
		if i < masters {
			first, last := i*slots/masters, (i+1)*slots/masters-1
			st.must("give slots", n.do("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(first), strconv.Itoa(last)).Error())
		}
		if i > 0 {
			st.must("introduce a node", n.do("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(c.nodes[0].Port), strconv.Itoa(c.nodes[0].bus)).Error())
		}
	}
	for i, n := range c.nodes[masters:] {
		st.need("a replica knows its master", 20*time.Second, func() bool {
			return n.do("CLUSTER", "REPLICATE", c.nodes[i].id).Error() == nil
		})
	}
	c.healthy(30 * time.Second)
	return c
}

// direct is a connection to one server, whatever it is part of.
func (st *stage) direct(s *redistest.Server) rueidis.Client {
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.Addr()}, ForceSingleClient: true, DisableCache: true, DisableRetry: true})
	st.must("connect", err)
	st.cleanup(c.Close)
	return c
}

func (n *node) do(words ...string) rueidis.RedisResult {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return n.raw.Do(ctx, n.raw.B().Arbitrary(words...).Build())
}

// url names one node: the others are found by asking it.
func (c *cluster) url() string { return c.nodes[0].URL() }

// healthy waits until every node serves and every replica follows.
func (c *cluster) healthy(within time.Duration) {
	c.st.need("the cluster is whole", within, func() bool {
		for _, n := range c.nodes {
			cluster, err := n.do("CLUSTER", "INFO").ToString()
			if err != nil || !strings.Contains(cluster, "cluster_state:ok") || !strings.Contains(cluster, "cluster_known_nodes:6") {
				return false
			}
			info, err := infoOf(n.Server, "replication")
			if err != nil || info["role"] == "slave" && info["master_link_status"] != "up" {
				return false
			}
		}
		return true
	})
}

// master is the node that serves a queue, as the living nodes see it, or nil.
func (c *cluster) master(queue string) *node {
	for _, n := range c.nodes {
		info, err := infoOf(n.Server, "replication")
		if err != nil || info["role"] != "master" {
			continue
		}
		// a node that serves the slot answers; another one redirects
		if err := n.do("EXISTS", "emq:{"+queue+"}:meta").Error(); err == nil {
			return n
		}
	}
	return nil
}

// replicaOf is a node that follows another one, or nil.
func (c *cluster) replicaOf(master *node) *node {
	for _, n := range c.nodes {
		if info, err := infoOf(n.Server, "replication"); err == nil && info["role"] == "slave" && info["master_port"] == strconv.Itoa(master.Port) {
			return n
		}
	}
	return nil
}

// failover makes a replica of a queue's master take over, without loss, and waits until it has.
func (c *cluster) failover(queue string) {
	old := c.master(queue)
	if old == nil {
		c.st.must("fail over", errors.New("the queue "+queue+" has no master"))
	}
	next := c.replicaOf(old)
	if next == nil {
		c.st.must("fail over", errors.New("the master has no replica"))
	}
	c.st.must("CLUSTER FAILOVER", next.do("CLUSTER", "FAILOVER").Error())
	c.st.need("the replica has taken over", 20*time.Second, func() bool { return c.master(queue) == next })
}

// move takes the slot of a queue to another master, key by key, as a resharding does.
func (c *cluster) move(queue string) (keys int) {
	st := c.st
	from := c.master(queue)
	st.need("the queue has a master", 10*time.Second, func() bool { from = c.master(queue); return from != nil })
	var to *node
	for _, i := range st.rng.Perm(len(c.nodes)) {
		if info, err := infoOf(c.nodes[i].Server, "replication"); err == nil && info["role"] == "master" && c.nodes[i] != from {
			to = c.nodes[i]
		}
	}
	if to == nil {
		st.must("move a slot", errors.New("there is no other master"))
	}
	n, err := from.do("CLUSTER", "KEYSLOT", "{"+queue+"}").AsInt64()
	st.must("CLUSTER KEYSLOT", err)
	slot := strconv.FormatInt(n, 10)
	st.must("SETSLOT IMPORTING", to.do("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id).Error())
	st.must("SETSLOT MIGRATING", from.do("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id).Error())
	for {
		batch, err := from.do("CLUSTER", "GETKEYSINSLOT", slot, "100").AsStrSlice()
		st.must("GETKEYSINSLOT", err)
		if len(batch) == 0 {
			break
		}
		keys += len(batch)
		words := append([]string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.Port), "", "0", "5000", "KEYS"}, batch...)
		st.must("MIGRATE", from.do(words...).Error())
	}
	// the new owner first: so no moment is without one
	for _, n := range []*node{to, from} {
		st.must("SETSLOT NODE", n.do("CLUSTER", "SETSLOT", slot, "NODE", to.id).Error())
	}
	for _, n := range c.nodes {
		if n != to && n != from {
			// a replica, or one that cannot be asked, hears of it by itself
			_ = n.do("CLUSTER", "SETSLOT", slot, "NODE", to.id).Error()
		}
	}
	st.need("the queue has moved", 10*time.Second, func() bool { return c.master(queue) == to })
	return keys
}
