package ingress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/websocket"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/ingress"
)

// patience is for what should come at once.
const patience = time.Minute

// An inside is a server in place of a sandbox, and what counts its connections.
type inside struct {
	address string
	dials   atomic.Int64
	open    atomic.Int64
}

func (s *inside) dial(ctx context.Context) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
	if err != nil {
		return nil, fmt.Errorf("nobody listens: %w: %w", err, paddock.Unavailable)
	}
	s.dials.Add(1)
	s.open.Add(1)
	return &counted{c.(*net.TCPConn), sync.OnceFunc(func() { s.open.Add(-1) })}, nil
}

type counted struct {
	*net.TCPConn
	done func()
}

func (c *counted) Close() error {
	defer c.done()
	return c.TCPConn.Close()
}

// target is that of a sandbox with a host of its own.
func (s *inside) target() ingress.Target {
	return ingress.Target{Dial: s.dial, ID: "abc", Port: 8080, Incarnation: "1", OwnHost: true}
}

func serveInside(t *testing.T, h http.Handler) *inside {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	s.Config.Protocols = p
	s.Start()
	t.Cleanup(s.Close)
	return &inside{address: s.Listener.Addr().String()}
}

// rawInside speaks to each connection by itself.
func rawInside(t *testing.T, speak func(c net.Conn, r *bufio.Reader)) *inside {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			stop := context.AfterFunc(t.Context(), func() { c.Close() })
			wg.Go(func() {
				defer stop()
				defer c.Close()
				speak(c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return &inside{address: l.Addr().String()}
}

// answers reads one request and says this.
func answers(t *testing.T, text string) *inside {
	return rawInside(t, func(c net.Conn, r *bufio.Reader) {
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
		}
	})
}

// An outside is the server, with TLS or without.
type outside struct {
	*httptest.Server
	proxy *ingress.Proxy
}

func serveOutside(t *testing.T, target func() ingress.Target) *outside {
	t.Helper()
	o := &outside{proxy: &ingress.Proxy{}}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { o.proxy.Serve(w, r, target()) })
	o.Server = httptest.NewUnstartedServer(h)
	p := new(http.Protocols)
	p.SetHTTP1(true)
	p.SetUnencryptedHTTP2(true)
	o.Config.Protocols = p
	o.Start()
	t.Cleanup(func() { o.proxy.Close(); o.CloseClientConnections(); o.Close() })
	return o
}

// clients speak each protocol.
func clients(t *testing.T) map[string]*http.Client {
	all := map[string]*http.Client{}
	for name, set := range map[string]func(*http.Protocols){
		"HTTP/1.1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"h2c":      func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		tr := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true}
		set(tr.Protocols)
		t.Cleanup(tr.CloseIdleConnections)
		all[name] = &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return all
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func fetch(t *testing.T, c *http.Client, method, url string, body io.Reader, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(bounded(t), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(data)
}

func TestARequestAndItsAnswerPassAsTheyAre(t *testing.T) {
	in := serveInside(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Seen", r.Method+" "+r.RequestURI+" "+r.Host+" "+r.Proto)
		w.Header().Add("Set-Cookie", "a=b; Path=/")
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.Write(body)
	}))
	o := serveOutside(t, in.target)
	for name, c := range clients(t) {
		t.Run(name, func(t *testing.T) {
			res, body := fetch(t, c, "POST", o.URL+"/a%2Fb//c/../d?x=1&x=;%zz", strings.NewReader("hello"))
			want := "POST /a%2Fb//c/../d?x=1&x=;%zz " + strings.TrimPrefix(o.URL, "http://") + " HTTP/1.1"
			if res.StatusCode != http.StatusTeapot || body != "hello" || res.Header.Get("X-Seen") != want || res.Header.Get("Set-Cookie") != "a=b; Path=/" {
				t.Errorf("%d %q %v", res.StatusCode, body, res.Header)
			}
		})
	}
}

func TestTheGuestLearnsNoSecretAndNoLie(t *testing.T) {
	seen := make(chan *http.Request, 1)
	in := serveInside(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r }))
	o := serveOutside(t, in.target)
	for name, c := range clients(t) {
		t.Run(name, func(t *testing.T) {
			fetch(t, c, "GET", o.URL, nil,
				"Paddock-Key", "pk_secret", "Paddock-Sandbox", "abc", "Paddock-Port", "80", "Paddock-Lease", "x",
				"Cookie", "a=1; __Host-paddock-port=secret; b=2; paddock-port=secret; PADDOCK-x=secret", "Cookie", "__Secure-paddock-y=secret",
				"X-Forwarded-For", "6.6.6.6", "X-Forwarded-Host", "evil", "X-Forwarded-Proto", "gopher", "X-Forwarded-Prefix", "/x",
				"Forwarded", "for=6.6.6.6", "X-Real-Ip", "6.6.6.6", "X_Forwarded_For", "6.6.6.6", "X-Mine", "kept",
				"X-Client-IP", "6.6.6.6", "True-Client-IP", "6.6.6.6", "CF-Connecting-IP", "6.6.6.6", "X-Cluster-Client-IP", "6.6.6.6",
				"X-Original-URL", "/evil", "X_Rewrite_URL", "/evil", "X-Original-Host", "evil", "X-Host", "evil", "X-HTTP-Method-Override", "evil",
				"E2b-Traffic-Access-Token", "secret",
				"Proxy-Authorization", "secret", "Authorization", "Bearer its-own", "Keep-Alive", "x")
			r := <-seen
			for name, values := range r.Header {
				text := name + ": " + strings.Join(values, ", ")
				if strings.Contains(text, "secret") || strings.Contains(text, "6.6.6.6") || strings.HasPrefix(name, "Paddock") || strings.Contains(text, "evil") {
					t.Errorf("the guest sees %s", text)
				}
			}
			for name, want := range map[string]string{
				"Cookie": "a=1; b=2", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Proto": "http", "X-Forwarded-Prefix": "",
				"X-Forwarded-Host": strings.TrimPrefix(o.URL, "http://"), "X-Mine": "kept", "Authorization": "Bearer its-own", "Keep-Alive": "",
			} {
				if got := r.Header.Get(name); got != want {
					t.Errorf("%s: %q, not %q", name, got, want)
				}
			}
		})
	}
}

