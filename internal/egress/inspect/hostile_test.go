package inspect

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/secret"
)

const value = "sk-real0123456789value"

// bind adds a secret to the world, and returns its placeholder.
func (w *world) bind(places ...paddock.SecretPlace) string {
	w.t.Helper()
	secrets := []paddock.Secret{{Name: "KEY", Value: value, Hosts: []string{name}, Places: places}}
	store, err := secret.New([]byte("seed"), secrets)
	if err != nil {
		w.t.Fatal(err)
	}
	w.set = store.Bound(secrets)
	return store.Environment()["KEY"]
}

func TestASecretGoesOutAndDoesNotComeBack(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		seen := make(chan []string, 1)
		w := secure(t, func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			user, pass, _ := r.BasicAuth()
			seen <- []string{r.Header.Get("X-Key"), r.URL.RawQuery, string(b), user + pass, r.Header.Get("Accept-Encoding") + r.Header.Get("Range"), r.RequestURI, r.Host}
			w.Header().Set("X-Echo", r.Header.Get("X-Key"))
			w.Header().Set("Trailer", "X-Late")
			_, _ = io.WriteString(w, "your key is "+value+", in base64 "+base64.StdEncoding.EncodeToString([]byte("u:"+value)))
			w.Header().Set("X-Late", value)
		})
		p := w.bind(paddock.SecretHeader, paddock.SecretQuery, paddock.SecretBody)
		r := request(t, "POST", w.url("/"+p+"?k="+p), strings.NewReader(`{"key":"`+p+`"}`))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Key", "Bearer "+p)
		r.Header.Set("Accept-Encoding", "gzip, br")
		r.Header.Set("Range", "bytes=0-3")
		r.SetBasicAuth("u", p)
		response, body := get(t, w.client(http2), r)
		got := <-seen
		want := []string{"Bearer " + value, "k=" + value, `{"key":"` + value + `"}`, "u" + value, "identity", "/" + p + "?k=" + value, name}
		if !slices.Equal(got, want) {
			t.Errorf("the destination saw %q", got)
		}
		if strings.Contains(body, value) || !strings.Contains(body, "your key is "+p) || response.Header.Get("X-Echo") != "Bearer "+p || response.Trailer.Get("X-Late") != p {
			t.Errorf("the guest saw %q, %q, %q", body, response.Header, response.Trailer)
		}
		if strings.Contains(body, base64.StdEncoding.EncodeToString([]byte(value))[:12]) {
			t.Errorf("base64 of it came back: %s", body)
		}
		if o := w.last(); !slices.Equal(o.Secrets, []string{"KEY"}) || o.Err != nil {
			t.Errorf("%+v", o)
		}
	})
}

// A secret that must not be used stays outside, in whichever part of a request it is, and so does the rest of the request.
func TestASecretThatIsRefusedIsNotSent(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		var leaked atomic.Bool
		w := secure(t, func(_ http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			if strings.Contains(string(b)+r.URL.RawQuery+r.Header.Get("X-Key"), value) {
				leaked.Store(true)
			}
		})
		p := w.bind(paddock.SecretHeader, paddock.SecretQuery, paddock.SecretBody)
		w.unused = &Refusal{Verdict: decide.Verdict{Rule: -1, Reason: "the monitor keeps it back"}}
		long := strings.Repeat("x", 300<<10)
		for part, r := range map[string]*http.Request{
			"query": request(t, "GET", w.url("/?k="+p), nil), "header": request(t, "GET", w.url("/"), nil),
			"body": request(t, "POST", w.url("/"), strings.NewReader(`{"key":"`+p+`"}`)), "long body": request(t, "POST", w.url("/"), strings.NewReader(`{"x":"`+long+`","key":"`+p+`"}`)),
		} {
			if part == "header" {
				r.Header.Set("X-Key", p)
			}
			if r.Body != nil {
				r.Header.Set("Content-Type", "application/json")
			}
			response, body := get(t, w.client(http2), r)
			if response.StatusCode != http.StatusForbidden || !strings.Contains(body, "the monitor keeps it back") {
				t.Errorf("%s: %d, %s", part, response.StatusCode, body)
			}
			if o := w.last(); len(o.Secrets) != 0 || o.Err == nil {
				t.Errorf("%s: %+v", part, o)
			}
		}
		if leaked.Load() {
			t.Error("the destination has it")
		}
		w.unused = nil
		if response, _ := get(t, w.client(http2), request(t, "GET", w.url("/?k="+p), nil)); response.StatusCode != http.StatusOK || !leaked.Load() {
			t.Errorf("what may be used was not: %d", response.StatusCode)
		}
	})
}

