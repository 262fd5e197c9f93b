// Package emqtest is for the tests of programs that use emq. Nothing has to be installed for it.
//
// A Recorder is an Enqueuer that keeps what it is given: for code that only enqueues. Run calls one
// handler as a worker would, and RunOld does so with a payload that an older program has left in the
// queue. An Env is the whole path, on a server inside the test with a clock that the test moves.
package emqtest
