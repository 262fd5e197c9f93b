package wire_test

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/echomq/emq/internal/wire"
)

func TestIDVectors(t *testing.T) {
	for _, v := range []struct {
		brand string
		n     uint64
		id    string
	}{
		{"USR", 274557032793636864, "USR0KHTOWnGLuC"},
		{"USR", 320636799581945856, "USR0NgWEfAEJfs"},
		{"JOB", 0, "JOB00000000000"},
		{"JOB", 61, "JOB0000000000z"},
		{"JOB", 62, "JOB00000000010"},
		{"JOB", math.MaxInt64, "JOBAzL8n0Y58m7"},
	} {
		if got := wire.Encode(v.brand, v.n); got != v.id {
			t.Errorf("Encode(%s, %d) = %s, want %s", v.brand, v.n, got, v.id)
		}
		if brand, n, err := wire.Decode(v.id); err != nil || brand != v.brand || n != v.n {
			t.Errorf("Decode(%s) = %s, %d, %v", v.id, brand, n, err)
		}
	}
}

func TestWhatIsNoID(t *testing.T) {
	for _, id := range []string{
		"", "JOB", "JOB0000000000", "JOB000000000000", "job00000000000", "JO000000000000", "J0B00000000000",
		"JOBzzzzzzzzzzz", "JOBAzL8n0Y58m8", "JOB0000000000-", "JOB0000000000é", "JOB\x0000000000000", "JOB000000000\n0",
	} {
		if _, _, err := wire.Decode(id); err == nil {
			t.Errorf("Decode(%q) takes it", id)
		}
	}
	if _, err := wire.DecodeJob("USR0KHTOWnGLuC"); err == nil {
		t.Error("a user's id is a job's")
	}
}

func FuzzDecode(f *testing.F) {
	for _, id := range []string{"USR0KHTOWnGLuC", "JOB0000000000z", "JOBzzzzzzzzzzz", "JOBAzL8n0Y58m7", "", "job"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		brand, n, err := wire.Decode(id)
		if err != nil {
			return
		}
		if n > math.MaxInt64 {
			t.Fatalf("Decode(%q) is over 63 bits", id)
		}
		if back := wire.Encode(brand, n); back != id {
			t.Fatalf("Decode(%q) and back is %q", id, back)
		}
	})
}

func FuzzEncodeKeepsTheOrder(f *testing.F) {
	f.Add(uint64(61), uint64(62))
	f.Add(uint64(0), uint64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		a, b = a&math.MaxInt64, b&math.MaxInt64
		if (a < b) != (wire.Encode("JOB", a) < wire.Encode("JOB", b)) {
			t.Fatalf("the ids of %d and %d are out of order", a, b)
		}
	})
}

// stepping is a clock that several goroutines read and that also goes back.
type stepping struct {
	mu sync.Mutex
	n  int
}

func (c *stepping) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return time.UnixMilli(wire.Epoch + 1_000_000 - int64(c.n/3000)*50 + int64(c.n%7))
}

func TestMinterNeverGoesBack(t *testing.T) {
	m, err := wire.NewMinter(wire.MaxNode, new(stepping).now)
	if err != nil {
		t.Fatal(err)
	}
	const workers, each = 4, 5000 // far over 4096 in one millisecond
	ids := make([][]string, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				id, err := m.Mint()
				if err != nil {
					t.Error(err)
					return
				}
				ids[w] = append(ids[w], id)
			}
		})
	}
	wg.Wait()
	seen := make(map[string]bool)
	for _, own := range ids {
		for i, id := range own {
			if i > 0 && own[i-1] >= id {
				t.Fatalf("%s was minted after %s", id, own[i-1])
			}
			if seen[id] {
				t.Fatalf("%s was minted twice", id)
			}
			seen[id] = true
			n, err := wire.DecodeJob(id)
			if err != nil {
				t.Fatal(err)
			}
			if node := n >> 12 & wire.MaxNode; node != wire.MaxNode {
				t.Fatalf("%s is of node %d", id, node)
			}
		}
	}
	if len(seen) != workers*each {
		t.Fatalf("%d ids", len(seen))
	}
}

func TestMintersOfTwoNodesNeverMeet(t *testing.T) {
	still := func() time.Time { return time.UnixMilli(wire.Epoch + 5) }
	seen := make(map[string]bool)
	for node := range 2 {
		m, err := wire.NewMinter(node, still)
		if err != nil {
			t.Fatal(err)
		}
		for range 10_000 {
			id, err := m.Mint()
			if err != nil || seen[id] {
				t.Fatalf("%s: %v, seen %t", id, err, seen[id])
			}
			seen[id] = true
		}
	}
}

func TestMinterRefusals(t *testing.T) {
	for _, node := range []int{-1, wire.MaxNode + 1} {
		if _, err := wire.NewMinter(node, time.Now); err == nil {
			t.Errorf("node %d is taken", node)
		}
	}
	m, err := wire.NewMinter(0, func() time.Time { return time.UnixMilli(wire.Epoch - 1) })
	if err != nil {
		t.Fatal(err)
	}
	if id, err := m.Mint(); err == nil || !strings.Contains(err.Error(), "2024") {
		t.Errorf("a clock before the epoch gives %q, %v", id, err)
	}
}

func TestMintedAtIsTheMintersClock(t *testing.T) {
	at := time.UnixMilli(1_764_660_000_123)
	m, err := wire.NewMinter(3, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	id, err := m.Mint()
	if err != nil {
		t.Fatal(err)
	}
	n, err := wire.DecodeJob(id)
	if err != nil || !wire.MintedAt(n).Equal(at) {
		t.Fatalf("%s was minted at %v, %v", id, wire.MintedAt(n), err)
	}
}