func TestASecretDoesNotComeBackInNames(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		for _, announced := range []bool{true, false} {
			w := secure(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/early" {
					w.Header().Set(value+"-Early", "1")
					w.WriteHeader(http.StatusEarlyHints)
				}
				w.Header().Set(strings.ToLower(value), "1")
				w.Header().Set("X-"+strings.ToUpper(value), "2")
				w.Header().Set("Vary", http.CanonicalHeaderKey(value))
				w.Header().Set("Access-Control-Expose-Headers", strings.ToLower(value))
				prefix := http.TrailerPrefix
				if announced {
					prefix = ""
					w.Header().Set("Trailer", value+"-Late")
				}
				_, _ = io.WriteString(w, "body")
				w.(http.Flusher).Flush() // so that there is a trailer
				w.Header().Set(prefix+value+"-Late", "3")
			})
			p := w.bind()
			for _, path := range []string{"/", "/early"} {
				r := request(t, "GET", w.url(path), nil)
				var early []string
				r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
					early = append(early, fmt.Sprint(h))
					return nil
				}}))
				var names string
				response, body := get(t, w.client(http2), r)
				for name := range response.Trailer {
					names += " " + name
				}
				seen := fmt.Sprint(response.Status, response.Header, names, response.Trailer, early)
				if strings.Contains(strings.ToLower(seen), strings.ToLower(value)) || body != "body" {
					t.Errorf("announced %v, %s: the guest saw %q, %q", announced, path, seen, body)
				}
				late := response.Trailer.Get(p + "-Late")
				if response.Header.Get(p) != "1" || response.Header.Get("X-"+p) != "2" || late != "3" || (path == "/early") != (len(early) > 0) {
					t.Errorf("announced %v, %s: what is no secret did not arrive: %q", announced, path, seen)
				}
			}
		}
	})
}

func TestASecretNeverGoesOutWithoutTLS(t *testing.T) {
	seen := make(chan string, 1)
	w := begin(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("X-Key") }, false)
	p := w.bind()
	r := request(t, "GET", w.url("/"), nil)
	r.Header.Set("X-Key", p)
	get(t, w.client(false), r)
	if got := <-seen; got != p {
		t.Errorf("the destination saw %q", got)
	}
}

func TestAnAnswerThatCannotBeScrubbedIsRefusedOrUndone(t *testing.T) {
	w := secure(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "it is "+value)
			_ = z.Close()
		case "/br":
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "anything")
		case "/part":
			w.Header().Set("Content-Range", "bytes 0-3/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, "sk-r")
		}
	})
	p := w.bind()
	c := w.client(true)
	if response, body := get(t, c, request(t, "GET", w.url("/gzip"), nil)); body != "it is "+p || response.Header.Get("Content-Encoding") != "" {
		t.Errorf("gzip: %q", body)
	}
	for _, path := range []string{"/br", "/part"} {
		if response, body := get(t, c, request(t, "GET", w.url(path), nil)); response.StatusCode != 502 || !strings.Contains(body, "secrets could not be found") {
			t.Errorf("%s: %d %q", path, response.StatusCode, body)
		}
	}
}

