package emq_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/echomq/emq/internal/wire"
	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/scripts"
)

func TestTheStateOfAJobIsThatOfItsRowAndItsList(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q := s.Queue("exhibits")
		for _, lane := range []string{"", "a"} {
			for _, state := range browsed {
				s.flush(t)
				id := put(t, s, exhibit{Owner: lane}).ID
				newHall(t, s, "exhibits").bring(t, 1, state)
				check := func(what string, want emq.State) {
					t.Helper()
					before := s.everything(t)
					got, err := q.State(t.Context(), id)
					if err != nil || got != want {
						t.Errorf("lane %q, %s, %s: %s, %v; want %s", lane, state, what, got, err, want)
					}
					d, err := q.Job(t.Context(), id)
					if want == emq.StateAbsent && !errors.Is(err, emq.ErrGone) || want != emq.StateAbsent && (err != nil || d.State != want) {
						t.Errorf("lane %q, %s, %s: the detail says %s, %v; want %s", lane, state, what, d.State, err, want)
					}
					if d := differing(before, s.everything(t)); len(d) > 0 {
						t.Errorf("a read has changed %v", d)
					}
				}
				check("untouched", state)
				lists := map[emq.State]string{emq.StatePending: "pending", emq.StateScheduled: "schedule", emq.StateActive: "active", emq.StateDead: "dead", emq.StateCompleted: "completed"}
				if lane != "" {
					lists[emq.StatePending] = "g:a:pending"
				}
				for _, other := range browsed {
					if other != state {
						s.do(t, "ZADD", "emq:{exhibits}:"+lists[other], "5", string(id))
						check("also listed as "+string(other), emq.StateUnknown)
						s.do(t, "ZREM", "emq:{exhibits}:"+lists[other], string(id))
					}
				}
				row := "emq:{exhibits}:job:" + string(id)
				for _, says := range []string{"awaiting_children", "done", ""} {
					s.do(t, "HSET", row, "state", says)
					check("a row that says "+says, emq.StateUnknown)
				}
				s.do(t, "ZREM", "emq:{exhibits}:"+lists[state], string(id))
				s.do(t, "HSET", row, "state", "awaiting_children")
				check("waiting for its children", emq.StateAwaitingChildren)
				s.do(t, "HSET", row, "state", string(state))
				check("not listed", emq.StateUnknown)
				s.do(t, "SET", row, "spoilt")
				check("overwritten", emq.StateAbsent)
				s.do(t, "DEL", row)
				check("deleted", emq.StateAbsent)
			}
		}
	})
}

