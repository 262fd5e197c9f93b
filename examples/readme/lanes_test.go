package main

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/echomq/emq/examples/readme/exports"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// controlLanes and showLanes are what docs/lanes.md shows.
func controlLanes(ctx context.Context, client *emq.Client) error {
	queue := client.Queue("exports")
	err := errors.Join(
		queue.SetLaneLimit(ctx, "acme", 3),  // at most three of its jobs run at once, in all processes together
		queue.SetLaneWeight(ctx, "big", 10), // ten turns for one of the others, 1 to 1000
		queue.SetLaneWeight(ctx, "", 2),     // of the jobs without a lane
		queue.PauseLane(ctx, "late-payer"),  // its jobs wait; what runs goes on
	)
	return err
}

func showLanes(ctx context.Context, queue *emq.Queue) error {
	for cursor, more := "", true; more; {
		page, err := queue.Lanes(ctx, cursor, 100)
		if err != nil {
			return err
		}
		for _, l := range page.Lanes {
			fmt.Println(l.Name, l.Waiting, l.Active, l.Weight, l.Limit, l.Paused)
		}
		cursor, more = page.Next, page.Next != ""
	}
	return nil
}

func TestTheLanesOfTheDocs(t *testing.T) {
	client, err := embedded.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := exports.NewProducer(client).EnqueueExport(t.Context(), exports.Export{Tenant: "acme", Month: "May"}); err != nil {
		t.Fatal(err)
	}
	if err := controlLanes(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	queue := client.Queue("exports")
	if err := showLanes(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	lane, err := queue.Lane(t.Context(), "acme")
	if err != nil || lane.Waiting != 1 || lane.Limit != 3 {
		t.Errorf("acme: %+v, %v", lane, err)
	}
}
