// Package orders declares the jobs of a small shop: annotated structs, from which emqgen makes emq_gen.go.
package orders

//emq:queue orders timeout=30s attempts=3 backoff=fixed(300ms)

// SendReceipt mails a customer the receipt of an order.
//
//emq:job
type SendReceipt struct {
	Order int    `json:"order"`
	Email string `json:"email"`
}

// PackParcel has the warehouse pack an order.
//
//emq:job
type PackParcel struct {
	Order   int    `json:"order"`
	Address string `json:"address"`
}
