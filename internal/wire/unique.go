package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

const maxUnique = 255

// UniqueKey joins a kind and the canonical texts of its unique fields into one key. Different parts
// never give the same key: every byte that could end a part is written as "=XX", and a key that
// would be too long becomes the hash of its long form.
func UniqueKey(kind string, parts ...string) string {
	var b strings.Builder
	b.WriteString(kind)
	for _, p := range parts {
		b.WriteByte(':')
		escape(&b, p)
	}
	if b.Len() <= maxUnique {
		return b.String()
	}
	sum := sha256.Sum256([]byte(b.String()))
	return kind + ":=sha256:" + hex.EncodeToString(sum[:])
}

func escape(b *strings.Builder, s string) {
	const hexDigits = "0123456789ABCDEF"
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9',
			c == '.', c == '_', c == '@', c == '/', c == '+', c == '-':
			b.WriteByte(c)
		default:
			b.WriteByte('=')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
}
