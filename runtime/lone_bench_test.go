package emq_test

import (
	"context"
	"sync"
	"testing"

	emq "github.com/echomq/emq/runtime"
)

// BenchmarkLoneEnqueue measures one caller, as an HTTP handler is: its context can be cancelled and has no
// deadline, and many have called at once before.
func BenchmarkLoneEnqueue(b *testing.B) {
	client, _ := benchClient(b)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	enqueue := func() {
		if _, err := client.Enqueue(ctx, emq.New(job{1})); err != nil {
			b.Error(err)
		}
	}
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 100 {
				enqueue()
			}
		})
	}
	wg.Wait()
	for b.Loop() {
		enqueue()
	}
}
