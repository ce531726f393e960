package e2b

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

// Bounds of a body of the control plane.
const (
	maxBody  = 4 << 20
	bodyTime = 30 * time.Second // time for the body to arrive
)

// stall is how long a client may take to read an answer before it is cut.
const stall = time.Minute

// A refusal is an error with the status that E2B's clients expect. The caller sees its
// text.
type refusal struct {
	code int
	text string
	err  error
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return e.err }

func refuse(code int, kind paddock.Kind, format string, args ...any) error {
	return &refusal{code, fmt.Sprintf(format, args...), kind}
}

func invalid(format string, args ...any) error { return refuse(400, paddock.Invalid, format, args...) }

// cannot returns an error for a feature of E2B that this server does not have. Clients do
// not retry its status.
func cannot(format string, args ...any) error {
	return refuse(400, paddock.Unsupported, format, args...)
}

func noSandbox(id string) error {
	return refuse(404, paddock.NotFound, `Sandbox "%s" doesn't exist or you don't have access to it`, printable(id))
}

// printable shortens a caller's text and makes it one line.
func printable(text string) string {
	if len(text) > 128 {
		text = text[:128] + "…"
	}
	clean := fmt.Sprintf("%q", text)
	return clean[1 : len(clean)-1]
}

// A fault is the body of an error.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// faultOf returns the body that a caller gets for an error.
func faultOf(err error) fault {
	var r *refusal
	if errors.As(err, &r) {
		return fault{r.code, jsonbody.Short(r.text)}
	}
	code := paddock.KindOf(err).Translate().HTTP
	switch paddock.KindOf(err) {
	case paddock.Unsupported:
		code = 400 // clients do not retry it
	case paddock.Canceled, paddock.Timeout:
		code = 504
	}
	return fault{code, jsonbody.Short(err.Error())}
}

// fail answers with an error.
func (h *Handler) fail(w http.ResponseWriter, err error) {
	f := faultOf(err)
	if f.Code >= 500 {
		h.log.Warn("e2b", "error", jsonbody.Short(err.Error()))
		if paddock.KindOf(err) == paddock.Internal {
			f.Message = "a fault of the server; its log says more"
		}
	}
	answer(w, f.Code, f)
}

// busy answers a request that exceeds a bound.
func (h *Handler) busy(w http.ResponseWriter, err error) {
	w.Header().Set("Retry-After", "1")
	h.fail(w, err)
}

// answer answers with a small body in JSON.
func answer(w http.ResponseWriter, code int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		code, data = 500, []byte(`{"code":500,"message":"the answer is not JSON"}`)
	}
	write(w, code, append(data, '\n'))
}

// write answers with an encoded body, which the client has to read in time.
func write(w http.ResponseWriter, code int, data []byte) {
	head := w.Header()
	head.Set("Content-Type", "application/json")
	head.Set("X-Content-Type-Options", "nosniff")
	hurry(w)
	w.WriteHeader(code)
	_, _ = w.Write(data) // an error means that the client has gone
}

// hurry sets a deadline for the answer; bounded removes it for the connection's next request.
func hurry(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(stall)) // not every server supports it
}

// body decodes the body of a request. If optional, an empty body leaves v as it is. Unknown
// fields are ignored, because newer clients send more. Fields that ask for an unsupported
// feature are checked by name.
func (c *call) body(v any, optional bool) error {
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(bodyTime)) // also of a stream of HTTP/2, unlike bounded
	data, err := io.ReadAll(c.place.Body(io.LimitReader(c.Body, maxBody+1)))
	if err == nil && len(data) <= maxBody { // package http waits for the rest of any other body
		arrived(c.w)
	}
	switch {
	case errors.Is(err, paddock.Exhausted):
		return err
	case err != nil:
		return invalid("the body ended early")
	case len(data) > maxBody:
		return refuse(413, paddock.Exhausted, "the body is larger than %d bytes", maxBody)
	case len(data) == 0 && optional:
		return nil
	}
	if err := c.place.Hold(jsonbody.Cost(data)); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return invalid("the body does not fit this request: %v", jsonbody.Explain(err))
	}
	return nil
}
