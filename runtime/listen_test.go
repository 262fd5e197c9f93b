package emq

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/echomq/emq/internal/redistest"
)

// The goroutine and the connection end when nobody has listened for a while, and begin anew.
func TestTheListenerEndsWhenNobodyListensAndBeginsAnew(t *testing.T) {
	t.Parallel()
	client, err := Open(t.Context(), redistest.Start(t).URL(), WithLogger(quiet()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 2 {
		renewed := make(chan struct{}, 1)
		stop := client.listener.listen(&hearer{channel: "c", heard: func(string) {}, renewed: func() { signalOne(renewed) }, refused: func(error) {}})
		<-renewed
		client.listener.mu.Lock()
		ended := client.listener.ended
		client.listener.mu.Unlock()
		stop()
		stop() // again
		if !within(ended, 20*time.Second) {
			t.Fatal("the listener goes on")
		}
	}
}

// Somebody who comes while the connection is kept for the next one is served by it.
func TestAListenerThatLingersIsUsedAgain(t *testing.T) {
	t.Parallel()
	client, err := Open(t.Context(), redistest.Start(t).URL(), WithLogger(quiet()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 100 {
		renewed := make(chan struct{}, 1)
		stop := client.listener.listen(&hearer{channel: "c", heard: func(string) {}, renewed: func() { signalOne(renewed) }, refused: func(error) {}})
		if !within(renewed, 20*time.Second) {
			t.Fatal("it is not told that it hears")
		}
		stop()
	}
}

// A server that cannot save refuses PING too, which ends no process: the listener ends and begins anew.
func TestAListenerEndsAtAServerThatRefusesToPing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--save", "3600 1", "--dbfilename", "taken")
	if err := os.Mkdir(filepath.Join(s.Dir, "taken"), 0o700); err != nil { // where the dump should go
		t.Fatal(err)
	}
	client, err := Open(t.Context(), s.URL(), WithLogger(quiet()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for round := range 2 {
		renewed := make(chan struct{}, 1)
		listen := func(channel string) func() {
			stop := client.listener.listen(&hearer{channel: channel, heard: func(string) {}, renewed: func() { signalOne(renewed) }, refused: func(error) {}})
			if !within(renewed, 20*time.Second) {
				t.Fatal("it is not told that it hears")
			}
			return stop
		}
		stopFirst, stopSecond := listen("c"), listen("d")
		if round == 0 {
			if _, err := s.Command("BGSAVE"); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // polling
				if _, err := s.Command("PING"); err != nil && strings.Contains(err.Error(), "MISCONF") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("PING is not refused")
				}
			}
		}
		stopFirst()
		client.listener.mu.Lock()
		ended := client.listener.ended
		client.listener.mu.Unlock()
		stopSecond()
		if !within(ended, 20*time.Second) {
			t.Fatal("the listener goes on")
		}
	}
}