func TestADetailHasAllThatIsKnownOfAJob(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		q, h := s.Queue("exhibits"), newHall(t, s, "exhibits")
		look := func(id emq.ID) emq.JobDetail {
			t.Helper()
			d, err := q.Job(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		says := func(d emq.JobDetail) string {
			var what []string
			for i, m := range d.Timeline {
				if m.At.IsZero() || i > 0 && m.At.Before(d.Timeline[i-1].At) {
					t.Errorf("the timeline is %v", d.Timeline)
				}
				what = append(what, m.What)
			}
			return strings.Join(what, ", ")
		}
		at := s.now(t).Add(-time.Minute).Truncate(time.Millisecond)
		ref := put(t, s, exhibit{N: 7, Owner: "ada"}, emq.At(at.Add(2*time.Hour)), emq.WithHeader("trace", "4bf9"))
		d := look(ref.ID)
		if d.Ref != ref || d.State != emq.StateScheduled || d.Kind != "exhibit" || d.Lane != "ada" || d.Version != 2 ||
			string(d.Payload) != `{"n":7,"owner":"ada"}` || d.Headers["trace"] != "4bf9" || !d.Due.Equal(at.Add(2*time.Hour)) ||
			!d.EnqueuedAt.Equal(ref.ID.Time()) || d.Attempts != 0 || d.MaxAttempts != 0 || says(d) != "enqueued, due" {
			t.Errorf("scheduled: %+v", d)
		}
		s.do(t, "ZADD", "emq:{exhibits}:schedule", fmt.Sprint(at.UnixMilli()), string(ref.ID))
		if _, _, err := h.q.Promote(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		if d := look(ref.ID); d.State != emq.StatePending || !d.Due.Equal(at) || says(d) != "due, enqueued" {
			t.Errorf("pending: %+v", d)
		}
		job := h.claim(t, 1)[0]
		s.do(t, "HSET", "emq:{exhibits}:job:"+string(ref.ID), "lapses", "2", "forgiven", "3", "attempts", "5", "max", "9",
			"unique", "exhibit:7", "cancel", "1", "progress", `{"percent":40}`, "logs", "12")
		d = look(ref.ID)
		if left := d.LeaseUntil.Sub(s.now(t)); d.State != emq.StateActive || left > time.Hour || left < 59*time.Minute || d.Lapses != 2 ||
			d.Attempts != 5 || d.Forgiven != 3 || d.Counted != 2 || d.MaxAttempts != 9 || d.Unique != "exhibit:7" || !d.Cancelled ||
			string(d.Progress) != `{"percent":40}` || d.Logs != 12 || says(d) != "due, enqueued, lease ends" {
			t.Errorf("active: %+v", d)
		}
		s.do(t, "HDEL", "emq:{exhibits}:job:"+string(ref.ID), "cancel")
		fence := scripts.Fence{ID: job.ID, Attempts: 5, By: job.By}
		if _, err := h.q.Complete(t.Context(), fence, time.Hour, []byte(`{"size":3}`)); err != nil {
			t.Fatal(err)
		}
		d = look(ref.ID)
		if kept := d.KeptUntil.Sub(d.SettledAt); d.State != emq.StateCompleted || kept != time.Hour || string(d.Result) != `{"size":3}` ||
			!d.LeaseUntil.IsZero() || says(d) != "due, enqueued, completed, kept until" {
			t.Errorf("completed: %+v", d)
		}
		dead := put(t, s, exhibit{N: 8})
		h.bring(t, 1, emq.StateDead)
		d = look(dead.ID)
		if ago := s.nowOf(t, "exhibits").Sub(d.SettledAt); d.State != emq.StateDead || ago < 0 || ago > time.Minute || d.LastError != "poisoned "+string(dead.ID) || says(d) != "enqueued, died" {
			t.Errorf("dead: %+v", d)
		}
	})
}

func TestADetailOfARowThatSomebodySpoiltIsStillRead(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, exhibit{})
		row := "emq:{exhibits}:job:" + string(ref.ID)
		s.do(t, "HSET", row, "attempts", "-x", "forgiven", "1e99", "v", "-3", "due", "nan", "settled_at", "inf", "headers", "{", "progress", "{}}", "result", "\xff",
			"payload", "\xff\x00", "kind", "no such kind", "max", "", "more", "than we know")
		d, err := s.Queue("exhibits").Job(t.Context(), ref.ID)
		if err != nil || d.Attempts != 0 || d.Counted != 0 || d.Version != 1 || !d.Due.IsZero() || !d.SettledAt.IsZero() || d.Headers != nil || d.Progress != nil || d.Result != nil {
			t.Errorf("%+v, %v", d, err)
		}
		if _, err := json.Marshal(d); err != nil {
			t.Error(err)
		}
		if r := d.Redacted(); string(r.Payload) != `"[redacted]"` {
			t.Errorf("the payload of a kind that nobody knows is shown: %s", r.Payload)
		}
	})
}

// vault is a job with hidden fields of each shape that the generator writes.
type vault struct{}

func (vault) EmqSpec() emq.Spec[vault] {
	return emq.Spec[vault]{Queue: "exhibits", Kind: "vault", Attempts: 1, Timeout: time.Minute, UniqueKey: func(vault) string { return "vault:SECRET" },
		Redacted: []string{"email", "home.street", "cards[].number", "by[].cards[].number", "grid[][].pin", "kids", "a.b", "home.geo.lat"}}
}

func TestRedactedHidesWhatTheDeclarationNames(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, vault{})
		for payload, want := range map[string]string{
			`{"id":12345678901234567890,"email":"SECRET","name":"ada"}`:                       `{"email":"[redacted]","id":12345678901234567890,"name":"ada"}`,
			`{"EMAIL":"SECRET","eMail":"SECRET"}`:                                             `{"EMAIL":"[redacted]","eMail":"[redacted]"}`,
			`{"home":{"street":{"deep":"SECRET"},"town":"x","geo":{"lat":"SECRET","lon":1}}}`: `{"home":{"geo":{"lat":"[redacted]","lon":1},"street":"[redacted]","town":"x"}}`,
			`{"home":null,"cards":null}`:                                                      `{"cards":null,"home":null}`,
			`{"cards":[{"number":"SECRET","label":"a"},{"number":"SECRET"},null]}`:            `{"cards":[{"label":"a","number":"[redacted]"},{"number":"[redacted]"},null]}`,
			`{"by":{"x":{"cards":[{"number":"SECRET"}],"n":1}}}`:                              `{"by":{"x":{"cards":[{"number":"[redacted]"}],"n":1}}}`,
			`{"grid":[[{"pin":"SECRET","ok":true}],[]]}`:                                      `{"grid":[[{"ok":true,"pin":"[redacted]"}],[]]}`,
			`{"kids":[{"kids":["SECRET"]}]}`:                                                  `{"kids":"[redacted]"}`,
			`{"a.b":"SECRET","a":{"b":"SECRET","c":1}}`:                                       `{"a":{"b":"[redacted]","c":1},"a.b":"[redacted]"}`,
			`{"email2":"shown","homes":{"street":"shown"}}`:                                   `{"email2":"shown","homes":{"street":"shown"}}`,
			// shapes that the declaration does not know
			`{"home":"SECRET","cards":"SECRET"}`:             `{"cards":"[redacted]","home":"[redacted]"}`,
			`{"home":[{"street":"SECRET"}]}`:                 `{"home":"[redacted]"}`,
			`{"cards":{"number":"SECRET"}}`:                  `{"cards":{"number":"[redacted]"}}`,
			`{"cards":["SECRET",[{"number":"SECRET"}]]}`:     `{"cards":["[redacted]","[redacted]"]}`,
			`{"home":{"street":"SECRET","STREET":"SECRET"}}`: `{"home":{"STREET":"[redacted]","street":"[redacted]"}}`,
			`{"email":"x","email":"SECRET"}`:                 `{"email":"[redacted]"}`,
			"{\"card\u017f\":[{\"number\":\"SECRET\"}]}":     "{\"card\u017f\":[{\"number\":\"[redacted]\"}]}",
			`"SECRET"`:          `"[redacted]"`,
			`["SECRET"]`:        `"[redacted]"`,
			`null`:              `null`,
			`{"email":"SECRET"`: `"[redacted]"`,
			`{"x":1}SECRET`:     `"[redacted]"`,
			``:                  `"[redacted]"`,
		} {
			s.do(t, "HSET", "emq:{exhibits}:job:"+string(ref.ID), "payload", payload)
			d, err := s.Queue("exhibits").Job(t.Context(), ref.ID)
			if err != nil {
				t.Fatal(err)
			}
			r := d.Redacted()
			if string(r.Payload) != want || r.Unique != "[redacted]" || string(d.Payload) != payload || d.Unique != "vault:SECRET" {
				t.Errorf("%s is shown as %s, and the key as %s; want %s", payload, r.Payload, r.Unique, want)
			}
		}
		deep := strings.Repeat(`{"home":`, 5000) + "1" + strings.Repeat("}", 5000)
		s.do(t, "HSET", "emq:{exhibits}:job:"+string(ref.ID), "payload", deep)
		if d, err := s.Queue("exhibits").Job(t.Context(), ref.ID); err != nil || !bytes.Contains(d.Redacted().Payload, []byte(`{"home":{"home":`)) {
			t.Errorf("a deep payload: %v", err)
		}
	})
}

