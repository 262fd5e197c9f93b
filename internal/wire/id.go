// Package wire holds the pure half of the protocol: job ids, the rules for names, and the names of
// keys. It does no I/O and knows nothing of scripts, clients or workers.
package wire

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
)

// Epoch is the zero of the ids' clock: 2024-01-01T00:00:00Z in Unix milliseconds.
const Epoch = 1704067200000

const (
	// IDLen is the length of an id: a three-letter brand and eleven base62 digits.
	IDLen = 14
	// JobBrand is the brand of every job id.
	JobBrand = "JOB"

	nodeBits     = 10
	sequenceBits = 12
	// MaxNode is the highest node number that fits an id.
	MaxNode = 1<<nodeBits - 1

	maxSequence = 1<<sequenceBits - 1
	digits      = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Encode writes a snowflake of at most 63 bits behind its brand. The digits are in byte order and
// left-padded, so the byte order of ids is the order of their snowflakes.
func Encode(brand string, n uint64) string {
	var b [IDLen]byte
	copy(b[:3], brand)
	for i := IDLen - 1; i >= 3; i-- {
		b[i] = digits[n%62]
		n /= 62
	}
	return string(b[:])
}

// Decode splits an id into its brand and its snowflake.
func Decode(id string) (brand string, n uint64, err error) {
	if len(id) != IDLen {
		return "", 0, fmt.Errorf("id %s has %d bytes, not %d", Quote(id), len(id), IDLen)
	}
	for i := range 3 {
		if id[i] < 'A' || id[i] > 'Z' {
			return "", 0, fmt.Errorf("id %s does not begin with three capital letters", Quote(id))
		}
	}
	for i := 3; i < IDLen; i++ {
		d := strings.IndexByte(digits, id[i])
		if d < 0 {
			return "", 0, fmt.Errorf("id %s has a byte that is not a base62 digit", Quote(id))
		}
		if n > (math.MaxInt64-uint64(d))/62 {
			return "", 0, fmt.Errorf("id %s is over 63 bits", Quote(id))
		}
		n = n*62 + uint64(d)
	}
	return id[:3], n, nil
}

// DecodeJob is Decode for ids that must be jobs.
func DecodeJob(id string) (uint64, error) {
	brand, n, err := Decode(id)
	if err != nil {
		return 0, err
	}
	if brand != JobBrand {
		return 0, fmt.Errorf("id %s is not a job's: it must begin with %s", Quote(id), JobBrand)
	}
	return n, nil
}

// MintedAt is the time that an id's snowflake carries, by the clock of the process that minted it.
func MintedAt(n uint64) time.Time {
	return time.UnixMilli(int64(n>>(nodeBits+sequenceBits)) + Epoch)
}

// Minter mints job ids that are strictly increasing, also while its clock steps back.
// It is safe for concurrent use.
type Minter struct {
	now  func() time.Time
	node uint64

	mu   sync.Mutex
	last uint64 // milliseconds and sequence of the last id, without the node
}

// NewMinter makes a Minter for a node of 0 to MaxNode.
func NewMinter(node int, now func() time.Time) (*Minter, error) {
	if node < 0 || node > MaxNode {
		return nil, fmt.Errorf("node %d is outside 0 to %d", node, MaxNode)
	}
	return &Minter{now: now, node: uint64(node)}, nil
}

// errClock is what a clock before the epoch gives.
var errClock = errors.New("the clock stands before 2024: ids cannot be minted")

// Mint makes the next id. When a millisecond's 4096 ids are used up, or the clock stands still or
// steps back, it borrows from the milliseconds to come.
func (m *Minter) Mint() (string, error) {
	ms := m.now().UnixMilli() - Epoch
	if ms < 0 {
		return "", errClock
	}
	m.mu.Lock()
	next := uint64(ms) << sequenceBits
	if next <= m.last {
		next = m.last + 1
	}
	m.last = next
	m.mu.Unlock()
	return Encode(JobBrand, next>>sequenceBits<<(nodeBits+sequenceBits)|m.node<<sequenceBits|next&maxSequence), nil
}