func TestABodyThatChangesLengthSaysItsOwn(t *testing.T) {
	lengths := make(chan int64, 1)
	w := secure(t, func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if bytes.Count(b, []byte("%2F")) == 0 {
			t.Errorf("the body is %.60q", b)
		}
		lengths <- r.ContentLength
	})
	secrets := []paddock.Secret{{Name: "KEY", Value: "with/slash/0123456789", Places: []paddock.SecretPlace{paddock.SecretBody}}}
	store, err := secret.New([]byte("seed"), secrets)
	if err != nil {
		t.Fatal(err)
	}
	w.set = store.Bound(secrets)
	p := store.Environment()["KEY"]
	for _, tc := range []struct {
		body string
		want int64
	}{{"k=" + p, int64(len("k=with%2Fslash%2F0123456789"))}, {"k=" + p + strings.Repeat("x", longestKept), -1}} {
		r := request(t, "POST", w.url("/"), strings.NewReader(tc.body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if response, body := get(t, w.client(false), r); response.StatusCode != 200 {
			t.Errorf("%d %s", response.StatusCode, body)
		} else if got := <-lengths; got != tc.want {
			t.Errorf("its length is said to be %d, want %d", got, tc.want)
		}
	}
}

// webSocket is a destination that answers every byte with the next value.
func webSocket(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" || r.ProtoMajor != 1 {
			http.Error(w, "no", http.StatusBadRequest)
			return
		}
		c, b, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Key: "+r.Header.Get("X-Key")+"\r\n\r\nhi")
		for {
			ch, err := b.ReadByte()
			if err != nil {
				return
			}
			if _, err := c.Write([]byte{ch + 1}); err != nil {
				return
			}
		}
	}
}

func TestAWebSocketIsJudgedAndCarried(t *testing.T) {
	w := secure(t, webSocket(t))
	p := w.bind()
	cut := make(chan struct{})
	w.rules = func(decide.Request) Decision { return Decision{Verdict: decide.Verdict{Allow: true}, Cut: cut} }
	c := tls.Client(w.connect(), &tls.Config{ServerName: name, RootCAs: w.proxy.o.Roots, MinVersion: tls.VersionTLS12})
	if _, err := io.WriteString(c, "GET /chat HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: x\r\nX-Key: "+p+"\r\n\r\nab"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	response, err := http.ReadResponse(r, nil)
	if err != nil || response.StatusCode != 101 || response.Header.Get("X-Key") != p {
		t.Fatalf("%+v, %v", response, err)
	}
	b := make([]byte, 4)
	if _, err := io.ReadFull(r, b); err != nil || string(b) != "hibc" {
		t.Fatalf("%q, %v", b, err)
	}
	close(cut)
	if rest, err := io.ReadAll(r); len(rest) > 0 {
		t.Errorf("it goes on: %q, %v", rest, err)
	}
}

func TestAWebSocketThatIsDeniedEndsTheConnection(t *testing.T) {
	w := begin(t, webSocket(t), false)
	w.rules = func(decide.Request) Decision {
		return Decision{Verdict: decide.Verdict{Rule: -1, Reason: "no rule allows it"}}
	}
	c := w.connect()
	// Nothing judges what follows, so nothing may carry it.
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(c)
	response, err := http.ReadResponse(r, nil)
	if err != nil || response.StatusCode != 403 {
		t.Fatalf("%+v, %v", response, err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	if b, err := r.Peek(1); err == nil {
		t.Errorf("it goes on with %q", b)
	}
	if len(w.asked) != 1 {
		t.Errorf("%d requests were judged", len(w.asked))
	}
}

func TestAnOfferOfHTTP2IsDeclined(t *testing.T) {
	w := begin(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Upgrade")+"plain")
	}, false)
	c := w.connect()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(response.Body); err != nil || response.StatusCode != 200 || string(b) != "plain" {
		t.Errorf("%d, %q, %v", response.StatusCode, b, err)
	}
}

// ask sends a request in absolute form to a proxy.
func ask(t *testing.T, c net.Conn, r *bufio.Reader, text string) (int, string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(b)
}

func TestAProxysClientIsJudgedByItsTargets(t *testing.T) {
	w := begin(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host+r.RequestURI) }, false)
	serve := func(ctx context.Context, c net.Conn) error {
		return w.proxy.ServeProxy(ctx, c, func(_ context.Context, f decide.Flow) (func(net.Conn) error, error) {
			if f.Host.String() != name || f.Port != 443 {
				return nil, &Refusal{Verdict: decide.Verdict{Rule: 3, Reason: "rules[3] denies it", Hint: "ask"}}
			}
			return func(c net.Conn) error {
				defer c.Close()
				_, err := io.Copy(c, c)
				return err
			}, nil
		})
	}
	c := w.serve(serve)
	r := bufio.NewReader(c)
	for _, host := range []string{"a.example", "b.example:8080"} {
		if status, body := ask(t, c, r, "GET http://"+host+"/x?y HTTP/1.1\r\nHost: "+host+"\r\nProxy-Connection: keep-alive\r\n\r\n"); status != 200 || body != host+"/x?y" {
			t.Errorf("%s: %d %q", host, status, body)
		}
	}
	for text, want := range map[string]int{
		"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n":                               400,
		"GET https://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n":              400,
		"GET ftp://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n":                400,
		"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n":               400,
		"CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n":                   400,
		"CONNECT u@a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n":             400,
		"CONNECT a.example:443/ HTTP/1.1\r\nHost: a.example:443\r\n\r\n":          400,
		"CONNECT b.example:443 HTTP/1.1\r\nHost: b.example:443\r\n\r\n":           403,
		"CONNECT a.example:444 HTTP/1.1\r\nHost: a.example:444\r\n\r\n":           403,
		"CONNECT a.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n":        400,
		"CONNECT a.example%00.b:443 HTTP/1.1\r\nHost: a.example%00.b:443\r\n\r\n": 400,
	} {
		c := w.serve(serve)
		if status, body := ask(t, c, bufio.NewReader(c), text); status != want || want == 403 && !strings.Contains(body, "rules[3] denies it") {
			t.Errorf("%q: %d %q", text, status, body)
		}
	}
	if _, err := io.WriteString(c, "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\nearly"); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(r, nil)
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("%+v, %v", response, err)
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(r, b); err != nil || string(b) != "early" {
		t.Errorf("the tunnel gives %q, %v", b, err)
	}
}

