package scripts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

const (
	// MaxCronDue is how many entries one CronDue answers.
	MaxCronDue = 16
	// Never is the tick, in ms, of an entry without a further one.
	Never = 1<<53 - 1
)

// CronDef is what a cron entry does, and when.
type CronDef struct {
	Spec, TZ        string
	Missed, Overlap string
	Kind            string
	Version         int
	Headers         string // JSON
	Lane, Unique    string
	Window          time.Duration
	UntilStart      bool
	Payload         []byte
}

// fields are the definition's in the entry, spec and zone first.
func (d CronDef) fields() []string {
	window, until := "", ""
	if d.Window > 0 {
		window = ms(d.Window)
	}
	if d.UntilStart {
		until = "start"
	}
	return []string{d.Spec, d.TZ, "missed", d.Missed, "overlap", d.Overlap, "kind", d.Kind, "v", strconv.Itoa(max(d.Version, 1)),
		"headers", d.Headers, "group", d.Lane, "unique", d.Unique, "window", window, "until", until,
		"payload", rueidis.BinaryString(d.Payload)}
}

// Sum tells two definitions apart.
func (d CronDef) Sum() string {
	sum := sha256.New()
	for _, f := range d.fields() {
		fmt.Fprintf(sum, "%d:%s", len(f), f)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// CronEntry is an entry as it stands. Times are in ms.
type CronEntry struct {
	Name, Rev string
	CronDef
	Next, Last, Refreshed  int64 // Refreshed is 0 for an entry that no job declares
	LastID                 string
	Paused                 bool
	Fired, Skipped, Misses int64
}

// CronSeen is what a refresh found.
type CronSeen struct {
	Status string // "kept", "older", "wanted"
	Now    time.Time
	Rev    string // empty: there is no such entry
}

// CronRefresh compares a definition with the entry that is there, and prolongs the lease of a declared one.
// ErrLocked if the name is the other sort's. Safe to repeat.
func (q *Queue) CronRefresh(ctx context.Context, name string, declared bool, d CronDef) (CronSeen, error) {
	c := q.prepareEntry("cron_refresh", name, "", "", name, oneIf(declared), d.Sum(), strconv.Itoa(max(d.Version, 1)))
	reply, err := q.run(ctx, c).ToArray()
	if err == nil && len(reply) != 3 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		return CronSeen{}, q.wrap(writing(declared, name), "", err)
	}
	return CronSeen{text(reply[0]), time.UnixMilli(number(reply[1])), text(reply[2])}, nil
}

// writing names who writes a definition: a user, or a worker that has it from a job's directive.
func writing(declared bool, name string) string {
	if declared {
		return "declare cron " + name
	}
	return "add cron " + name
}

// CronPut writes a definition over what the caller saw: seen is the entry's rev, empty for none. It answers
// false if the entry has changed. Safe to repeat.
func (q *Queue) CronPut(ctx context.Context, name, seen, rev string, next int64, declared bool, d CronDef) (bool, error) {
	args := append([]string{name, seen, rev, strconv.FormatInt(next, 10), oneIf(declared), d.Sum()}, d.fields()...)
	word, err := q.word(ctx, writing(declared, name), q.prepareEntry("cron_put", name, "", "", args...))
	return word == "put", err
}

// CronDue answers the entries that the pump must look at, but the first so many, and the server's clock.
// Safe to repeat.
func (q *Queue) CronDue(ctx context.Context, leaveOut int) ([]CronEntry, time.Time, error) {
	c := q.prepare("cron_due", "", "", q.keys.Base(), strconv.Itoa(leaveOut), strconv.Itoa(MaxCronDue))
	reply, err := q.run(ctx, c).ToArray()
	if err == nil && len(reply) < 1 {
		err = fmt.Errorf("an empty answer")
	}
	if err != nil {
		return nil, time.Time{}, q.wrap("cron entries that are due", "", err)
	}
	entries, err := q.readEntries(reply[1:])
	return entries, time.UnixMilli(number(reply[0])), err
}

// CronFire is one tick of an entry, as its caller saw it.
type CronFire struct {
	Name, Rev string
	Seen      int64 // the entry's next tick
	Tick      int64 // the one to fire; 0: none
	Next      int64 // the one after it
	Missed    int   // ticks between that are counted as missed
	NewJob          // of the tick
}

// CronFire advances an entry and admits the job of its tick; it answers what became of it: "fired",
// "missed", "overlap", "conflict", "full", "moved", "early" or "duplicate". Safe to repeat.
func (q *Queue) CronFire(ctx context.Context, f CronFire) (string, error) {
	tick := ""
	if f.Tick > 0 {
		tick = strconv.FormatInt(f.Tick, 10)
	}
	f.Later, f.Debounce = false, false // a tick is now, and takes no other job's place
	admission := q.admission(&f.NewJob)
	args := append([]string(nil), admission.args[:7]...)
	args = append(args, f.Name, f.Rev, strconv.FormatInt(f.Seen, 10), tick, strconv.FormatInt(f.Next, 10), strconv.Itoa(f.Missed))
	args = append(append(args, admission.args[7:]...), "tick", tick)
	last := ""
	if f.Unique != "" {
		last = q.keys.Unique(f.Unique)
	}
	return q.word(ctx, "tick of cron entry "+f.Name, q.prepareEntry("cron_fire", f.Name, f.ID, last, args...))
}

// CronTune does "pause", "resume" (of the entry that the caller saw, to go on at next), "remove", "lapse"
// or "retire" to an entry; it answers "done", "kept" or "moved". ErrGone, ErrLocked. Safe to repeat.
func (q *Queue) CronTune(ctx context.Context, name, verb, seen string, next int64) (string, error) {
	return q.word(ctx, verb+" cron "+name, q.prepareEntry("cron_tune", name, "", "", name, verb, seen, strconv.FormatInt(next, 10)))
}

// Crons gives a page of about n entries, without their payloads, and the next cursor: "0" at the end, and
// first. Safe to repeat.
func (q *Queue) Crons(ctx context.Context, cursor string, n int) ([]CronEntry, string, error) {
	entries, next, _, err := q.crons(ctx, cursor, strconv.Itoa(n))
	return entries, next, err
}

// Cron gives one entry with its payload, and the server's clock. ErrGone. Safe to repeat.
func (q *Queue) Cron(ctx context.Context, name string) (CronEntry, time.Time, error) {
	entries, _, now, err := q.crons(ctx, "", name)
	if err != nil {
		return CronEntry{}, now, err
	}
	if len(entries) != 1 {
		return CronEntry{}, now, &Refusal{ErrGone, q.name, "", "no cron entry " + name}
	}
	return entries[0], now, nil
}

func (q *Queue) crons(ctx context.Context, cursor, n string) ([]CronEntry, string, time.Time, error) {
	reply, err := q.run(ctx, q.prepare("crons", "", "", q.keys.Base(), cursor, n)).ToArray()
	if err == nil && len(reply) < 2 {
		err = fmt.Errorf("an answer of %d parts", len(reply))
	}
	if err != nil {
		what := "crons"
		if cursor == "" {
			what = "cron entry " + n
		}
		return nil, "", time.Time{}, q.wrap(what, "", err)
	}
	all, err := q.readEntries(reply[2:])
	entries := all[:0]
	for _, e := range all {
		if e.Rev != "" {
			entries = append(entries, e)
		}
	}
	return entries, text(reply[0]), time.UnixMilli(number(reply[1])), err
}

func (q *Queue) readEntries(reply []rueidis.RedisMessage) ([]CronEntry, error) {
	entries := make([]CronEntry, len(reply))
	for i, m := range reply {
		p, err := m.ToArray()
		if err == nil && len(p) != 22 {
			err = fmt.Errorf("a cron entry of %d parts", len(p))
		}
		if err != nil {
			return nil, q.wrap("crons", "", err)
		}
		entries[i] = CronEntry{
			Name: text(p[0]), Rev: text(p[1]), Next: number(p[2]), Last: number(p[3]), LastID: text(p[4]), Refreshed: number(p[5]),
			Paused: text(p[6]) != "", Fired: number(p[7]), Skipped: number(p[8]), Misses: number(p[9]),
			CronDef: CronDef{
				Spec: text(p[10]), TZ: text(p[11]), Missed: text(p[12]), Overlap: text(p[13]), Kind: text(p[14]),
				Version: int(max(number(p[15]), 1)), Headers: text(p[16]), Lane: text(p[17]), Unique: text(p[18]),
				Window: time.Duration(number(p[19])) * time.Millisecond, UntilStart: text(p[20]) == "start", Payload: []byte(text(p[21])),
			},
		}
	}
	return entries, nil
}

// word runs a call that answers one word in a list.
func (q *Queue) word(ctx context.Context, name string, c call) (string, error) {
	words, err := q.run(ctx, c).AsStrSlice()
	if err == nil && len(words) < 1 {
		err = fmt.Errorf("an empty answer")
	}
	if err != nil {
		return "", q.wrap(name, "", err)
	}
	return words[0], nil
}

func oneIf(b bool) string {
	if b {
		return "1"
	}
	return ""
}
