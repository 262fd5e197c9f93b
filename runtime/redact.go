package emq

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// hidden stands where a value is not shown.
const hidden = "[redacted]"

// Redacted is the job as a page or a log may show it: without the values of the payload that its
// declaration tags with redact, and without the unique key where there are such, as it is made of them.
// Values at a place of another shape than the declared one are hidden too. The payload of a kind that the queue's
// registry does not know is hidden whole. Errors, progress, results and headers are the handler's and the
// producer's own words and stay.
func (d JobDetail) Redacted() JobDetail {
	if d.declared && len(d.redacted) == 0 {
		return d
	}
	if d.Unique != "" {
		d.Unique = hidden
	}
	d.Payload = redact(d.Payload, d.redacted, d.declared)
	return d
}

func redact(payload []byte, paths []string, declared bool) []byte {
	var shown any = hidden
	if declared && json.Valid(payload) {
		dec := json.NewDecoder(bytes.NewReader(payload))
		dec.UseNumber()
		var v any
		if dec.Decode(&v) == nil {
			shown = hide(v, paths)
		}
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return []byte(strconv.Quote(hidden))
	}
	return text
}

// hide replaces what the paths name in a decoded payload: address.street, cards[].number, where []
// stands for the elements of an array and the values of a map. Names are compared as encoding/json
// does, whatever their case.
func hide(v any, paths []string) any {
	switch v := v.(type) {
	case nil:
		return nil
	case map[string]any:
		for name, value := range v {
			v[name] = hideField(name, value, paths)
		}
		return v
	}
	return hidden // another shape than the paths are made for
}

func hideField(name string, value any, paths []string) any {
	var inner []string
	depth := 0
	for _, path := range paths {
		rest, ok := behind(path, name)
		if !ok {
			continue
		}
		if rest == "" {
			return hidden
		}
		n := 0
		for strings.HasPrefix(rest, "[]") {
			rest, n = rest[2:], n+1
		}
		inner, depth = append(inner, strings.TrimPrefix(rest, ".")), n
	}
	if inner == nil {
		return value
	}
	return hideElements(value, depth, inner)
}

// behind is what stands behind a field's name in a path. The name itself may have dots and brackets.
func behind(path, name string) (rest string, ok bool) {
	for i := range len(path) + 1 {
		if end := path[i:]; (end == "" || end[0] == '.' || strings.HasPrefix(end, "[]")) && strings.EqualFold(path[:i], name) {
			return end, true
		}
	}
	return "", false
}

// hideElements goes down through arrays and maps to the values that the paths are made for.
func hideElements(v any, depth int, paths []string) any {
	if depth == 0 {
		return hide(v, paths)
	}
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		for i := range v {
			v[i] = hideElements(v[i], depth-1, paths)
		}
		return v
	case map[string]any:
		for name := range v {
			v[name] = hideElements(v[name], depth-1, paths)
		}
		return v
	}
	return hidden
}
