// Package dunning is an example of a package with its tests: it reminds customers of invoices that they
// have not paid. Its tests need no server and wait for nothing.
package dunning

import "fmt"

//emq:queue dunning timeout=30s attempts=3 backoff=fixed(10m)

// Remind sends a reminder, once a week at most for an invoice.
//
//emq:job version=2 unique=168h
type Remind struct {
	Invoice string `json:"invoice" emq:"unique"`
	Cents   int64  `json:"cents"`
}

// RemindV1 had the sum in whole euros.
//
//emq:was Remind version=1
type RemindV1 struct {
	Invoice string `json:"invoice"`
	Euros   int64  `json:"euros"`
}

// Upgrade makes cents of them.
func (old RemindV1) Upgrade() (Remind, error) {
	if old.Euros <= 0 {
		return Remind{}, fmt.Errorf("invoice %s is over %d euros", old.Invoice, old.Euros)
	}
	return Remind{Invoice: old.Invoice, Cents: 100 * old.Euros}, nil
}
