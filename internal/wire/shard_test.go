package wire_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/echomq/emq/internal/wire"
)

// Jobs wait where the hash put them, so it must never change.
func TestShardVectors(t *testing.T) {
	for _, v := range []struct {
		text     string
		n, shard int
	}{
		{"", 1, 0}, {"anything", 1, 0}, {"anything", 0, 0},
		// FNV-1a of 64 bits: "" cbf29ce484222325, "a" af63dc4c8601ec8c, "foobar" 85944171f73967e8
		{"", 64, (0xcbf29ce4 ^ 0x84222325) % 64},
		{"a", 8, (0xaf63dc4c ^ 0x8601ec8c) % 8},
		{"foobar", 7, (0x85944171 ^ 0xf73967e8) % 7},
	} {
		if got := wire.Shard(v.text, v.n); got != v.shard {
			t.Errorf("Shard(%q, %d) = %d, want %d", v.text, v.n, got, v.shard)
		}
	}
}

func TestShardsAreEven(t *testing.T) {
	const jobs = 60_000
	at := time.UnixMilli(1_764_660_000_000)
	m, err := wire.NewMinter(77, func() time.Time { at = at.Add(time.Millisecond); return at })
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string][]string{}
	for i := range jobs {
		id, err := m.Mint()
		if err != nil {
			t.Fatal(err)
		}
		texts["ids, one in a millisecond"] = append(texts["ids, one in a millisecond"], id)
		texts["ids in one millisecond"] = append(texts["ids in one millisecond"], wire.Encode(wire.JobBrand, 274557032793636864+uint64(i%4096)+uint64(i/4096)<<22))
		texts["lanes"] = append(texts["lanes"], fmt.Sprintf("tenant-%d", i))
	}
	for what, all := range texts {
		for _, n := range []int{2, 3, 4, 7, 8, 64} {
			counts := make([]int, n)
			for _, text := range all {
				counts[wire.Shard(text, n)]++
			}
			for shard, got := range counts {
				if want := jobs / n; got < want*8/10 || got > want*12/10 {
					t.Errorf("%s: shard %d of %d has %d, want about %d", what, shard, n, got, want)
				}
			}
		}
	}
}

// No name of a queue is the tag of another queue's shard, and the first shard is the queue as it always was.
func TestTagsAreNobodysNames(t *testing.T) {
	if got := wire.Tag("orders", 0); got != "orders" {
		t.Errorf("the first shard has the tag %s", got)
	}
	for i := 1; i < wire.MaxShards; i++ {
		if tag := wire.Tag("orders", i); wire.CheckQueue(tag) == nil {
			t.Errorf("a queue may be called %s, like a shard", tag)
		}
	}
	if got := wire.NewKeys("app1", wire.Tag("orders", 3)).Base(); got != "app1:emq:{orders#3}:" {
		t.Errorf("base %s", got)
	}
}
