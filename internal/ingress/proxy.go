package ingress

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of what callers and guests may make the server hold or wait for.
const (
	mostRequests = 8192             // under way, of all
	mostEach     = 512              // the same, to one sandbox
	mostTenant   = mostRequests / 4 // the same, to all sandboxes of one tenant
	keptAll      = mostRequests / 8 // of all places, those for callers with a key alone
	keptTenant   = mostTenant / 8   // the same, of a tenant's
	keptEach     = mostEach / 8     // the same, of a sandbox's
	sureTenant   = 32               // places of each tenant that do not count in those of all
	mostKept     = 8                // connections to one port that wait for the next request
	mostKeptAll  = 512              // the same, of all
	keepTime     = 10 * time.Second // how long they wait: for so long a sandbox is in use
	mostHead     = 128 << 10        // of an answer's head, and of its trailers
	mostFields   = 256              // lines of such a head
	mostInterim  = 16               // answers of 1xx before the one that counts
	continueTime = time.Second      // that a server inside has to ask for a body that was announced
	helloTime    = 10 * time.Second // in which a server inside has to begin TLS
	stall        = 10 * time.Minute // a client that takes nothing for so long is cut
	restTime     = 30 * time.Second // for what is left of a body behind its answer
)

// A Target is the port that a request is for. The zero value refuses.
type Target struct {
	// Dial connects to the port. It must be given.
	Dial func(context.Context) (net.Conn, error)

	// TLS is that the port speaks TLS. Its certificate is not looked at: the
	// connection never leaves the machine, and whoever answers is not trusted.
	TLS bool

	// Host is the Host header in place of the request's; empty keeps it.
	Host string

	// ID and Port say whose it is.
	ID   paddock.ID
	Port int

	// Tenant is whose the sandbox is; empty is not known, and has no bound of its own.
	Tenant string

	// Keyed is that the caller showed a key of the owner's: some places are for those alone.
	Keyed bool

	// Incarnation tells this sandbox apart from any other of its ID, before and
	// later: connections are kept for the next request of the same one. Empty keeps none.
	Incarnation string

	// Encrypted is that the client's connection is, by what stands before the server. One that the
	// server encrypts itself is known.
	Encrypted bool

	// OwnHost is that the host of the request is this port's alone: what answers may
	// set cookies there, and run scripts. Else it can do neither.
	OwnHost bool

	// Refuse answers where the port does not; nil is in words of ours. The error
	// has a kind: Unavailable is that nothing answers there, or nothing that is HTTP.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
}

// A Proxy carries requests to ports inside sandboxes. The zero value is one.
// Its methods are safe for many goroutines.
type Proxy struct {
	// Log is told what goes wrong on the way; nil is no one.
	Log *slog.Logger

	lines lines
	made  sync.Once
	plain *http.Transport // HTTP/1.1
	rpc   *http.Transport // HTTP/2 that was not asked for
	wg    sync.WaitGroup  // requests; Add only with mu held, before closed

	mu     sync.Mutex
	closed bool               // guarded by mu
	all    int                // guarded by mu; requests under way, beyond what each tenant is sure of
	each   map[paddock.ID]int // guarded by mu; the same by sandbox
	whose  map[string]int     // guarded by mu; the same by tenant
}

// targetKey is of the context value that brings a target to where it is dialled.
type targetKey struct{}

func (p *Proxy) make() {
	p.each, p.whose = map[paddock.ID]int{}, map[string]int{}
	if p.Log == nil {
		p.Log = slog.New(slog.DiscardHandler)
	}
	transport := func() *http.Transport {
		return &http.Transport{
			DialContext:            p.dial,
			DialTLSContext:         p.dialTLS,
			DisableCompression:     true, // bytes pass as they are
			MaxIdleConns:           mostKeptAll,
			MaxIdleConnsPerHost:    mostKept,
			IdleConnTimeout:        keepTime,
			MaxResponseHeaderBytes: mostHead,
			ExpectContinueTimeout:  continueTime,
			Protocols:              new(http.Protocols),
		}
	}
	p.plain, p.rpc = transport(), transport()
	p.plain.Protocols.SetHTTP1(true)
	p.rpc.Protocols.SetUnencryptedHTTP2(true)
	p.rpc.DialContext = p.dialLine // HTTP/2 numbers its answers
}

