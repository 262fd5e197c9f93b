package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/echomq/emq/cmd/emqgen/internal/model"
)

// FileName is the lock's name beside the generated file.
const FileName = "emq.lock.json"

const (
	lockFormat = 1
	comment    = "Written by emqgen: what waiting jobs look like. Keep it under version control."
)

// Lock is the whole file.
type Lock struct {
	Comment string    `json:"$comment"`
	Format  int       `json:"format"`
	Kinds   []Kind    `json:"kinds"`
	Retired []Retired `json:"retired,omitempty"`
	// Past are kinds that were retired, until a job takes them: what is left of them may still wait.
	Past []Retired `json:"once_retired,omitempty"`
}

// Kind is one kind as it was last generated.
type Kind struct {
	Kind     string             `json:"kind"`
	Queue    string             `json:"queue"`
	Type     string             `json:"type"`
	Version  int                `json:"version"`
	Aliases  []string           `json:"aliases,omitempty"`
	From     []string           `json:"from,omitempty"`
	Held     string             `json:"unique_for,omitempty"` // as unique= says it, also by default
	Unique   []string           `json:"unique,omitempty"`
	Lane     string             `json:"lane,omitempty"`
	Redacted []string           `json:"redacted,omitempty"`
	Payload  *Schema            `json:"payload"`
	Result   *Schema            `json:"result,omitempty"`
	Old      map[string]*Schema `json:"old,omitempty"` // by version
}

// Retired is a kind that is gone on purpose.
type Retired struct {
	Kind  string `json:"kind"`
	Queue string `json:"queue"`
}

// Build makes the lock of a package as it is now.
func Build(p *model.Package) *Lock {
	l := &Lock{Comment: comment, Format: lockFormat, Kinds: []Kind{}}
	for _, j := range p.Jobs {
		l.Kinds = append(l.Kinds, kindOf(p, j))
	}
	slices.SortFunc(l.Kinds, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Queue, b.Queue))
	})
	for _, x := range p.Retired {
		l.Retired = append(l.Retired, Retired{x.Kind.Value, x.Queue.Value})
	}
	return l
}

func kindOf(p *model.Package, j *model.Job) Kind {
	k := Kind{
		Kind: j.Kind.Value, Queue: j.Queue.Name.Value, Type: j.Name, Version: j.Version.Value,
		Aliases: sorted(j.Aliases), From: sorted(j.From), Redacted: j.Redacted(), Payload: Of(j.Type, p.Types),
	}
	if u, ok := j.EffectiveUnique(); ok {
		k.Held = u.String()
	}
	for _, f := range j.UniqueFields() {
		k.Unique = append(k.Unique, f.JSON)
	}
	if f := j.LaneField(); f != nil {
		k.Lane = f.JSON
	}
	if j.Returns != nil {
		k.Result = Of(j.Returns, p.Types)
	}
	for _, old := range j.Olds {
		if k.Old == nil {
			k.Old = map[string]*Schema{}
		}
		k.Old[strconv.Itoa(old.Version.Value)] = Of(old.Type, p.Types)
	}
	return k
}

func sorted(list []model.Given[string]) (out []string) {
	for _, v := range list {
		out = append(out, v.Value)
	}
	slices.Sort(out)
	return out
}

// Encode is the lock as a file.
func (l *Lock) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(l)
	return b.Bytes(), err
}

// Place is where Decode found fault with a lock: the start, unless the JSON itself is wrong.
func Place(path string, src []byte, err error) token.Position {
	var fault *FaultError
	if errors.As(err, &fault) {
		return placeAt(path, src, fault.at)
	}
	return placeAt(path, src, 0)
}

// FaultError is a fault in the text of a lock.
type FaultError struct {
	Merge bool // a merge has left its markers
	text  string
	at    int
}

func (e *FaultError) Error() string { return e.text }

// faultOf says in words of our own what encoding/json found.
func faultOf(src []byte, err error) *FaultError {
	if m := mergeMarker.FindIndex(src); m != nil {
		return &FaultError{Merge: true, at: m[0], text: "a merge has left its markers in it"}
	}
	var syntax *json.SyntaxError
	var mismatch *json.UnmarshalTypeError
	unknown, isUnknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case errors.As(err, &mismatch):
		return &FaultError{at: int(mismatch.Offset) - 1, text: fmt.Sprintf("%s cannot be %s", cmp.Or(mismatch.Field, "the whole"), withArticle(mismatch.Value))}
	case isUnknown:
		return &FaultError{at: max(0, bytes.Index(src, []byte(unknown))), text: fmt.Sprintf("the member %s is not known: it is misspelt, or a newer emqgen has written it", unknown)}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return &FaultError{at: len(src), text: "it ends too early"}
	case errors.As(err, &syntax):
		return &FaultError{at: int(syntax.Offset) - 1, text: "it is no JSON from here on"}
	}
	return &FaultError{text: err.Error()}
}

// withArticle puts a or an before what encoding/json calls a value of JSON.
func withArticle(value string) string {
	if value == "array" || value == "object" {
		return "an " + value
	}
	return "a " + value
}

// MergeMarker says whether a line is one that a failed merge leaves.
func MergeMarker(line string) bool { return mergeMarker.MatchString(line) }

var mergeMarker = regexp.MustCompile(`(?m)^(<<<<<<<|=======|>>>>>>>|\|\|\|\|\|\|\|)( |\r?$)`)

func placeAt(path string, src []byte, i int) token.Position {
	before := src[:max(0, min(i, len(src)))]
	return token.Position{Filename: path, Line: 1 + bytes.Count(before, []byte("\n")), Column: len(before) - bytes.LastIndexByte(before, '\n')}
}

// Decode reads a lock.
func Decode(src []byte) (*Lock, error) {
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	var l Lock
	if err := dec.Decode(&l); err != nil {
		return nil, faultOf(src, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, faultOf(src, errors.New("there is text behind its end"))
	}
	if l.Format != lockFormat {
		return nil, fmt.Errorf("it has format %d, and this emqgen knows %d", l.Format, lockFormat)
	}
	return &l, l.check()
}
