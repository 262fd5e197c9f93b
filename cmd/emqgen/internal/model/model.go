// Package model is what emqgen knows of a package once its directives have been read: plain data,
// each with the place that it comes from.
package model

import (
	"cmp"
	"go/token"
	"go/types"
	"slices"
	"time"

	"github.com/echomq/emq/cmd/emqgen/internal/directive"
)

// Given is a value that a directive may give.
type Given[T any] struct {
	Value T
	Pos   token.Position
	Set   bool
}

// Or is g, or other where g was not given.
func (g Given[T]) Or(other Given[T]) Given[T] {
	if g.Set {
		return g
	}
	return other
}

// Package is one package with its declarations.
type Package struct {
	Path, Name, Dir string
	Module          string        // the path of the module that it is in
	Prefix          Given[string] // of //emq:package
	Queues          []*Queue      // in the order of their identifiers
	Jobs            []*Job        // in the order of their types
	Retired         []*Retired    // in the order of queue and kind
	Constraint      string        // the //go:build expression of the annotated files
	Scope           Names         // taken in the package
	Imports         Names         // names that some file of the package imports
	Types           *types.Package
	Fset            *token.FileSet
	Unresolved      bool   // a payload has a type error, which has been reported
	Muddled         bool   // a directive of a queue has an error by which it declares none; reported
	From            string // the directory of the call
}

// Names are names with the places where they are declared.
type Names map[string]token.Position

// Place is a position in the package's files.
func (p *Package) Place(pos token.Pos) token.Position { return p.Fset.PositionFor(pos, false) }

// Settings are what a queue may say for its jobs, and a job for itself.
type Settings struct {
	Timeout, Retain Given[time.Duration]
	Attempts        Given[int]
	Backoff         Given[directive.Backoff]
}

// Queue is one //emq:queue.
type Queue struct {
	Pos      token.Position
	Name     Given[string]
	Ident    string        // its part of Go names
	IdentAs  Given[string] // name=
	Shards   Given[int]
	Settings Settings
}

// Unique is the value of unique=.
type Unique struct {
	Mode     string // done, start, or window
	Window   time.Duration
	Debounce bool
}

// String is the value as it is declared.
func (u Unique) String() string {
	if u.Mode == "window" {
		return directive.Short(u.Window)
	}
	if u.Debounce {
		return u.Mode + ",debounce"
	}
	return u.Mode
}

// Cron is one //emq:cron.
type Cron struct {
	Pos     token.Position
	Spec    Given[string]
	TZ      Given[string]
	Missed  Given[string]
	Overlap Given[string]
}

// Old is one //emq:was: the struct that a job had at an older version.
type Old struct {
	Pos     token.Position // of the directive
	Name    string
	Of      Given[string]
	Version Given[int]
	Type    *types.Named
	Payload *Struct
}

// Job is one //emq:job.
type Job struct {
	Pos        token.Position // of the type's name
	At         token.Position // of the directive
	Name       string
	Refused    bool   // its type can be no payload by its form; reported
	Summary    string // the first sentence of its doc
	Deprecated string // the paragraph of its doc that says so, from "Deprecated:" on
	Queue      *Queue // nil if it is not known
	InQueue    Given[string]
	Kind       Given[string] // Set is false for the default
	Aliases    []Given[string]
	From       []Given[string]
	Version    Given[int]
	Unique     Given[Unique]
	Result     Given[string]
	Returns    types.Type // of result=
	Cron       *Cron
	Olds       []*Old   // by version
	Own        Settings // what the job's own directive says
	Settings
	Type    *types.Named
	Payload *Struct
}

// EffectiveUnique is the declared mode, or the default of a job with a unique field.
func (j *Job) EffectiveUnique() (Unique, bool) {
	if j.Unique.Set {
		return j.Unique.Value, true
	}
	return Unique{Mode: "done"}, len(j.UniqueFields()) > 0
}

// UniqueFields are the fields that make up the unique key, in their order.
func (j *Job) UniqueFields() []*Field {
	return j.tagged(func(f *Field) bool { return f.Unique })
}

// LaneField is the field that names the lane; nil if there is none.
func (j *Job) LaneField() *Field {
	if lanes := j.tagged(func(f *Field) bool { return f.Lane }); len(lanes) > 0 {
		return lanes[0]
	}
	return nil
}

// UniqueInLane tells whether jobs of different lanes never have the same unique key.
func (j *Job) UniqueInLane() bool {
	lane := j.LaneField()
	return lane != nil && lane.Unique && lane.UniqueBy == ""
}

// Redacted are the paths of hidden values in payloads of any version, those of the job's own first:
// what an old struct hides is also hidden while it waits.
func (j *Job) Redacted() []string {
	paths := slices.Clone(j.Payload.Redacted)
	for _, old := range j.Olds {
		if old.Payload == nil {
			continue
		}
		for _, path := range old.Payload.Redacted {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func (j *Job) tagged(is func(*Field) bool) (fields []*Field) {
	if j.Payload == nil {
		return nil
	}
	for _, f := range j.Payload.Fields {
		if is(f) {
			fields = append(fields, f)
		}
	}
	return fields
}

// Retired is one //emq:retired.
type Retired struct {
	Pos         token.Position
	Kind, Queue Given[string]
}

// Struct is a payload as encoding/json sees it: the fields of embedded structs are its own.
type Struct struct {
	Fields   []*Field
	Redacted []string // paths of hidden values, also in nested structs
}

// Field is one member of the encoded object.
type Field struct {
	Var       *types.Var
	Index     []int  // the way to it through embedded structs
	Name      string // in Go
	JSON      string // on the wire
	Tagged    bool   // JSON is given by a tag
	ByPointer bool   // one of the structs is embedded by pointer
	Optional  bool   // omitempty, omitzero, or a pointer
	AsString  bool   // json:",string"
	Lane      bool
	Unique    bool
	UniqueBy  string // "text": by MarshalText
	Redact    bool
	Outer     *types.Var // the field of the struct itself: Var, or the embedded one that it came by
}

// Sort puts the declarations into the order in which they are printed.
func (p *Package) Sort() {
	slices.SortStableFunc(p.Queues, func(a, b *Queue) int {
		return cmp.Or(cmp.Compare(a.Ident, b.Ident), cmp.Compare(a.Name.Value, b.Name.Value))
	})
	slices.SortStableFunc(p.Jobs, func(a, b *Job) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(p.Retired, func(a, b *Retired) int {
		return cmp.Or(cmp.Compare(a.Queue.Value, b.Queue.Value), cmp.Compare(a.Kind.Value, b.Kind.Value))
	})
	for _, j := range p.Jobs {
		slices.SortStableFunc(j.Olds, func(a, b *Old) int { return cmp.Compare(a.Version.Value, b.Version.Value) })
	}
}
