package scripts

import (
	"context"
	"testing"
)

// A number is only written over the one that the caller has seen; everybody learns the one that stands.
func TestShardsAreKeptByTheFirst(t *testing.T) {
	for _, server := range targets {
		t.Run(server.name, func(t *testing.T) {
			s := server.open(t, ownLibrary(t))
			ctx := context.Background()
			jobs := 0
			stands := func(want int) {
				t.Helper()
				if n, err := s.queue.Shards(ctx); err != nil || n != want {
					t.Errorf("%d shards, %v: want %d", n, err, want)
				}
				if _, n, err := s.queue.Registry(ctx); err != nil || n != want {
					t.Errorf("the registry tells of %d shards, %v: want %d", n, err, want)
				}
				if n, err := s.queue.Register(ctx, map[string]string{"mail.send": "{}"}); err != nil || n != want {
					t.Errorf("who registers learns of %d shards, %v: want %d", n, err, want)
				}
				told := want
				if told == 1 {
					told = 0
				}
				for _, enqueued := range []bool{true, false} { // a claim with a job, and one without
					if enqueued {
						jobs++
						if _, err := s.queue.Enqueue(ctx, NewJob(enter(jobN(jobs)))); err != nil {
							t.Fatal(err)
						}
					}
					got, err := s.queue.Claim(ctx, Claim{Lease: lease, N: 1, By: "mine0001"})
					if err != nil || got.Shards != told || (len(got.Jobs) == 1) != enqueued {
						t.Errorf("a claim tells of %d shards, and has %d jobs, %v: want %d", got.Shards, len(got.Jobs), err, told)
					}
				}
			}
			stands(1)
			for _, c := range []struct{ was, n, want int }{{1, 1, 1}, {2, 4, 1}, {1, 4, 4}, {1, 4, 4}, {1, 2, 4}, {4, 4, 4}, {4, 2, 2}} {
				if got, err := s.queue.SetShards(ctx, c.was, c.n); err != nil || got != c.want {
					t.Errorf("from %d to %d: %d, %v, want %d", c.was, c.n, got, err, c.want)
				}
				stands(c.want)
			}
		})
	}
}
