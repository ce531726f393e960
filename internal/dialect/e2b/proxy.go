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
	"github.com/paddock-sandbox/paddock/internal/ingress"
)

// resumeFor is how long a sandbox lives that a request woke.
const resumeFor = newTimeout * time.Second

// A missing is the body of an answer that a proxy gives in a sandbox's place.
type missing struct {
	SandboxID string `json:"sandboxId"`
	Message   string `json:"message"`
	Port      int    `json:"port,omitempty"`
	Code      int    `json:"code"`
}

// ServeHTTP answers a request of a client of E2B.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
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
		bounded(w, r)
		h.mux.ServeHTTP(w, r)
	default:
		bounded(w, r) // who is let in gets more time
		h.forward(w, r, *t)
	}
}

// bounded gives a body some time to arrive, where the connection is the request's
// alone; a connection that carried another request may still have its deadlines.
func bounded(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // what has none has its own
	if r.ProtoMajor == 1 {
		_ = control.SetReadDeadline(time.Time{})
		if r.ContentLength != 0 {
			_ = control.SetReadDeadline(time.Now().Add(bodyTime))
		}
	}
}

// arrived takes that back: what is done with a body may take longer.
func arrived(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // likewise
	}
}

// dead says that there is no sandbox, in the words that clients know a killed one by.
func dead(w http.ResponseWriter, id string) {
	answer(w, http.StatusBadGateway, missing{SandboxID: id, Message: "The sandbox was not found", Code: 502})
}

// internal are paths of E2B's agent that nobody outside may call.
func internal(path string) bool {
	return slices.Contains([]string{"/init", "/freeze", "/unfreeze", "/collapse", "/fsfreeze", "/fsthaw", "/upgrade"}, path)
}

