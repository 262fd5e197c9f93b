// Package exports is the job of docs/lanes.md.
package exports

//emq:queue exports timeout=10m attempts=3

// Export writes a tenant's month to a file.
//
//emq:job
type Export struct {
	Tenant string `json:"tenant" emq:"lane"` // each tenant waits in its own lane
	Month  string `json:"month"`
}
