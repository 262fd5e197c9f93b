// Package emq is the runtime of emq: typed background jobs on Redis or Valkey.
//
// Jobs are declared as annotated structs; the command emqgen generates a typed producer and a handler
// interface from them. A Client enqueues, a Worker claims and runs. Every settlement of a job is
// fenced by the claim that owns it, and every deadline is on the server's clock.
package emq
