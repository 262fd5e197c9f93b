// Command web is the service's HTTP side. It enqueues mails and never sends one.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/echomq/emq/examples/emails/jobs"
	emq "github.com/echomq/emq/runtime"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "where to listen")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr); err != nil {
		slog.Error("web", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string) error {
	client, err := emq.Open(ctx, cmp.Or(os.Getenv("EMQ_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	defer client.Close()

	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	slog.Info("listening", "addr", listener.Addr().String())
	server := &http.Server{Handler: newHandler(jobs.NewProducer(client)), ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// A request that was accepted is answered, so that nobody has to guess whether the mail will come.
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return server.Shutdown(grace)
}

// service has the generated interface, not the client: a test passes a double.
type service struct{ mails jobs.Producer }

func newHandler(mails jobs.Producer) http.Handler {
	s := &service{mails}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /signup", s.signup)
	return mux
}

const nextDay = 24 * time.Hour

func (s *service) signup(w http.ResponseWriter, r *http.Request) {
	var user struct {
		ID    int64  `json:"user_id"`
		Email string `json:"email"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&user); err != nil || !strings.Contains(user.Email, "@") {
		http.Error(w, `want {"user_id": 7, "email": "ada@example.org"}`, http.StatusBadRequest)
		return
	}
	// Two kinds in one round trip; each has a receipt of its own.
	receipts, err := s.mails.Enqueue(r.Context(),
		emq.New(jobs.SendWelcome{UserID: user.ID, Email: user.Email}, emq.WithHeader("user_agent", firstBytes(r.UserAgent(), 200))),
		emq.New(jobs.SendTips{UserID: user.ID, Email: user.Email}, emq.In(nextDay)))
	if err != nil {
		slog.Error("signup", "user", user.ID, "error", err)
		status := http.StatusServiceUnavailable // with ErrFull too: the queue will be shorter again
		if errors.Is(err, emq.ErrInvalid) {
			status = http.StatusBadRequest
		}
		http.Error(w, "please try again", status)
		return
	}
	welcome := receipts[0]
	if welcome.Status == emq.Conflict { // a greeting to this address waits or runs already
		welcome.ID = welcome.Holder
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	_ = json.NewEncoder(w).Encode(map[string]any{"job": welcome.Ref, "status": welcome.Status.String()}) // the caller has gone
}

func firstBytes(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }
