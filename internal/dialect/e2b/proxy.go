package e2b

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect"
	"github.com/paddock-sandbox/paddock/internal/ingress"
)

// resumeFor is the lifetime of a sandbox that a request resumed.
const resumeFor = newTimeout * time.Second

// A missing is the body of an answer of the proxy itself.
type missing struct {
	SandboxID string `json:"sandboxId"`
	Message   string `json:"message"`
	Port      int    `json:"port,omitempty"`
	Code      int    `json:"code"`
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	dialect.Bounded(w, r) // an identified caller gets more time
	if _, own := h.byHost(r.Host); !own && r.Header.Get(headerID) == "" && preflight(r) {
		permit(w, r)
		return
	}
	t, err := h.aim(r)
	switch {
	case err != nil:
		h.fail(w, err)
	case t == nil:
		allowOrigin(w)
		h.mux.ServeHTTP(w, r)
	default:
		h.forward(w, r, *t)
	}
}

// dead answers that there is no sandbox, in the form that clients recognise as a killed
// one. Clients of the code interpreter show the body to people as it is, so there it is a
// sentence.
func dead(w http.ResponseWriter, id string, port int) {
	m := missing{SandboxID: id, Message: "The sandbox was not found", Code: 502}
	if port != codePort {
		answer(w, m.Code, m)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(m.Code)
	_, _ = io.WriteString(w, m.Message) // an error means that the client has gone
}

// internal reports whether a path is one of E2B's agent that must not be called from
// outside.
func internal(path string) bool {
	return slices.Contains([]string{"/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade"}, path)
}

// forward forwards a request to a port of a sandbox.
func (h *Handler) forward(w http.ResponseWriter, r *http.Request, t target) {
	ours := t.port == agentPort || t.port == codePort && h.o.Code != nil
	if ours && preflight(r) {
		permit(w, r) // the answer is the same for every sandbox
		return
	}
	if ours { // also for refusals and for sandboxes that are gone
		allowOrigin(w)
	}
	b, ok := h.find(t.id)
	if !ok {
		dead(w, dialect.Printable(t.id), t.port)
		return
	}
	rec, ok := b.record()
	if !ok || !rec.AutoPause && rec.over() {
		dead(w, string(b.id), t.port)
		return
	}
	switch {
	case t.port == agentPort && internal(r.URL.Path):
		h.fail(w, refuse(404, paddock.NotFound, "there is no such path"))
		return
	case t.port != agentPort && rec.Traffic != "" && !same(r.Header.Get(headerTraffic), rec.Traffic),
		ours && t.port == codePort && r.URL.Path != "/health" && !codes(r, rec):
		answer(w, http.StatusForbidden, missing{SandboxID: string(b.id), Message: "The traffic access token is missing or wrong", Code: 403})
		return
	}
	_, own := h.byHost(r.Host)
	if !own && r.Header.Get("Service-Worker") != "" { // it could read answers to other pages of the origin
		h.fail(w, refuse(403, paddock.Denied, "a sandbox has no service worker at the server's own host"))
		return
	}
	shown := shows(r, rec, time.Now()) || ours && t.port == codePort && codes(r, rec)
	g := &visit{who: "public", shown: shown}
	if shown {
		g.who = "sandbox-token"
	} else if rec.Traffic != "" && t.port != agentPort {
		g.who = "traffic-token"
	}
	if !ours {
		r = r.Clone(r.Context())
		if err := h.hide(r, rec.Tenant, g); err != nil {
			h.fail(w, err)
			return
		}
	}
	if shown { // without a token, ports bounds the request and the agent refuses it
		place, err := h.o.Enter(r.Context(), rec.Tenant)
		if err != nil {
			h.busy(w, err)
			return
		}
		defer place.Leave()
		dialect.Arrived(w)
		if ours {
			defer dialect.Bounded(w, r) // for the rest of the body, after the answer
		}
		if ours && t.port == codePort { // a cell, which is held until it has ended
			r = r.WithContext(r.Context())
			r.Body = heldBody{place.Body(r.Body), r.Body, place}
		}
	}
	ctx, cancel := context.WithCancel(h.o.Mark(r.Context(), r, rec.Tenant, g.who))
	defer cancel()
	in, err := b.awake(ctx, shown || !ours)
	if err != nil {
		h.unreachable(w, b, t.port, err)
		return
	}
	defer context.AfterFunc(in.ctx, cancel)()
	cw := &cuttable{ResponseWriter: w, in: in, b: b, ctx: ctx, port: t.port, shared: !own && ours, origin: ours}
	cw.serve(r.WithContext(ctx), t.port, rec, g)
}

// A heldBody is a body whose bytes count as held of its tenant. With Hold, the handler of a
// port also counts what the decoded body takes.
type heldBody struct {
	io.Reader
	io.Closer
	place dialect.Place
}

func (b heldBody) Hold(n int64) error { return b.place.Hold(n) }

// A visit is an admitted request for a port of a sandbox.
type visit struct {
	who   string // the ID of a key, or the kind of credential
	shown bool   // it has a credential of the sandbox's owner: a token, a link, or a key that may write
}

// codes reports whether a request for the code interpreter has a credential of the
// sandbox's owner: the sandbox's token or its traffic token. E2B's clients send only the
// latter when they ask for contexts.
func codes(r *http.Request, rec record) bool {
	return same(r.Header.Get(headerToken), rec.Token) || same(r.Header.Get(headerTraffic), rec.traffic())
}

// traffic returns the traffic token that clients get. If the owner did not ask for one, it
// is derived from the sandbox's token, so that older sandboxes have one too. It then gives
// access only to the contexts of the code interpreter.
func (rec *record) traffic() string {
	if rec.Traffic != "" {
		return rec.Traffic
	}
	mac := hmac.New(sha256.New, []byte(rec.Token))
	mac.Write([]byte("contexts of the code interpreter"))
	return "ta_" + hex.EncodeToString(mac.Sum(nil)[:20])
}

// shows reports whether a request has a credential of the sandbox's owner: its token, or a
// signature made with it.
func shows(r *http.Request, rec record, now time.Time) bool {
	if same(r.Header.Get(headerToken), rec.Token) {
		return true
	}
	if r.URL.Path != "/files" || len(r.URL.RawQuery) > maxSigned {
		return false
	}
	q := r.URL.Query()
	if text := q.Get("signature_expiration"); text != "" {
		if until, err := strconv.ParseInt(text, 10, 64); err != nil || now.Unix() > until {
			return false
		}
	}
	return Signed(rec.Token, r.Method, q)
}

func same(shown, want string) bool {
	return subtle.ConstantTimeCompare([]byte(shown), []byte(want)) == 1
}

// unreachable answers if a sandbox could not be opened or resumed.
func (h *Handler) unreachable(w http.ResponseWriter, b *box, port int, err error) {
	switch kind := paddock.KindOf(err); kind {
	case paddock.NotFound, paddock.Unavailable, paddock.Conflict:
		dead(w, string(b.id), port)
	case paddock.Canceled:
		panic(http.ErrAbortHandler) // the client has gone
	default:
		h.log.Warn("e2b: a sandbox cannot be reached", "id", b.id, "error", err)
		answer(w, http.StatusBadGateway, missing{SandboxID: string(b.id), Message: "The sandbox cannot be reached", Code: 502})
	}
}

// awake returns the opened sandbox. It resumes a paused one if the sandbox asked for that
// and the caller may; otherwise the sandbox is not found.
func (b *box) awake(ctx context.Context, may bool) (*inside, error) {
	rec, ok := b.record()
	switch {
	case !ok:
		return nil, noSandbox(string(b.id))
	case !rec.Paused && !rec.over():
		return b.enter(ctx)
	case !rec.AutoResume, !may:
		return nil, noSandbox(string(b.id))
	}
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	defer b.leave()
	b.mu.Lock()
	in, rec := b.in, b.rec
	b.mu.Unlock()
	if !rec.Paused && !rec.over() && in != nil { // another request resumed it
		return in, nil
	}
	d, err := b.h.o.Tenant(ctx, rec.Tenant)
	if err == nil {
		err = b.wake(ctx, d, resumeFor)
	}
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.in == nil {
		return nil, noSandbox(string(b.id))
	}
	return b.in, nil
}

// alive reports whether the sandbox still runs. It cuts a sandbox that has died.
func (b *box) alive(ctx context.Context, in *inside) bool {
	if in.ctx.Err() != nil {
		return false
	}
	st, err := in.sb.Status(ctx)
	if err != nil && ctx.Err() != nil {
		return true // the client has gone
	}
	if in.ctx.Err() != nil {
		return false // it was paused meanwhile, which may remove it
	}
	if errors.Is(err, paddock.NotFound) {
		err = b.end(context.WithoutCancel(ctx))
		b.h.log.Info("e2b: a sandbox is gone", "id", b.id, "error", err)
		return false
	}
	if err != nil || st.State != paddock.Ready {
		b.cut()
		return false
	}
	return true
}

// A cuttable is an answer that is cut when its sandbox ends. Even the last bytes of a
// handler are dropped then, so that the client asks for the state of the sandbox.
type cuttable struct {
	http.ResponseWriter
	in    *inside
	b     *box
	ctx   context.Context
	port  int
	begun bool
	dead  bool // the answer says that there is no sandbox

	shared bool // the guest's content, at an origin shared with the server
	origin bool // pages of any origin may read it
}

// confine keeps a browser from treating a guest's content as a page or script of the
// server, because other sandboxes are served at the same origin. E2B's clients ignore these
// headers.
func confine(h http.Header) {
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	kind, params, err := mime.ParseMediaType(h.Get("Content-Disposition"))
	if err != nil || kind == "" {
		params = nil
	}
	h.Set("Content-Disposition", cmp.Or(mime.FormatMediaType("attachment", params), "attachment"))
}

// Unwrap implements the interface that http.ResponseController needs.
func (w *cuttable) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends the buffered bytes.
func (w *cuttable) Flush() {
	if w.in.ctx.Err() == nil && !w.dead {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // otherwise they are sent at the end
	}
}

func (w *cuttable) WriteHeader(code int) {
	if w.begun || w.dead {
		return
	}
	if code >= 500 && code <= 504 && !w.b.alive(w.ctx, w.in) {
		w.bury()
		return
	}
	w.begun = code >= 200 // lower codes come before the answer
	if w.shared {
		confine(w.Header())
	}
	w.ResponseWriter.WriteHeader(code)
}

// bury answers that there is no sandbox.
func (w *cuttable) bury() {
	if w.dead {
		return
	}
	w.dead = true
	clear(w.Header())
	if w.origin {
		anyOrigin(w.Header())
	}
	dead(w.ResponseWriter, string(w.b.id), w.port)
}

func (w *cuttable) Write(data []byte) (int, error) {
	if w.in.ctx.Err() != nil || w.dead {
		return 0, fmt.Errorf("the sandbox is gone: %w", paddock.Unavailable)
	}
	if !w.begun {
		if w.WriteHeader(http.StatusOK); w.dead {
			return 0, fmt.Errorf("the sandbox is gone: %w", paddock.Unavailable)
		}
	}
	return w.ResponseWriter.Write(data)
}

// serve calls the handler of a port.
func (w *cuttable) serve(r *http.Request, port int, rec record, g *visit) {
	defer func() {
		cause := recover()
		gone := w.in.ctx.Err() != nil
		switch {
		case gone && !w.begun:
			w.bury()
		case cause == nil && r.URL.Path == "/health":
			// The answer is complete, not a cut stream.
		case gone, cause != nil && !w.dead:
			if cause == nil || gone {
				cause = http.ErrAbortHandler
			}
			panic(cause)
		}
	}()
	switch {
	case port == agentPort && r.URL.Path == "/health" && !w.b.alive(r.Context(), w.in):
		w.bury()
	case port == agentPort:
		w.in.envd.ServeHTTP(w, r)
	case port == codePort && w.in.code != nil:
		w.in.code.ServeHTTP(w, r)
	default:
		w.guest(r, port, rec, g)
	}
}

// guest forwards a request to a listener inside. hide has removed what the guest must not
// see.
func (w *cuttable) guest(r *http.Request, port int, rec record, g *visit) {
	t := ingress.Target{
		Dial: func(ctx context.Context) (net.Conn, error) { return w.in.sb.Dial(ctx, port) },
		ID:   rec.ID, Port: port, Tenant: rec.Tenant, Keyed: g.shown, Incarnation: rec.Token, Refuse: w.closed(port),
	}
	if n := rec.Network; n != nil {
		t.TLS = slices.Contains(n.HTTPSPorts, port)
		t.Host = strings.ReplaceAll(n.MaskRequestHost, "${PORT}", strconv.Itoa(port))
	}
	_, t.OwnHost = w.b.h.byHost(r.Host)
	w.b.h.ports.Serve(w, r, t)
}

// hide removes from a request what no guest may see: routing headers, the sandbox's outside
// token, and keys of this server. If there is a key of the sandbox's tenant that may write,
// it identifies the visitor.
func (h *Handler) hide(r *http.Request, tenant string, g *visit) error {
	for _, name := range []string{headerID, headerPort, headerTraffic, headerToken} {
		r.Header.Del(name)
	}
	for _, name := range []string{"X-Api-Key", "Authorization"} {
		values := r.Header[name]
		if len(values) > 1 {
			return invalid("the header %s is there %d times", name, len(values))
		}
		for _, text := range values {
			if _, rest, ok := strings.Cut(text, " "); ok {
				text = strings.TrimSpace(rest)
			}
			switch caller, err := h.o.Caller(r.Context(), text); {
			case err == nil:
				r.Header.Del(name)
				if caller.Tenant == tenant && !caller.ReadOnly {
					g.who, g.shown = caller.Who, true
				}
			case !errors.Is(err, paddock.Denied):
				return err
			}
		}
	}
	return nil
}

// closed answers for a port without a listener.
func (w *cuttable) closed(port int) func(http.ResponseWriter, *http.Request, error) {
	return func(_ http.ResponseWriter, r *http.Request, err error) {
		switch {
		case r.Context().Err() != nil && w.in.ctx.Err() == nil:
			panic(http.ErrAbortHandler) // the client has gone
		case paddock.KindOf(err) == paddock.Exhausted:
			w.b.h.fail(w, err)
			return
		case !w.b.alive(context.WithoutCancel(r.Context()), w.in):
			w.bury()
			return
		}
		w.b.h.log.Debug("e2b: a port did not answer", "id", w.b.id, "port", port, "error", err)
		w.begun = true
		sorry(w.ResponseWriter, r, missing{
			SandboxID: string(w.b.id), Message: "The sandbox is running but port is not open", Port: port, Code: 502,
		}, "Closed Port Error")
	}
}
