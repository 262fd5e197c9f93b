// Package mail is the package that the README declares.
package mail

//emq:queue mail timeout=30s attempts=5 backoff=exponential(1s,10m)

// Welcome greets a new user.
//
//emq:job
type Welcome struct {
	UserID int64  `json:"user_id"`
	Email  string `json:"email" emq:"unique"` // one greeting at a time for an address
}
