package inspect

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/authority"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/secret"
)

const name = "a.example"

// world has a destination, a proxy before it, and the proxy's reports.
type world struct {
	t      *testing.T
	proxy  *Proxy
	ca     *authority.CA
	flow   decide.Flow
	server *httptest.Server

	rules func(decide.Request) Decision
	set   *secret.Set

	unused error // why no secret may be used
	login  func(context.Context, decide.Flow, LoginRequest) (LoginAnswer, error)

	mu       sync.Mutex
	used     []string
	asked    []decide.Request
	outcomes []Outcome
	failures []string
	dials    int
	told     chan struct{} // for each failure
}

func (w *world) Request(_ context.Context, _ decide.Flow, q decide.Request) Decision {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, q)
	d := Decision{Verdict: decide.Verdict{Allow: true}}
	if w.rules != nil {
		d = w.rules(q)
	}
	d.Done = func(o Outcome) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.outcomes = append(w.outcomes, o)
	}
	return d
}

func (w *world) Dial(ctx context.Context, _ decide.Flow, via string) (net.Conn, error) {
	w.mu.Lock()
	w.dials++
	w.mu.Unlock()
	if via != "" {
		return nil, fmt.Errorf("via %s: %w", via, paddock.Unavailable)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", w.server.Listener.Addr().String())
}

func (w *world) Secrets(decide.Flow) *secret.Set { return w.set }

func (w *world) Login(ctx context.Context, f decide.Flow, r LoginRequest) (LoginAnswer, error) {
	if w.login == nil {
		return LoginAnswer{}, nil
	}
	return w.login(ctx, f, r)
}

func (w *world) Use(_ context.Context, _ decide.Flow, names []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used = append(w.used, names...)
	return w.unused
}

func (w *world) Failed(_ decide.Flow, reason string) {
	w.mu.Lock()
	w.failures = append(w.failures, reason)
	w.mu.Unlock()
	w.told <- struct{}{}
}

// last returns the outcome of the last request, which is reported shortly after its client
// has the answer.
func (w *world) last() Outcome {
	w.t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		w.mu.Lock()
		asked, over := len(w.asked), w.outcomes
		w.mu.Unlock()
		if len(over) > 0 && len(over) >= asked {
			return over[len(over)-1]
		}
	}
	w.t.Fatal("no request was over")
	return Outcome{}
}

func hostOf(t testing.TB, text string) decide.Host {
	t.Helper()
	h, err := decide.ParseHost(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// secure starts a world whose destination speaks TLS, and HTTP/2 if requested.
func secure(t *testing.T, handler http.HandlerFunc) *world {
	t.Helper()
	return begin(t, handler, true)
}

func begin(t *testing.T, handler http.HandlerFunc, secured bool) *world {
	t.Helper()
	p, err := decide.ParsePattern(name)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := authority.New([]decide.Pattern{p}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ca: ca, flow: decide.Flow{Host: hostOf(t, name), Port: 443}, server: httptest.NewUnstartedServer(handler), told: make(chan struct{}, 100)}
	w.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	w.server.EnableHTTP2 = true
	roots := x509.NewCertPool()
	if secured {
		leaf, err := ca.Leaf(w.flow.Host)
		if err != nil {
			t.Fatal(err)
		}
		w.server.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}, MinVersion: tls.VersionTLS12}
		w.server.StartTLS()
		roots.AppendCertsFromPEM(ca.PEM())
	} else {
		w.flow.Port = 80
		w.server.Start()
	}
	t.Cleanup(w.server.Close)
	w.proxy = New(Options{Backend: w, Authority: ca, Roots: roots})
	return w
}

// connect returns the guest's end of an inspected connection. At the end of the test
// nothing of it may be left.
func (w *world) connect() net.Conn {
	return w.serve(func(ctx context.Context, c net.Conn) error { return w.proxy.Serve(ctx, c, w.flow) })
}

func (w *world) serve(serve func(context.Context, net.Conn) error) net.Conn {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	defer l.Close()
	guest, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	ours, err := l.Accept()
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = serve(ctx, ours)
	}()
	w.t.Cleanup(func() {
		cancel()
		guest.Close()
		<-done
	})
	return guest
}