func TestWithoutHiddenFieldsAJobIsShownAsItIs(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ref := put(t, s, job{7})
		d, err := s.Queue("work").Job(t.Context(), ref.ID)
		if r := d.Redacted(); err != nil || string(r.Payload) != `{"n":7}` {
			t.Errorf("%s, %v", r.Payload, err)
		}
		s.do(t, "HDEL", "emq:{work}:kinds", "job")
		d, err = s.Queue("work").Job(t.Context(), ref.ID)
		if r := d.Redacted(); err != nil || string(r.Payload) != `"[redacted]"` {
			t.Errorf("%s, %v", r.Payload, err)
		}
	})
}

func TestLatencyIsTheLongestWaitOfThoseThatAreNextInLine(t *testing.T) {
	onEachStore(t, func(t *testing.T, s *store) {
		ctx, q := t.Context(), s.Queue("exhibits")
		is := func(what string, want time.Duration) {
			t.Helper()
			before := s.everything(t)
			got, err := q.Latency(ctx)
			if err != nil || got < want || got > want+time.Minute {
				t.Errorf("%s: %v, %v; want %v", what, got, err, want)
			}
			if d := differing(before, s.everything(t)); len(d) > 0 {
				t.Errorf("it has changed %v", d)
			}
		}
		is("an empty queue", 0)
		put(t, s, exhibit{}, emq.WithID(idAt(s.now(t).Add(time.Hour))))
		is("an id of the future", 0)
		put(t, s, exhibit{}, emq.In(time.Hour))
		put(t, s, exhibit{N: 1}, emq.WithID(idAt(s.now(t).Add(-time.Hour))))
		is("a job without a lane", time.Hour)
		old := idAt(s.now(t).Add(-9 * time.Hour))
		put(t, s, exhibit{}, emq.WithID(old))
		s.do(t, "HSET", "emq:{exhibits}:job:"+string(old), "due", fmt.Sprint(s.now(t).Add(-2*time.Hour).UnixMilli()))
		is("a job that was scheduled", 2*time.Hour)
		put(t, s, exhibit{Owner: "a"}, emq.WithID(idAt(s.now(t).Add(-3*time.Hour))))
		is("a lane", 3*time.Hour)
		put(t, s, exhibit{Owner: "b"}, emq.WithID(idAt(s.now(t).Add(-4*time.Hour))))
		is("two lanes", 4*time.Hour)
		if err := q.PauseLane(ctx, "b"); err != nil {
			t.Fatal(err)
		}
		is("a paused lane", 3*time.Hour)
		s.do(t, "ZADD", "emq:{exhibits}:pending", "0", string(idAt(s.now(t).Add(-5*time.Hour))), "-1", "no id", "-2", "")
		is("ids without rows", 3*time.Hour)
	})
}

// idAt is an id of a time.
func idAt(at time.Time) emq.ID {
	return emq.ID(wire.Encode(wire.JobBrand, uint64(at.UnixMilli()-wire.Epoch)<<22))
}
