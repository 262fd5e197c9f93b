// Package jobs declares what the benchmark runs: the same empty work under each setting.
package jobs

//go:generate go tool emqgen

//emq:queue bench timeout=30s attempts=5 backoff=exponential(1s,10m)

// Plain is a job without anything.
//
//emq:job
type Plain struct {
	Sent int64  `json:"sent"` // ns by the benchmark's clock
	Data []byte `json:"data"`
}

// Laned is a job of one of many tenants.
//
//emq:job
type Laned struct {
	Tenant string `json:"tenant" emq:"lane"`
	Data   []byte `json:"data"`
}

// Unique is a job that holds a key of its own.
//
//emq:job
type Unique struct {
	N    int    `json:"n" emq:"unique"`
	Data []byte `json:"data"`
}
