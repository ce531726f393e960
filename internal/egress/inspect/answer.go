package inspect

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

const deniedByPolicy = "denied by the sandbox's network policy"

// An answer is the proxy's own answer to the guest.
type answer struct {
	w      http.ResponseWriter
	r      *http.Request
	status int
	what   string
	host   string
	rule   int // -1 means none
	reason string
	hint   string

	refused bool // by the proxy itself, whatever the status
}

// give writes the answer: for gRPC as its status, as JSON for a client that accepts it, and
// otherwise as text.
func (a answer) give() {
	h := a.w.Header()
	h.Set("Cache-Control", "no-store")
	h.Del("Content-Length")
	if strings.HasPrefix(a.r.Header.Get("Content-Type"), "application/grpc") {
		a.giveGRPC()
		return
	}
	if wantsJSON(a.r.Header) {
		body := struct {
			Error  string `json:"error"`
			Host   string `json:"host,omitempty"`
			Rule   *int   `json:"rule,omitempty"`
			Reason string `json:"reason,omitempty"`
			Hint   string `json:"how_to_allow,omitempty"`
		}{Error: a.what, Host: a.host, Reason: a.reason, Hint: a.hint}
		if a.rule >= 0 {
			body.Rule = &a.rule
		}
		h.Set("Content-Type", "application/json")
		a.w.WriteHeader(a.status)
		if err := json.NewEncoder(a.w).Encode(body); err != nil {
			return // the guest has gone
		}
		return
	}
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	a.w.WriteHeader(a.status)
	fmt.Fprintf(a.w, "%s\n%s: %s\n", a.what, a.host, a.reason)
	if a.hint != "" {
		fmt.Fprintf(a.w, "how to allow it: %s\n", a.hint)
	}
}

func (a answer) giveGRPC() {
	const permissionDenied, unavailable = "7", "14"
	h := a.w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Set("Grpc-Status", unavailable)
	if a.status == http.StatusForbidden {
		h.Set("Grpc-Status", permissionDenied)
	}
	message := a.what + ": " + a.reason
	if a.hint != "" {
		message += "; how to allow it: " + a.hint
	}
	h.Set("Grpc-Message", url.PathEscape(message))
	a.w.WriteHeader(http.StatusOK) // the gRPC status is in the header
}

// wantsJSON reports whether a client with this header reads JSON.
func wantsJSON(h http.Header) bool {
	accept := strings.ToLower(strings.Join(h.Values("Accept"), ","))
	if strings.Contains(accept, "json") {
		return true
	}
	return !strings.Contains(accept, "text/") && strings.Contains(strings.ToLower(h.Get("Content-Type")), "json")
}

// denied returns the answer to a denied request.
func denied(w http.ResponseWriter, r *http.Request, f decide.Flow, v decide.Verdict) answer {
	return answer{w: w, r: r, status: http.StatusForbidden, what: deniedByPolicy, host: join(f), rule: v.Rule, reason: v.Reason, hint: v.Hint}
}

// failure returns the answer to a request that failed.
func failure(w http.ResponseWriter, r *http.Request, f decide.Flow, err error) answer {
	a := answer{w: w, r: r, status: http.StatusBadGateway, what: "the sandbox's gateway could not carry the request", host: join(f), rule: -1, reason: err.Error()}
	var refusal *Refusal
	var address *decide.AddressError
	var certificate *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var timeout net.Error
	switch {
	case errors.As(err, &refusal):
		a = denied(w, r, f, refusal.Verdict)
		if refusal.Status != 0 {
			a.status = refusal.Status
		}
	case errors.As(err, &address):
		a.status, a.what, a.reason, a.hint = http.StatusForbidden, deniedByPolicy, address.Reason(), address.Hint(f)
	case errors.Is(err, paddock.Denied) || errors.Is(err, paddock.Exhausted):
		a.status, a.what = http.StatusForbidden, deniedByPolicy
	case errors.Is(err, paddock.Invalid):
		a.status = http.StatusBadRequest
	case errors.Is(err, paddock.Unsupported):
		a.status = http.StatusNotImplemented
	case errors.As(err, &certificate), errors.As(err, &unknown):
		a.reason = "the certificate of " + f.Host.String() + " is not valid: " + err.Error()
		a.refused = true
		if errors.As(err, &unknown) {
			a.hint = "if the authority is yours, name its certificate when you start paddock: SSL_CERT_FILE=FILE paddock …"
		}
	case errors.Is(err, paddock.Timeout), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		a.status = http.StatusGatewayTimeout
	}
	return a
}

// canned writes the answer of a rule.
func canned(w http.ResponseWriter, c paddock.NetworkAnswer) int {
	status := c.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for name, value := range c.Headers {
		w.Header().Set(name, value)
	}
	if status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified {
		w.Header().Set("Content-Length", strconv.Itoa(len(c.Body)))
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte(c.Body)) // an error means that the guest has gone
	return status
}
