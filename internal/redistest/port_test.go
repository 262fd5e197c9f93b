package redistest

import (
	"strconv"
	"testing"
)

// A port that is given twice, or is one that clients get, may be somebody else's when its server comes back.
func TestAPortIsGivenOnceAndIsNoneOfTheClients(t *testing.T) {
	seen := make(map[int]bool)
	for range 2000 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] || port < 1024 || port >= 32768 {
			t.Fatalf("port %d, seen %v", port, seen[port])
		}
		seen[port] = true
	}
}

func TestABusHasAPortOfItsOwn(t *testing.T) {
	s := Start(t, "--cluster-enabled", "yes")
	got, err := s.List("CONFIG", "GET", "cluster-port")
	if err != nil || len(got) != 2 || got[1] != strconv.Itoa(s.bus) || s.bus == 0 || s.bus == s.Port {
		t.Fatalf("%v, not %d: %v", got, s.bus, err)
	}
}
