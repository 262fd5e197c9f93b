package emqtest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	emq "github.com/echomq/emq/runtime"
)

// Source has jobs that were enqueued: a Recorder, or an Env.
type Source interface{ Jobs() []emq.Job }

// Enqueued are the payloads of all jobs of type J, in their order.
func Enqueued[J emq.Payload[J]](s Source) []J {
	var found []J
	for _, job := range s.Jobs() {
		if payload, ok := job.Value().(J); ok {
			found = append(found, payload)
		}
	}
	return found
}

// One is the payload of the only job of type J. The test ends here, and tells what was enqueued, if
// there is none, or more than one. Jobs of other types are none of its business.
func One[J emq.Payload[J]](t testing.TB, s Source) J {
	t.Helper()
	found := Enqueued[J](s)
	if len(found) != 1 {
		t.Fatalf("emqtest: want one %s to be enqueued, got %d; enqueued %s", nameOf[J](), len(found), list(s))
	}
	return found[0]
}

// None fails the test if a job of type J was enqueued.
func None[J emq.Payload[J]](t testing.TB, s Source) {
	t.Helper()
	if found := Enqueued[J](s); len(found) != 0 {
		t.Errorf("emqtest: want no %s to be enqueued, got %d; enqueued %s", nameOf[J](), len(found), list(s))
	}
}

func nameOf[J emq.Payload[J]]() string {
	var zero J
	spec := zero.EmqSpec()
	return fmt.Sprintf("%s (%s/%s)", reflect.TypeFor[J](), spec.Queue, spec.Kind)
}

// list shows what was enqueued, a line for each job.
func list(s Source) string {
	const most = 20
	jobs := s.Jobs()
	if len(jobs) == 0 {
		return "was nothing"
	}
	var b strings.Builder
	b.WriteString("were:")
	for i, job := range jobs {
		if i == most {
			fmt.Fprintf(&b, "\n\t… and %d more", len(jobs)-most)
			break
		}
		fmt.Fprintf(&b, "\n\t%s/%s %s", job.Queue(), job.Kind(), shortened(job.Payload()))
		if job.Lane() != "" {
			fmt.Fprintf(&b, " in lane %s", job.Lane())
		}
		if job.Delay() > 0 {
			fmt.Fprintf(&b, " in %v", job.Delay())
		}
		if !job.DueAt().IsZero() {
			fmt.Fprintf(&b, " at %v", job.DueAt())
		}
	}
	return b.String()
}

func shortened(payload []byte) string {
	const most = 200
	if len(payload) > most {
		return strings.ToValidUTF8(string(payload[:most]), "") + "…"
	}
	return string(payload)
}
