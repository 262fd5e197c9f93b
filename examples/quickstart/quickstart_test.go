package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/echomq/emq/internal/redistest"
)

func TestQuickstartShowsEverythingThatItPromises(t *testing.T) {
	t.Run("in process", func(t *testing.T) { check(t, "") })
	t.Run("redis", func(t *testing.T) {
		server := redistest.Start(t)
		check(t, server.URL())
		if size, err := server.Command("DBSIZE"); err != nil || size != ":0" {
			t.Errorf("keys left on a server that was lent: %s, %v", size, err)
		}
	})
}

func check(t *testing.T, url string) {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), &out, url); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		"enqueued   1002 jobs of two kinds",
		"progress   ",
		"retried    52 times; order 10 had its receipt at attempt 2",
		"scheduled  the job ran ",
		"stale      the frozen worker's completion was refused: emq: stale claim",
		"was dead after 3 attempts and is done now",
		"totals     enqueued 1002 = completed 1002; retried 52, dead and reprocessed 1, taken back ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
	if n := strings.Count(out.String(), "\nprogress "); n > 20 || strings.Contains(out.String(), "\r") {
		t.Errorf("%d lines of progress, which should be few and whole:\n%q", n, &out)
	}
}

func TestQuickstartCleansUpAfterAnInterrupt(t *testing.T) {
	program := filepath.Join(t.TempDir(), "quickstart")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		server := redistest.Start(t)
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "EMQ_URL="+server.URL())
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for lines, sent := bufio.NewScanner(out), false; lines.Scan(); {
			if !sent && strings.HasPrefix(lines.Text(), "progress ") {
				sent = true
				if err := cmd.Process.Signal(sig); err != nil {
					t.Error(err)
				}
			}
		}
		if err := cmd.Wait(); err == nil || errs.String() != "quickstart: interrupted\n" {
			t.Errorf("%v: %v, %s", sig, err, &errs)
		}
		if size, err := server.Command("DBSIZE"); err != nil || size != ":0" {
			t.Errorf("%v: keys left on a server that was lent: %s, %v", sig, size, err)
		}
	}
}

func TestQuickstartSaysWhatIsWrongWithItsServer(t *testing.T) {
	for _, url := range []string{"no-url", "redis://127.0.0.1:1"} {
		if err := run(t.Context(), new(bytes.Buffer), url); err == nil || !strings.Contains(err.Error(), "open") && !strings.Contains(err.Error(), "URL") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
