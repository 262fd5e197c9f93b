package main

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/examples/readme/mail"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
	"github.com/echomq/emq/runtime/scripts"
)

const mailLock = "mail/emq.lock.json"

// TestTheLockInTheDocsIsTheRealOne compares each JSON block that begins as a lock does.
func TestTheLockInTheDocsIsTheRealOne(t *testing.T) {
	blocks := 0
	for _, page := range append(match(t, "../../docs/*.md"), "../../README.md") {
		for _, m := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(read(t, page), -1) {
			if !strings.Contains(m[1], "Written by emqgen") {
				continue
			}
			blocks++
			if m[1] != read(t, mailLock) {
				t.Errorf("%s does not show %s as it is", page, mailLock)
			}
		}
	}
	if blocks != 2 {
		t.Errorf("%d locks in the docs, want 2", blocks)
	}
}

// foreign is a producer that knows the lock and the wire's page, and none of the Go types.
type foreign struct {
	*scripts.Server
	kind lockedKind
}

type lockedKind struct {
	Kind, Queue string
	Version     int
	UniqueFor   string `json:"unique_for"`
	Unique      []string
	Payload     struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
}

func (f foreign) enqueue(t *testing.T, id string, payload map[string]any) scripts.Admission {
	t.Helper()
	for _, name := range f.kind.Payload.Required {
		if _, ok := payload[name]; !ok {
			t.Fatalf("the payload lacks %s", name)
		}
	}
	text, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	key := f.kind.Kind
	for _, name := range f.kind.Unique {
		key += ":" + payload[name].(string) // the test's text has nothing to escape
	}
	a, err := f.Queue(f.kind.Queue).Enqueue(t.Context(), scripts.NewJob{
		ID: id, Payload: text, Src: "foreign1", Unique: key, Fields: []string{"kind", f.kind.Kind},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAProducerThatKnowsOnlyTheLock(t *testing.T) {
	var lock struct{ Kinds []lockedKind }
	if err := json.Unmarshal([]byte(read(t, mailLock)), &lock); err != nil {
		t.Fatal(err)
	}
	server, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	redis, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{strings.TrimPrefix(server.URL(), "redis://")}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	client, err := emq.NewClient(redis)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	own, err := scripts.NewServer(redis, "")
	if err != nil {
		t.Fatal(err)
	}
	producer := foreign{own, lock.Kinds[0]}
	id, err := client.NewID()
	if err != nil {
		t.Fatal(err)
	}
	if a := producer.enqueue(t, string(id), map[string]any{"user_id": 7, "email": "ada@example.org"}); a.Status != "enqueued" {
		t.Fatalf("%+v", a)
	}
	receipt, err := mail.NewProducer(client).EnqueueWelcome(t.Context(), mail.Welcome{UserID: 8, Email: "ada@example.org"})
	if err != nil || receipt.Status != emq.Conflict || receipt.Holder != id {
		t.Errorf("the generated producer makes another key: %+v, %v", receipt, err)
	}
	got := make(chan string, 1)
	worker, err := emq.NewWorker(client, emq.WorkerConfig{}, mail.Bind(&mailer{greet: func(_ context.Context, email string) error {
		got <- email
		return nil
	}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.RunUntilIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if email := <-got; email != "ada@example.org" {
		t.Errorf("greeted %s", email)
	}
}
