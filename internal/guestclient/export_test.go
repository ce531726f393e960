package guestclient

import (
	"context"
	"io"
	"net/http"
	"time"
)

// SetGrace shortens the time that a guest has to report an exit.
func (g *Guest) SetGrace(d time.Duration) { g.grace = d }

// SetPatience shortens the time that a guest has to answer.
func (g *Guest) SetPatience(d time.Duration) { g.waits, g.wire.waits = d, d }

// StartsAtOnce is how many starts a guest is asked for at a time.
const StartsAtOnce = startsAtOnce

// Guard bounds the messages of an answer to a call.
func Guard(res *http.Response, procedure string) io.ReadCloser {
	return guard(res, room(context.Background(), procedure))
}

// GuardSilent is Guard for a call that follows a process without its output.
func GuardSilent(res *http.Response, procedure string) io.ReadCloser {
	return guard(res, room(silently(context.Background()), procedure))
}
