package dunning

import (
	"context"
	"errors"
	"time"

	emq "github.com/echomq/emq/runtime"
)

// Patience is how long a customer may take to pay.
const Patience = 14 * 24 * time.Hour

// Bill plans a reminder for an invoice that was sent just now.
func Bill(ctx context.Context, jobs Producer, invoice string, cents int64) error {
	if cents == 0 {
		return nil // nothing to be reminded of
	}
	_, err := jobs.EnqueueRemind(ctx, Remind{Invoice: invoice, Cents: cents}, emq.In(Patience))
	return err
}

// Books knows who has paid.
type Books interface {
	Paid(ctx context.Context, invoice string) (bool, error)
}

// Post sends letters.
type Post interface {
	Send(ctx context.Context, invoice string, cents int64) error
}

// What the post may answer.
var (
	ErrNoAddress = errors.New("the customer has no address")
	ErrHoliday   = errors.New("the post is closed")
)

// Reminder handles the jobs.
type Reminder struct {
	Books Books
	Post  Post
}

// HandleRemind implements Handler.
func (r *Reminder) HandleRemind(ctx context.Context, job Remind) error {
	paid, err := r.Books.Paid(ctx, job.Invoice)
	if err != nil {
		return err
	}
	if paid {
		return emq.Discard(nil)
	}
	switch err := r.Post.Send(ctx, job.Invoice, job.Cents); {
	case errors.Is(err, ErrHoliday):
		return emq.Snooze(24 * time.Hour)
	case errors.Is(err, ErrNoAddress):
		return emq.Dead(err)
	default:
		return err
	}
}
