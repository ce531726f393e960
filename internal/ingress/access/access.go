// Package access decides who may reach which port of which sandbox from outside, and
// takes the requests of a server that are for ports.
//
// # The boundary, and who attacks it
//
// Everybody outside may attack: strangers who know or guess a host name, one tenant
// another, and web pages in the browser of a person with access. A port is private unless
// its owner, a tenant, makes it public. A request gets in by one of
//
//   - a key of the tenant with the scope write, as for the server's own API;
//   - a signature of the server (HMAC-SHA-256) over the sandbox's ID and incarnation, the
//     port, the count of its closings, the key that asked for it, a path and an end. It
//     arrives as a parameter of the URL and becomes a cookie of that host alone. It is
//     valid as long as its key is, so the owner of a stolen key who revokes the key also
//     revokes what the thief signed. Its owner can also end a single one. Clients of
//     Daytona show it in a header or a parameter of their own;
//   - the port being public.
//
// The control judges each request by the current state of the store. A sandbox of another
// tenant gets the same answer as one that does not exist. A request without any of these
// is told that the port is private, whether or not the sandbox exists.
//
// A browser sends a cookie whichever page asks, because all hosts of one domain are one
// site. So a cookie counts only where the browser says that a page of the same host asks,
// or that a person opened the address. Browsers say so only with encryption. Without
// encryption the Origin or the Referer must be of that host. Where both are missing, the
// browser must ask for a page. Another page can cause such a request, but cannot read the
// answer.
//
// Nothing that lets a request in reaches the sandbox: the control removes keys of the
// server from any header, the parameter and the cookie.
//
// A host of the domain is a port's or nobody's, and never the server's. With the header
// Paddock-Sandbox a program can reach a port at the server's own host. A browser is
// refused there, because a page from inside could otherwise act as the server. If a
// browser gets such an answer in spite of that, the answer runs no script and sets no
// cookie.
package access

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/ingress"
	"github.com/paddock-sandbox/paddock/internal/store"
)

// Names of what callers show.
const (
	KeyHeader     = "Paddock-Key"
	SandboxHeader = "Paddock-Sandbox"
	PortHeader    = "Paddock-Port"
	Parameter     = "paddock-token"

	// PreviewHeader and PreviewParameter are where clients of Daytona show a signature.
	PreviewHeader    = "X-Daytona-Preview-Token"
	PreviewParameter = "DAYTONA_SANDBOX_AUTH_KEY"
)

// Names of the cookie, with encryption and without: a browser keeps the first to
// the host that set it, whatever other hosts of the domain say.
const (
	secureCookie = "__Host-paddock-port"
	plainCookie  = "paddock-port"
)

// A Caller is whose key a request shows.
type Caller struct {
	Tenant   string
	Who      string // the key's ID
	ReadOnly bool   // it connects to nothing
}

// A Visit is a request that was let in, for the record.
type Visit struct {
	Tenant  string // whose sandbox it is
	Who     string // a key's ID; or what let it in
	From    string // address of the client
	Request string // a name of its own
}

// Options is what access control needs.
type Options struct {
	// Store says whose a sandbox is, and what was said of its ports. It must be given.
	Store *store.Store

	// Key signs. It must be given, and be the same wherever the store is.
	Key []byte

	// Base is how a browser reaches the server's domain: "https://example.com:7463". Empty is that there is none:
	// ports are then reached by header alone.
	Base string

	// Caller says whose key a request shows in its Authorization, its only header. It must be given.
	Caller func(*http.Request) (Caller, error)

	// Live tells whether a tenant's key, by its ID, still allows to sign: it was not revoked, has not
	// expired and has the scope write. It must be given.
	Live func(ctx context.Context, tenant, key string) (bool, error)

	// Dial connects to a port of a tenant's sandbox. It must be given.
	Dial func(ctx context.Context, v Visit, id paddock.ID, port int) (net.Conn, error)

	// Now is the clock; nil is the machine's.
	Now func() time.Time

	// Log is told who was let in; nil is no one.
	Log *slog.Logger
}

// A Control takes requests for ports. Make one with [New].
type Control struct {
	o      Options
	scheme string
	domain string // as it was given, perhaps with a port
	proxy  ingress.Proxy
	live   lives
}

