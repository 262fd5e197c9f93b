package main

import (
	"context"
	"errors"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/echomq/emq/examples/readme/mail"
	"github.com/echomq/emq/examples/readme/reports"
	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// aclRules reads the user that docs/operating.md makes.
func aclRules(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)ACL SETUSER shop (.*?)```").FindSubmatch(text)
	if m == nil {
		t.Fatal("docs/operating.md has no ACL SETUSER shop")
	}
	return strings.Fields(strings.ReplaceAll(string(m[1]), "\\\n", " "))
}

func TestTheDocumentedUserMayDoEverythingThatEMQDoes(t *testing.T) {
	server := redistest.Start(t)
	if _, err := server.Command(append([]string{"ACL", "SETUSER", "shop"}, aclRules(t)...)...); err != nil {
		t.Fatal(err)
	}
	// what the docs add from 7.2 on; before, no user can be given it
	if _, err := server.Command("ACL", "SETUSER", "shop", "+client|setinfo"); err != nil && !strings.Contains(err.Error(), "Unknown") {
		t.Fatal(err)
	}
	client, err := emq.Open(t.Context(), strings.Replace(server.URL(), "redis://", "redis://shop:secret@", 1), emq.WithPrefix("shop"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := signup(t.Context(), mail.NewProducer(client)); err != nil {
		t.Fatal(err)
	}
	until(t, client, func(context.Context, string) error { return nil }, func(c emq.Counts) bool { return c.Totals["completed"] == 1 })
	sales, err := reports.NewProducer(client).EnqueueReport(t.Context(), reports.Report{Day: "2026-05-01"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	worker, err := emq.NewWorker(client, emq.WorkerConfig{}, reports.Bind(accountant{}))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	heard := make(chan emq.EventName, 10)
	wg.Go(func() {
		if err := watch(ctx, client, func(e emq.JobEvent) { heard <- e.Name }); err != nil {
			t.Error(err)
		}
	})
	if first := <-heard; first != emq.EventSubscribed {
		t.Errorf("heard %s", first)
	}
	wg.Go(func() {
		if err := worker.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	if _, err := emq.Await[reports.Report](ctx, client, sales.Ref); err != nil {
		t.Error(err)
	}
	if next := <-heard; next != emq.EventCompleted {
		t.Errorf("heard %s", next)
	}
	stop()
	wg.Wait()
	if log, err := server.Command("ACL", "LOG"); err != nil || log != "*0" {
		t.Errorf("the server has refused something: %s, %v", log, err)
	}
}

func TestAURLWithADatabaseNeedsWhatTheDocsAddForIt(t *testing.T) {
	server := redistest.Start(t)
	url := strings.Replace(server.URL(), "redis://", "redis://shop:secret@", 1) + "?db=1&client_name=mail"
	for _, more := range []string{"-select", "+select"} {
		if _, err := server.Command(append([]string{"ACL", "SETUSER", "shop"}, append(aclRules(t), more)...)...); err != nil {
			t.Fatal(err)
		}
		client, err := emq.Open(t.Context(), url, emq.WithPrefix("shop"))
		if err == nil {
			client.Close()
		}
		if (err == nil) != (more == "+select") || err != nil && !errors.Is(err, emq.ErrPermission) {
			t.Errorf("with %s: %v", more, err)
		}
	}
}
