package scripts

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An explored state holds times relative to the server's clock, in units that are far longer than a run
// takes. No comparison of a script falls on a boundary, so the clock may run on while a call is made.
const (
	unit     stamp = 1_000_000 // ms
	beat           = 12 * unit // what passes at a time
	leased         = 10 * unit // of claims and heartbeats
	patience       = 30 * unit // the lease of whoever reaps
	backoff        = 6 * unit
)

// image is a key space that can be put back: key, type and number of items, then a name and a value for each
// item, in one order. A value that begins with @ is a time relative to now. Two images are equal if and
// only if the scripts cannot tell them apart.
type image string

const restoreText = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local i = 1
while i < #ARGV do
  local key, kind, n = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2])
  i = i + 3
  for _ = 1, n do
    local name, val = ARGV[i], ARGV[i + 1]
    if string.sub(val, 1, 1) == '@' then val = string.format('%.0f', now + tonumber(string.sub(val, 2))) end
    if kind == 'hash' then redis.call('HSET', key, name, val)
    elseif kind == 'zset' then redis.call('ZADD', key, val, name)
    elseif kind == 'set' then redis.call('SADD', key, name)
    else redis.call('SET', key, val) end
    i = i + 2
  end
end
return 1`

func (i image) words() []string { return strings.Split(string(i), "\x00") }

// relative turns the times of a dump into spans from now.
func relative(sp space, now stamp) {
	for _, v := range sp {
		for name, at := range v.At {
			v.At[name] = stamp(int64(math.Round(float64((at-now)/unit)))) * unit // never a -0
		}
	}
}

// canonical makes one image of all key spaces that differ in nothing that a script can tell: how long a time
// is over, when a dead letter died, how far the lanes' virtual time has come, who is woken, what was counted.
func (x *explorer) canonical(sp space) image {
	names := slices.Sorted(maps.Keys(sp))
	meta := sp[x.base+"meta"]
	vt := parseFloat(meta.Text["vt"])
	var words []string
	for _, key := range names {
		name := strings.TrimPrefix(key, x.base)
		if strings.HasPrefix(name, "metrics:") || strings.HasPrefix(name, "wake") {
			continue
		}
		v, items := sp[key], map[string]string{}
		maps.Copy(items, v.Text)
		for _, item := range v.Items {
			items[item] = item
		}
		for field, at := range v.At {
			if at, ok := clamped(name, field, at); ok {
				items[field] = fmt.Sprintf("@%.0f", at)
			}
		}
		switch {
		case name == "ring":
			for lane, score := range items {
				if f := parseFloat(score); f < 9e15 {
					items[lane] = fixedText(f - vt)
				}
			}
		case name == "meta" && meta.Text["vt"] != "":
			items["vt"], items["fvt"] = fixedText(0), fixedText(max(parseFloat(meta.Text["fvt"])-vt, 0))
		case items["lapsed"] != "" && items["lapsed"] != items["attempts"]:
			delete(items, "lapsed") // of an older claim
		}
		words = append(words, key, v.Type, strconv.Itoa(len(items)))
		for _, field := range slices.Sorted(maps.Keys(items)) {
			words = append(words, field, items[field])
		}
	}
	return image(strings.Join(words, "\x00"))
}

// clamped gives all times that are over alike, and false for one that is as good as none.
func clamped(key, field string, at stamp) (stamp, bool) {
	switch {
	case field == "seen":
		return max(at, -2*beat), true
	case field == "grace":
		return at, at > 0
	case field == "due", field == "settled_at", key == "dead:at", key == "completed":
		return 0, true
	}
	return max(at, -backoff), true
}

// afterBeat is the image after a beat.
func afterBeat(i image) image {
	words := i.words()
	var out []string
	for at := 0; at+2 < len(words); {
		_, name, _ := strings.Cut(words[at], "}:")
		n, _ := strconv.Atoi(words[at+2])
		head := len(out) + 2
		out = append(out, words[at:at+3]...)
		kept := n
		for at += 3; n > 0; n, at = n-1, at+2 {
			field, val := words[at], words[at+1]
			if span, ok := strings.CutPrefix(val, "@"); ok {
				when, ok := clamped(name, field, parseStamp(span)-beat)
				if !ok {
					kept--
					continue
				}
				val = fmt.Sprintf("@%.0f", when)
			}
			out = append(out, field, val)
		}
		out[head] = strconv.Itoa(kept)
	}
	return image(strings.Join(out, "\x00"))
}

// times gives the times of a key of an image.
func (i image) times(key string) map[string]stamp {
	words, found := i.words(), map[string]stamp{}
	for at := 0; at+2 < len(words); {
		name := words[at]
		n, _ := strconv.Atoi(words[at+2])
		at += 3
		for ; n > 0; n, at = n-1, at+2 {
			if val, ok := strings.CutPrefix(words[at+1], "@"); ok && name == key {
				found[words[at]] = parseStamp(val)
			}
		}
	}
	return found
}

// ends gives when the leases and the pauses are over.
func (i image) ends(base string) map[string]stamp {
	ends := i.times(base + "active")
	maps.Copy(ends, i.times(base+"schedule"))
	return ends
}

// unseen is when nobody was seen alive.
const unseen = -100 * unit

func (i image) clock(base string) clock {
	ends, meta := i.ends(base), i.times(base+"meta")
	c := clock{seen: unseen, grace: meta["grace"]}
	if at, ok := meta["seen"]; ok {
		c.seen = at
	}
	for n, id := range jobs {
		at, ok := ends[id]
		c.over[n] = ok && at <= 0
	}
	return c
}