func TestAnAnswerOnAHostOfItsOwnReachesNoOther(t *testing.T) {
	in := serveInside(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Set-Cookie"] = []string{"a=1; Domain=example.com; Path=/", "b=2; domain = .example.com", "c=3", "__Host-paddock-port=x; Path=/; Secure", "paddock-port=x", "=paddock-port=x", "d=4; HttpOnly"}
		h.Set("Clear-Site-Data", `"cookies"`)
		h.Set("Alt-Svc", `h3=":443"`)
		h.Set("Paddock-Error", "a lie")
		h.Set("Access-Control-Allow-Origin", "*")
	}))
	o := serveOutside(t, in.target)
	for name, c := range clients(t) {
		t.Run(name, func(t *testing.T) {
			res, _ := fetch(t, c, "GET", o.URL, nil)
			if got := strings.Join(res.Header["Set-Cookie"], "|"); got != "a=1; Path=/|b=2|c=3|d=4; HttpOnly" {
				t.Errorf("cookies: %s", got)
			}
			for _, name := range []string{"Clear-Site-Data", "Alt-Svc", "Paddock-Error"} {
				if got := res.Header.Get(name); got != "" {
					t.Errorf("%s: %s", name, got)
				}
			}
			if res.Header.Get("Access-Control-Allow-Origin") != "*" || res.Header.Get("Content-Security-Policy") != "" {
				t.Errorf("what is its own was changed: %v", res.Header)
			}
		})
	}
}

func TestAnAnswerOnTheServersHostRunsNothingAndSetsNothing(t *testing.T) {
	in := serveInside(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h.Set("Set-Cookie", "a=1")
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Content-Security-Policy", "script-src *")
		h.Set("Service-Worker-Allowed", "/")
		h.Set("Strict-Transport-Security", "max-age=1")
		_, _ = io.WriteString(w, "<script>alert(1)</script>")
	}))
	o := serveOutside(t, func() ingress.Target {
		target := in.target()
		target.OwnHost = false
		return target
	})
	res, body := fetch(t, clients(t)["HTTP/1.1"], "GET", o.URL, nil)
	for _, name := range []string{"Set-Cookie", "Access-Control-Allow-Origin", "Service-Worker-Allowed", "Strict-Transport-Security"} {
		if got := res.Header.Get(name); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := strings.Join(res.Header["Content-Security-Policy"], "|"); !strings.Contains(got, "|sandbox;") {
		t.Errorf("policies: %s", got)
	}
	if body == "" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%q %v", body, res.Header)
	}
}

