// Package emq is the root of a typed job framework for Go on Redis and Valkey. It declares nothing.
//
//   - Programs import github.com/echomq/emq/runtime, whose package clause is emq: client and worker.
//   - The command github.com/echomq/emq/cmd/emqgen reads annotated structs and writes the typed producer
//     and the handler interface beside them.
//   - github.com/echomq/emq/runtime/embedded is a server inside the process, for development and tests.
//   - github.com/echomq/emq/runtime/emqtest is the test kit of programs that use emq.
//
// The README begins with a program that needs nothing but Go: go run ./examples/quickstart.
package emq

//go:generate go run ./cmd/emqgen ./examples/...
