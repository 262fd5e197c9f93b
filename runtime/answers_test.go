package emq_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Before its first job a client asks how many shards there are; a server that starts, or has lost its master, does
// not say.
func TestAFirstEnqueueWaitsForAServerThatWillSoonAnswer(t *testing.T) {
	t.Parallel()
	s := realStore(t, "--replica-serve-stale-data", "no")
	s.do(t, "REPLICAOF", "127.0.0.1", "1")
	ended := make(chan error, 1)
	go func() {
		_, err := emq.Enqueue(t.Context(), s.Client, job{1})
		ended <- err
	}()
	eventually(t, "it was put off", func() bool { // twice the registry, and then the question
		stats, err := s.do(t, "INFO", "errorstats").ToString()
		_, count, _ := strings.Cut(stats, "errorstat_MASTERDOWN:count=")
		digits, _, _ := strings.Cut(count, "\r")
		n, _ := strconv.Atoi(digits)
		return err == nil && n > 2
	})
	s.do(t, "REPLICAOF", "NO", "ONE")
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What a server refuses for good is not waited for.
func TestAnAnswerThatDoesNotPassIsTheErrorAtOnce(t *testing.T) {
	t.Parallel()
	s := realStore(t)
	s.do(t, "SET", "emq:{spread}:meta", "no settings")
	r, err := emq.Enqueue(t.Context(), s.Client, piece{N: 1})
	if err == nil || r.Status != emq.Refused || strings.Contains(err.Error(), "no connection") {
		t.Errorf("enqueue: %v, %v", r.Status, err)
	}
	ref := put(t, s, job{1})
	s.do(t, "ACL", "SETUSER", "default", "-eval", "-evalsha")
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	if _, err := s.AwaitResult(ctx, ref); err == nil || ctx.Err() != nil {
		t.Errorf("await: %v", err)
	}
}
