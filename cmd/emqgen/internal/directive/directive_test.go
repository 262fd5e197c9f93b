package directive

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArgumentsKeepTheirOffsets(t *testing.T) {
	const text = "//emq:cron \"15 2 * * *\" tz=Europe/Berlin  backoff=exponential(1s, 1h)\tx=`a\"b`"
	d, ok, problems := Parse(text)
	if !ok || len(problems) > 0 {
		t.Fatal(ok, problems)
	}
	var at []string
	for _, a := range d.Args {
		at = append(at, text[a.At:a.At+1]+text[a.ValueAt:a.ValueAt+1]+" "+textOf(a))
	}
	want := []string{`"" 15 2 * * *`, "tE tz=Europe/Berlin", "be backoff=exponential(1s, 1h)", "x` x=a\"b"}
	if diff := cmp.Diff(want, at); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDurationsArePrintedShort(t *testing.T) {
	for _, s := range []string{"500ms", "30s", "1m", "1m30s", "10m", "1h", "1h30m", "24h", "1.5s"} {
		d, p := duration("timeout", s, 0)
		if p != nil || Short(d) != s {
			t.Errorf("%s is printed as %s (%v)", s, Short(d), p)
		}
	}
}

// FuzzParse reads any comment: never a panic, and every offset lies in the comment.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"//emq:job", "//emq:job queue=a b=\"c d\" e=f(g, h) `i`", "// emq:job", "//emq:job kind=\"", "/*\nemq:job\n*/",
		"//emq:job a=(", "//emq:job )", "//emq:job =", "//emq", "//EMQ : job", "//emq:job backoff=fixed(,)", "//emq:cron \"* * * * *\" //",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, comment string) {
		if !strings.HasPrefix(comment, "//") && !strings.HasPrefix(comment, "/*") {
			comment = "//" + comment
		}
		d, _, problems := Parse(comment)
		check := func(what string, at int) {
			if at < 0 || at > len(comment) {
				t.Errorf("%s at %d in a comment of %d bytes: %q", what, at, len(comment), comment)
			}
		}
		for _, p := range problems {
			check(p.Text, p.At)
		}
		for _, a := range d.Args {
			check(textOf(a), a.At)
			check(textOf(a), a.ValueAt)
			if _, p := a.Duration(); p != nil {
				check(p.Text, p.At)
			}
			if b, p := a.Backoff(); p != nil {
				check(p.Text, p.At)
			} else if again, p := (Arg{Key: a.Key, Value: b.String()}).Backoff(); p != nil || again != b {
				t.Errorf("%s is printed as %s and read as %s (%v)", a.Value, b, again, p)
			}
			for _, item := range a.Items() {
				if !a.Quoted {
					check(textOf(item), item.ValueAt)
				}
			}
		}
	})
}

// textOf is an argument as it is written, without its quotes.
func textOf(a Arg) string {
	if a.HasValue {
		return a.Key + "=" + a.Value
	}
	return a.Value
}
