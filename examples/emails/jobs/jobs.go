// Package jobs declares the mails that the service sends.
package jobs

//emq:queue emails timeout=30s attempts=5 backoff=exponential(1s,10m)

// SendWelcome greets a new user.
//
//emq:job
type SendWelcome struct {
	UserID int64  `json:"user_id"`
	Email  string `json:"email" emq:"unique,redact"` // one greeting at a time for an address; hidden in logs
}

// SendTips tells a new user what else there is to find.
//
//emq:job attempts=3 unique=48h
type SendTips struct {
	UserID int64  `json:"user_id" emq:"unique"`
	Email  string `json:"email" emq:"redact"`
}
