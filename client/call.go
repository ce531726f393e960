package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// Bounds on what the client holds in memory for an answer.
const (
	maxAnswer = 256 << 20 // an answer in JSON
	maxError  = 1 << 20   // an error
)

// dialer connects to the server.
type dialer func(ctx context.Context) (net.Conn, error)

// reach prepares the HTTP client for the server's address.
func (d *Driver) reach(base *url.URL) error {
	// The transport writes to its TLS configuration, and other drivers may have the same one.
	t := &http.Transport{
		MaxIdleConnsPerHost:   64,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Hour, // the body of a file is sent only after the server has opened the file
		TLSClientConfig:       d.o.TLS.Clone(),
		ForceAttemptHTTP2:     true,
		HTTP2:                 &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	network, address := "tcp", base.Host
	switch base.Scheme {
	case "http", "https":
		if base.Host == "" || (base.Path != "" && base.Path != "/") || base.RawQuery != "" || base.User != nil {
			return fmt.Errorf("the server's address %q is not %s://host:port: %w", d.o.Address, base.Scheme, paddock.Invalid)
		}
		if base.Port() == "" {
			address = net.JoinHostPort(base.Hostname(), map[string]string{"http": "80", "https": "443"}[base.Scheme])
		}
	case "unix":
		if base.Host != "" || base.Path == "" {
			return fmt.Errorf("the server's address %q is not unix:///path: %w", d.o.Address, paddock.Invalid)
		}
		network, address = "unix", base.Path
		base = &url.URL{Scheme: "http", Host: "paddock"}
	default:
		return fmt.Errorf("the server's address %q must begin with https://, http:// or unix://: %w", d.o.Address, paddock.Invalid)
	}
	plain := &net.Dialer{Timeout: 10 * time.Second}
	connect := d.o.Dial
	if connect == nil {
		connect = func(ctx context.Context) (net.Conn, error) { return plain.DialContext(ctx, network, address) }
	}
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return connect(ctx) }
	d.base = &url.URL{Scheme: base.Scheme, Host: base.Host}
	d.dial = d.secured(connect)
	d.http = &http.Client{
		Transport: t,
		// No redirects, so that the key is sent to no other server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

// A call is a request with a short answer.
type call struct {
	method, path string
	query        url.Values
	header       http.Header
	body         any    // sent as JSON, if not nil
	raw          []byte // sent as it is, if not nil
	answer       any    // filled from JSON, if not nil
	repeat       bool   // the request is idempotent
}

// call makes a request. It repeats an idempotent request if the connection broke.
func (d *Driver) call(ctx context.Context, c call) error {
	if err := d.open(); err != nil {
		return err
	}
	return d.ask(ctx, c)
}

// ask is call for a driver that may be closed.
func (d *Driver) ask(ctx context.Context, c call) error {
	body := c.raw
	if c.body != nil {
		var err error
		if body, err = json.Marshal(c.body); err != nil {
			return fmt.Errorf("encode as JSON: %w: %w", err, paddock.Invalid)
		}
	}
	tries := d.tries()
	for {
		err := d.once(ctx, c, body)
		if err == nil || !c.repeat || !broken(err) || ctx.Err() != nil {
			return err
		}
		if !tries.again(ctx) {
			return err
		}
	}
}

func (d *Driver) once(ctx context.Context, c call, body []byte) error {
	req, err := d.request(ctx, c.method, c.path, c.query)
	if err != nil {
		return err
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	if body != nil {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		if c.raw == nil {
			req.Header.Set("Content-Type", "application/json")
		} else {
			req.Header.Set("Content-Type", "application/octet-stream")
		}
	}
	res, err := d.do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if c.answer != nil {
		if err := api.DecodeAnswer(res.Body, maxAnswer, c.answer); err != nil {
			return d.lost(ctx, err)
		}
	}
	// Read the rest of the body, because otherwise the connection cannot be reused.
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	return nil
}

// maxPath bounds the path and query of a request. A longer path cannot be the name of a
// file, and no server accepts it.
const maxPath = 32 << 10

// request returns a request with the headers that every request has.
func (d *Driver) request(ctx context.Context, method, path string, query url.Values) (*http.Request, error) {
	target := d.base.Scheme + "://" + d.base.Host + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	if len(target) > maxPath {
		return nil, fmt.Errorf("a path of %d bytes is too long: %w", len(target), paddock.Invalid)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	if d.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+d.o.Key)
	}
	d.mu.Lock()
	l := d.lease
	d.mu.Unlock()
	if l != nil {
		req.Header.Set(api.LeaseHeader, l.token)
	}
	return req, nil
}

// do sends a request. An answer without a success status is an error.
func (d *Driver) do(req *http.Request) (*http.Response, error) {
	res, err := d.http.Do(req)
	if err != nil {
		return nil, d.lost(req.Context(), err)
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, refusal(res)
}

// refusal reads an answer without a success status.
func refusal(res *http.Response) error {
	var f api.Failure
	err := api.DecodeAnswer(res.Body, maxError, &f)
	if err == nil && f.Error.Kind != "" {
		return f.Error.Err()
	}
	return fmt.Errorf("unexpected answer %q, which is not from a Paddock server: %w", res.Status, kindOf(res.StatusCode))
}

// kindOf returns the kind of an answer that a proxy between client and server gave.
func kindOf(code int) paddock.Kind {
	switch code {
	case http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge:
		return paddock.Invalid
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return paddock.Denied
	case http.StatusTooManyRequests, http.StatusRequestEntityTooLarge:
		return paddock.Exhausted
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return paddock.Unavailable
	}
	return paddock.Internal
}

// errBroken reports that a connection could not be made, or broke.
var errBroken = errors.New("no connection to the server")

func broken(err error) bool { return errors.Is(err, errBroken) }

// lost classifies an error of the connection.
func (d *Driver) lost(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer in time: %w: %w", paddock.Timeout, context.DeadlineExceeded)
	case ctx.Err() != nil:
		return fmt.Errorf("the call was canceled: %w: %w", paddock.Canceled, context.Canceled)
	}
	var known paddock.Kind
	if errors.As(err, &known) && known != paddock.Unavailable {
		return err
	}
	var told *url.Error
	if errors.As(err, &told) {
		err = told.Err // without the address, which may be long
	}
	return fmt.Errorf("%w: %s: %w", errBroken, strings.TrimSpace(err.Error()), paddock.Unavailable)
}

// tries bounds the time for which a broken connection is retried.
type tries struct {
	d     *Driver
	until time.Time
	pause time.Duration
}

func (d *Driver) tries() *tries {
	return &tries{d: d, until: time.Now().Add(d.o.Patience), pause: 5 * time.Millisecond}
}

// again waits before the next try, longer each time. It reports false when the time is
// over.
func (t *tries) again(ctx context.Context) bool {
	if time.Now().After(t.until) {
		return false
	}
	timer := time.NewTimer(t.pause)
	defer timer.Stop()
	t.pause = min(2*t.pause, time.Second)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-t.d.ctx.Done():
	}
	return false
}
