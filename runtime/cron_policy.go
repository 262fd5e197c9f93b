package emq

import (
	"fmt"
	"slices"
	"strings"

	"github.com/echomq/emq/internal/wire"
)

// Missed says what becomes of ticks at which no process was there to fire them. Its texts are skip, once and
// all, as in a directive.
type Missed uint8

// What becomes of missed ticks.
const (
	SkipMissed Missed = iota // they are dropped, once they are more than a minute late
	RunOnce                  // the newest of them runs
	RunAll                   // each of them runs
)

// Overlap says what becomes of a tick while the job of the entry's last tick still waits or runs. Its texts
// are allow and skip, as in a directive.
type Overlap uint8

// What becomes of ticks that overlap.
const (
	AllowOverlap Overlap = iota // its job is enqueued all the same
	SkipOverlap                 // it is skipped
)

// The wire's words of the policies, which are their texts too.
func missedWords() []string  { return []string{"skip", "once", "all"} }
func overlapWords() []string { return []string{"allow", "skip"} }

func (m Missed) String() string { return wordOf("Missed", missedWords(), m) }

// MarshalText writes skip, once or all; what is no constant is ErrInvalid.
func (m Missed) MarshalText() ([]byte, error) { return textOf("missed", missedWords(), m) }

// UnmarshalText reads skip, once or all; anything else is ErrInvalid.
func (m *Missed) UnmarshalText(text []byte) error { return readWord("missed", missedWords(), text, m) }

func (o Overlap) String() string { return wordOf("Overlap", overlapWords(), o) }

// MarshalText writes allow or skip; what is no constant is ErrInvalid.
func (o Overlap) MarshalText() ([]byte, error) { return textOf("overlap", overlapWords(), o) }

// UnmarshalText reads allow or skip; anything else is ErrInvalid.
func (o *Overlap) UnmarshalText(text []byte) error {
	return readWord("overlap", overlapWords(), text, o)
}

// wordOf is the text of a constant.
func wordOf[T ~uint8](typ string, words []string, v T) string {
	if int(v) < len(words) {
		return words[v]
	}
	return fmt.Sprintf("%s(%d)", typ, uint8(v))
}

func textOf[T ~uint8](what string, words []string, v T) ([]byte, error) {
	if int(v) >= len(words) {
		return nil, fmt.Errorf("%w: %s: %d is none of the constants", ErrInvalid, what, uint8(v))
	}
	return []byte(words[v]), nil
}

func readWord[T ~uint8](what string, words []string, text []byte, v *T) error {
	i := slices.Index(words, string(text))
	if i < 0 {
		return fmt.Errorf("%w: %s: %s is none of %s", ErrInvalid, what, wire.Quote(string(text)), strings.Join(words, ", "))
	}
	*v = T(i)
	return nil
}
