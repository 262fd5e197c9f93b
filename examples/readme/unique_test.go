package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/echomq/emq/examples/readme/search"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// saved is what docs/unique.md shows.
func saved(ctx context.Context, jobs search.Producer, document string, revision int) error {
	receipt, err := jobs.EnqueueIndex(ctx, search.Index{Document: document, Revision: revision}, emq.In(2*time.Second))
	if err != nil {
		return err
	}
	switch receipt.Status {
	case emq.Replaced:
		fmt.Println("the job that waited is for this revision now:", receipt.Holder)
	case emq.Conflict: // only with unique=done
		fmt.Println("it runs already:", receipt.Holder)
	}
	return nil
}

func TestTheUniqueJobsOfTheDocs(t *testing.T) {
	client, err := embedded.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	jobs := search.NewProducer(client)
	for revision := range 3 {
		if err := saved(t.Context(), jobs, "a", revision); err != nil {
			t.Fatal(err)
		}
	}
	first, err := jobs.EnqueueReindex(t.Context(), search.Reindex{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := jobs.EnqueueReindex(t.Context(), search.Reindex{})
	if err != nil || again.Status != emq.Conflict || again.Holder != first.ID {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := jobs.EnqueueSuggest(t.Context(), search.Suggest{UserID: 7}); err != nil {
		t.Fatal(err)
	}
	counts, err := client.Queue("search").Counts(t.Context())
	if err != nil || counts.Scheduled != 1 || counts.Pending != 2 {
		t.Errorf("%+v, %v", counts, err)
	}
}
