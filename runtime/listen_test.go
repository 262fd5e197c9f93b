package emq

import (
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
