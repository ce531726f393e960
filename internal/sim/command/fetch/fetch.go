// Package fetch has the network clients curl and wget. They connect through the
// kernel's dialer only; without one they fail as the real tools do that cannot
// connect, and the attempt is recorded. They read no file of the host: no
// configuration, no certificates, no proxies.
package fetch

import (
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
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
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
	url       string // where it came from at last
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
	if err := beside(t, func() (err error) {
		a.Response, err = client.Do(req) //nolint:bodyclose // closed below
		return err
	}); err != nil {
		return err
	}
	defer a.Body.Close()
	a.Body = &body{t: t, in: a.Body, limit: t.K.Limits.Download}
	return use(a)
}

// beside runs f on a goroutine and waits for it; who ends the task meanwhile
// leaves it to its context.
func beside(t *kernel.Task, f func() error) error {
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = f()
	}()
	for {
		e := t.Await(done, time.Time{})
		if e == nil {
			return err
		}
		if e != linux.EINTR {
			return e
		}
		t.Caught() // it is for nobody
	}
}

// A body is read beside the task, and bounded.
type body struct {
	t     *kernel.Task
	in    io.ReadCloser
	limit int64
	n     int64
}

func (b *body) Read(p []byte) (n int, err error) {
	// What a read that was left behind writes must be nobody's.
	own := make([]byte, min(len(p), 32<<10))
	err = beside(b.t, func() (err error) {
		n, err = b.in.Read(own)
		return err
	})
	copy(p, own[:n])
	b.n += int64(n)
	b.t.Step(1 + n/256)
	b.t.Bound("download", b.n, b.limit)
	return n, err
}

func (b *body) Close() error { return b.in.Close() }

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
