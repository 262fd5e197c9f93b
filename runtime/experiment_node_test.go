package emq

import (
	"time"

	"github.com/echomq/emq/internal/wire"
)

// Collide makes a client mint the ids that all others of the same node number mint too: its clock moves
// in steps of grain.
func Collide(c *Client, node int, grain time.Duration) error {
	minter, err := wire.NewMinter(node, func() time.Time { return time.Now().Truncate(grain) })
	if err != nil {
		return err
	}
	c.minter = minter
	return nil
}
