package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/echomq/emq/examples/emails/jobs"
	emq "github.com/echomq/emq/runtime"
)

// mailer implements jobs.Handler over the HTTP API of a mail provider. Without one it only logs.
type mailer struct {
	api  string
	http *http.Client
}

func (m *mailer) HandleSendWelcome(ctx context.Context, job jobs.SendWelcome) error {
	return m.send(ctx, job.Email, "Welcome", "We are glad that you are here.")
}

func (m *mailer) HandleSendTips(ctx context.Context, job jobs.SendTips) error {
	return m.send(ctx, job.Email, "Three things to try", "First, …")
}

// send returns what should become of the job: nil, an error (again, after the backoff), or one of emq's
// policies. It passes ctx on, so that it ends soon at the timeout, a cancellation or a stop.
func (m *mailer) send(ctx context.Context, to, subject, text string) error {
	if m.api == "" {
		emq.Logger(ctx).Info("MAIL_API is not set: nothing is sent", "subject", subject)
		return nil
	}
	body, err := json.Marshal(map[string]string{"to": to, "subject": subject, "text": text})
	if err != nil {
		return emq.Dead(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.api, bytes.NewReader(body))
	if err != nil {
		return emq.Dead(err)
	}
	// A job can run twice, when a process dies between the mail and its settle. Its id stays the same,
	// so the provider can tell.
	if info, ok := emq.InfoFrom(ctx); ok {
		req.Header.Set("Idempotency-Key", string(info.ID))
	}
	resp, err := m.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch err := fmt.Errorf("mail provider: %s", resp.Status); {
	case resp.StatusCode < 300:
		return nil
	case resp.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // absent or a date: 1 s
		return emq.RetryIn(time.Duration(max(seconds, 1))*time.Second, err)
	case resp.StatusCode < 500:
		return emq.Dead(err) // the same request will fail again
	default:
		return err
	}
}
