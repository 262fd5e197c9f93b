package main

import (
	"errors"
	"strconv"
	"time"

	"github.com/echomq/emq/internal/redistest"
)

// cluster is three masters with a replica each.
type cluster struct {
	*redistest.Cluster
	st      *stage
	elected map[*redistest.Node]time.Time // when a node was last asked to take over
}

// candidate is how long after its election a replica does not stand for another one. A master that is asked for a
// failover meanwhile takes no writes until then, or for 5 s.
const candidate = 4*redistest.ClusterTimeout + time.Second

func (st *stage) cluster() *cluster {
	c, err := redistest.NewCluster(st.dir, 3, true, "--appendonly", "yes")
	st.must("start a cluster", err)
	st.cleanup(c.Stop)
	return &cluster{c, st, make(map[*redistest.Node]time.Time)}
}

// healthy waits until every node serves and every replica follows.
func (c *cluster) healthy() { c.st.must("mend the cluster", c.Await(40*time.Second)) }

// master is the node that serves a queue, or nil.
func (c *cluster) master(queue string) *redistest.Node { return c.Master("emq:{" + queue + "}:meta") }

// replicaOf is a node that follows another one.
func (c *cluster) replicaOf(master *redistest.Node) *redistest.Node {
	for _, n := range c.Nodes {
		if info, err := n.Info("replication"); err == nil && info["role"] == "slave" && info["master_port"] == strconv.Itoa(master.Port) {
			return n
		}
	}
	c.st.must("find a replica", errors.New("the master has none"))
	return nil
}

// failover makes a replica of a queue's master take over, without loss, and waits until it has.
func (c *cluster) failover(queue string) {
	next := c.replicaOf(c.owner(queue))
	var asked time.Time
	c.st.sleep(time.Until(c.elected[next].Add(candidate)))
	defer func() { c.elected[next] = time.Now() }()
	c.st.need("the replica has taken over", 30*time.Second, func() bool {
		// servers that are busy give a failover up after 5 s, and want to be asked again
		if time.Since(asked) > 6*time.Second {
			asked = time.Now()
			try(next.Server, "CLUSTER", "FAILOVER")
		}
		return c.master(queue) == next
	})
}

// owner is the master of a queue, which there must be soon.
func (c *cluster) owner(queue string) (n *redistest.Node) {
	c.st.need("the queue has a master", 10*time.Second, func() bool { n = c.master(queue); return n != nil })
	return n
}

// move takes the slot of a queue to another master.
func (c *cluster) move(queue string) (keys int) {
	from := c.owner(queue)
	for _, i := range c.st.rng.Perm(len(c.Nodes)) {
		to := c.Nodes[i]
		if info, err := to.Info("replication"); err != nil || info["role"] != "master" || to == from {
			continue
		}
		keys, err := c.Move("emq:{"+queue+"}:meta", to)
		c.st.must("move a slot", err)
		return keys
	}
	c.st.must("move a slot", errors.New("there is no other master"))
	return 0
}
