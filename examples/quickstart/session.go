package main

import (
	"context"
	"crypto/rand"
	"net/url"

	"github.com/redis/rueidis"

	emq "github.com/echomq/emq/runtime"
	"github.com/echomq/emq/runtime/embedded"
)

// session is a connection to a server, real or in this process.
type session struct {
	name   string
	prefix string // of this run's keys, so that runs on one server do not meet
	client *emq.Client
	raw    rueidis.Client // for the frozen worker, and to clean up
	server *embedded.Server
}

// connect opens the server at rawURL; none starts one in this process.
func connect(ctx context.Context, rawURL string) (*session, error) {
	s := &session{prefix: "quickstart-" + rand.Text()[:8]}
	var err error
	if rawURL == "" {
		s.name = "in this process (EMQ_URL=redis://... for another)"
		if s.server, err = embedded.Start(); err != nil {
			return nil, err
		}
		rawURL = s.server.URL()
		s.client, err = s.server.Open(ctx, emq.WithPrefix(s.prefix))
	} else {
		s.name = redacted(rawURL)
		s.client, err = emq.Open(ctx, rawURL, emq.WithPrefix(s.prefix))
	}
	if err == nil {
		s.raw, err = dial(rawURL)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func dial(rawURL string) (rueidis.Client, error) {
	option, err := rueidis.ParseURL(rawURL)
	if err != nil {
		return nil, err
	}
	option.DisableCache = true
	return rueidis.NewClient(option)
}

func redacted(rawURL string) string {
	if u, err := url.Parse(rawURL); err == nil {
		return u.Redacted()
	}
	return "EMQ_URL"
}

func (s *session) close() {
	if s.raw != nil {
		s.sweep(context.Background())
		s.raw.Close()
	}
	if s.client != nil {
		s.client.Close()
	}
	if s.server != nil {
		s.server.Close()
	}
}

// sweep deletes this run's keys: a demonstration leaves nothing on a server that it was lent.
func (s *session) sweep(ctx context.Context) {
	for _, node := range s.raw.Nodes() {
		for cursor := uint64(0); ; {
			page, err := node.Do(ctx, node.B().Scan().Cursor(cursor).Match(s.prefix+":*").Count(500).Build()).AsScanEntry()
			if err != nil {
				return
			}
			for _, key := range page.Elements {
				_ = node.Do(ctx, node.B().Del().Key(key).Build()).Error() // it would be 200 bytes left behind
			}
			if cursor = page.Cursor; cursor == 0 {
				break
			}
		}
	}
}