// client returns a client that trusts the sandbox's authority.
func (w *world) client(http2 bool) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.ca.PEM())
	t := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return w.connect(), nil },
		TLSClientConfig:    &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:  http2,
		DisableCompression: true,
	}
	w.t.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

func (w *world) url(path string) string {
	if w.flow.Port == 80 {
		return "http://" + name + path
	}
	return "https://" + name + path
}

// get sends a request, and returns the answer with its body.
func get(t *testing.T, c *http.Client, r *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(b)
}

func request(t *testing.T, method, url string, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// both runs a test with each version of HTTP.
func both(t *testing.T, f func(t *testing.T, http2 bool)) {
	t.Helper()
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/%d", map[bool]int{false: 1, true: 2}[http2]), func(t *testing.T) { f(t, http2) })
	}
}

func TestARequestIsJudgedAndCarried(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			w.Header().Set("X-Seen", fmt.Sprintf("%d %s %s %s %q %q", r.ProtoMajor, r.Method, r.RequestURI, r.Host, r.Header.Get("X-A"), r.Header.Get("User-Agent")))
			w.WriteHeader(http.StatusTeapot)
			_, _ = w.Write(append([]byte("got "), b...))
		})
		r := request(t, "POST", w.url("/a%2fb/../c?q=%41&r"), strings.NewReader("body"))
		r.Header.Set("X-A", "v")
		r.Header.Set("User-Agent", "")
		response, body := get(t, w.client(http2), r)
		want := fmt.Sprintf(`%d POST /a%%2fb/../c?q=%%41&r a.example "v" ""`, response.ProtoMajor)
		if response.StatusCode != http.StatusTeapot || body != "got body" || response.Header.Get("X-Seen") != want || (response.ProtoMajor == 2) != http2 {
			t.Errorf("%d %q %q", response.StatusCode, body, response.Header)
		}
		q := w.asked[0]
		if q.Scheme != "https" || q.Method != "POST" || q.Path != "/a%2fb/../c" || q.RawQuery != "q=%41&r" || q.Header["X-A"][0] != "v" {
			t.Errorf("it was judged as %+v", q)
		}
		if o := w.last(); o.Status != http.StatusTeapot || o.Sent < 4 || o.Received < 8 || o.Err != nil {
			t.Errorf("its outcome is %+v", o)
		}
	})
}

func TestWhatIsNotAllowedIsToldInWordsAndNeverDialled(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(http.ResponseWriter, *http.Request) { t.Error("it was reached") })
		w.rules = func(decide.Request) Decision {
			return Decision{Verdict: decide.Verdict{Rule: 2, Reason: "rules[2] denies it", Hint: "remove rules[2]"}}
		}
		c := w.client(http2)
		for accept, want := range map[string]string{
			"*/*":              "denied by the sandbox's network policy\na.example:443: rules[2] denies it\nhow to allow it: remove rules[2]\n",
			"application/json": `{"error":"denied by the sandbox's network policy","host":"a.example:443","rule":2,"reason":"rules[2] denies it","how_to_allow":"remove rules[2]"}` + "\n",
		} {
			r := request(t, "GET", w.url("/"), nil)
			r.Header.Set("Accept", accept)
			if response, body := get(t, c, r); response.StatusCode != http.StatusForbidden || body != want {
				t.Errorf("%s: %d %s", accept, response.StatusCode, body)
			}
		}
		r := request(t, "POST", w.url("/svc/Method"), strings.NewReader("\x00\x00\x00\x00\x00"))
		r.Header.Set("Content-Type", "application/grpc")
		if response, _ := get(t, c, r); response.Header.Get("Grpc-Status") != "7" || !strings.Contains(response.Header.Get("Grpc-Message"), "rules%5B2%5D%20denies") {
			t.Errorf("gRPC is told %d %q", response.StatusCode, response.Header)
		}
		if w.dials != 0 || w.last().Status != http.StatusForbidden {
			t.Errorf("%d dials, %+v", w.dials, w.last())
		}
	})
}

