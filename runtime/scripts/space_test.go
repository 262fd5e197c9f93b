package scripts

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/rueidis"
)

// stamp is a time or a span in milliseconds. Two stamps are compared with the slop of a step: the
// time that it took on a server whose clock runs on, by that clock.
type stamp float64

// value is the content of one key.
type value struct {
	Type  string
	Text  map[string]string // fields of a hash that are not times; members of a set without times
	At    map[string]stamp  // fields of a hash, or members of a set, that are times
	Items []string          // of a list; the one item of a string
	Ends  stamp             // when the key expires; 0: never
}

// space is a whole key space.
type space map[string]value

// differs compares two key spaces; empty means equal.
func differs(want, got any, slop stamp) string {
	near := cmp.Comparer(func(a, b stamp) bool { return a.near(b, slop) })
	return cmp.Diff(want, got, near, cmpopts.EquateEmpty())
}

// near says quickly that two key spaces are equal; where it does not, differs has the word.
func (want space) near(got space, slop stamp) bool {
	return maps.EqualFunc(want, got, func(a, b value) bool {
		return a.Type == b.Type && maps.Equal(a.Text, b.Text) && slices.Equal(a.Items, b.Items) &&
			a.Ends.near(b.Ends, slop) &&
			maps.EqualFunc(a.At, b.At, func(x, y stamp) bool { return x.near(y, slop) })
	})
}

func (a stamp) near(b, slop stamp) bool { return math.Abs(float64(a-b)) <= float64(slop) }

// timeFields are the fields of rows and of meta that hold times of the server's clock.
var timeFields = map[string]bool{"due": true, "settled_at": true, "seen": true, "grace": true, "rate_tat": true, "next": true, "refreshed": true}

// timeSets are the sorted sets whose scores are times.
var timeSets = map[string]bool{"active": true, "schedule": true, "completed": true, "dead:at": true, "repeat": true}

func isTimeSet(key string) bool {
	_, name, _ := strings.Cut(key, "}:")
	return timeSets[name]
}

// endsText is Lua that gives the time at which a key expires, as the server has stored it, or -1. A server before
// Redis 7 tells only what is left of it, which is asked for until the clock stands still meanwhile.
const endsText = `
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function ends(k)
  local at = redis.pcall('PEXPIRETIME', k)
  if type(at) == 'number' then return at end
  local left
  repeat
    at = now()
    left = redis.call('PTTL', k)
  until now() == at
  return left >= 0 and at + left or -1
end
`

const dumpText = endsText + `
local out, start = {}, now()
for _, k in ipairs(redis.call('KEYS', '*')) do
  local t = redis.call('TYPE', k)
  t = t.ok or t
  local v
  if t == 'hash' then v = redis.call('HGETALL', k)
  elseif t == 'zset' then v = redis.call('ZRANGE', k, 0, -1, 'WITHSCORES')
  elseif t == 'set' then v = redis.call('SMEMBERS', k)
  elseif t == 'list' then v = redis.call('LRANGE', k, 0, -1)
  else v = {redis.call('GET', k)} end
  out[#out + 1] = {k, t, ends(k), v}
end
return {start, out}`

// dump reads every key of the database and the server's clock at that time.
func (s *target) dump() (space, stamp) {
	return readDump(s.client.Do(context.Background(), s.client.B().Eval().Script(dumpText).Numkeys(0).Build()))
}

func readDump(res rueidis.RedisResult) (space, stamp) {
	parts, err := res.ToArray()
	check(err)
	now := stamp(number(parts[0]))
	keys, err := parts[1].ToArray()
	check(err)
	sp := make(space, len(keys))
	for _, k := range keys {
		f, err := k.ToArray()
		check(err)
		items, err := f[3].AsStrSlice()
		check(err)
		v := value{Type: text(f[1])}
		if ends := number(f[2]); ends >= 0 {
			v.Ends = stamp(ends)
		}
		sp[text(f[0])] = v.fill(text(f[0]), items)
	}
	return sp, now
}

func (v value) fill(key string, items []string) value {
	if v.Type == "set" {
		slices.Sort(items)
	}
	if v.Type != "hash" && v.Type != "zset" {
		v.Items = items
		return v
	}
	v.Text, v.At = map[string]string{}, map[string]stamp{}
	for i := 0; i < len(items); i += 2 {
		name, val := items[i], items[i+1]
		switch {
		case v.Type == "zset" && isTimeSet(key), v.Type == "hash" && timeFields[name]:
			v.At[name] = parseStamp(val)
		case (name == "forgiven" || name == "lapses") && val == "0":
			// a count of nothing is the same as no count
		case strings.HasSuffix(key, "}:ring"):
			v.Text[name] = fixedText(parseFloat(val)) // servers print floats differently
		default:
			v.Text[name] = val
		}
	}
	return v
}

func parseStamp(s string) stamp {
	f, err := strconv.ParseFloat(s, 64)
	check(err)
	return stamp(f)
}

// failure is what a scene panics with; the runner of the scene turns it into a failed test.
type failure struct{ text string }

func failf(format string, args ...any) { panic(failure{fmt.Sprintf(format, args...)}) }

func check(err error) {
	if err != nil {
		failf("%v", err)
	}
}
