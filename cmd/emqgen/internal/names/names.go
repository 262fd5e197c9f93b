// Package names turns Go names into kinds and names of queues into parts of Go names.
package names

import (
	"go/token"
	"strings"
	"unicode"
	"unicode/utf8"
)

// irregular lists words whose capitals do not say where words begin. A kind lives in stored jobs, so
// an entry, once here, stays.
func irregular() []string {
	return []string{
		"OAuth", "IPv4", "IPv6", "GitHub", "GitLab", "YouTube", "LinkedIn", "PayPal",
		"JavaScript", "TypeScript", "GraphQL", "MySQL", "PostgreSQL", "MongoDB", "DynamoDB",
	}
}

// Kind is the kind that a type's name gives: SendWelcome is send_welcome, HTTPGet http_get, SyncURLs
// sync_urls, OAuth2Token oauth2_token.
func Kind(typeName string) string {
	var words []string
	for s := typeName; s != ""; {
		n := wordLen(s)
		words = append(words, strings.ToLower(strings.Trim(s[:n], "_")))
		s = s[n:]
	}
	return strings.Join(words, "_")
}

// Plain is the nearest to a text that is made of small letters, digits and single underscores.
func Plain(text string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return Kind(strings.Join(words, "_"))
}

// wordLen is the length of the word that s begins with.
func wordLen(s string) int {
	for _, w := range irregular() {
		if rest, ok := strings.CutPrefix(s, w); ok && (rest == "" || !lower(rest)) {
			return len(w) + digits(rest)
		}
	}
	if n := figure(s); n > 0 {
		return n
	}
	_, n := utf8.DecodeRuneInString(s)
	switch {
	case lower(s):
		n = lowerRun(s)
	case capital(s) && lower(s[n:]):
		n += lowerRun(s[n:])
	case capital(s): // an initialism: capitals up to the last, which begins the next word
		for n < len(s) && capital(s[n:]) {
			_, size := utf8.DecodeRuneInString(s[n:])
			after := s[n+size:]
			if lower(after) && !plural(after) {
				break
			}
			n += size
		}
		if plural(s[n:]) {
			n++
		}
	}
	if figure(s[n:]) == 0 {
		n += digits(s[n:])
	}
	return n + underscores(s[n:])
}

// figure is the length of a word that begins with a digit, as in Send2FA; other digits belong to the
// word before them. The list has the rule of irregular.
func figure(s string) int {
	for _, w := range []string{"2FA", "2D", "3D", "4K", "8K"} {
		if rest, ok := strings.CutPrefix(s, w); ok && (rest == "" || rest[0] == '_' || capital(rest) && lower(rest[1:])) {
			return len(w) + underscores(rest)
		}
	}
	return 0
}

// plural says whether s is the s of URLs.
func plural(s string) bool { return strings.HasPrefix(s, "s") && !lower(s[1:]) }

func lower(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && unicode.IsLetter(r) && !unicode.IsUpper(r)
}

func capital(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return s != "" && unicode.IsUpper(r)
}

func lowerRun(s string) int {
	n := 0
	for n < len(s) && lower(s[n:]) {
		_, size := utf8.DecodeRuneInString(s[n:])
		n += size
	}
	return n
}

func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

func underscores(s string) int { return len(s) - len(strings.TrimLeft(s, "_")) }

// initialism says whether a word is written in capitals in Go names; the list is staticcheck's.
func initialism(word string) bool {
	switch word {
	case "ACL", "API", "ASCII", "CPU", "CSS", "DNS", "EOF", "GUID", "HTML", "HTTP", "HTTPS", "ID", "IP",
		"JSON", "QPS", "RAM", "RPC", "SLA", "SMTP", "SQL", "SSH", "TCP", "TLS", "TTL", "UDP", "UI", "GID",
		"UID", "UUID", "URI", "URL", "UTF8", "VM", "XML", "XMPP", "XSRF", "XSS", "SIP", "RTP", "AMQP",
		"DB", "TS":
		return true
	}
	return false
}

// Ident is the part of a Go name that the name of a queue gives: video-transcode is VideoTranscode.
func Ident(queue string) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(queue, func(r rune) bool { return r == '.' || r == '_' || r == '-' }) {
		if up := strings.ToUpper(part); initialism(up) {
			b.WriteString(up)
		} else {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// Exported says whether s can begin an exported Go name.
func Exported(s string) bool { return token.IsIdentifier(s) && token.IsExported(s) }

// Unexported is an exported name with its first word in small letters: HTTPJob is httpJob.
func Unexported(name string) string {
	n := wordLen(name)
	return strings.ToLower(name[:n]) + name[n:]
}

// Article is "a" or "an", as the name is spoken.
func Article(name string) string {
	n := wordLen(name)
	word := name[:n]
	if len(word) > 1 && strings.ToUpper(word) == word { // spelt letter by letter
		if strings.ContainsRune("AEFHILMNORSX", rune(word[0])) {
			return "an"
		}
		return "a"
	}
	for _, sound := range []string{"Us", "Uni", "One", "Once", "Eu"} {
		if strings.HasPrefix(word, sound) {
			return "a"
		}
	}
	if strings.ContainsRune("AEIOU", rune(word[0])) {
		return "an"
	}
	return "a"
}