// New returns an access control.
func New(o Options) (*Control, error) {
	if o.Store == nil || len(o.Key) < 32 || o.Caller == nil || o.Live == nil || o.Dial == nil {
		return nil, fmt.Errorf("access to ports without a store, a key of 32 bytes or more, a caller, what tells of keys, or a dial: %w", paddock.Invalid)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Control{o: o}
	c.proxy.Log = o.Log
	if o.Base != "" {
		var ok bool
		if c.scheme, c.domain, ok = strings.Cut(o.Base, "://"); !ok || c.scheme != "http" && c.scheme != "https" {
			return nil, fmt.Errorf("base %q: it is not http:// or https:// and a domain: %w", o.Base, paddock.Invalid)
		}
		if _, ok := ingress.Host("a", 80, c.domain); !ok {
			return nil, fmt.Errorf("domain %q: no host can stand below it: %w", c.domain, paddock.Invalid)
		}
	}
	return c, nil
}

// Close ends what is under way, and waits for it. Closing twice is fine.
func (c *Control) Close() { c.proxy.Close() }

// Proxy is what carries requests, for another way to ports, which then has the same bounds. It
// ends with the control.
func (c *Control) Proxy() *ingress.Proxy { return &c.proxy }

// Cut ends what is under way to a port; 0 is all of a sandbox.
func (c *Control) Cut(id paddock.ID, port int) { c.proxy.Cut(id, port) }

// Take answers a request that is for a port, or for a host that is nobody's. False is that
// it is the server's own, and untouched.
func (c *Control) Take(w http.ResponseWriter, r *http.Request) bool {
	if ingress.Within(r.Host, c.domain) {
		id, port, ok := ingress.Split(r.Host, c.domain)
		if !ok {
			ingress.Refuse(w, r, fmt.Errorf("host %q: a host here is PORT-ID.%s: %w", r.Host, c.domain, paddock.NotFound))
			return true
		}
		c.serve(w, r, id, port, true)
		return true
	}
	names, ports := r.Header[SandboxHeader], r.Header[PortHeader]
	if len(names) == 0 {
		return false
	}
	id, number := paddock.ID(names[0]), r.Header.Get(PortHeader)
	port, err := strconv.Atoi(number)
	switch {
	case len(names) != 1 || len(ports) != 1 || !id.Valid(),
		err != nil || port < 1 || port > 65535 || strconv.Itoa(port) != number:
		ingress.Refuse(w, r, fmt.Errorf("%s: ID and %s: NUMBER name a port: %w", SandboxHeader, PortHeader, paddock.Invalid))
	default:
		c.Through(w, r, id, port)
	}
	return true
}

// Through answers a request for a port that came to the server's own host, in whichever way it named the port.
func (c *Control) Through(w http.ResponseWriter, r *http.Request, id paddock.ID, port int) {
	if browser(r) {
		ingress.Refuse(w, r, fmt.Errorf("at the server's own host ports are for programs, not for browsers; a server with --domain has a host for each port: %w", paddock.Denied))
		return
	}
	c.serve(w, r, id, port, false)
}

// browser tells whether a browser says that it is one. Node's fetch says a mode as well, which browsers never do alone
// (https://www.w3.org/TR/fetch-metadata/#fetch-integration).
func browser(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Site") != "" || r.Header.Get("Sec-Fetch-Dest") != ""
}

// serve judges a request, and carries it.
func (c *Control) serve(w http.ResponseWriter, r *http.Request, id paddock.ID, port int, own bool) {
	ctx, end := c.proxy.Watch(r.Context(), id, port)
	defer end()
	v := &visitor{control: c, r: r.Clone(ctx), id: id, port: port, own: own}
	if err := v.judge(); err != nil {
		v.refuse(w, err)
		return
	}
	if v.redirect(w) {
		return
	}
	visit := Visit{Tenant: v.box.Tenant, Who: v.who, From: r.RemoteAddr, Request: strings.ToLower(rand.Text())}
	c.o.Log.Info("port", "id", visit.Request, "sandbox", id, "port", port, "who", v.who, "method", r.Method)
	c.proxy.Serve(w, v.r, ingress.Target{
		Dial: func(ctx context.Context) (net.Conn, error) { return c.o.Dial(ctx, visit, id, port) },
		ID:   id, Port: port, Tenant: v.box.Tenant, Keyed: v.keyed, Incarnation: v.box.Token, OwnHost: own, Encrypted: own && c.scheme == "https",
	})
}

// refuse answers who is not let in.
func (v *visitor) refuse(w http.ResponseWriter, err error) {
	if errors.Is(err, errPrivate) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, "%v\n", err) // who went away does not need it
		return
	}
	if paddock.KindOf(err) == paddock.Internal || paddock.KindOf(err) == paddock.Unavailable {
		v.control.o.Log.Error("port", "sandbox", v.id, "port", v.port, "error", err.Error())
		err = fmt.Errorf("it cannot be known now who may: %w", paddock.Unavailable)
	}
	ingress.Refuse(w, v.r, err)
}
