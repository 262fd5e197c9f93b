package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
	_ "time/tzdata" // the zones, also where the machine has none

	"github.com/echomq/emq/examples/readme/billing"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/emqtest"
)

type books struct {
	close func(ctx context.Context, day time.Time) error
}

func (b *books) HandleCloseDay(ctx context.Context, job billing.CloseDay) error {
	info, _ := emq.InfoFrom(ctx)
	night := info.Tick // 02:15 of the night that it stands for, however late it runs
	return b.close(ctx, night.AddDate(0, 0, -1))
}

// planShop and showCrons are what docs/cron.md shows.
func planShop(ctx context.Context, queue *emq.Queue, shop, zone string) error {
	return queue.AddCron(ctx, "close/"+shop, // its name in the queue
		emq.Cron{Spec: "0 3 * * *", TZ: zone, Missed: emq.RunOnce, Overlap: emq.SkipOverlap},
		emq.New(billing.CloseDay{Shop: shop}))
}

func showCrons(ctx context.Context, queue *emq.Queue) error {
	for cursor := ""; ; {
		page, err := queue.Crons(ctx, cursor, 100)
		if err != nil {
			return err
		}
		for _, e := range page.Entries {
			slog.Info("cron", "entry", e.Name, "next", e.Next, "last", e.Last, "paused", e.Paused, "missed", e.TicksMissed)
		}
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}

func operateCrons(ctx context.Context, queue *emq.Queue) error {
	if err := queue.PauseCron(ctx, "close/berlin"); err != nil { // also over deploys
		return err
	}
	if err := queue.ResumeCron(ctx, "close/berlin"); err != nil {
		return err
	}
	receipt, err := queue.RunCronNow(ctx, "close/berlin") // beside its ticks
	if err != nil {
		return err
	}
	slog.Info("runs now", "job", receipt.Ref)
	return queue.RemoveCron(ctx, "close/berlin")
}

func TestTheDayIsClosed(t *testing.T) {
	env := emqtest.New(t)
	var closed []time.Time
	handler := billing.Bind(&books{func(_ context.Context, day time.Time) error {
		closed = append(closed, day)
		return nil
	}})
	env.Work(handler) // writes the entry
	env.Advance(72 * time.Hour)
	env.Work(handler) // the newest of three nights
	if len(closed) != 1 {
		t.Fatalf("closed %v", closed)
	}
}

func TestTheCronOfTheDocs(t *testing.T) {
	env := emqtest.New(t)
	queue, ctx := env.Client.Queue("billing"), t.Context()
	if err := planShop(ctx, queue, "berlin", "Europe/Berlin"); err != nil {
		t.Fatal(err)
	}
	if err := planShop(ctx, queue, "mars", "Mars/Olympus"); !errors.Is(err, emq.ErrInvalid) {
		t.Fatal(err)
	}
	if err := showCrons(ctx, queue); err != nil {
		t.Fatal(err)
	}
	if err := operateCrons(ctx, queue); err != nil {
		t.Fatal(err)
	}
	page, err := queue.Crons(ctx, "", 10)
	if err != nil || len(page.Entries) != 0 {
		t.Fatalf("%+v, %v", page, err)
	}
}
