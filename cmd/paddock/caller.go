package main

import (
	"log/slog"
	"net/http"

	"github.com/paddock-sandbox/paddock"
)

// callers say who calls a server. This is the one place that turns requests into
// callers.
type callers struct {
	key string // that callers show; empty is none
	own bool   // only the server's own user can connect
}

func (c callers) api(paddock.Driver, *slog.Logger) (http.Handler, error) {
	return http.NotFoundHandler(), nil
}

// dial gives the driver of a server.
func dial(site) (paddock.Driver, error) { return nil, paddock.Unsupported }
