package emq_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/echomq/emq/internal/wire"
	emq "github.com/echomq/emq/runtime"
)

// spreadTick ticks on a queue with shards.
type spreadTick struct{}

func (spreadTick) EmqSpec() emq.Spec[spreadTick] {
	return emq.Spec[spreadTick]{Queue: "spread", Shards: 4, Kind: "tick", Attempts: 1, Timeout: time.Minute, Cron: []emq.Cron{{Spec: "0 0 1 1 *"}}}
}

func TestCronEntriesAreInOneShard(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		q := s.Queue("spread")
		if err := q.SetShards(ctx, 2); err != nil { // as from a time with fewer
			t.Fatal(err)
		}
		for i := range 6 {
			if err := q.AddCron(ctx, fmt.Sprint("entry", i), emq.Cron{Spec: "0 0 1 1 *"}, emq.New(visitorOfSpread{i})); err != nil {
				t.Fatal(err)
			}
		}
		ran := make(chan emq.Info, 10)
		bound := emq.Bind(serveOnly(func(int) {}), emq.Handle(func(ctx context.Context, _ spreadTick) error {
			info, _ := emq.InfoFrom(ctx)
			ran <- info
			return nil
		}))
		run(t, s.Client, emq.WorkerConfig{}, bound)
		all := func() (names []string) {
			for cursor := ""; ; {
				page, err := q.Crons(ctx, cursor, 10)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range page.Entries {
					names = append(names, e.Name)
				}
				if cursor = page.Next; cursor == "" {
					slices.Sort(names)
					return names
				}
			}
		}
		want := []string{"entry0", "entry1", "entry2", "entry3", "entry4", "entry5", "tick"}
		eventually(t, "the declared entry is there once, and the others are", func() bool { return slices.Equal(all(), want) })
		if n, err := q.Shards(ctx); err != nil || n != 4 {
			t.Errorf("%d shards, %v", n, err)
		}
		home := wire.NewKeys("", wire.Tag("spread", wire.Shard("tick", 4))).Base()
		if keys := s.keysLike(t, "emq:{spread*:repeat:tick"); len(keys) != 1 || keys[0] != home+"repeat:tick" {
			t.Errorf("the entry is at %v", keys)
		}
		// again, now over four: it is in one place all the same
		for i := range 6 {
			name := fmt.Sprint("entry", i)
			if err := q.AddCron(ctx, name, emq.Cron{Spec: "0 0 2 1 *"}, emq.New(visitorOfSpread{i})); err != nil {
				t.Error(err)
			}
			for _, verb := range []func(context.Context, string) error{q.PauseCron, q.ResumeCron} {
				if err := verb(ctx, name); err != nil {
					t.Error(err)
				}
			}
		}
		if got := all(); !slices.Equal(got, want) {
			t.Errorf("the entries are %v", got)
		}
		if _, err := q.RunCronNow(ctx, "tick"); err != nil {
			t.Error(err)
		}
		if info := <-ran; info.Kind != "tick" {
			t.Errorf("ran %+v", info)
		}
		for i := range 6 {
			if err := q.RemoveCron(ctx, fmt.Sprint("entry", i)); err != nil {
				t.Error(err)
			}
		}
		if err := q.RemoveCron(ctx, "entry1"); !errors.Is(err, emq.ErrGone) {
			t.Errorf("removed twice: %v", err)
		}
	})
}

// The first process that declares both the shards and the entry writes it where it belongs, and only there: written
// before there were shards it would tick in two.
func TestADeclaredCronEntryWaitsForTheShardsThatAreDeclared(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		var log logbook
		run(t, s.Client, emq.WorkerConfig{Logger: log.logger()}, emq.Handle(func(context.Context, spreadTick) error { return nil }))
		home := wire.NewKeys("", wire.Tag("spread", wire.Shard("tick", 4))).Base()
		eventually(t, "the entry is where it belongs, and that is told", func() bool {
			return slices.Contains(s.keysLike(t, "emq:{spread*:repeat:tick"), home+"repeat:tick") && len(log.with("a declared cron entry was written")) > 0
		})
		if keys := s.keysLike(t, "emq:{spread*:repeat:tick"); len(keys) != 1 {
			t.Errorf("the entry is at %v", keys)
		}
	})
}
