package redistest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Slots is how many a cluster has.
const Slots = 16384

// Cluster is a real cluster: masters first, then a replica of each, if there are any.
type Cluster struct{ Nodes []*Node }

// Node is one server of a cluster.
type Node struct {
	*Server
	ID string
}

// ClusterTimeout is after how long without an answer a node is taken for dead.
const ClusterTimeout = 1500 * time.Millisecond

// NewCluster starts a cluster whose slots are spread over its masters, and waits until it serves. What it
// has started is stopped after an error; else by the caller.
func NewCluster(dir string, masters int, replicas bool, args ...string) (*Cluster, error) {
	c := &Cluster{}
	n := masters
	if replicas {
		n *= 2
	}
	err := c.start(dir, n, args)
	if err == nil {
		err = c.join(masters)
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Stop stops every node. Safe to repeat.
func (c *Cluster) Stop() {
	for _, n := range c.Nodes {
		n.Stop()
	}
}

// URL names one node: the others are found by asking it.
func (c *Cluster) URL() string { return c.Nodes[0].URL() }

func (c *Cluster) start(dir string, n int, args []string) error {
	for i := range n {
		own := filepath.Join(dir, fmt.Sprint("node", i))
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		s, err := New(own, append([]string{
			"--cluster-enabled", "yes", "--repl-diskless-sync-delay", "0",
			"--cluster-node-timeout", strconv.FormatInt(ClusterTimeout.Milliseconds(), 10), "--cluster-replica-validity-factor", "0",
		}, args...)...)
		if err != nil {
			return err
		}
		node := &Node{Server: s}
		c.Nodes = append(c.Nodes, node)
		if node.ID, err = node.Bulk("CLUSTER", "MYID"); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) join(masters int) error {
	first := c.Nodes[0]
	for i, n := range c.Nodes {
		commands := [][]string{{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)}}
		if i < masters {
			from, to := i*Slots/masters, (i+1)*Slots/masters-1
			commands = append(commands, []string{"CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(from), strconv.Itoa(to)})
		}
		if i > 0 {
			commands = append(commands, []string{"CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(first.Port), strconv.Itoa(first.bus)})
		}
		for _, words := range commands {
			if _, err := n.Command(words...); err != nil {
				return fmt.Errorf("%v: %w", words, err)
			}
		}
	}
	for i, n := range c.Nodes[masters:] {
		err := within(20*time.Second, "a replica knows its master", func() error {
			_, err := n.Command("CLUSTER", "REPLICATE", c.Nodes[i].ID)
			return err
		})
		if err != nil {
			return err
		}
	}
	return c.Await(30 * time.Second)
}

// Await waits until every node knows all others and serves, and every replica follows.
func (c *Cluster) Await(longest time.Duration) error {
	return within(longest, "the cluster is whole", func() error {
		for _, n := range c.Nodes {
			info, err := n.Bulk("CLUSTER", "INFO")
			if err != nil {
				return err
			}
			if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", len(c.Nodes))) {
				return errors.New(info)
			}
			nodes, err := n.Bulk("CLUSTER", "NODES")
			if err != nil {
				return err
			}
			if failing(nodes) {
				return errors.New("a node fails: " + nodes)
			}
			role, err := n.Info("replication")
			if err != nil {
				return err
			}
			if role["role"] == "slave" && role["master_link_status"] != "up" {
				return fmt.Errorf("a replica does not follow: %v", role)
			}
		}
		return nil
	})
}

// failing tells whether a node takes another for dead, or may: the third word of each line has its flags.
func failing(nodes string) bool {
	for line := range strings.Lines(nodes) {
		words := strings.Fields(line)
		if len(words) < 3 {
			continue
		}
		flags := strings.Split(words[2], ",")
		if slices.Contains(flags, "fail") || slices.Contains(flags, "fail?") {
			return true
		}
	}
	return false
}

// Master is the node that serves the slot of a key, or nil if none does now.
func (c *Cluster) Master(key string) *Node {
	for _, n := range c.Nodes {
		// a node that does not serve the slot redirects
		if _, err := n.Command("EXISTS", key); err == nil {
			return n
		}
	}
	return nil
}

// Move takes the slot of a key to another master, key by key, as a resharding does, and answers how many
// keys it moved.
func (c *Cluster) Move(key string, to *Node) (int, error) {
	from := c.Master(key)
	if from == nil {
		return 0, errors.New("no node serves " + key)
	}
	slot, err := from.Command("CLUSTER", "KEYSLOT", key)
	if err != nil {
		return 0, err
	}
	slot = strings.TrimPrefix(slot, ":")
	if _, err := to.Command("CLUSTER", "SETSLOT", slot, "IMPORTING", from.ID); err != nil {
		return 0, err
	}
	if _, err := from.Command("CLUSTER", "SETSLOT", slot, "MIGRATING", to.ID); err != nil {
		return 0, err
	}
	moved := 0
	for {
		batch, err := from.List("CLUSTER", "GETKEYSINSLOT", slot, "100")
		if err != nil {
			return moved, err
		}
		if len(batch) == 0 {
			break
		}
		words := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(to.Port), "", "0", "5000", "KEYS"}
		if _, err := from.Command(append(words, batch...)...); err != nil {
			return moved, err
		}
		moved += len(batch)
	}
	// the new owner first: so no moment is without one; the others hear of it by themselves
	for _, n := range []*Node{to, from} {
		if _, err := n.Command("CLUSTER", "SETSLOT", slot, "NODE", to.ID); err != nil {
			return moved, err
		}
	}
	return moved, within(10*time.Second, "the slot has moved", func() error {
		if c.Master(key) != to {
			return errors.New("not yet")
		}
		return nil
	})
}

// Sentinels is a master with two replicas, watched by three sentinels as "main".
type Sentinels struct{ Nodes, Watchers []*Server }

// NewSentinels starts them and waits until they know each other. What it has started is stopped after an
// error; else by the caller.
func NewSentinels(dir string, args ...string) (*Sentinels, error) {
	s := &Sentinels{}
	if err := s.start(dir, args); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func (s *Sentinels) start(dir string, args []string) error {
	for i := range 3 {
		own := filepath.Join(dir, fmt.Sprint("node", i))
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		words := append([]string{"--repl-diskless-sync-delay", "0"}, args...)
		if i > 0 {
			words = append(words, "--replicaof", "127.0.0.1 "+strconv.Itoa(s.Nodes[0].Port))
		}
		n, err := New(own, words...)
		if err != nil {
			return err
		}
		s.Nodes = append(s.Nodes, n)
	}
	for i := range 3 {
		own := filepath.Join(dir, fmt.Sprint("sentinel", i))
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		conf := filepath.Join(own, "sentinel.conf")
		text := fmt.Sprintf("sentinel monitor main 127.0.0.1 %d 2\nsentinel down-after-milliseconds main 1000\n"+
			"sentinel failover-timeout main 6000\nsentinel parallel-syncs main 2\n", s.Nodes[0].Port)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			return err
		}
		w, err := newSentinel(own, conf)
		if err != nil {
			return err
		}
		s.Watchers = append(s.Watchers, w)
	}
	return within(30*time.Second, "the sentinels know each other and the replicas", func() error {
		for _, w := range s.Watchers {
			info, err := w.Info("sentinel")
			if err != nil {
				return err
			}
			if m := info["master0"]; !strings.Contains(m, "status=ok") || !strings.Contains(m, "slaves=2,sentinels=3") {
				return errors.New(m)
			}
		}
		return nil
	})
}

// Stop stops all of them. Safe to repeat.
func (s *Sentinels) Stop() {
	for _, n := range append(s.Watchers, s.Nodes...) {
		n.Stop()
	}
}

// URL names the sentinels.
func (s *Sentinels) URL() string {
	return fmt.Sprintf("redis://%s?master_set=main&addr=%s&addr=%s", s.Watchers[0].Addr(), s.Watchers[1].Addr(), s.Watchers[2].Addr())
}

// within waits until f has no error.
func within(longest time.Duration, what string, f func() error) error {
	deadline := time.Now().Add(longest)
	for {
		err := f()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not within %v: %s: %w", longest, what, err)
		}
		time.Sleep(20 * time.Millisecond) // polling, under the deadline
	}
}