// forward brings a request to a port of a sandbox.
func (h *Handler) forward(w http.ResponseWriter, r *http.Request, t target) {
	ours := t.port == agentPort || t.port == codePort && h.o.Code != nil
	if ours && preflight(r) {
		permit(w, r) // of any sandbox: it is told of none
		return
	}
	if ours { // also to what is refused, and to one that is gone
		allowOrigin(w)
	}
	b, ok := h.find(t.id)
	if !ok {
		dead(w, printable(t.id))
		return
	}
	rec, ok := b.record()
	if !ok || !rec.AutoPause && rec.over() {
		dead(w, string(b.id))
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
	if !own && r.Header.Get("Service-Worker") != "" { // it would read what others have of this origin
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
	if shown { // what shows nothing of its owner's is bounded by ports, and is refused by the agent
		place, err := h.o.Enter(r.Context(), rec.Tenant)
		if err != nil {
			h.busy(w, err)
			return
		}
		defer place.Leave()
		arrived(w, r)
		if ours {
			defer bounded(w, r) // for what is left of it behind the answer
		}
		if ours && t.port == codePort { // a cell, which is held until it has ended
			r = r.WithContext(r.Context())
			r.Body = struct {
				io.Reader
				io.Closer
			}{place.Body(r.Body), r.Body}
		}
	}
	ctx, cancel := context.WithCancel(h.o.Mark(r.Context(), r, rec.Tenant, g.who))
	defer cancel()
	in, err := b.awake(ctx, shown || !ours)
	if err != nil {
		h.unreachable(w, b, err)
		return
	}
	defer context.AfterFunc(in.ctx, cancel)()
	cw := &cuttable{ResponseWriter: w, in: in, b: b, ctx: ctx, shared: !own && ours, origin: ours}
	cw.serve(r.WithContext(ctx), t.port, rec, g)
}

// A visit is a request for a port of a sandbox that was let in.
type visit struct {
	who   string // a key's ID, or what let it in
	shown bool   // it showed what the sandbox's owner has: a token, a link, or a key that may write
}

// codes tells whether a request for the code interpreter shows what the sandbox's
// owner alone has: the sandbox's token, or the one for traffic, which is all that E2B's
// clients show where they ask for contexts.
func codes(r *http.Request, rec record) bool {
	return same(r.Header.Get(headerToken), rec.Token) || same(r.Header.Get(headerTraffic), rec.traffic())
}

// traffic gives the token for traffic that clients are told. Where the sandbox's owner asked for
// none it opens nothing but the contexts of the code interpreter, and is made of the
// sandbox's token, so that sandboxes of before have one.
func (rec *record) traffic() string {
	if rec.Traffic != "" {
		return rec.Traffic
	}
	mac := hmac.New(sha256.New, []byte(rec.Token))
	mac.Write([]byte("contexts of the code interpreter"))
	return "ta_" + hex.EncodeToString(mac.Sum(nil)[:20])
}

// shows tells whether a request shows what the sandbox's owner alone has: its token, or
// a signature made with it.
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

// unreachable answers where a sandbox could not be opened or woken.
func (h *Handler) unreachable(w http.ResponseWriter, b *box, err error) {
	switch kind := paddock.KindOf(err); kind {
	case paddock.NotFound, paddock.Unavailable, paddock.Conflict:
		dead(w, string(b.id))
	case paddock.Canceled:
		panic(http.ErrAbortHandler) // nobody waits
	default:
		h.log.Warn("e2b: a sandbox cannot be reached", "id", b.id, "error", err)
		answer(w, http.StatusBadGateway, missing{SandboxID: string(b.id), Message: "The sandbox cannot be reached", Code: 502})
	}
}

// awake gives the opened sandbox; one that is paused is resumed if it asked for that
// and who calls may, and is not found otherwise.
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
	if !rec.Paused && !rec.over() && in != nil { // another request woke it
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

// alive tells whether the sandbox still runs. What has died is cut.
func (b *box) alive(ctx context.Context, in *inside) bool {
	if in.ctx.Err() != nil {
		return false
	}
	st, err := in.sb.Status(ctx)
	if err != nil && ctx.Err() != nil {
		return true // nobody waits for the answer
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

// A cuttable is an answer that ends abruptly when its sandbox does: not even what a
// handler says at the end gets through, so that clients ask what became of it.
type cuttable struct {
	http.ResponseWriter
	in    *inside
	b     *box
	ctx   context.Context
	begun bool
	dead  bool // it was answered that there is no sandbox

	shared bool // its bytes are the guest's, and its origin is the server's
	origin bool // pages of any origin may read it
}

// confine has no browser take a guest's bytes for a page of the server's, or for a
// program of one: other sandboxes are answered at the same origin. E2B's clients look
// at none of these headers.
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

// Unwrap lets package http find what the writer can do.
func (w *cuttable) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush sends what was written.
func (w *cuttable) Flush() {
	if w.in.ctx.Err() == nil && !w.dead {
		_ = http.NewResponseController(w.ResponseWriter).Flush() // a writer that cannot sends it at the end
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
	w.begun = code >= 200 // others are told before the answer
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
	dead(w.ResponseWriter, string(w.b.id))
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

// serve has whoever answers for a port answer.
func (w *cuttable) serve(r *http.Request, port int, rec record, g *visit) {
	defer func() {
		cause := recover()
		gone := w.in.ctx.Err() != nil
		switch {
		case gone && !w.begun:
			w.bury()
		case cause == nil && r.URL.Path == "/health":
			// Its answer is whole, and no stream that was cut.
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

// guest brings a request to a port that something inside listens at. What no guest may
// read was taken out of it.
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

// hide takes out of a request what no guest may read: the names of its way, the token that
// is the sandbox's outside, and keys of this server. A key of the sandbox's tenant that may
// write is who visits.
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

// closed answers where a port does not.
func (w *cuttable) closed(port int) func(http.ResponseWriter, *http.Request, error) {
	return func(_ http.ResponseWriter, r *http.Request, err error) {
		switch {
		case r.Context().Err() != nil && w.in.ctx.Err() == nil:
			panic(http.ErrAbortHandler) // the client went away
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