func TestAPortWhereNobodyListensIsToldInWords(t *testing.T) {
	in := &inside{address: "127.0.0.1:1"}
	o := serveOutside(t, in.target)
	for name, c := range clients(t) {
		res, body := fetch(t, c, "GET", o.URL, nil)
		if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "port 8080 of sandbox abc") || !strings.Contains(body, "nobody listens") {
			t.Errorf("%s: %d %q", name, res.StatusCode, body)
		}
	}
}

func TestARefusalIsInTheWordsOfWhoAsks(t *testing.T) {
	o := serveOutside(t, func() ingress.Target {
		return ingress.Target{
			Dial: func(context.Context) (net.Conn, error) { return nil, fmt.Errorf("paused: %w", paddock.Conflict) }, ID: "a", Port: 1,
			Refuse: func(w http.ResponseWriter, r *http.Request, err error) {
				w.WriteHeader(http.StatusTeapot)
				fmt.Fprintf(w, "%s %v %v", r.URL.Path, errors.Is(err, paddock.Conflict), err)
			},
		}
	})
	res, body := fetch(t, clients(t)["h2c"], "GET", o.URL+"/x", nil)
	if res.StatusCode != http.StatusTeapot || !strings.HasPrefix(body, "/x true port 1 of sandbox a: paused") {
		t.Errorf("%d %q", res.StatusCode, body)
	}
}

func TestWhatIsNoTargetIsRefused(t *testing.T) {
	dial := func(context.Context) (net.Conn, error) { t.Error("dialled"); return nil, errors.New("no") }
	for _, target := range []ingress.Target{{}, {ID: "a", Port: 1}, {Dial: dial, Port: 1}, {Dial: dial, ID: "A", Port: 1}, {Dial: dial, ID: "a"}, {Dial: dial, ID: "a", Port: 65536}} {
		o := serveOutside(t, func() ingress.Target { return target })
		if res, _ := fetch(t, clients(t)["HTTP/1.1"], "GET", o.URL, nil); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%v: %d", target, res.StatusCode)
		}
	}
}

func TestWebSocketsPass(t *testing.T) {
	in := serveInside(t, websocket.Handler(func(c *websocket.Conn) { _, _ = io.Copy(c, c) }))
	o := serveOutside(t, in.target)
	c, err := websocket.Dial("ws"+strings.TrimPrefix(o.URL, "http")+"/socket", "", o.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	for i := range 10 {
		want := strings.Repeat(strconv.Itoa(i), 1<<i)
		if err := websocket.Message.Send(c, want); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := websocket.Message.Receive(c, &got); err != nil || got != want {
			t.Fatalf("%q: %v", got, err)
		}
	}
}

// upgrade begins a protocol by hand.
func upgrade(t *testing.T, url, protocol string) (*net.TCPConn, *bufio.Reader, *http.Response) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn), r, res
}

// switches answers an upgrade, and goes on with the connection.
func switches(t *testing.T, speak func(c net.Conn, r *bufio.Reader)) *inside {
	return rawInside(t, func(c net.Conn, r *bufio.Reader) {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		if req.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain")
			return
		}
		fmt.Fprintf(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", req.Header.Get("Upgrade"))
		speak(c, r)
	})
}

