package e2b

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/ingress"
)

// Ports of a sandbox that are answered from outside.
const (
	agentPort = 49983
	codePort  = 49999
)

// A target is a port of a sandbox that a request is for.
type target struct {
	id   string
	port int
}

// routing headers.
const (
	headerID      = "E2b-Sandbox-Id"
	headerPort    = "E2b-Sandbox-Port"
	headerTraffic = "E2b-Traffic-Access-Token"
	headerToken   = "X-Access-Token" // of the sandbox
)

// Bounds of a signed URL: each sandbox's token is tried on it.
const (
	maxSigned = 16 << 10 // of its query
	maxPath   = 4096     // of a path without its escapes, and of a user's name
)

// Hosts tells whether a host is this handler's alone: a port of one of its sandboxes, or
// E2B's name of the control plane.
func (h *Handler) Hosts(host string) bool {
	_, ok := h.byHost(host)
	return ok || h.own(host)
}

// Takes tells whether a request is for this handler: by its host, by its headers, or
// by its path.
func (h *Handler) Takes(r *http.Request) bool {
	if _, ok := h.byHost(r.Host); ok {
		return true
	}
	if ingress.Within(r.Host, h.o.Domain) && !h.own(r.Host) {
		return false // a sandbox's host, where every path and header is the sandbox's
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

// byHost reads PORT-ID.DOMAIN. IDs of other sandboxes are somebody else's.
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

// own tells whether a host is where E2B's clients look for the control plane.
func (h *Handler) own(host string) bool {
	if h.o.Domain == "" {
		return false
	}
	name, _, _ := strings.Cut(strings.ToLower(host), ":")
	domain, _, _ := strings.Cut(strings.ToLower(h.o.Domain), ":")
	return name == "api."+domain
}

// ours tells whether an ID has the form of those that are made here.
func ours(id string) bool {
	return len(id) == 21 && id[0] == 'i' && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// aim tells what a request is for; nothing is the control plane.
func (h *Handler) aim(r *http.Request) (*target, error) {
	if t, ok := h.byHost(r.Host); ok {
		return &t, nil
	}
	if id := r.Header.Get(headerID); id != "" {
		t := target{id, agentPort}
		if text := r.Header.Get(headerPort); text != "" {
			port, err := strconv.ParseUint(text, 10, 16)
			if err != nil || port == 0 {
				return nil, invalid("%s: %q is no port", headerPort, printable(text))
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

// bySecret finds the sandbox that a request for files is for, which names none, by
// the token that it shows, or that its URL was signed with. Every sandbox is tried,
// and takes the same time.
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
