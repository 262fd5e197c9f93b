package emq_test

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
	"testing"

	"github.com/echomq/emq/internal/redistest"
	emq "github.com/echomq/emq/runtime"
)

// pagers are the verbs that turn pages, each with a cursor of its own making.
func pagers(t testing.TB, c *emq.Client) map[string]func(queue, cursor string) (string, error) {
	t.Helper()
	return map[string]func(queue, cursor string) (string, error){
		"Browse": func(queue, cursor string) (string, error) {
			page, err := c.Queue(queue).Browse(t.Context(), emq.BrowseOptions{State: emq.StatePending, N: 2, Cursor: cursor})
			return page.Next, err
		},
		"Lanes": func(queue, cursor string) (string, error) {
			page, err := c.Queue(queue).Lanes(t.Context(), cursor, 1)
			return page.Next, err
		},
		"Crons": func(queue, cursor string) (string, error) {
			page, err := c.Queue(queue).Crons(t.Context(), cursor, 1)
			return page.Next, err
		},
	}
}

// sealed gives a place the sum that makes a cursor of it.
func sealed(text string) string {
	return fmt.Sprintf("%s/%08x", text, crc32.ChecksumIEEE([]byte(text)))
}

func fillPages(t testing.TB, c *emq.Client) {
	t.Helper()
	q := c.Queue("exhibits")
	for i := range 600 { // more than one page of a small hash
		if err := q.SetLaneWeight(context.Background(), "lane "+strconv.Itoa(i), 2); err != nil {
			t.Fatal(err)
		}
	}
	var jobs []emq.Job
	for i := range 4 {
		jobs = append(jobs, emq.New(exhibit{N: i}))
	}
	if _, err := c.Enqueue(context.Background(), jobs...); err != nil {
		t.Fatal(err)
	}
	for i := range 600 {
		if err := q.AddCron(context.Background(), "entry"+strconv.Itoa(i), emq.Cron{Spec: "@yearly"}, emq.New(exhibit{})); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACursorThatWasChangedIsRefused(t *testing.T) {
	t.Parallel()
	c := openClient(t, redistest.Start(t).URL())
	fillPages(t, c)
	cursors := map[string]string{}
	for name, page := range pagers(t, c) {
		cursor, err := page("exhibits", "")
		if err != nil || cursor == "" {
			t.Fatalf("%s: %q, %v", name, cursor, err)
		}
		if _, err := page("exhibits", cursor); err != nil {
			t.Errorf("%s refuses its own cursor: %v", name, err)
		}
		cursors[name] = cursor
	}
	for name, page := range pagers(t, c) {
		own := cursors[name]
		bad := []string{" " + own, own + " ", own + "/", own[1:], "x", "/", "0", strings.ToUpper(own), strings.Replace(own, "exhibits", "other", 1), own + own}
		for i := range own {
			bad = append(bad, own[:i]+string(own[i]^1)+own[i+1:])
			if i > 0 {
				bad = append(bad, own[:i])
			}
		}
		for other, cursor := range cursors {
			if other != name {
				bad = append(bad, cursor)
			}
		}
		place := own[:strings.LastIndexByte(own, '/')]
		list := place[:strings.LastIndexByte(place, '/')+1]
		for _, scan := range []string{"-1", "1.5", "18446744073709551616", "nan", "", "+1", "a/b"} {
			if name != "Browse" {
				bad = append(bad, sealed(list+scan)) // with the right sum
			}
		}
		if name == "Browse" {
			list = list[:strings.LastIndexByte(list[:len(list)-1], '/')+1]
			for _, score := range []string{"nan", "0x10", "1e999", "", "zero", "1_0"} {
				bad = append(bad, sealed(list+score+"/JOB00000000000"))
			}
			bad = append(bad, sealed(list+"0/"), sealed(list+"0"))
		}
		for _, cursor := range bad {
			if _, err := page("exhibits", cursor); !errors.Is(err, emq.ErrInvalid) {
				t.Errorf("%s takes %q: %v", name, cursor, err)
			}
		}
		if _, err := page("other", own); !errors.Is(err, emq.ErrInvalid) {
			t.Errorf("%s takes a cursor of another queue: %v", name, err)
		}
	}
}

// Whatever a cursor is, it is taken or ErrInvalid; the server is never asked something that it does not know.
func FuzzCursor(f *testing.F) {
	c := openClient(f, redistest.Start(f).URL())
	fillPages(f, c)
	for _, page := range pagers(f, c) {
		cursor, err := page("exhibits", "")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(cursor)
		f.Add(cursor[:strings.LastIndexByte(cursor, '/')])
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, cursor := range []string{text, sealed(text)} {
			for name, page := range pagers(t, c) {
				if _, err := page("exhibits", cursor); err != nil && !errors.Is(err, emq.ErrInvalid) {
					t.Errorf("%s of %q: %v", name, cursor, err)
				}
			}
		}
	})
}
