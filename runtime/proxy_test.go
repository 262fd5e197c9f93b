package emq_test

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// proxy stands between a client and a server. It can lose the reply of a command that the server has
// already run, and closes the connection instead, as a network does; and it can refuse a command in the
// server's place.
type proxy struct {
	listener net.Listener
	server   string

	mu     sync.Mutex
	lose   func(words []string) bool // asked for each command, in order
	lost   int
	deny   func(words []string) bool
	denied int
	conns  map[net.Conn]bool
}

func startProxy(t *testing.T, serverURL string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: strings.TrimPrefix(serverURL, "redis://"), conns: make(map[net.Conn]bool)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(conn) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.cutAll()
		wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "redis://" + p.listener.Addr().String() }

// losing sets which replies are lost from now on; nil: none. It answers how many were lost so far.
func (p *proxy) losing(lose func(words []string) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = lose
	return p.lost
}

// denying sets which commands are refused from now on; nil: none. It answers how many were so far.
func (p *proxy) denying(deny func(words []string) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deny = deny
	return p.denied
}

// judge decides on one command.
func (p *proxy) judge(words []string) fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.lose != nil && p.lose(words):
		p.lost++
		return isLost
	case p.deny != nil && p.deny(words):
		p.denied++
		return isDenied
	}
	return isPassed
}

// fate is what becomes of a command.
type fate uint8

const (
	isPassed fate = iota
	isLost
	isDenied
)

// cutAll closes every connection.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) track(conn net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.conns[conn] = true
	} else {
		delete(p.conns, conn)
		conn.Close()
	}
}

func (p *proxy) serve(client net.Conn) {
	p.track(client, true)
	defer p.track(client, false)
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	p.track(server, true)
	defer p.track(server, false)

	fates := make(chan fate, 1<<16) // of each command sent
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { // replies
		defer client.Close()
		defer server.Close()
		in := bufio.NewReader(server)
		for {
			reply, err := readReply(in)
			if err != nil {
				return
			}
			switch <-fates {
			case isLost:
				return
			case isDenied:
				reply = []byte("-NOPERM the proxy refuses this\r\n")
			}
			if _, err := client.Write(reply); err != nil {
				return
			}
		}
	})
	defer server.Close()
	defer client.Close()
	in := bufio.NewReader(client)
	for {
		raw, err := readReply(in) // a command has the form of a reply
		if err != nil {
			return
		}
		f := p.judge(wordsOf(raw))
		if f == isDenied {
			raw = []byte("*1\r\n$4\r\nPING\r\n")
		}
		fates <- f
		if _, err := server.Write(raw); err != nil {
			return
		}
	}
}

// readReply reads one value of the protocol, whole.
func readReply(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	out := bytes.Clone(line)
	n, err := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=', '!':
		if err != nil || n < 0 {
			return out, err
		}
		body := make([]byte, n+2)
		_, err = io.ReadFull(in, body)
		return append(out, body...), err
	case '%', '*', '~', '>':
		if line[0] == '%' {
			n *= 2
		}
		for range n {
			part, err := readReply(in)
			if err != nil {
				return nil, err
			}
			out = append(out, part...)
		}
	}
	return out, nil
}

func wordsOf(raw []byte) []string {
	var words []string
	in := bufio.NewReader(bytes.NewReader(raw))
	if _, err := in.ReadBytes('\n'); err != nil {
		return nil
	}
	for {
		part, err := readReply(in)
		if err != nil {
			return words
		}
		_, body, _ := bytes.Cut(part, []byte("\r\n"))
		words = append(words, strings.TrimSuffix(string(body), "\r\n"))
	}
}

// touchesRow tells the scripts whose second key is a row: complete and discard.
func touchesRow(words []string) bool {
	return len(words) > 4 && strings.HasPrefix(strings.ToUpper(words[0]), "EVAL") && strings.Contains(words[4], ":job:")
}

// admits tells the scripts that take a job in: their first key is the row.
func admits(words []string) bool {
	return len(words) > 3 && strings.HasPrefix(strings.ToUpper(words[0]), "EVAL") && strings.Contains(words[3], ":job:")
}

// times lets a predicate be true n times.
func times(n int, is func([]string) bool) func([]string) bool {
	return func(words []string) bool {
		if n == 0 || !is(words) {
			return false
		}
		n--
		return true
	}
}