func TestAnUpgradeCarriesBytesBothWaysWithTheEndOfEach(t *testing.T) {
	in := switches(t, func(c net.Conn, r *bufio.Reader) {
		said, _ := io.ReadAll(r) // to the end of one direction
		fmt.Fprintf(c, "heard %s", said)
	})
	o := serveOutside(t, in.target)
	c, r, res := upgrade(t, o.URL, "own-protocol")
	if res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(res.Status)
	}
	if _, err := io.WriteString(c, "hello"); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "heard hello" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestAnUpgradeToMoreRequestsIsNotPassedOn(t *testing.T) {
	in := switches(t, func(net.Conn, *bufio.Reader) {})
	o := serveOutside(t, in.target)
	for _, protocol := range []string{"h2c", "H2C, websocket", "HTTP/2.0", "TLS/1.2"} {
		if _, _, res := upgrade(t, o.URL, protocol); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", protocol, res.Status)
		}
	}
}

func TestAnUpgradeEndsWithTheServerWithACutAndWithTheSandbox(t *testing.T) {
	for name, end := range map[string]func(o *outside, inner func()){
		"server": func(o *outside, _ func()) { o.proxy.Close() },
		"cut":    func(o *outside, _ func()) { o.proxy.Cut("abc", 8080) },
		"all":    func(o *outside, _ func()) { o.proxy.Cut("abc", 0) },
		"inside": func(_ *outside, inner func()) { inner() },
	} {
		t.Run(name, func(t *testing.T) {
			over := make(chan struct{})
			in := switches(t, func(c net.Conn, r *bufio.Reader) {
				go func() { <-over; c.Close() }()
				_, _ = io.Copy(io.Discard, r)
			})
			o := serveOutside(t, in.target)
			closeInside := sync.OnceFunc(func() { close(over) })
			defer closeInside()
			_, r, res := upgrade(t, o.URL, "own-protocol")
			if res.StatusCode != http.StatusSwitchingProtocols {
				t.Fatal(res.Status)
			}
			o.proxy.Cut("abc", 8081) // another port
			o.proxy.Cut("abcd", 0)   // another sandbox
			end(o, closeInside)
			if _, err := r.ReadByte(); err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it goes on: %v", err)
			}
		})
	}
}

func TestEventsArriveOneByOne(t *testing.T) {
	next := make(chan string)
	in := serveInside(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for {
			select {
			case text := <-next:
				fmt.Fprintf(w, "data: %s\n\n", text)
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				next <- "gone"
				return
			}
		}
	}))
	o := serveOutside(t, in.target)
	for name, c := range clients(t) {
		req, _ := http.NewRequestWithContext(bounded(t), "GET", o.URL, nil)
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(res.Body)
		for i := range 3 {
			next <- strconv.Itoa(i)
			line, err := lines.ReadString('\n')
			if err != nil || line != "data: "+strconv.Itoa(i)+"\n" {
				t.Errorf("%s: %q %v", name, line, err)
			}
			_, _ = lines.ReadString('\n')
		}
		res.Body.Close()
		if got := <-next; got != "gone" {
			t.Errorf("%s: the server inside does not hear that its client left", name)
		}
	}
}

func TestABigBodyPassesBothWays(t *testing.T) {
	in := serveInside(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.Copy(w, r.Body)
	}))
	o := serveOutside(t, in.target)
	const size = 64 << 20
	for name, c := range clients(t) {
		req, _ := http.NewRequestWithContext(bounded(t), "POST", o.URL, io.LimitReader(zeros{}, size))
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if n != size || err != nil {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Memory in constant amount: the server inside writes until it is held up, and is
// held up while its reader reads nothing.
func TestASlowReaderHoldsTheServerInsideUp(t *testing.T) {
	var wrote atomic.Int64
	in := serveInside(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 64<<10)
		for wrote.Load() < 1<<30 {
			n, err := w.Write(block)
			wrote.Add(int64(n))
			if err != nil {
				return
			}
		}
	}))
	o := serveOutside(t, in.target)
	for name, c := range clients(t) {
		wrote.Store(0)
		req, _ := http.NewRequestWithContext(bounded(t), "GET", o.URL, nil)
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, res.Body, 1<<20); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if n := wrote.Load(); n >= 1<<30 {
			t.Errorf("%s: %d bytes were taken from a server whose reader reads none", name, n)
		}
		res.Body.Close()
	}
}

