package generate

import (
	"encoding/json"
	"fmt"
	"go/token"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/echomq/emq/cmd/emqgen/internal/diag"
	"github.com/echomq/emq/cmd/emqgen/internal/directive"
	"github.com/echomq/emq/cmd/emqgen/internal/model"
	"github.com/echomq/emq/cmd/emqgen/internal/payload"
)

// listed is one job as -list -json prints it. Durations are in Go's form.
type listed struct {
	Package  string   `json:"package"`
	Type     string   `json:"type"`
	Queue    string   `json:"queue"`
	Kind     string   `json:"kind"`
	Aliases  []string `json:"aliases,omitempty"`
	From     []string `json:"from,omitempty"`
	Version  int      `json:"version"`
	Timeout  string   `json:"timeout"`
	Attempts int      `json:"attempts"`
	Backoff  string   `json:"backoff"`
	Unique   string   `json:"unique,omitempty"`
	UniqueBy []string `json:"unique_by,omitempty"`
	Lane     string   `json:"lane,omitempty"`
	Retain   string   `json:"retain,omitempty"`
	Result   string   `json:"result,omitempty"`
	Cron     string   `json:"cron,omitempty"`
	TZ       string   `json:"tz,omitempty"`
	Missed   string   `json:"missed,omitempty"`
	Overlap  string   `json:"overlap,omitempty"`
	Redacted []string `json:"redacted,omitempty"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
}

func list(pkgs []*model.Package) []listed {
	out := []listed{}
	for _, p := range pkgs {
		for _, j := range p.Jobs {
			out = append(out, listJob(p, j))
		}
	}
	return out
}

func listJob(p *model.Package, j *model.Job) listed {
	l := listed{
		Package: p.Path, Type: j.Name, Queue: j.Queue.Name.Value, Kind: j.Kind.Value,
		Aliases: values(j.Aliases), From: values(j.From), Version: j.Version.Value,
		Timeout: directive.Short(j.Timeout.Value), Attempts: j.Attempts.Value, Backoff: "exponential(1s,1h)",
		Redacted: j.Redacted(), File: diag.Place(token.Position{Filename: j.Pos.Filename}, p.From), Line: j.Pos.Line,
	}
	if j.Backoff.Set {
		l.Backoff = j.Backoff.Value.String()
	}
	if u, ok := j.EffectiveUnique(); ok {
		l.Unique = u.String()
		for _, f := range j.UniqueFields() {
			l.UniqueBy = append(l.UniqueBy, f.JSON)
		}
	}
	if f := j.LaneField(); f != nil {
		l.Lane = f.JSON
	}
	if j.Retain.Set {
		l.Retain = directive.Short(j.Retain.Value)
	}
	if j.Returns != nil {
		l.Result = payload.TypeString(j.Returns, p.Types)
	}
	if c := j.Cron; c != nil {
		l.Cron, l.TZ, l.Missed = c.Spec.Value, c.TZ.Value, c.Missed.Value
		if l.Missed == "" {
			l.Missed = "skip"
		}
		if l.Overlap = c.Overlap.Value; l.Overlap == "" {
			l.Overlap = "allow"
		}
	}
	return l
}

func values(list []model.Given[string]) (out []string) {
	for _, v := range list {
		out = append(out, v.Value)
	}
	return out
}

func listJSON(w io.Writer, pkgs []*model.Package) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "\t")
	enc.SetEscapeHTML(false)
	return enc.Encode(list(pkgs))
}

// listText prints a table; what only few jobs have goes into the last column.
func listText(w io.Writer, pkgs []*model.Package) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "QUEUE\tKIND\tTYPE\tTIMEOUT\tATTEMPTS\tBACKOFF\tMORE")
	for _, l := range list(pkgs) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", l.Queue, l.Kind, l.Package+"."+l.Type, l.Timeout, l.Attempts, l.Backoff, strings.Join(l.more(), " "))
	}
	return table.Flush() // an error of a line before shows here too
}

func (l listed) more() (words []string) {
	add := func(key, value string) {
		if value != "" {
			words = append(words, key+"="+value)
		}
	}
	if l.Version > 1 {
		add("version", fmt.Sprint(l.Version))
	}
	add("lane", l.Lane)
	add("unique", l.Unique)
	if len(l.UniqueBy) > 0 {
		words[len(words)-1] += "(" + strings.Join(l.UniqueBy, ",") + ")"
	}
	add("retain", l.Retain)
	add("result", l.Result)
	if l.Cron != "" {
		add("cron", fmt.Sprintf("%q", l.Cron))
		add("tz", l.TZ)
		add("missed", l.Missed)
		add("overlap", l.Overlap)
	}
	add("alias", strings.Join(l.Aliases, ","))
	add("from", strings.Join(l.From, ","))
	add("redact", strings.Join(l.Redacted, ","))
	return words
}
