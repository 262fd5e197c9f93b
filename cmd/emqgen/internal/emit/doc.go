package emit

import (
	"fmt"
	"go/types"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/echomq/emq/cmd/emqgen/internal/directive"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/names"
)

// doc makes a comment of lines. Each carries its own slashes, because jennifer prints a text with a
// line break as a block comment and one that begins with slashes as it is.
func doc(lines ...string) *jen.Statement {
	s := &jen.Statement{}
	for i, l := range lines {
		if i > 0 {
			s.Line()
		}
		l = strings.NewReplacer("\n", " ", "\r", " ").Replace(l)
		s.Comment(strings.TrimRight("// "+l, " "))
	}
	return s
}

// enqueueDoc is the comment of EnqueueX.
func enqueueDoc(j *model.Job, typeText func(types.Type) string) []string {
	where := "on queue " + j.Queue.Name.Value
	if lane := j.LaneField(); lane != nil {
		where += ", in the lane of its " + lane.Name
	}
	lines := []string{fmt.Sprintf("Enqueue%s enqueues %s [%s] %s.", j.Name, names.Article(j.Name), j.Name, where)}
	if j.Summary != "" {
		lines = append(lines, j.Summary)
	}
	var more []string
	if u, ok := j.EffectiveUnique(); ok {
		more = append(more, uniqueDoc(u)...)
	}
	if j.Returns != nil {
		result := typeText(j.Returns)
		if named, ok := j.Returns.(*types.Named); ok && named.TypeArgs().Len() == 0 {
			result = "[" + result + "]"
		}
		more = append(more, fmt.Sprintf("Its %s is kept for %s: emq.Await[%s](ctx, client, receipt.Ref).", result, directive.Short(j.Retain.Value), j.Name))
	}
	if len(more) > 0 {
		lines = append(append(lines, ""), more...)
	}
	if j.Deprecated != "" { // a handler is still needed as long as jobs wait
		lines = append(lines, "", j.Deprecated)
	}
	return lines
}

// uniqueDoc says what becomes of a job whose unique key is held.
func uniqueDoc(u model.Unique) []string {
	when := "While another job holds its unique key"
	switch {
	case u.Debounce:
		lines := []string{"While another job with its unique key waits, that job takes over this payload and", "time: the receipt has the status [emq.Replaced] and names it."}
		if u.Mode == "start" {
			return lines
		}
		lines[1] += " While it runs, nothing"
		return append(lines, "is enqueued: the status is [emq.Conflict].")
	case u.Mode == "start":
		when = "While another job with its unique key has not started"
	case u.Mode == "window":
		when = fmt.Sprintf("For %s after another job took its unique key", directive.Short(u.Window))
	}
	return []string{when + ", nothing is enqueued: the receipt", "has the status [emq.Conflict] and names the holder."}
}

// handleDoc is the comment of HandleX.
func handleDoc(j *model.Job) []string {
	first := fmt.Sprintf("Handle%s runs %s [%s]", j.Name, names.Article(j.Name), j.Name)
	settings := settingsDoc(j)
	var lines []string
	switch {
	case len(j.Olds) > 0:
		lines = append(lines, fmt.Sprintf("%s, version %d; older ones are upgraded first:", first, j.Version.Value), settings)
	case j.Version.Value > 1:
		lines = append(lines, fmt.Sprintf("%s, version %d: %s", first, j.Version.Value, settings))
	default:
		lines = append(lines, first+": "+settings)
	}
	if len(j.From) > 0 {
		lines = append(lines, "It also runs those that still wait in "+queueList(j.From)+".")
	}
	if c := j.Cron; c != nil {
		zone := "UTC"
		if c.TZ.Set {
			zone = c.TZ.Value
		}
		lines = append(lines, fmt.Sprintf("Cron %q in %s; Info.Tick is the tick that it runs for.", c.Spec.Value, zone))
	}
	if j.Summary != "" {
		lines = append(lines, j.Summary)
	}
	return lines
}

// bindDoc is the comment of a function that binds the jobs of something.
func bindDoc(name, of string, gone []*model.Retired) []string {
	lines := []string{fmt.Sprintf("%s binds every job of %s to h, for [emq.NewWorker].", name, of)}
	if len(gone) > 0 {
		lines = append(lines, "What is left of retired kinds is discarded.")
	}
	return lines
}

func settingsDoc(j *model.Job) string {
	attempts := fmt.Sprintf("%d attempts", j.Attempts.Value)
	if j.Attempts.Value == 1 {
		attempts = "1 attempt"
	}
	backoff := "exponential(1s,1h)" // the runtime's default
	if j.Backoff.Set {
		backoff = j.Backoff.Value.String()
	}
	return fmt.Sprintf("timeout %s, %s, backoff %s.", directive.Short(j.Timeout.Value), attempts, backoff)
}

func queueList(queues []model.Given[string]) string {
	words := make([]string, len(queues))
	for i, q := range queues {
		words[i] = q.Value
	}
	if len(words) == 1 {
		return "queue " + words[0]
	}
	return "the queues " + strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
}
