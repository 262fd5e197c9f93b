// Package scripts holds every transition of the protocol: one Lua file each, and one typed Go call for
// it. A transition is atomic on the server, bounded, and idempotent under its token.
//
// A file names its keys in a line "--@keys" (the Go call fills them in from the names), the shared
// pieces and other transitions that it is composed of in "--@use", and begins its own call after
// "--@main". What stands between "--@use" and "--@main" is what others may use.
package scripts

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed *.lua shared/*.lua
var sources embed.FS

// script is one composed transition.
type script struct {
	name string
	text string
	sha  string
	keys []string // the Lua names of its KEYS, in order
}

// Names that a call fills in itself; every other name is a fixed key of the queue.
const (
	rowKey     = "row"
	entryKey   = "entry" // the hash of one cron entry
	uniqueKey  = "unique_key"
	privateKey = "private" // the list that one process waits on alone
)

// fixedKeys gives the wire's name of every fixed key for its name in Lua.
func fixedKeys() map[string]string {
	names := map[string]string{"dead_at": "dead:at", "wake_pump": "wake:pump", "repeats": "repeat"}
	for _, n := range []string{"pending", "active", "schedule", "dead", "completed", "meta", "wake", "pump", "ring", "paused", "glimit", "gweight", "kinds"} {
		names[n] = n
	}
	for _, n := range totals() {
		names["m_"+n] = "metrics:" + n
	}
	return names
}

// totals names the counters of a queue.
func totals() []string {
	return []string{"completed", "failed", "retried", "snoozed", "released", "reaped", "cancelled", "discarded", "removed", "orphan", "stale"}
}

// library composes the scripts once, when they are first needed.
var library = sync.OnceValues(func() (map[string]*script, error) {
	files, err := sources.ReadDir(".")
	if err != nil {
		return nil, err
	}
	scripts := make(map[string]*script)
	for _, f := range files {
		name, isLua := strings.CutSuffix(f.Name(), ".lua")
		if !isLua {
			continue
		}
		if scripts[name], err = compose(name); err != nil {
			return nil, err
		}
	}
	return scripts, nil
})

// source is one Lua file in its parts.
type source struct {
	head string   // the header and the arguments that the used pieces need
	keys []string // only of a transition
	uses []string
	body string // what others may use
	main string // only of a transition
}

func parse(name string) (source, error) {
	text, err := sources.ReadFile(name + ".lua")
	if err != nil {
		if text, err = sources.ReadFile(path.Join("shared", name+".lua")); err != nil {
			return source{}, fmt.Errorf("scripts: no piece %q", name)
		}
		return source{body: string(text)}, nil
	}
	head, rest, ok := strings.Cut(string(text), "\n--@use")
	uses, rest, ok2 := strings.Cut(rest, "\n")
	body, main, ok3 := strings.Cut(rest, "--@main\n")
	_, keys, ok4 := strings.Cut(head, "\n--@keys ")
	keys, args, _ := strings.Cut(keys, "\n")
	if !ok || !ok2 || !ok3 || !ok4 {
		return source{}, fmt.Errorf("scripts: %s.lua lacks --@keys, --@use or --@main", name)
	}
	return source{args, strings.Fields(keys), strings.Fields(uses), body, main}, nil
}

func compose(name string) (*script, error) {
	src, err := parse(name)
	if err != nil {
		return nil, err
	}
	fixed := fixedKeys()
	var b strings.Builder
	fmt.Fprintf(&b, "-- emq %s\nlocal %s = ", name, strings.Join(src.keys, ", "))
	for i, k := range src.keys {
		if fixed[k] == "" && k != rowKey && k != entryKey && k != uniqueKey && k != privateKey {
			return nil, fmt.Errorf("scripts: %s.lua names an unknown key %q", name, k)
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "KEYS[%d]", i+1)
	}
	b.WriteString("\n" + src.head + "\n")
	var used []string
	if err := include(&b, src.uses, &used); err != nil {
		return nil, err
	}
	b.WriteString(src.body + src.main)
	sum := sha1.Sum([]byte(b.String()))
	return &script{name, b.String(), hex.EncodeToString(sum[:]), src.keys}, nil
}

// include writes each piece once, after the pieces that it uses.
func include(b *strings.Builder, names []string, used *[]string) error {
	for _, name := range names {
		if slices.Contains(*used, name) {
			continue
		}
		*used = append(*used, name)
		src, err := parse(name)
		if err != nil {
			return err
		}
		if err := include(b, src.uses, used); err != nil {
			return err
		}
		b.WriteString(src.body)
	}
	return nil
}
