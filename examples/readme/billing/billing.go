// Package billing is the package that docs/cron.md declares.
package billing

//emq:queue billing timeout=10m attempts=3

// CloseDay closes the books of a day.
//
//emq:job
//emq:cron "15 2 * * *" tz=Europe/Berlin missed=once overlap=skip
type CloseDay struct {
	Shop string `json:"shop,omitempty"` // empty: all of them
}