func TestALongBodyTakesNoMemory(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		w := secure(t, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.Copy(w, r.Body)
		})
		const size = 128 << 20 // garbage of the whole process counts too
		response, err := w.client(http2).Do(request(t, "POST", w.url("/"), io.LimitReader(zeros{}, size)))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		most := uint64(0)
		n, err := io.Copy(io.Discard, io.TeeReader(response.Body, watcher(func() {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
		})))
		if err != nil || n != size {
			t.Fatalf("%d bytes, %v", n, err)
		}
		if most > size/2 {
			t.Errorf("%d MiB were in use", most>>20)
		}
	})
}

// watcher calls look from time to time.
func watcher(look func()) io.Writer {
	n := 0
	return writer(func(b []byte) (int, error) {
		if n += len(b); n > 8<<20 {
			n = 0
			look()
		}
		return len(b), nil
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { return len(b), nil }

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }

func FuzzFront(f *testing.F) {
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"), uint8(3))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\n"), uint8(1))
	f.Add([]byte("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"), uint8(7))
	f.Add([]byte("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nraw"), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		whole, wholeErr := through(in, len(in)+1)
		cut, cutErr := through(in, int(size%8)+1)
		if !bytes.Equal(whole, cut) || (wholeErr == nil) != (cutErr == nil) {
			t.Fatalf("%q, %v; in pieces %q, %v", whole, wholeErr, cut, cutErr)
		}
		// The standard library must read the output in the same way.
		r := bufio.NewReader(bytes.NewReader(whole))
		for {
			q, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if q.Host == "refused" {
				if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
					t.Fatalf("%q comes behind what is refused", rest)
				}
				return
			}
			if len(q.TransferEncoding) > 0 && q.ContentLength >= 0 {
				t.Fatalf("two lengths: %+v", q)
			}
			if _, err := io.Copy(io.Discard, q.Body); err != nil {
				return
			}
		}
	})
}

// through returns what a front lets through.
func through(in []byte, size int) ([]byte, error) {
	b, err := io.ReadAll(&front{Conn: &pieces{rest: in, size: size}})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b, err
}
