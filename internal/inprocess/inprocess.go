// Package inprocess is what a client knows of a server that lives in its own process.
package inprocess

// Server is such a server. Each field may be nil.
type Server struct {
	// Stop ends the server; closing the client calls it at last.
	Stop func()
	// Attach is called by every worker that begins to run; the answer is called when it has ended.
	// A server whose clock is moved by hand keeps the workers up with it.
	Attach func(Worker) (detach func())
}

// Worker is what a worker can do when the server's clock has been moved: its own timers have not seen
// that time pass.
type Worker struct {
	Beat func() // renew the leases of what runs
	Look func() // look for jobs that are due or ready
}
