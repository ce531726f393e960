package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
)

// Bounds of requests.
const (
	headTime    = time.Minute // until an answer begins
	idleTime    = time.Minute // as above, and between two parts of it
	maxHops     = 5           // redirects of a request
	maxRequests = 20 * (maxLayers + 10)
	leastAnswer = 64 << 10 // a token may be asked for anew before any answer
	maxParts    = 50_000   // of a text in JSON: each costs memory, however short it is
)

// A guard is what each request goes through: those that the library makes of itself,
// and those that a registry leads it to. It refuses what is not encrypted, and bounds
// the answer. An answer that is an error is its status alone.
type guard struct {
	next  http.RoundTripper
	plain bool // the registry is this machine's own
	idle  time.Duration

	asked atomic.Int64
	most  atomic.Int64 // bytes of an answer
	text  atomic.Bool  // it is held in memory, and read as JSON
}

// expect says what the next answers may be.
func (g *guard) expect(most int64, text bool) {
	g.most.Store(most)
	g.text.Store(text)
}

// A blobBound, as a key of a context, bounds the answers to that request alone, which is a blob's.
type blobBound struct{}

// Why a guard ends an answer.
var (
	errSilent = fmt.Errorf("the registry says nothing any more: %w", paddock.Timeout)
	errLong   = fmt.Errorf("it is not what the manifest says, but longer: %w", paddock.Conflict)
)

// A refusal is an error that says what it is, for who finds it in those of others.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// RoundTrip implements [http.RoundTripper].
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := g.trip(r)
	var k paddock.Kind
	if errors.As(err, &k) {
		err = refusal{err}
	}
	return res, err
}

func (g *guard) trip(r *http.Request) (*http.Response, error) {
	hops := 0
	for last := r.Response; last != nil && last.Request != nil; last = last.Request.Response {
		hops++
	}
	switch {
	case hops > maxHops, g.asked.Add(1) > maxRequests:
		return nil, fmt.Errorf("the registry leads on and on: %w", paddock.Invalid)
	case r.URL.User != nil, r.URL.Scheme != "https" && (r.URL.Scheme != "http" || !g.plain || !reference.Loopback(r.URL.Host)):
		return nil, fmt.Errorf("the registry is not encrypted, or leads to what is not: only one at a loopback address need not be: %w", paddock.Denied)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	idle := time.AfterFunc(g.idle, func() { cancel(errSilent) })
	res, err := g.next.RoundTrip(r.WithContext(ctx))
	idle.Stop()
	if err != nil {
		err = because(ctx, err)
		cancel(nil)
		return nil, err
	}
	most, text := g.most.Load(), g.text.Load()
	if bound, ok := r.Context().Value(blobBound{}).(int64); ok {
		most, text = bound, false
	}
	res.Body = &body{from: res.Body, ctx: ctx, cancel: cancel, idle: idle, after: g.idle, left: max(most, leastAnswer)}
	switch {
	case res.StatusCode >= http.StatusBadRequest:
		_ = res.Body.Close()
		res.Body, res.ContentLength = http.NoBody, 0
	case text:
		data, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if errors.Is(err, errLong) {
			return nil, fmt.Errorf("what describes it is too large, more than %d MiB: %w", maxManifest>>20, paddock.Exhausted)
		}
		if err != nil {
			return nil, err
		}
		if bytes.Count(data, []byte(",")) > maxParts {
			return nil, fmt.Errorf("what describes it has more than %d parts: %w", maxParts, paddock.Exhausted)
		}
		res.Body = io.NopCloser(bytes.NewReader(data))
	}
	return res, nil
}

// because puts what a guard ended a request for in place of that it was ended.
func because(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}

// A body is an answer's, of bounded length.
type body struct {
	from   io.ReadCloser
	ctx    context.Context //nolint:containedctx // the request's, which ends with its answer
	cancel context.CancelCauseFunc
	idle   *time.Timer
	after  time.Duration
	left   int64
}

func (b *body) Read(p []byte) (int, error) {
	b.idle.Reset(b.after) // the registry's time, and not that of who unpacks
	n, err := b.from.Read(p)
	b.idle.Stop()
	if b.left -= int64(n); b.left < 0 {
		return 0, errLong
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = because(b.ctx, err)
	}
	return n, err
}

func (b *body) Close() error {
	b.idle.Stop()
	err := b.from.Close()
	b.cancel(nil)
	return err
}