func TestEachRequestOfAConnectionIsJudged(t *testing.T) {
	w := begin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.URL.Path) }, false)
	w.rules = func(q decide.Request) Decision {
		return Decision{Verdict: decide.Verdict{Allow: q.Path != "/no", Reason: "no", Rule: -1}}
	}
	c := w.connect()
	one := func(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: " + name + "\r\n\r\n" }
	if _, err := io.WriteString(c, one("/yes")+one("/no")+one("/also")); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	for _, want := range []int{200, 403, 200} {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body)
		if response.StatusCode != want {
			t.Errorf("status %d, want %d", response.StatusCode, want)
		}
	}
}

func TestDoubtfulRequestsEndTheConnection(t *testing.T) {
	reached := false
	w := begin(t, func(_ http.ResponseWriter, r *http.Request) { reached = reached || r.URL.Path == "/bad" }, false)
	good := "GET /good HTTP/1.1\r\nHost: a.example\r\n\r\n"
	for text, want := range map[string]int{
		"POST /bad HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n":       400,
		"POST /bad HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello":                    400,
		"POST /bad HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n":                      400,
		"GET /bad HTTP/1.1\r\nHost: a.example\r\nX: a\r\n b\r\n\r\n":                                                      400,
		"GET /bad HTTP/1.1\r\nHost: a.example\r\nX : a\r\n\r\n":                                                           400,
		"GET /bad HTTP/1.1\nHost: a.example\n\n":                                                                          400,
		"GET /bad HTTP/1.1\r\n\r\n":                                                                                       400,
		"GET /bad HTTP/1.1\r\nHost: a.example\r\nHost: a.example\r\n\r\n":                                                 400,
		"GET http://b.example/bad HTTP/1.1\r\nHost: a.example\r\n\r\n":                                                    400,
		"GET https://a.example/bad HTTP/1.1\r\nHost: a.example\r\n\r\n":                                                   400,
		"GET ftp://a.example/bad HTTP/1.1\r\nHost: a.example\r\n\r\n":                                                     400,
		"GET file:///bad HTTP/1.1\r\nHost: a.example\r\n\r\n":                                                             400,
		"CONNECT a.example:80 HTTP/1.1\r\nHost: a.example:80\r\n\r\n":                                                     400,
		"GET /bad HTTP/1.1\r\nHost: b.example\r\n\r\n":                                                                    421,
		"GET /bad HTTP/1.1\r\nHost: a.example:81\r\n\r\n":                                                                 421,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":                                                                                400,
		"GET /bad HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: connect-udp\r\n\r\n":                     400,
		"GET /bad HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n\r\nx": 400,
		"GET /bad HTTP/1.1\r\nHost: a.example\r\nX: " + strings.Repeat("a", 200<<10) + "\r\n\r\n":                         431,
	} {
		c := w.connect()
		go func() { _, _ = io.WriteString(c, good+text+good) }()
		r := bufio.NewReader(c)
		for i, want := range []int{200, want} {
			response, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Errorf("%.60q: %v", text, err)
				break
			}
			_, _ = io.Copy(io.Discard, response.Body)
			if response.StatusCode != want {
				t.Errorf("%.60q: answer %d is %d, want %d", text, i, response.StatusCode, want)
			}
		}
		if b, err := r.Peek(1); err == nil {
			t.Errorf("%.60q: the connection goes on with %q", text, b)
		}
	}
	if reached {
		t.Error("a doubtful request reached the destination")
	}
}

func TestABrokenChunkEndsTheRequest(t *testing.T) {
	w := begin(t, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, false)
	for _, body := range []string{"x\r\n", "5\nhello\r\n", "-5\r\nhello\r\n", "5\r\nhelloX\r\n", "0\r\nHost: b\r\n\r\n", "0\r\n folded\r\n\r\n", "5\r\nhello\r\n0\r\nContent-Length: 3\r\n\r\n", "ffffffffffffffff\r\n", strings.Repeat("0", 300)} {
		c := w.connect()
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"+body); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(c)
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Errorf("%q: %v", body, err)
			continue
		}
		_, _ = io.Copy(io.Discard, response.Body)
		if _, err := r.Peek(1); response.StatusCode != http.StatusBadRequest || err == nil {
			t.Errorf("%q: %d", body, response.StatusCode)
		}
	}
}