// Serve answers a request with what the target says. It does not change the request.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, t Target) {
	p.made.Do(p.make)
	if t.Refuse == nil {
		t.Refuse = Refuse
	}
	switch {
	case t.Dial == nil || !t.ID.Valid() || t.Port < 1 || t.Port > 65535:
		t.Refuse(w, r, fmt.Errorf("no port is named: %w", paddock.Invalid))
		return
	case r.Method == http.MethodConnect:
		t.Refuse(w, r, fmt.Errorf("a port is no proxy: CONNECT: %w", paddock.Invalid))
		return
	}
	leave, err := p.enter(t)
	if err != nil {
		t.Refuse(w, r, err)
		return
	}
	defer leave()
	ctx, end := p.lines.watch(context.WithValue(r.Context(), targetKey{}, t), t.ID, t.Port)
	defer end()
	ctx = httptrace.WithClientTrace(ctx, watch(ctx))
	r = r.WithContext(ctx)
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // what has none has its own
	if r.ProtoMajor == 1 {
		_ = control.EnableFullDuplex() // as above
	}
	a := &answer{w: w, header: http.Header{}, own: t.OwnHost}
	if r.ProtoMajor == 1 && r.ContentLength != 0 {
		_ = control.SetReadDeadline(time.Time{}) // who comes here was let in
		defer a.rest(r.Body)
	}
	carrier := &httputil.ReverseProxy{
		Transport: p.transport(r, t), FlushInterval: -1, ErrorLog: slog.NewLogLogger(p.Log.Handler(), slog.LevelDebug),
		Rewrite:        func(q *httputil.ProxyRequest) { rewrite(q, t) },
		ModifyResponse: func(res *http.Response) error { return admit(res, t) },
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			if a.wrote || a.taken {
				panic(http.ErrAbortHandler) // so that nobody takes it for whole
			}
			t.Refuse(w, r, explain(ctx, t, err))
		},
	}
	carrier.ServeHTTP(a, r)
}

// enter counts a request.
func (p *Proxy) enter(t Target) (leave func(), err error) {
	all, tenant, each := mostRequests, mostTenant, mostEach
	if !t.Keyed {
		all, tenant, each = all-keptAll, tenant-keptTenant, each-keptEach
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, fmt.Errorf("%w: %w", errClosed, paddock.Unavailable)
	case p.all >= all && (t.Tenant == "" || p.whose[t.Tenant] >= sureTenant):
		return nil, fmt.Errorf("%d requests for ports are under way already: %w", p.all, paddock.Exhausted)
	case t.Tenant != "" && p.whose[t.Tenant] >= tenant:
		return nil, fmt.Errorf("%d requests for ports of this sandbox's owner are under way already: %w", p.whose[t.Tenant], paddock.Exhausted)
	case p.each[t.ID] >= each:
		return nil, fmt.Errorf("sandbox %s: %d requests are under way already: %w", t.ID, p.each[t.ID], paddock.Exhausted)
	}
	if t.Tenant == "" || p.whose[t.Tenant] >= sureTenant {
		p.all++
	}
	p.each[t.ID]++
	p.whose[t.Tenant]++
	p.wg.Add(1)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.each[t.ID]--; p.each[t.ID] == 0 {
			delete(p.each, t.ID)
		}
		p.whose[t.Tenant]--
		if t.Tenant == "" || p.whose[t.Tenant] >= sureTenant {
			p.all--
		}
		if p.whose[t.Tenant] == 0 {
			delete(p.whose, t.Tenant)
		}
		p.wg.Done()
	}, nil
}

// Cut ends what is under way to a port of a sandbox, and every connection to it;
// port 0 is all of the sandbox's.
func (p *Proxy) Cut(id paddock.ID, port int) { p.lines.cut(id, port) }

// Watch gives a context that ends when the port is cut, until end is called. Who judges
// whether a request may pass asks for it before, and serves the request with it: whatever
// was judged too soon is then cut, too.
func (p *Proxy) Watch(ctx context.Context, id paddock.ID, port int) (_ context.Context, end func()) {
	return p.lines.watch(ctx, id, port)
}

// Close ends every request and waits for its end; later ones are refused. Closing twice is fine.
func (p *Proxy) Close() {
	p.made.Do(p.make)
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.lines.close()
	p.wg.Wait()
	p.plain.CloseIdleConnections()
	p.rpc.CloseIdleConnections()
}

// transport gives what speaks with the port. What says that it is gRPC needs
// HTTP/2, which its servers speak without being asked.
func (p *Proxy) transport(r *http.Request, t Target) *http.Transport {
	if r.ProtoMajor == 2 && !t.TLS && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		return p.rpc
	}
	return p.plain
}

func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := p.dialLine(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return newExchange(c), nil
}

// dialLine makes a connection to the target of the request that waits for it.
func (p *Proxy) dialLine(ctx context.Context, _, _ string) (net.Conn, error) {
	t, ok := ctx.Value(targetKey{}).(Target)
	if !ok {
		return nil, fmt.Errorf("a connection without a target: %w", paddock.Internal)
	}
	ctx, end := p.lines.watch(ctx, t.ID, t.Port) // its own: what is dialled may serve another request
	defer end()
	c, err := t.Dial(ctx)
	if err != nil {
		return nil, &dialError{err}
	}
	it, err := p.lines.keep(t.ID, t.Port, c)
	if err != nil {
		return nil, errors.Join(&dialError{fmt.Errorf("%w: %w", err, paddock.Unavailable)}, c.Close())
	}
	return it, nil
}

