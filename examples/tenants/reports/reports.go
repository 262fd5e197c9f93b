// Package reports declares one job twice: in a line for all tenants, and in lanes, one for each of them.
package reports

//emq:queue one-line timeout=30s attempts=3 backoff=fixed(1s)
//emq:queue lanes timeout=30s attempts=3 backoff=fixed(1s)

// Queued is a report that waits behind all that came before it, whosever it is.
//
//emq:job queue=one-line
type Queued struct {
	Tenant string `json:"tenant"`
}

// Laned is a report that waits in the lane of its tenant: the lanes take turns.
//
//emq:job queue=lanes
type Laned struct {
	Tenant string `json:"tenant" emq:"lane"`
}
