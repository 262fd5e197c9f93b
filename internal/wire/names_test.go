package wire_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/echomq/emq/internal/wire"
)

// hostile are names that would break a key, a log line or a protocol.
var hostile = []string{
	"", "{", "}", "{q}", "a{b", "a}b", "a\x00b", "a\nb", "a\r\nb", "a b", "a\tb", "\x7f", "\xff\xfe", "é", "a\u2028b",
	"*", "a?b", "a[b", "a\\b", "a\"b", "a'b", strings.Repeat("a", 10<<10), "trailing\n",
}

func TestHostileNames(t *testing.T) {
	type rule struct {
		name  string
		check func(string) error
		also  []string // refused beside the hostile ones
		takes []string
		most  int
	}
	for _, r := range []rule{
		{"queue", wire.CheckQueue, []string{"emq", "a:b", "a/b"}, []string{"a", "A-Z.0_9", "emq2"}, 128},
		{"kind", wire.CheckKind, []string{"A", "a@b", "a+b"}, []string{"mail.send:v1/x_y-z"}, 128},
		{"unique key", wire.CheckUnique, []string{"a#b"}, []string{"mail.send:A=3A@/+-_.0"}, 255},
	} {
		for _, name := range slices.Concat(hostile, r.also, []string{strings.Repeat("a", r.most+1)}) {
			var rule *wire.RuleError
			if err := r.check(name); !errors.As(err, &rule) {
				t.Errorf("%s %.20q: %v", r.name, name, err)
			} else if strings.ContainsAny(err.Error(), "\x00\n\r") || !utf8.ValidString(err.Error()) || len(err.Error()) > 600 {
				t.Errorf("%s %.20q: the error itself is hostile", r.name, name)
			}
		}
		for _, name := range append(r.takes, strings.Repeat("a", r.most)) {
			if err := r.check(name); err != nil {
				t.Errorf("%s %.20q: %v", r.name, name, err)
			}
		}
	}
	if err := wire.CheckPrefix(""); err != nil {
		t.Errorf("no prefix: %v", err)
	}
	for _, name := range hostile[1:] {
		if wire.CheckPrefix(name) == nil {
			t.Errorf("prefix %.20q is taken", name)
		}
	}
}

func TestHostileLanesAndHeaders(t *testing.T) {
	bad := []string{"", "a\x00b", "a\nb", "\x7f", "a\u0085b", "\xff\xfe", "a\u2028b", "a\u2029b", "a\u202eb", "a\u2066b", "a\u200fb",
		"a\u200bb", "a\u200db", "a\u2060b", "a\ufeffb", "a\u00adb", "a\U000e0041b", strings.Repeat("a", 256), strings.Repeat("é", 128)}
	good := []string{"a", "{tenant}:42", "Zürich", "a b", strings.Repeat("a", 128)}
	for _, lane := range bad {
		if wire.CheckLane(lane) == nil {
			t.Errorf("lane %.20q is taken", lane)
		}
		if wire.CheckHeader(lane, "") == nil {
			t.Errorf("header %.20q is taken", lane)
		}
	}
	for _, lane := range good {
		if err := errors.Join(wire.CheckLane(lane), wire.CheckHeader(lane, "a\nvalue may have lines")); err != nil {
			t.Errorf("%.20q: %v", lane, err)
		}
	}
	for _, val := range []string{"\xff", strings.Repeat("a", 4097), strings.Repeat("a", 10<<10)} {
		if wire.CheckHeader("a", val) == nil {
			t.Errorf("a header's value %.20q is taken", val)
		}
	}
}

func FuzzUniqueKeyIsInjective(f *testing.F) {
	f.Add("mail", "a", "b", "a:b", "")
	f.Add("mail", "a=3A", "b", "a:", "b")
	f.Add("mail", "", "", "", ":")
	f.Add("mail", strings.Repeat("x", 300), "", strings.Repeat("x", 299), "x")
	f.Add("mail", "=sha256:0", "", "\x00", "\xff")
	f.Fuzz(func(t *testing.T, kind, a1, a2, b1, b2 string) {
		if wire.CheckKind(kind) != nil {
			return
		}
		same := a1 == b1 && a2 == b2
		a, b := wire.UniqueKey(kind, a1, a2), wire.UniqueKey(kind, b1, b2)
		if (a == b) != same {
			t.Fatalf("(%q, %q) gives %q and (%q, %q) gives %q", a1, a2, a, b1, b2, b)
		}
		if err := wire.CheckUnique(a); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(a, kind) {
			t.Fatalf("%q does not begin with its kind", a)
		}
		if one := wire.UniqueKey(kind, a1); one == a {
			t.Fatalf("one part %q and two parts give %q", a1, a)
		}
	})
}

func TestKeysShareOneSlot(t *testing.T) {
	k := wire.NewKeys("app1", "q")
	for want, got := range map[string]string{
		"app1:emq:{q}:":         k.Base(),
		"app1:emq:{q}:pending":  k.Fixed("pending"),
		"app1:emq:{q}:job:JOB1": k.Row("JOB1"),
		"app1:emq:{q}:de:a:b":   k.Unique("a:b"),
		"app1:{emq}:version":    wire.VersionKey("app1"),
		"{emq}:version":         wire.VersionKey(""),
		"emq:{q}:":              wire.NewKeys("", "q").Base(),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