func (p *Proxy) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	raw, err := p.dialLine(ctx, network, address)
	if err != nil {
		return nil, err
	}
	t, _ := ctx.Value(targetKey{}).(Target)
	name, _ := bare(t.Host)
	conn := tls.Client(raw, &tls.Config{ServerName: name, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) //nolint:gosec // see Target.TLS
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(&dialError{fmt.Errorf("it does not speak TLS: %w: %w", err, paddock.Unavailable)}, raw.Close())
	}
	return newExchange(conn), nil
}

// A dialError is that there is no connection, and says so by itself.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// watch counts interim answers, which have no bound of their own, and tells the connection of
// the request when it begins and ends.
func watch(ctx context.Context) *httptrace.ClientTrace {
	interim := 0
	var used *exchange
	return &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if used, _ = info.Conn.(*exchange); used != nil {
				used.begin(ctx)
			}
		},
		PutIdleConn: func(error) {
			if used != nil {
				used.end()
			}
		},
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			if interim++; interim > mostInterim {
				return errors.New("it sends interim answers without an end")
			}
			return nil
		},
	}
}

// rewrite makes of a request the one that is sent inside.
func rewrite(q *httputil.ProxyRequest, t Target) {
	out := q.Out
	cleanRequest(out.Header)
	forwarded(q.In, out, t.Encrypted)
	out.Host = q.In.Host
	if t.Host != "" {
		out.Host = t.Host
	}
	out.URL.Scheme, out.URL.Host = "http", t.pool()
	if t.TLS {
		out.URL.Scheme = "https"
	}
	out.URL.User = nil
	out.URL.RawQuery = q.In.URL.RawQuery // as it was written: what reads it is inside
	if up := out.Header.Get("Upgrade"); up != "" && raw(up) {
		out.Header.Del("Upgrade")
		out.Header.Del("Connection")
		out.Header.Del("HTTP2-Settings")
	}
	if t.Incarnation == "" && out.Header.Get("Upgrade") == "" {
		out.Close = true
	}
	if len(q.In.Trailer) > 0 && out.Body != nil {
		out.Trailer = q.In.Trailer.Clone()
		out.Body = &trailed{ReadCloser: out.Body, from: q.In.Trailer, to: out.Trailer}
	}
}

// raw tells whether an upgrade would be to more requests, which nobody would look at.
func raw(protocols string) bool {
	for name := range strings.SplitSeq(protocols, ",") {
		name = lower(strings.TrimSpace(name))
		if name == "h2c" || name == "h2" || strings.HasPrefix(name, "http") || strings.HasPrefix(name, "tls") {
			return true
		}
	}
	return false
}

// pool names the target among all whose connections are kept.
func (t Target) pool() string {
	name := t.Incarnation
	if name == "" {
		name = rand.Text()
	}
	sum := sha256.Sum256([]byte(string(t.ID) + "\x00" + strconv.Itoa(t.Port) + "\x00" + t.Host + "\x00" + name))
	return hex.EncodeToString(sum[:16]) + ":" + strconv.Itoa(t.Port)
}

// A trailed body brings the trailers along that are known at its end.
type trailed struct {
	io.ReadCloser
	from, to http.Header
}

func (b *trailed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		for name := range b.to { // those that were announced
			b.to[name] = b.from[name]
		}
		cleanRequest(b.to)
	}
	return n, err
}

// admit looks at an answer before it is passed on.
func admit(res *http.Response, t Target) error {
	if res.StatusCode < 200 && res.StatusCode != http.StatusSwitchingProtocols || res.StatusCode > 599 {
		return fmt.Errorf("it answers %d, which is no answer", res.StatusCode)
	}
	if res.StatusCode == http.StatusSwitchingProtocols && res.Request.Header.Get("Upgrade") == "" {
		return errors.New("it switches protocols, and nobody asked for that")
	}
	lines := 0
	for _, values := range res.Header {
		lines += len(values)
	}
	if lines > mostFields { // each is held several times over, as long as the client takes its time
		return fmt.Errorf("its answer has %d headers; there may be %d", lines, mostFields)
	}
	cleanAnswer(res.Header, t.OwnHost)
	return nil
}

// explain makes of what went wrong an error with a kind.
func explain(ctx context.Context, t Target, err error) error {
	var dialled *dialError
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errClosed), errors.Is(cause, errCut):
		return fmt.Errorf("%w: %w", cause, paddock.Unavailable)
	case ctx.Err() != nil:
		return fmt.Errorf("given up: %w", paddock.Canceled)
	case errors.As(err, &dialled) && errors.Is(err, paddock.NotFound): // as nobody listening is told
		return fmt.Errorf("port %d of sandbox %s: %s: %w", t.Port, t.ID, dialled.Error(), paddock.Unavailable)
	case errors.As(err, &dialled):
		return fmt.Errorf("port %d of sandbox %s: %w", t.Port, t.ID, dialled.err)
	}
	return fmt.Errorf("port %d of sandbox %s: what listens there gave no answer of HTTP: %w: %w", t.Port, t.ID, err, paddock.Unavailable)
}
