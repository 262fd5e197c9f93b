package scripts

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
)

// listed remembers which commands went over a connection of their own.
type listed struct {
	rueidis.Client
	own   []bool
	fails error
}

func (l *listed) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	l.own = append(l.own, cmd.IsBlock())
	if l.fails != nil && cmd.IsBlock() {
		return rueidis.NewErrorResult(l.fails)
	}
	return l.Client.Do(ctx, cmd)
}

func TestCallsInQuickSuccessionHaveAConnectionOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := tenantsOn(t, newTarget(t, redistest.Start(t).Addr(), 0, ownLibrary(t))) // whose cache of scripts nobody else fills or empties
	client := &listed{Client: s.client}
	server := &Server{client: client, prefix: s.queue.prefix, scripts: s.queue.scripts, direct: newDirect()}
	queue := server.Queue(s.queue.name)
	now := time.Now()
	server.direct.clock = func() time.Time { return now }
	enqueue := func(id string) error {
		job := NewJob(inLane(id, ""))
		return queue.EnqueueGathered(t.Context(), []*NewJob{&job})[0].Err
	}
	expect := func(what string, own ...bool) {
		t.Helper()
		if len(client.own) != len(own) {
			t.Fatalf("%s: %v, not %v", what, client.own, own)
		}
		for i := range own {
			if client.own[i] != own[i] {
				t.Fatalf("%s: %v, not %v", what, client.own, own)
			}
		}
		client.own = nil
	}
	enter := func() {
		t.Helper()
		s.next++
		if err := enqueue(jobN(s.next)); err != nil {
			t.Fatal(err)
		}
	}

	enter()
	expect("the first is shared, and loads the script", false, false)
	enter()
	expect("the next is not", true)
	now = now.Add(directBrisk + 1)
	enter()
	expect("after a while it is shared again", false)
	got := s.claim(2)
	for _, j := range got {
		if _, err := queue.Complete(t.Context(), j.Fence, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	expect("settles are calls of the same kind", true, false, false, true)

	if err := s.do("SCRIPT", "FLUSH").Error(); err != nil {
		t.Fatal(err)
	}
	enter()
	expect("what the server forgot is sent again", true, false, false)

	for range directConnections {
		server.direct.free <- struct{}{}
	}
	enter()
	expect("nothing waits for such a connection", false)
	for range directConnections {
		<-server.direct.free
	}

	client.fails = errors.New("cut")
	if err := enqueue("JOB00000000999"); err == nil || !strings.Contains(err.Error(), "cut") {
		t.Fatal(err)
	}
	expect("the caller decides whether to send it again", true)
	enter()
	expect("and then it is shared", false)
	client.fails = nil
	now = now.Add(directRest)
	enter()
	enter()
	expect("until it has rested", false, true)
}