func TestTrailersPassBothWays(t *testing.T) {
	in := serveInside(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Trailer", "X-Sum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("X-Sum", "answer to "+r.Trailer.Get("X-Sum"))
		w.Header().Set(http.TrailerPrefix+"X-Late", "late")
	}))
	o := serveOutside(t, in.target)
	for name, c := range clients(t) {
		req, _ := http.NewRequestWithContext(bounded(t), "POST", o.URL, io.NopCloser(strings.NewReader("body")))
		req.Trailer = http.Header{"X-Sum": {"request"}}
		res, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if got := res.Trailer; got.Get("X-Sum") != "answer to request" || got.Get("X-Late") != "late" {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestABodyIsAskedForWhenTheServerInsideAsks(t *testing.T) {
	in := rawInside(t, func(c net.Conn, r *bufio.Reader) {
		head, _ := r.ReadString('\n')
		for line := head; line != "\r\n" && line != ""; line, _ = r.ReadString('\n') {
			head += line
		}
		if strings.HasPrefix(head, "PUT /no") {
			_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		body := make([]byte, 5)
		_, _ = io.ReadFull(r, body)
		fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n%s", body)
	})
	o := serveOutside(t, in.target)
	for path, want := range map[string]string{"/yes": "HTTP/1.1 100 Continue", "/no": "HTTP/1.1 403 Forbidden"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(o.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(patience))
		fmt.Fprintf(c, "PUT %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n", path)
		r := bufio.NewReader(c)
		line, err := r.ReadString('\n')
		if err != nil || strings.TrimSpace(line) != want {
			t.Errorf("%s: %q %v", path, line, err)
		}
		if path == "/yes" {
			_, _ = r.ReadString('\n')
			_, _ = io.WriteString(c, "hello")
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, _ := io.ReadAll(res.Body); string(body) != "hello" {
				t.Errorf("%q", body)
			}
		}
		c.Close()
	}
}

func TestGRPCReachesAServerThatSpeaksHTTP2(t *testing.T) {
	in := serveInside(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
		_, _ = io.Copy(w, r.Body)
		w.Header().Set("Grpc-Status", "0")
		w.Header().Set("X-Proto", r.Proto)
	}))
	o := serveOutside(t, in.target)
	for range 3 {
		req, _ := http.NewRequestWithContext(bounded(t), "POST", o.URL+"/a.B/C", strings.NewReader("message"))
		req.Header.Set("Content-Type", "application/grpc+proto")
		req.Header.Set("TE", "trailers")
		res, err := clients(t)["h2c"].Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if string(body) != "message" || res.Trailer.Get("Grpc-Status") != "0" {
			t.Errorf("%d %q %v", res.StatusCode, body, res.Trailer)
		}
	}
}

// lines are so many headers, each of a name of its own.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "A%d: b\r\n", i)
	}
	return b.String()
}

func TestHostileAnswersHaveBounds(t *testing.T) {
	interim := strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 1000)
	for name, text := range map[string]string{
		"a head without an end":            "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"headers without an end":           "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1<<17) + "\r\n",
		"more headers than anyone needs":   "HTTP/1.1 200 OK\r\n" + lines(300) + "Content-Length: 0\r\n\r\n",
		"interim answers without an end":   interim + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"two lengths":                      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"a length that is none":            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"an encoding that is none":         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
		"a switch that nobody asked for":   "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nraw",
		"a switch without a name":          "HTTP/1.1 101 Switching Protocols\r\n\r\nraw",
		"a code that is none":              "HTTP/1.1 777 What\r\nContent-Length: 0\r\n\r\n",
		"what is not HTTP":                 "SSH-2.0-OpenSSH_9.9\r\n",
		"a head with a line end in a name": "HTTP/1.1 200 OK\r\nX\x00Y: z\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			in := answers(t, text)
			o := serveOutside(t, in.target)
			res, body := fetch(t, clients(t)["h2c"], "GET", o.URL, nil)
			if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, "sandbox abc") {
				t.Errorf("%d %q", res.StatusCode, body[:min(len(body), 200)])
			}
		})
	}
}