func TestAGoodChunkedBodyArrivesWithItsTrailer(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			b, _ := io.ReadAll(r.Body)
			_, _ = w.Write(b)
			w.Header().Set("X-Sum", r.Trailer.Get("X-In")+"!")
		})
		r := request(t, "POST", w.url("/"), io.MultiReader(strings.NewReader("ab"), strings.NewReader("cd")))
		r.Trailer = http.Header{"X-In": {"sum"}}
		response, body := get(t, w.client(http2), r)
		if body != "abcd" || response.Trailer.Get("X-Sum") != "sum!" {
			t.Errorf("%q, %q", body, response.Trailer)
		}
	})
}

func TestOfATrailerOnlyWhatWasJudgedArrives(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprintf(w, "%v", r.Trailer)
		})
		w.rules = func(q decide.Request) Decision {
			allow := slices.Equal(q.Trailer, []string{"X-Gone", "X-In", "X_gone"}) || slices.Equal(q.Trailer, []string{"X-In"})
			return Decision{Verdict: decide.Verdict{Allow: allow, Rule: -1}, Rule: paddock.NetworkRule{RemoveHeaders: []string{"X-Gone"}}}
		}
		r := request(t, "POST", w.url("/"), io.MultiReader(strings.NewReader("ab"), strings.NewReader("cd")))
		r.Trailer = http.Header{"X-In": {"sum"}, "X-Gone": {"there"}, "X_gone": {"there"}}
		if response, body := get(t, w.client(http2), r); response.StatusCode != 200 || body != "map[X-In:[sum]]" {
			t.Errorf("%d %q", response.StatusCode, body)
		}
	})
}

func TestOfATrailerThatWasNotAnnouncedNothingArrives(t *testing.T) {
	w := begin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(w, "%v", r.Trailer)
	}, false)
	for announced, want := range map[string]string{"": "map[]", "Trailer: X-In\r\n": "map[X-In:[1]]"} {
		c := w.connect()
		if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n"+announced+"\r\n1\r\na\r\n0\r\nX-In: 1\r\nX-Late: 2\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(response.Body); err != nil || string(body) != want {
			t.Errorf("%q: %q, %v", announced, body, err)
		}
		response.Body.Close()
	}
}

func TestTheNameInTLSMustBeTheConnections(t *testing.T) {
	w := secure(t, func(http.ResponseWriter, *http.Request) {})
	err := tls.Client(w.connect(), &tls.Config{ServerName: "b.example", MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
	if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("another name: %v", err)
	}
	<-w.told
	if !strings.Contains(w.failures[0], "asks for b.example") {
		t.Errorf("it is told as %q", w.failures)
	}
}

func TestAProgramThatDoesNotTrustIsToldOf(t *testing.T) {
	w := secure(t, func(http.ResponseWriter, *http.Request) {})
	err := tls.Client(w.connect(), &tls.Config{ServerName: name, RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}).HandshakeContext(t.Context())
	if err == nil {
		t.Fatal("it trusts")
	}
	<-w.told
	if !strings.Contains(w.failures[0], "does not accept this sandbox's certificate authority for a.example") {
		t.Errorf("it is told as %q", w.failures)
	}
}

func TestAnUntrustedDestinationIsToldInWords(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(http.ResponseWriter, *http.Request) { t.Error("it was reached") })
		w.proxy.o.Roots = x509.NewCertPool()
		response, body := get(t, w.client(http2), request(t, "GET", w.url("/"), nil))
		if response.StatusCode != http.StatusBadGateway || !strings.Contains(body, "the certificate of a.example is not valid") {
			t.Errorf("%d %s", response.StatusCode, body)
		}
		if o := w.last(); o.Status != http.StatusBadGateway || o.Err == nil {
			t.Errorf("%+v", o)
		}
	})
}

