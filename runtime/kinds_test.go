package emq_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// visitor is a job on the same queue as job. Its registry entry is rewritten to another package.
type visitor struct{}

func (visitor) EmqSpec() emq.Spec[visitor] {
	return emq.Spec[visitor]{Queue: "work", Kind: "visitor", Version: 1, Attempts: 1, Timeout: time.Minute}
}

func TestAWorkerRefusesAQueueThatCarriesThePackageItDoesNotBind(t *testing.T) {
	server := redistest.Start(t)
	client, err := emq.Open(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(raw.Close)
	entry := func() string {
		s, err := raw.Do(t.Context(), raw.B().Hget().Key("emq:{work}:kinds").Field("visitor").Build()).ToString()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if _, err := emq.Enqueue(t.Context(), client, visitor{}); err != nil {
		t.Fatal(err)
	}
	if got, want := entry(), `{"v":1,"pkg":"github.com/echomq/emq/runtime_test"}`; got != want {
		t.Fatalf("the registry says %s, not %s", got, want)
	}
	nothing := emq.Handle(func(context.Context, job) error { return nil })

	t.Run("kinds of a bound package may be newer than the worker", func(t *testing.T) {
		stop := run(t, client, emq.WorkerConfig{}, nothing)
		eventually(t, "the worker has joined", func() bool {
			return raw.Do(t.Context(), raw.B().Hget().Key("emq:{work}:kinds").Field("job").Build()).Error() == nil
		})
		stop()
	})

	foreign := raw.B().Hset().Key("emq:{work}:kinds").FieldValue().FieldValue("visitor", `{"v":1,"pkg":"example.com/other"}`).Build()
	if err := raw.Do(t.Context(), foreign).Error(); err != nil {
		t.Fatal(err)
	}
	t.Run("another package's kinds end Run and are named", func(t *testing.T) {
		w, err := emq.NewWorker(client, emq.WorkerConfig{}, nothing)
		if err != nil {
			t.Fatal(err)
		}
		err = w.Run(t.Context())
		if !errors.Is(err, emq.ErrPartialQueue) || !strings.Contains(err.Error(), "visitor (example.com/other)") {
			t.Fatalf("Run: %v", err)
		}
		if w, err = emq.NewWorker(client, emq.WorkerConfig{}, nothing); err != nil {
			t.Fatal(err)
		}
		if err := w.RunUntilIdle(t.Context()); !errors.Is(err, emq.ErrPartialQueue) {
			t.Fatalf("RunUntilIdle: %v", err)
		}
	})
	t.Run("unless AllowPartial says so", func(t *testing.T) {
		stop := run(t, client, emq.WorkerConfig{AllowPartial: true}, nothing)
		eventually(t, "the visitor is handed back", func() bool {
			c, err := client.Queue("work").Counts(t.Context())
			return err == nil && c.Totals["released"] > 0
		})
		stop()
	})
	t.Run("a retired kind is bound, and what is left of it is discarded", func(t *testing.T) {
		run(t, client, emq.WorkerConfig{}, nothing, emq.Retired("work", "visitor"))
		eventually(t, "the visitor is discarded", func() bool {
			c, err := client.Queue("work").Counts(t.Context())
			return err == nil && c.Totals["discarded"] == 1 && c.Pending+c.Scheduled+c.Active == 0
		})
	})
}
