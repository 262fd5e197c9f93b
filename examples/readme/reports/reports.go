// Package reports is the job of docs/results.md.
package reports

//emq:queue reports timeout=5m attempts=3

// Report counts what was sold on a day.
//
//emq:job result=Sales retain=24h
type Report struct {
	Day string `json:"day"`
}

// Sales is what a Report finds.
type Sales struct {
	Orders int   `json:"orders"`
	Cents  int64 `json:"cents"`
}
