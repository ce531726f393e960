// Package dialect has what the APIs of other makers need in common: who calls, a caller's share of the server, kept
// state, bodies and answers in JSON. It only translates, as they do.
package dialect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
	"github.com/paddock-sandbox/paddock/internal/wrap/lifetime"
)

// A Caller identifies who makes a request of the control plane.
type Caller struct {
	// Tenant distinguishes callers. State is kept by tenant.
	Tenant string
	// Who identifies the caller in logs: the ID of a key, never the key.
	Who string
	// Driver makes and finds the tenant's sandboxes, and no others.
	Driver lifetime.Lessor
	// Check returns an error if the caller may not ask for a spec. Nil refuses nothing.
	Check func(paddock.Spec) error
	// Private permits registries at private addresses.
	Private bool
	// ReadOnly permits only requests that change nothing.
	ReadOnly bool
}

// A Place is a request's share of its tenant's maximum, until Leave.
type Place interface {
	// Body counts the bytes read as held, until Leave. Reading fails with
	// [paddock.Exhausted] if that exceeds the bound.
	Body(r io.Reader) io.Reader
	// Hold counts n more bytes as held, until Leave.
	Hold(n int64) error
	// Encode returns v in JSON as a line, and counts it as held for the client until Leave. It
	// fails with [paddock.Exhausted] if that exceeds the bound.
	Encode(v any) ([]byte, error)
	Leave()
}

// Boundless is a place without bounds.
type Boundless struct{}

// Body returns r.
func (Boundless) Body(r io.Reader) io.Reader { return r }

// Hold counts nothing.
func (Boundless) Hold(int64) error { return nil }

// Leave does nothing.
func (Boundless) Leave() {}

// Encode returns v in JSON as a line.
func (Boundless) Encode(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	return append(data, '\n'), err
}

// A Store keeps texts across restarts, by kind, tenant and ID.
type Store interface {
	Keep(ctx context.Context, kind, tenant, id, data string) error
	Forget(ctx context.Context, kind, tenant, id string) error
	Each(ctx context.Context, kind string, f func(tenant, id, data string) error) error
}

// A Refusal is an error with what the clients of an API expect of it. The caller sees its text.
type Refusal struct {
	Status int    // of HTTP
	Code   string // of the API; empty if it has none for this
	Text   string
	Kind   error
}

func (e *Refusal) Error() string { return e.Text }

// Unwrap returns the kind.
func (e *Refusal) Unwrap() error { return e.Kind }

// Refuse makes a refusal without a code.
func Refuse(status int, kind paddock.Kind, format string, args ...any) error {
	return &Refusal{Status: status, Text: fmt.Sprintf(format, args...), Kind: kind}
}

// Bounds of a body of a control plane.
const (
	MaxBody  = 4 << 20
	BodyTime = 30 * time.Second // time for the body to arrive
)

// Stall is how long a client may take to read an answer before it is cut.
const Stall = time.Minute

// Body decodes the body of a request. If optional, an empty body leaves v as it is. Unknown fields are ignored, because
// newer clients send more. An error is a Refusal, or Exhausted.
func Body(w http.ResponseWriter, r *http.Request, p Place, v any, optional bool) error {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(BodyTime)) // also of a stream of HTTP/2, unlike Bounded
	data, err := io.ReadAll(p.Body(io.LimitReader(r.Body, MaxBody+1)))
	if err == nil && len(data) <= MaxBody { // package http waits for the rest of any other body
		Arrived(w)
	}
	switch {
	case errors.Is(err, paddock.Exhausted):
		return err
	case err != nil:
		return Refuse(400, paddock.Invalid, "the body ended early")
	case len(data) > MaxBody:
		return Refuse(413, paddock.Exhausted, "the body is larger than %d bytes", MaxBody)
	case len(data) == 0 && optional:
		return nil
	}
	if err := p.Hold(jsonbody.Cost(data)); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return Refuse(400, paddock.Invalid, "the body does not fit this request: %v", jsonbody.Explain(err))
	}
	return nil
}

// Bounded sets a deadline for the body if the connection has no other request, and clears
// the deadlines of an earlier request on the connection.
func Bounded(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // HTTP/2 sets its own
	if r.ProtoMajor == 1 {
		_ = control.SetReadDeadline(time.Time{})
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(time.Now().Add(BodyTime))
		}
	}
}

// Arrived removes the deadline, because handling the body may take longer.
func Arrived(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // not every server supports it
}

// Write answers with an encoded body, which the client has to read in time.
func Write(w http.ResponseWriter, code int, kind string, data []byte) {
	head := w.Header()
	head.Set("Content-Type", kind)
	head.Set("X-Content-Type-Options", "nosniff")
	Hurry(w)
	w.WriteHeader(code)
	_, _ = w.Write(data) // an error means that the client has gone
}

// Hurry sets a deadline for the answer; Bounded removes it for the connection's next request.
func Hurry(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(Stall)) // not every server supports it
}

// Printable shortens a caller's text and makes it one line.
func Printable(text string) string {
	if len(text) > 128 {
		text = text[:128] + "…"
	}
	clean := fmt.Sprintf("%q", text)
	return clean[1 : len(clean)-1]
}