func TestOtherProtocolsAreRefused(t *testing.T) {
	w := begin(t, func(http.ResponseWriter, *http.Request) {}, false)
	c := w.connect()
	if _, err := io.WriteString(c, "SSH-2.0-x\r\n"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	<-w.told
	if !strings.Contains(w.failures[0], "neither TLS nor HTTP") {
		t.Errorf("it is told as %q", w.failures)
	}
}

func TestRulesChangeHeadersAnswerAndProxy(t *testing.T) {
	w := secure(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "%q %q", r.Header.Get("X-Set"), r.Header.Get("X-Gone"))
		for name := range r.Header {
			if strings.Contains(name, "_") { // CGI takes it for the other
				_, _ = fmt.Fprintf(w, " and %s", name)
			}
		}
	})
	w.rules = func(q decide.Request) Decision {
		d := Decision{Verdict: decide.Verdict{Allow: true}}
		switch q.Path {
		case "/headers":
			d.Rule = paddock.NetworkRule{SetHeaders: map[string]string{"x-set": "new"}, RemoveHeaders: []string{"x-gone"}}
		case "/canned":
			d.Rule.Answer = &paddock.NetworkAnswer{Status: 418, Headers: map[string]string{"X-Canned": "yes"}, Body: "short"}
		case "/proxy":
			d.Rule.Proxy = "http://proxy.example:3128"
		}
		return d
	}
	c := w.client(true)
	r := request(t, "GET", w.url("/headers"), nil)
	r.Header.Set("X-Set", "old")
	r.Header.Set("X-Gone", "there")
	r.Header["X_SET"] = []string{"old"}
	r.Header["x_gone"] = []string{"there"}
	if _, body := get(t, c, r); body != `"new" ""` {
		t.Error(body)
	}
	if response, body := get(t, c, request(t, "GET", w.url("/canned"), nil)); response.StatusCode != 418 || body != "short" || response.Header.Get("X-Canned") != "yes" {
		t.Errorf("%d %q %q", response.StatusCode, body, response.Header)
	}
	if response, body := get(t, c, request(t, "GET", w.url("/proxy"), nil)); response.StatusCode != 502 || !strings.Contains(body, "via http://proxy.example:3128") {
		t.Errorf("%d %q", response.StatusCode, body)
	}
}

func TestStreamsGoBothWaysAtOnce(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(w http.ResponseWriter, r *http.Request) {
			c := http.NewResponseController(w)
			_ = c.EnableFullDuplex()
			w.Header().Set("Trailer", "Grpc-Status")
			w.WriteHeader(200)
			_ = c.Flush()
			b := make([]byte, 4)
			for {
				n, err := r.Body.Read(b)
				_, _ = w.Write(b[:n])
				_ = c.Flush()
				if err != nil {
					break
				}
			}
			w.Header().Set("Grpc-Status", "0")
		})
		from, to := io.Pipe()
		r := request(t, "POST", w.url("/"), from)
		r.Header.Set("TE", "trailers")
		r.Header.Set("Content-Type", "application/grpc")
		// The answer begins before the request is complete.
		response, err := w.client(http2).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		b := make([]byte, 4)
		for i := range 20 {
			text := fmt.Sprintf("%04d", i)
			if _, err := io.WriteString(to, text); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(response.Body, b); err != nil || string(b) != text {
				t.Fatalf("%q, %v", b, err)
			}
		}
		to.Close()
		if _, err := io.ReadAll(response.Body); err != nil || response.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("%v, %q", err, response.Trailer)
		}
	})
}

func TestEarlyAnswersAndContinueArePassedOn(t *testing.T) {
	w := secure(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	})
	c := tls.Client(w.connect(), &tls.Config{ServerName: name, RootCAs: w.proxy.o.Roots, MinVersion: tls.VersionTLS12})
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	seen := map[int]bool{}
	for {
		response, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		seen[response.StatusCode] = true
		if response.StatusCode == http.StatusContinue {
			if _, err := io.WriteString(c, "body"); err != nil {
				t.Fatal(err)
			}
		}
		if response.StatusCode == http.StatusEarlyHints && response.Header.Get("Link") == "" {
			t.Error("early hints without what they hint at")
		}
		if response.StatusCode >= 200 {
			if b, err := io.ReadAll(response.Body); err != nil || string(b) != "body" || response.Header.Get("Link") != "" {
				t.Errorf("%q, %v, %q", b, err, response.Header)
			}
			break
		}
	}
	if !seen[100] || !seen[103] || !seen[200] {
		t.Errorf("answers: %v", seen)
	}
}

