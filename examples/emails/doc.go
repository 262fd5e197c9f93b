// Package emails holds a small service as one would really split it: declarations in jobs, a web server
// that enqueues in web, and a process of its own that sends the mails in worker. Only the worker knows
// how to send, and only jobs is known to both.
//
//	export EMQ_URL=redis://localhost:6379
//	go run ./examples/emails/worker &
//	go run ./examples/emails/web &
//	curl -d '{"user_id": 7, "email": "ada@example.org"}' localhost:8080/signup
//
// Both stop cleanly on SIGTERM: the web server answers what it has accepted, and the worker finishes
// what it runs, or hands it back when that takes too long.
package emails
