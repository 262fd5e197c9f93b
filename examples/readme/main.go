// Command readme is the program of the README, as it stands there: the tests compare the two.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/echomq/emq/examples/readme/mail"
	emq "github.com/echomq/emq/runtime"
)

func main() {
	if err := run(context.Background()); err != nil {
		slog.Error("readme", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	client, err := emq.Open(ctx, "redis://localhost:6379") // or embedded.Open(ctx): no server
	if err != nil {
		return err
	}
	defer client.Close()
	if err := signup(ctx, mail.NewProducer(client)); err != nil {
		return err
	}
	return work(ctx, client, func(context.Context, string) error { return nil })
}