func TestAnswersOfAllShapesKeepTheirs(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/length":
				w.Header().Set("Content-Length", "5")
				if r.Method != http.MethodHead {
					_, _ = io.WriteString(w, "12345")
				}
			case "/none":
				w.WriteHeader(http.StatusNoContent)
			case "/untyped":
				w.Header()["Content-Type"] = nil
				_, _ = io.WriteString(w, "<html>")
			case "/close":
				w.Header().Set("Connection", "close")
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, "to the end")
			}
		})
		c := w.client(http2)
		if response, body := get(t, c, request(t, "HEAD", w.url("/length"), nil)); response.ContentLength != 5 || body != "" {
			t.Errorf("HEAD: %d, %q", response.ContentLength, body)
		}
		if response, body := get(t, c, request(t, "GET", w.url("/length"), nil)); response.ContentLength != 5 || body != "12345" {
			t.Errorf("a length: %d, %q", response.ContentLength, body)
		}
		if response, body := get(t, c, request(t, "DELETE", w.url("/none"), nil)); response.StatusCode != 204 || body != "" {
			t.Errorf("no content: %d, %q", response.StatusCode, body)
		}
		if response, _ := get(t, c, request(t, "GET", w.url("/untyped"), nil)); response.Header["Content-Type"] != nil {
			t.Errorf("a type was guessed: %q", response.Header)
		}
		if _, body := get(t, c, request(t, "GET", w.url("/close"), nil)); body != "to the end" {
			t.Errorf("closed: %q", body)
		}
	})
}

func TestAnAnswerThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		response, err := w.client(http2).Do(request(t, "GET", w.url("/"), nil))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if b, err := io.ReadAll(response.Body); err == nil {
			t.Errorf("%q is taken for all", b)
		}
	})
}

func TestACutEndsARequestInTheMiddle(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begin")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		cut := make(chan struct{})
		w.rules = func(decide.Request) Decision { return Decision{Verdict: decide.Verdict{Allow: true}, Cut: cut} }
		response, err := w.client(http2).Do(request(t, "GET", w.url("/"), nil))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		close(cut)
		if b, err := io.ReadAll(response.Body); err == nil {
			t.Errorf("it goes on: %q", b)
		}
	})
}

// meter lets a number of bytes pass.
type meter struct {
	mu   sync.Mutex
	left int
}

func (m *meter) take(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left -= n; m.left < 0 {
		return fmt.Errorf("rules[0] allows no more bytes: %w", paddock.Exhausted)
	}
	return nil
}

func (m *meter) Sent(_ context.Context, n int) error     { return m.take(n) }
func (m *meter) Received(_ context.Context, n int) error { return m.take(n) }

func TestALimitEndsATransferAndIsTold(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = w.Write(make([]byte, 1<<20))
		})
		w.rules = func(decide.Request) Decision {
			return Decision{Verdict: decide.Verdict{Allow: true}, Meter: &meter{left: 100 << 10}}
		}
		response, body := get(t, w.client(http2), request(t, "POST", w.url("/"), strings.NewReader(strings.Repeat("x", 200<<10))))
		if response.StatusCode != http.StatusForbidden || !strings.Contains(body, "rules[0] allows no more bytes") {
			t.Errorf("a request too long: %d %q", response.StatusCode, body)
		}
		response, err := w.client(http2).Do(request(t, "GET", w.url("/"), nil))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if b, err := io.ReadAll(response.Body); err == nil || len(b) > 100<<10 {
			t.Errorf("an answer too long: %d bytes, %v", len(b), err)
		}
	})
}

func TestWhoCannotBeReachedIsToldInWords(t *testing.T) {
	for _, tc := range []struct {
		err    error
		status int
	}{{fmt.Errorf("dial: %w", paddock.Timeout), 504}, {errors.New("connection refused"), 502}, {&Refusal{Verdict: decide.Verdict{Rule: 1, Reason: "private address"}}, 403}} {
		w := secure(t, func(http.ResponseWriter, *http.Request) {})
		w.proxy.o.Backend = deaf{w, tc.err}
		response, body := get(t, w.client(true), request(t, "GET", w.url("/"), nil))
		if response.StatusCode != tc.status || !strings.Contains(body, tc.err.Error()) {
			t.Errorf("%v: %d %s", tc.err, response.StatusCode, body)
		}
	}
}

type deaf struct {
	*world
	err error
}

func (d deaf) Dial(context.Context, decide.Flow, string) (net.Conn, error) { return nil, d.err }
