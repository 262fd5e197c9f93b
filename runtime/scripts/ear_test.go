package scripts

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// ear hears what the scripts publish on the channels of a target's queue.
type ear struct {
	messages chan rueidis.PubSubMessage
	syncs    int
}

// listen opens the ear of a target. It ends with the target's client.
func (s *target) listen() {
	conn, _ := s.client.Dedicate()
	s.ear = &ear{messages: make(chan rueidis.PubSubMessage, 1<<12)}
	deaf := conn.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(m rueidis.PubSubMessage) { s.ear.messages <- m }})
	base := s.queue.keys.Base()
	err := conn.Do(context.Background(), conn.B().Subscribe().Channel(base+"events", base+"ended", base+"cancel", base+"sync").Build()).Error()
	check(err)
	go func() {
		for err := range deaf {
			s.ear.messages <- rueidis.PubSubMessage{Message: "deaf: " + err.Error()}
		}
	}()
}

// heard gives, in words, what was published until now, and checks the times that it names.
func (s *target) heard(since, until stamp) []string {
	s.ear.syncs++
	mark := strconv.Itoa(s.ear.syncs)
	s.must("PUBLISH", s.key("sync"), mark)
	late := time.After(longest)
	for words := []string(nil); ; {
		select {
		case m := <-s.ear.messages:
			channel := strings.TrimPrefix(m.Channel, s.queue.keys.Base())
			switch channel {
			case "sync":
				if m.Message == mark {
					return words
				}
			case "events":
				words = append(words, "events "+eventWords(m.Message, since, until))
			default:
				words = append(words, channel+" "+m.Message)
			}
		case <-late:
			failf("nothing is heard any more")
		}
	}
}

type announced struct {
	ID, Kind, Event  string
	TS               stamp
	Attempt          *int
	Reason, Progress string
}

func eventWords(text string, since, until stamp) string {
	var e announced
	check(json.Unmarshal([]byte(text), &e))
	if e.TS < since-1 || e.TS > until+1 {
		failf("the event %s names a time that is not between %.0f and %.0f", text, since, until)
	}
	attempt := "?"
	if e.Attempt != nil {
		attempt = strconv.Itoa(*e.Attempt)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s attempt %s %s%s", e.Event, e.ID, e.Kind, attempt, e.Reason, e.Progress))
}

// announce is what the model publishes of a job; attempt is what counts, negative where a script does
// not know it.
func (m *model) announce(event string, j *modelJob, attempt int, reason string) {
	switch event {
	case "completed", "dead", "cancelled", "discarded", "removed":
		if j.text["awaited"] != "" {
			m.told = append(m.told, "ended "+j.id+" "+event)
		}
	}
	if m.meta["events"] == "" {
		return
	}
	if len(reason) > 1000 {
		reason = strings.ToValidUTF8(reason[:1000], "\ufffd")
	}
	known := "?"
	if attempt >= 0 {
		known = strconv.Itoa(attempt)
	}
	m.told = append(m.told, strings.TrimSpace(fmt.Sprintf("events %s %s %s attempt %s %s", event, j.id, j.text["kind"], known, reason)))
}

// counted is the number of the attempt that a claim is.
func (j *modelJob) counted() int { return j.attempts - j.forgiven }
