package emq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
)

// What docs/operating.md adds to the list for a cluster and behind sentinels is enough, and each word of it
// is needed.
func TestAUserWithTheListedCommandsWorksOnAClusterAndBehindSentinels(t *testing.T) {
	t.Parallel()
	tries := func(t *testing.T, url string) error {
		url = strings.Replace(url, "redis://", "redis://modest:word@", 1)
		openCtx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c, err := Open(openCtx, url, WithLogger(quiet()))
		if err != nil {
			return err
		}
		defer c.Close()
		if _, err := Enqueue(t.Context(), c, modest{"plain"}); err != nil {
			return err
		}
		ran := make(chan struct{})
		w, err := NewWorker(c, WorkerConfig{Logger: quiet()}, HandleResult(func(context.Context, modest) (string, error) {
			close(ran)
			return "ok", nil
		}), Handle(func(context.Context, hurried) error { return nil }), Handle(func(context.Context, spaced) error { return nil }))
		if err != nil {
			return err
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		select {
		case <-ran:
		case <-time.After(20 * time.Second):
			t.Error("the job has not run")
		}
		stop()
		return <-ended
	}
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c, err := redistest.NewCluster(t.TempDir(), 3, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Stop)
		for _, n := range c.Nodes {
			limited(t, n.Server, "", "+hello", "+ping", "+cluster|slots", "+cluster|shards", "+asking")
		}
		if err := tries(t, c.URL()); err != nil {
			t.Error(err)
		}
		// while a slot moves the new node is asked with ASKING
		const key = "emq:{modest}:meta"
		from, to := c.Master(key), c.Nodes[0]
		if from == to {
			to = c.Nodes[1]
		}
		slot, err := from.Command("CLUSTER", "KEYSLOT", key)
		if err != nil {
			t.Fatal(err)
		}
		slot = strings.TrimPrefix(slot, ":")
		for _, step := range []struct {
			n     *redistest.Node
			words []string
		}{{to, []string{"IMPORTING", from.ID}}, {from, []string{"MIGRATING", to.ID}}} {
			if _, err := step.n.Command(append([]string{"CLUSTER", "SETSLOT", slot}, step.words...)...); err != nil {
				t.Fatal(err)
			}
		}
		asks := func() error {
			client, err := Open(t.Context(), strings.Replace(c.URL(), "redis://", "redis://modest:word@", 1), WithLogger(quiet()))
			if err != nil {
				return err
			}
			defer client.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			return client.rueidis.Do(ctx, client.rueidis.B().Set().Key("emq:{modest}:de:x").Value("x").Build()).Error()
		}
		if err := asks(); err != nil {
			t.Error(err)
		}
		for _, n := range c.Nodes {
			limited(t, n.Server, "", "+hello", "+ping", "+cluster|slots", "+cluster|shards")
		}
		if err := asks(); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without asking: %v; want the server's refusal", err)
		}
		for _, n := range c.Nodes {
			limited(t, n.Server, "", "+hello", "+ping", "+cluster|slots", "+cluster|shards", "+acl|whoami", "+acl|dryrun")
		}
		if err := asks(); !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), " ASKING ") {
			t.Errorf("without asking, where Open can ask for it: %v", err)
		}
		// Which of the two questions is asked is a matter of the server's version: with it all is well, with the
		// other one alone, or with none, every node is refused at once, also the one that has the key of the version.
		asked, err := c.Nodes[0].Info("commandstats")
		if err != nil {
			t.Fatal(err)
		}
		questions := []string{"slots", "shards"}
		if asked["cmdstat_cluster|slots"] == "" {
			slices.Reverse(questions)
		} else if asked["cmdstat_cluster|shards"] != "" {
			t.Error("both questions were asked")
		}
		for i, more := range [][]string{{"+cluster|" + questions[0]}, {"+cluster|" + questions[1]}, nil} {
			for _, n := range c.Nodes {
				limited(t, n.Server, "", append(more, "+hello", "+ping", "+asking")...)
			}
			several := fmt.Sprintf("redis://modest:word@%s?addr=%s", c.Nodes[0].Addr(), c.Nodes[1].Addr())
			for _, url := range []string{"redis://modest:word@" + c.Nodes[0].Addr(), "redis://modest:word@" + c.Nodes[1].Addr(), "redis://modest:word@" + c.Nodes[2].Addr(), several} {
				client, err := Open(t.Context(), url, WithLogger(quiet()))
				if err == nil {
					client.Close()
				}
				if (i == 0) != (err == nil) || err != nil && !errors.Is(err, ErrPermission) {
					t.Errorf("%s with %q: %v", url, more, err)
				}
				if name := "cluster " + questions[0]; i == 1 && err != nil && !strings.Contains(strings.ReplaceAll(strings.ToLower(err.Error()), "|", " "), name) {
					t.Errorf("%s with %q: %v, which does not name %s", url, more, err, name)
				}
			}
		}
	})
	t.Run("sentinel", func(t *testing.T) {
		t.Parallel()
		s, err := redistest.NewSentinels(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		for _, more := range []string{"+role", "+ping"} {
			for _, n := range s.Nodes {
				limited(t, n, "", "+hello", "+ping", more)
			}
			if err := tries(t, s.URL()); (err == nil) != (more == "+role") || err != nil && !errors.Is(err, ErrPermission) {
				t.Errorf("with %s: %v", more, err)
			}
		}
	})
}
