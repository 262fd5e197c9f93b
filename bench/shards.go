package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/echomq/emq/bench/jobs"
	"github.com/echomq/emq/internal/redistest"
	"github.com/echomq/emq/internal/wire"
)

// shardNodes is how many nodes the cluster has: two processors cannot show by the clock what they bring, but
// each tells the time that it spent.
const shardNodes = 8

// shardGrowth measures the nodes of a cluster while the shards of one queue become more.
func shardGrowth(ctx context.Context) ([]sample, error) {
	var samples []sample
	for n := 1; n <= shardNodes; n *= 2 {
		s, err := spreadOver(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("%d shards: %w", n, err)
		}
		samples = append(samples, s...)
	}
	return samples, nil
}

// spreadOver enqueues jobs one at a time on a queue of so many shards, each on a node of its own, and works them off at
// the same time, with 128 goroutines and 100 slots for each shard: as many as keep its calls full.
func spreadOver(ctx context.Context, shards int) ([]sample, error) {
	const n, goroutines, concurrency = 100_000, 128, 100
	dir, err := os.MkdirTemp("", "emq-shards-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	cluster, err := redistest.NewCluster(dir, shardNodes, false)
	if err != nil {
		return nil, err
	}
	defer cluster.Stop()
	for i := range shards {
		key := wire.NewKeys("", wire.Tag(jobs.QueueBench, i)).Base()
		if node := cluster.Nodes[i]; cluster.Master(key) != node {
			if _, err := cluster.Move(key, node); err != nil {
				return nil, err
			}
		}
	}
	nodes, stop, err := storesOf(cluster)
	defer stop()
	if err != nil {
		return nil, err
	}
	e, err := newEmq(ctx, nodes[0], "", false)
	if err != nil {
		return nil, err
	}
	defer e.client.Close()
	if err := e.client.Queue(jobs.QueueBench).SetShards(ctx, shards); err != nil {
		return nil, err
	}
	return e.cycleOver(ctx, nodes, shards, n, goroutines*shards, concurrency*shards)
}

// storesOf are the nodes of a cluster, each with its process.
func storesOf(cluster *redistest.Cluster) (nodes []*redisStore, stop func(), err error) {
	stop = func() {
		for _, r := range nodes {
			_ = r.client.Close() // its server is stopped with the cluster
		}
	}
	for _, node := range cluster.Nodes {
		r := &redisStore{Server: node.Server, client: redis.NewClient(&redis.Options{Addr: node.Addr()})}
		nodes = append(nodes, r)
		pid, err := r.info(context.Background(), "process_id")
		if err != nil {
			return nodes, stop, err
		}
		r.pid = int(pid)
	}
	return nodes, stop, nil
}

func (s *emqSystem) cycleOver(ctx context.Context, nodes []*redisStore, shards, n, goroutines, concurrency int) ([]sample, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	before, err := spent(nodes)
	if err != nil {
		return nil, err
	}
	r, err := startRunner(ctx, s, n, concurrency, 0)
	if err != nil {
		return nil, err
	}
	err = enqueueAll(ctx, s, n, goroutines, small)
	if err == nil {
		err = r.wait(ctx)
	}
	if err = errors.Join(err, r.stop()); err != nil {
		return nil, err
	}
	after, err := spent(nodes)
	if err != nil {
		return nil, err
	}
	var all, most time.Duration
	for i := range nodes {
		d := after[i] - before[i]
		all, most = all+d, max(most, d)
	}
	perJob := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(n) }
	return []sample{
		{"shards", "all nodes together", shards, perJob(all)},
		{"shards", "the busiest node", shards, perJob(most)},
	}, holds(ctx, s, 0)
}

func spent(nodes []*redisStore) ([]time.Duration, error) {
	times := make([]time.Duration, len(nodes))
	for i, r := range nodes {
		var err error
		if times[i], err = r.cpu(); err != nil {
			return nil, err
		}
	}
	return times, nil
}
