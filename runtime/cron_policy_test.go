package emq_test

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	emq "github.com/echomq/emq/runtime"
)

// The constants of a type have texts, which are read back, also in JSON; all else is refused.
func TestTheTextsOfConstants(t *testing.T) {
	t.Parallel()
	check(t, []emq.Missed{emq.SkipMissed, emq.RunOnce, emq.RunAll}, "skip", "once", "all")
	check(t, []emq.Overlap{emq.AllowOverlap, emq.SkipOverlap}, "allow", "skip")
	check(t, []emq.Status{emq.Unknown, emq.Enqueued, emq.Stored, emq.Duplicate, emq.Conflict, emq.Replaced, emq.Refused},
		"unknown", "enqueued", "stored", "duplicate", "conflict", "replaced", "refused")
	text, err := json.Marshal(emq.Cron{Spec: "@daily", TZ: "UTC", Missed: emq.RunAll, Overlap: emq.SkipOverlap})
	if want := `{"Spec":"@daily","TZ":"UTC","Missed":"all","Overlap":"skip"}`; err != nil || string(text) != want {
		t.Errorf("a schedule in JSON is %s, %v", text, err)
	}
}

func check[T interface {
	~uint8
	fmt.Stringer
	encoding.TextMarshaler
}](t *testing.T, constants []T, texts ...string) {
	t.Helper()
	for i, c := range constants {
		encoded, err := json.Marshal(c)
		if err != nil || c.String() != texts[i] || string(encoded) != `"`+texts[i]+`"` {
			t.Errorf("%T %d is %s, %s, %v", c, uint8(c), c, encoded, err)
		}
		back := T(200)
		if err := json.Unmarshal(encoded, &back); err != nil || back != c {
			t.Errorf("%s comes back as %v, %v", encoded, back, err)
		}
	}
	for _, other := range []T{T(len(constants)), 255} {
		if _, err := other.MarshalText(); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("%v is written: %v", other, err)
		}
		if want := fmt.Sprintf("%T(%d)", other, uint8(other))[len("emq."):]; other.String() != want {
			t.Errorf("%s, want %s", other, want)
		}
	}
	for _, text := range []string{"", "SKIP", "never\u202e", "0"} {
		kept := constants[len(constants)-1]
		err := any(&kept).(encoding.TextUnmarshaler).UnmarshalText([]byte(text))
		if !errors.Is(err, emq.ErrInvalid) || kept != constants[len(constants)-1] {
			t.Errorf("%q is read as %v: %v", text, kept, err)
		}
	}
}
