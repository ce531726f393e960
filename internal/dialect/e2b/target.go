package e2b

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/ingress"
)

// Ports with a handler of their own.
const (
	agentPort = 49983
	codePort  = 49999
)

// A target is the port of a sandbox that a request is for.
type target struct {
	id   string
	port int
}

// Headers that route a request.
const (
	headerID      = "E2b-Sandbox-Id"
	headerPort    = "E2b-Sandbox-Port"
	headerTraffic = "E2b-Traffic-Access-Token"
	headerToken   = "X-Access-Token" // the sandbox's token
)

// Bounds of a signed URL, because each sandbox's token is tried on it.
const (
	maxSigned = 16 << 10 // bytes of its query
	maxPath   = 4096     // bytes of an unescaped path, and of a user's name
)

// Hosts reports whether a host belongs to this handler: a port of one of its sandboxes, or
// E2B's name of the control plane.
func (h *Handler) Hosts(host string) bool {
	_, ok := h.byHost(host)
	return ok || h.own(host)
}

// Takes reports whether a request is for this handler, by its host, headers or path.
func (h *Handler) Takes(r *http.Request) bool {
	if _, ok := h.byHost(r.Host); ok {
		return true
	}
	if ingress.Within(r.Host, h.o.Domain) && !h.own(r.Host) {
		return false // a sandbox's host, where every path and header is for the sandbox
	}
	if r.Header.Get(headerID) != "" || forSandbox(r) {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch first {
	case "sandboxes", "v2", "v3", "templates", "default-templates", "snapshots", "volumes", "volumecontent", "secrets", "teams", "health", "files":
		return true
	}
	return false
}

// byHost parses PORT-ID.DOMAIN. It ignores IDs of sandboxes that this API did not make.
func (h *Handler) byHost(host string) (target, bool) {
	if h.o.Domain == "" {
		return target{}, false
	}
	id, port, ok := ingress.Split(host, h.o.Domain)
	if !ok || !ours(string(id)) {
		return target{}, false
	}
	return target{string(id), port}, true
}

// own reports whether a host is where E2B's clients look for the control plane.
func (h *Handler) own(host string) bool {
	if h.o.Domain == "" {
		return false
	}
	name, _, _ := strings.Cut(strings.ToLower(host), ":")
	domain, _, _ := strings.Cut(strings.ToLower(h.o.Domain), ":")
	return name == "api."+domain
}

// ours reports whether an ID has the form of this handler's IDs.
func ours(id string) bool {
	return len(id) == 21 && id[0] == 'i' && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// aim returns the target of a request. Nil is the control plane.
func (h *Handler) aim(r *http.Request) (*target, error) {
	if t, ok := h.byHost(r.Host); ok {
		return &t, nil
	}
	for _, name := range []string{headerID, headerPort} { // a proxy before this server may go by another of them
		if n := len(r.Header[name]); n > 1 {
			return nil, invalid("the header %s is there %d times", name, n)
		}
	}
	if id := r.Header.Get(headerID); id != "" {
		t := target{id, agentPort}
		if text := r.Header.Get(headerPort); text != "" {
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil || port == 0 {
				return nil, invalid("%s: %q is not a port", headerPort, dialect.Printable(text))
			}
			t.port = int(port)
		}
		return &t, nil
	}
	if r.URL.Path != "/files" {
		return nil, nil
	}
	b, err := h.bySecret(r)
	if err != nil {
		return nil, err
	}
	return &target{string(b.id), agentPort}, nil
}

// bySecret finds the sandbox of a request for files that names none, by its token or
// signature. It tries every sandbox, so that the time does not depend on which one matches.
func (h *Handler) bySecret(r *http.Request) (*box, error) {
	if len(r.URL.RawQuery) > maxSigned {
		return nil, refuse(414, paddock.Invalid, "the query is longer than %d bytes", maxSigned)
	}
	q := r.URL.Query()
	if len(q.Get("path")) > maxPath || len(q.Get("username")) > maxPath {
		return nil, refuse(414, paddock.Invalid, "the path or the username is longer than %d bytes", maxPath)
	}
	shown, signed := r.Header.Get(headerToken), q.Get("signature") != ""
	if shown == "" && !signed {
		return nil, refuse(401, paddock.Denied, "missing signature query parameter")
	}
	var match *box
	for _, b := range h.all() {
		rec, ok := b.record()
		if !ok {
			continue
		}
		if signed && Signed(rec.Token, r.Method, q) || !signed && same(shown, rec.Token) {
			match = b
		}
	}
	if match == nil {
		return nil, refuse(401, paddock.Denied, "invalid signature")
	}
	return match, nil
}
