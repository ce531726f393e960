package e2b

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

func refuse(code int, kind paddock.Kind, format string, args ...any) error {
	return dialect.Refuse(code, kind, format, args...)
}

func invalid(format string, args ...any) error { return refuse(400, paddock.Invalid, format, args...) }

// cannot returns an error for a feature of E2B that this server does not have. Clients do
// not retry its status.
func cannot(format string, args ...any) error {
	return refuse(400, paddock.Unsupported, format, args...)
}

func noSandbox(id string) error {
	return refuse(404, paddock.NotFound, `Sandbox "%s" doesn't exist or you don't have access to it`, dialect.Printable(id))
}

// A fault is the body of an error.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// faultOf returns the body that a caller gets for an error.
func faultOf(err error) fault {
	var r *dialect.Refusal
	if errors.As(err, &r) {
		return fault{r.Status, jsonbody.Short(r.Text)}
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
	dialect.Write(w, code, "application/json", append(data, '\n'))
}

// body decodes the body of a request, as [dialect.Body] does. Fields that ask for an unsupported
// feature are checked by name.
func (c *call) body(v any, optional bool) error {
	return dialect.Body(c.w, c.Request, c.place, v, optional)
}
