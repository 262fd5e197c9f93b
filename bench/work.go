package main

import "time"

// work is the payload of the peers: the same as emq's.
type work struct {
	Sent int64  `json:"sent"`
	Data []byte `json:"data"`
}

func newWork(size int) work { return work{time.Now().UnixNano(), payload(size)} }

// payload is data that makes an encoded payload of about size bytes: base64 is a third longer, and the
// rest of the JSON has about 45 bytes.
func payload(size int) []byte { return make([]byte, max(size-45, 0)*3/4) }
