package redistest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// ports are those that this process has given away.
var ports = struct {
	sync.Mutex
	given map[int]bool
}{given: make(map[int]bool)}

// FreePort is a port of the loopback interface on which nobody listens now. It gives no port twice, so that a
// server that is down for a while finds its own free, and none that the system gives to clients.
func FreePort() (int, error) {
	const first, many = 10_000, 20_000 // Linux gives clients those from 32768 on
	ports.Lock()
	defer ports.Unlock()
	for range 1000 {
		port := first + rand.IntN(many)
		if ports.given[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue // somebody else has it
		}
		ports.given[port] = true
		return port, l.Close()
	}
	return 0, errors.New("there is no free port from 10000 to 29999 on 127.0.0.1")
}
