package redistest

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Proxy stands between clients and a server and does to their traffic what networks do. It reads the
// protocol, so it can choose single commands; what it is not told to harm passes.
type Proxy struct {
	listener net.Listener
	server   string
	wg       sync.WaitGroup

	mu     sync.Mutex
	judge  func(words []string) Fate
	counts map[Fate]int
	conns  map[net.Conn]bool
	hole   chan struct{} // closed when the hole ends; nil: none
}

// Fate is what becomes of one command and its reply.
type Fate uint8

const (
	// Pass lets both through.
	Pass Fate = iota
	// Lose lets the server run the command, and closes the connection in place of the reply.
	Lose
	// Refuse answers NOPERM in the server's place; the server does not see the command.
	Refuse
	// Cut closes the connection before the server has seen the command.
	Cut
	// HalfClose lets the server run the command, and ends the stream to the client; commands that the
	// client still sends are run, and their replies go nowhere.
	HalfClose
	// Late holds the reply back for Lateness; those behind it wait.
	Late
)

// Lateness is how long a reply of the fate Late is held back.
const Lateness = 300 * time.Millisecond

// NewProxy listens on a free port in front of the server at addr. The caller closes it.
func NewProxy(addr string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, server: addr, counts: make(map[Fate]int), conns: make(map[net.Conn]bool)}
	p.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(conn) })
		}
	})
	return p, nil
}

// Close ends the proxy and every connection through it, and waits for its goroutines.
func (p *Proxy) Close() {
	p.listener.Close()
	p.Hole(false)
	p.CutAll()
	p.wg.Wait()
}

// URL is what emq.Open takes.
func (p *Proxy) URL() string { return "redis://" + p.listener.Addr().String() }

// Judge sets who decides on each command from now on, in their order; nil lets all pass.
func (p *Proxy) Judge(judge func(words []string) Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

// Count is how many commands met a fate so far.
func (p *Proxy) Count(f Fate) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[f]
}

// CutAll closes every connection.
func (p *Proxy) CutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Hole holds everything back, in both directions, while no connection is closed: as a network that
// drops every packet. When it ends what was held back arrives.
func (p *Proxy) Hole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.hole == nil:
		p.hole = make(chan struct{})
	case !on && p.hole != nil:
		close(p.hole)
		p.hole = nil
	}
}

// pass waits until there is no hole.
func (p *Proxy) pass() {
	p.mu.Lock()
	hole := p.hole
	p.mu.Unlock()
	if hole != nil {
		<-hole
	}
}

func (p *Proxy) decide(words []string) Fate {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := Pass
	if p.judge != nil {
		f = p.judge(words)
	}
	p.counts[f]++
	return f
}

func (p *Proxy) track(conn net.Conn, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if open {
		p.conns[conn] = true
	} else {
		delete(p.conns, conn)
		conn.Close()
	}
}

func (p *Proxy) serve(client net.Conn) {
	p.track(client, true)
	defer p.track(client, false)
	p.pass()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	p.track(server, true)
	defer p.track(server, false)

	fates := make(chan Fate, 1<<16) // of each command sent
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		defer client.Close()
		defer server.Close()
		p.replies(client, server, fates)
	})
	defer server.Close()
	defer client.Close()
	in := bufio.NewReader(client)
	for {
		raw, err := ReadReply(in) // a command has the form of a reply
		if err != nil {
			return
		}
		words := WordsOf(raw)
		f := p.decide(words)
		switch f {
		case Cut:
			return
		case Refuse:
			raw = []byte("*1\r\n$4\r\nPING\r\n")
		}
		if !pushed(words) || f == Refuse {
			fates <- f
		}
		p.pass()
		if _, err := server.Write(raw); err != nil {
			return
		}
	}
}

// pushed tells a command that is answered by pushes. It can be refused or cut, and nothing else.
func pushed(words []string) bool {
	return strings.HasSuffix(strings.ToUpper(words[0]), "SUBSCRIBE")
}

// replies hands the server's replies on until one is lost or the connection ends.
func (p *Proxy) replies(client, server net.Conn, fates <-chan Fate) {
	in := bufio.NewReader(server)
	for {
		reply, err := ReadReply(in)
		if err != nil {
			return
		}
		f := Pass
		if reply[0] != '>' { // what is published, and the answers to a subscription, are no replies
			f = <-fates
		}
		switch f {
		case Lose:
			return
		case Refuse:
			reply = []byte("-NOPERM the proxy refuses this\r\n")
		case HalfClose:
			if c, ok := client.(*net.TCPConn); ok {
				_ = c.CloseWrite() // the other end may be gone already
			}
			_, _ = io.Copy(io.Discard, in)
			return
		case Late:
			time.Sleep(Lateness)
		}
		p.pass()
		if _, err := client.Write(reply); err != nil {
			return
		}
	}
}

// ReadReply reads one value of the protocol, whole, a command too.
func ReadReply(in *bufio.Reader) ([]byte, error) {
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
			part, err := ReadReply(in)
			if err != nil {
				return nil, err
			}
			out = append(out, part...)
		}
	}
	return out, nil
}

// WordsOf gives the words of a command that ReadReply has read.
func WordsOf(raw []byte) []string {
	var words []string
	in := bufio.NewReader(bytes.NewReader(raw))
	if _, err := in.ReadBytes('\n'); err != nil {
		return nil
	}
	for {
		part, err := ReadReply(in)
		if err != nil {
			return words
		}
		_, body, _ := bytes.Cut(part, []byte("\r\n"))
		words = append(words, strings.TrimSuffix(string(body), "\r\n"))
	}
}
