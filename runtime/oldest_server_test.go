package emq

import (
	"bufio"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/rueidis"

	"github.com/echomq/emq/internal/redistest"
)

// monitored collects every command that a server is sent, and that scripts call there, until stop.
func monitored(t *testing.T, server *redistest.Server) (stop func() [][]string) {
	t.Helper()
	conn, err := net.Dial("tcp", server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != "+OK" {
		t.Fatal("MONITOR: ", lines.Text(), lines.Err())
	}
	const end = "the end of what is monitored"
	all := make(chan [][]string, 1)
	go func() {
		var calls [][]string
		for lines.Scan() {
			_, text, _ := strings.Cut(lines.Text(), "] ")
			var words []string
			for _, m := range quotedWord.FindAllStringSubmatch(text, -1) {
				words = append(words, m[1])
			}
			if slices.Contains(words, end) {
				break
			}
			if len(words) > 0 {
				calls = append(calls, words)
			}
		}
		all <- calls
	}()
	return func() [][]string {
		if _, err := server.Command("ECHO", end); err != nil {
			t.Fatal(err)
		}
		return <-all
	}
}

var quotedWord = regexp.MustCompile(`"((?:[^"\\]|\\.)*)"`)

// newerThanOldest are the commands and options among calls that Redis 6.2 does not know, as the server itself
// says since when there is each.
func newerThanOldest(t *testing.T, server *redistest.Server, calls [][]string) []string {
	t.Helper()
	stats, err := server.Info("commandstats") // MONITOR does not tell of CLIENT and ACL
	if err != nil {
		t.Fatal(err)
	}
	for name := range stats {
		if name, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			calls = append(calls, strings.Split(name, "|"))
		}
	}
	raw, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	answer, err := raw.Do(t.Context(), raw.B().CommandDocs().Build()).ToAny()
	docs, ok := answer.(map[string]any)
	if err != nil || !ok || len(docs) < 100 {
		t.Fatalf("COMMAND DOCS needs a server of Redis 7.0 or later, or Valkey: %d commands, %v", len(docs), err)
	}
	var newer []string
	for _, words := range calls {
		name := strings.ToLower(words[0])
		doc, known := docs[name].(map[string]any)
		if subs, ok := doc["subcommands"].(map[string]any); ok && len(words) > 1 {
			name += "|" + strings.ToLower(words[1])
			doc, known = subs[name].(map[string]any)
		}
		switch {
		case !known:
			newer = append(newer, name+" (nobody knows it)")
		case later(doc["since"]):
			newer = append(newer, name)
		}
		for _, token := range laterTokens(doc["arguments"], false) {
			if slices.ContainsFunc(words[1:], func(w string) bool { return strings.EqualFold(w, token) }) {
				newer = append(newer, name+" "+token)
			}
		}
	}
	slices.Sort(newer)
	return slices.Compact(newer)
}

// later tells a version after 6.2.
func later(since any) bool {
	text, ok := since.(string)
	parts := strings.Split(text, ".")
	if !ok || len(parts) < 2 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return err1 != nil || err2 != nil || major > 6 || major == 6 && minor > 2
}

// laterTokens are the options of a command, at any depth, that came after 6.2, or within one that did.
func laterTokens(arguments any, within bool) (tokens []string) {
	list, _ := arguments.([]any)
	for _, a := range list {
		doc, _ := a.(map[string]any)
		newer := within || later(doc["since"])
		if token, ok := doc["token"].(string); ok && newer {
			tokens = append(tokens, token)
		}
		tokens = append(tokens, laterTokens(doc["arguments"], newer)...)
	}
	return tokens
}

// A command or an option that came after 6.2 is seen, sent by a client or called by a script.
func TestWhatIsNewerThanTheOldestServerIsSeen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	stop := monitored(t, server)
	for _, words := range [][]string{{"SET", "k", "v"}, {"ZRANGE", "z", "0", "1", "REV"}, {"PEXPIRE", "k", "1000", "nx"}, {"ZMPOP", "1", "z", "MIN"},
		{"EVAL", "return redis.call('EXPIRETIME', KEYS[1])", "1", "k"}, {"CLIENT", "NO-EVICT", "on"}} {
		if _, err := server.Command(words...); err != nil {
			t.Fatal(words, err)
		}
	}
	got := strings.Join(newerThanOldest(t, server, stop()), ", ")
	if want := "client|no-evict, expiretime, pexpire NX, zmpop"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