func TestAnAnswerThatBreaksOffIsNotTakenForWhole(t *testing.T) {
	for name, text := range map[string]string{
		"length": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nabc",
		"chunks": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzzz\r\n",
	} {
		in := rawInside(t, func(c net.Conn, r *bufio.Reader) {
			_, _ = http.ReadRequest(r)
			_, _ = io.WriteString(c, text)
		})
		o := serveOutside(t, in.target)
		for proto, c := range clients(t) {
			req, _ := http.NewRequestWithContext(bounded(t), "GET", o.URL, nil)
			res, err := c.Do(req)
			if err != nil {
				continue // it was told even sooner
			}
			if body, err := io.ReadAll(res.Body); err == nil {
				t.Errorf("%s, %s: %q looks whole", name, proto, body)
			}
			res.Body.Close()
		}
	}
}

func TestWhatFollowsAnAnswerIsNobodysAnswer(t *testing.T) {
	in := answers(t, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngoodHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
	o := serveOutside(t, in.target)
	client := clients(t)["HTTP/1.1"]
	// Many at once, so that one takes the connection the moment another gives it back.
	for range 8 {
		t.Run("one of several", func(t *testing.T) {
			t.Parallel()
			for range 50 {
				if _, body := fetch(t, client, "GET", o.URL, nil); body != "good" {
					t.Fatalf("%q", body)
				}
			}
		})
	}
}

func TestAConnectionIsKeptForItsOwnIncarnationAlone(t *testing.T) {
	in := serveInside(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	var target ingress.Target
	o := serveOutside(t, func() ingress.Target { return target })
	c := clients(t)["HTTP/1.1"]
	dials := func(want int64, change func()) {
		t.Helper()
		before := in.dials.Load()
		target = in.target()
		change()
		fetch(t, c, "GET", o.URL, nil)
		if got := in.dials.Load() - before; got != want {
			t.Errorf("%d connections were made, not %d", got, want)
		}
	}
	dials(1, func() {})
	fetch(t, c, "GET", o.URL, nil) // a connection is put back a moment after its answer
	dials(1, func() { target.Incarnation = "2" })
	dials(1, func() { target.ID = "other" })
	dials(1, func() { target.Port = 81 })
	dials(1, func() { target.Incarnation = "" })
	dials(1, func() { target.Incarnation = "" })
}

func TestABodyThatNobodyReadsIsNoneOfTheNextRequest(t *testing.T) {
	o := serveOutside(t, (&inside{address: "127.0.0.1:1"}).target)
	c, err := net.Dial("tcp", strings.TrimPrefix(o.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(c)
	for range 5 {
		_, _ = io.WriteString(c, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: evil\r\n\r\n")
		_, _ = io.WriteString(c, "0123456789ab") // the rest, which may come late
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusBadGateway {
			t.Errorf("%s, %v", res.Status, err)
		}
	}
}

func TestACutEndsRequestsAndWhatIsKept(t *testing.T) {
	reached := make(chan struct{})
	in := serveInside(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		<-r.Context().Done()
	}))
	o := serveOutside(t, in.target)
	ended := make(chan int)
	go func() {
		res, err := http.Get(o.URL)
		if err != nil {
			ended <- 0
			return
		}
		res.Body.Close()
		ended <- res.StatusCode
	}()
	<-reached
	o.proxy.Cut("abc", 8080)
	select {
	case code := <-ended:
		if code != http.StatusBadGateway {
			t.Errorf("%d", code)
		}
	case <-bounded(t).Done():
		t.Error("it goes on")
	}
	if n := in.open.Load(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

func TestAClosedProxyRefuses(t *testing.T) {
	in := serveInside(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	o := serveOutside(t, in.target)
	fetch(t, clients(t)["HTTP/1.1"], "GET", o.URL, nil)
	o.proxy.Close()
	o.proxy.Close()
	if res, _ := fetch(t, clients(t)["HTTP/1.1"], "GET", o.URL, nil); res.StatusCode != http.StatusBadGateway {
		t.Errorf("%d", res.StatusCode)
	}
	if n := in.open.Load(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

func TestAPortThatSpeaksTLSIsReached(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secured") }))
	defer s.Close()
	in := &inside{address: s.Listener.Addr().String()}
	o := serveOutside(t, func() ingress.Target {
		target := in.target()
		target.TLS = true
		return target
	})
	for range 3 {
		if _, body := fetch(t, clients(t)["h2c"], "GET", o.URL, nil); body != "secured" {
			t.Errorf("%q", body)
		}
	}
}
