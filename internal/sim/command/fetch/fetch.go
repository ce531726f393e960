// Package fetch has the network clients curl and wget. They connect through the
// kernel's dialer only; without one they fail as the real tools do that cannot
// connect, and the attempt is recorded. They read no file of the host: no
// configuration, no certificates, no proxies.
package fetch

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// Commands lists the programs. The roots are the authorities that are
// believed, asked for when they are needed; nil is none, so that only -k reaches
// a server by https.
func Commands(roots func() *x509.CertPool) []command.Command {
	if roots == nil {
		roots = x509.NewCertPool
	}
	return []command.Command{
		{Name: "curl", Run: func(t *kernel.Task) int { return curl(t, roots) }},
		{Name: "wget", Run: func(t *kernel.Task) int { return wget(t, roots) }},
	}
}

// errNoNetwork is that there is no dialer.
var errNoNetwork = errors.New("there is no network in this sandbox")

// errTooManyRedirects is that an answer led on too often.
var errTooManyRedirects = errors.New("maximum redirects followed")

// A request is what is asked of a server.
type request struct {
	method    string
	url       *url.URL
	header    http.Header
	body      []byte
	follow    bool
	redirects int
	insecure  bool
	timeout   time.Duration
}

// An answer is what came of it.
type answer struct {
	*http.Response
	raw       io.Reader // the body, for what runs beside the task; Body is for the task
	url       string    // where it came from at last
	redirects int
	passed    []*http.Response // what led there, without bodies
}

// refuse notes what is not reached.
func refuse(t *kernel.Task, target string) {
	if t.K.Refused != nil {
		t.K.Refused("network", target, "there is no network")
	}
}

// do sends a request and hands the answer to use, on the task's goroutine. The
// exchange itself runs beside it, so that the task can be ended meanwhile.
func do(t *kernel.Task, roots func() *x509.CertPool, r request, use func(*answer) error) error {
	if t.K.Dial == nil {
		refuse(t, r.url.Host)
		return errNoNetwork
	}
	limit := t.K.Limits.Request
	if r.timeout > 0 && r.timeout < limit {
		limit = r.timeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	believed := &tls.Config{InsecureSkipVerify: r.insecure, MinVersion: tls.VersionTLS12} //nolint:gosec // -k asks for it
	if !r.insecure {
		believed.RootCAs = x509.NewCertPool() // nil would be the host's own
		if r.url.Scheme == "https" || r.follow {
			believed.RootCAs = roots()
		}
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return t.K.Dial(ctx, network, address)
		},
		TLSClientConfig:   believed,
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 1 << 20,
	}
	defer transport.CloseIdleConnections()
	a := &answer{url: r.url.String()}
	bound := int(t.K.Limits.Redirects)
	if r.redirects >= 0 {
		bound = min(bound, r.redirects)
	}
	client := &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, via []*http.Request) error {
		if !r.follow {
			return http.ErrUseLastResponse
		}
		if len(via) > bound {
			return errTooManyRedirects
		}
		if next.Response != nil {
			a.passed = append(a.passed, next.Response) //nolint:bodyclose // the client closes the bodies of redirects
		}
		a.redirects, a.url = len(via), next.URL.String()
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), strings.NewReader(string(r.body)))
	if err != nil {
		return err
	}
	req.Header = r.header.Clone()
	if h := req.Header.Get("Host"); h != "" {
		req.Host = h
		req.Header.Del("Host")
	}
	if a.Response, err = kernel.Beside(t, func() (*http.Response, error) { return client.Do(req) }); err != nil { //nolint:bodyclose // closed below
		return err
	}
	defer a.Body.Close()
	a.raw = a.Body
	a.Body = &body{t: t, in: a.raw, limit: t.K.Limits.Download}
	return use(a)
}

// A body is what came, read beside the task, and bounded.
type body struct {
	t     *kernel.Task
	in    io.Reader // which uses no task
	limit int64
	n     int64
}

func (b *body) Read(p []byte) (int, error) {
	// What a read that was left behind writes must be nobody's.
	own := make([]byte, min(len(p), 32<<10))
	n, err := kernel.Beside(b.t, func() (int, error) { return b.in.Read(own) })
	copy(p, own[:n])
	b.n += int64(n)
	b.t.Step(1 + n/256)
	b.t.Bound("download", b.n, b.limit)
	if errors.Is(err, errTooMuch) {
		b.t.Bound("download", b.limit+1, b.limit)
	}
	return n, err
}

// Close does nothing: what is read is closed where it was opened.
func (b *body) Close() error { return nil }

// errTooMuch is that more came than may.
var errTooMuch = errors.New("more came than the limit of an answer")

// An unpacker is a body that came compressed, without its compression. It uses no task. What comes is bounded as what
// comes out is.
type unpacker struct {
	in   io.Reader
	left int64 // bytes that may come
	z    *gzip.Reader
}

// errEncoding is that a body is not compressed as its head says.
var errEncoding = errors.New("unrecognized content encoding type")

func (u *unpacker) Read(p []byte) (int, error) {
	if u.z == nil {
		z, err := gzip.NewReader(bounded{u})
		if errors.Is(err, gzip.ErrHeader) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, errEncoding
		}
		if err != nil {
			return 0, err
		}
		u.z = z
	}
	return u.z.Read(p)
}

// bounded is what comes to an unpacker.
type bounded struct{ u *unpacker }

func (b bounded) Read(p []byte) (int, error) {
	if b.u.left <= 0 {
		return 0, errTooMuch
	}
	n, err := b.u.in.Read(p[:min(int64(len(p)), b.u.left)])
	b.u.left -= int64(n)
	return n, err
}

// head prints a response's first lines.
func head(w io.Writer, r *http.Response, names []string) {
	fmt.Fprintf(w, "%s %s\r\n", r.Proto, r.Status)
	for _, name := range names {
		for _, v := range r.Header[name] {
			fmt.Fprintf(w, "%s: %s\r\n", name, v)
		}
	}
	fmt.Fprint(w, "\r\n")
}
