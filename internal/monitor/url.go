package monitor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// A URL is a judge behind an HTTP endpoint: the input is the body of a POST, the answer that of the response.
type URL struct {
	address string
	key     string
	client  *http.Client
}

// NewURL makes a judge of an address with the scheme https, or http on this machine's loopback. A key that is not empty is
// sent as a bearer token. Roots that are not nil verify certificates instead of the system's.
func NewURL(address, key string, config *tls.Config) (*URL, error) {
	client, err := newClient(address, config)
	if err != nil {
		return nil, err
	}
	return &URL{address: address, key: key, client: client}, nil
}

// CheckURL checks the address of a judge. An error is Invalid and says what is allowed.
func CheckURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return fmt.Errorf("it is no URL: %w", paddock.Invalid) // the text of err may hold a password
	case u.User != nil:
		return fmt.Errorf("it has a user or password in it; name a key instead: %w", paddock.Invalid)
	case u.Host == "" || u.Fragment != "":
		return fmt.Errorf("it is not the address of an endpoint: %w", paddock.Invalid)
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && loopback(u.Hostname()):
		return nil
	case u.Scheme == "http":
		return fmt.Errorf("http is for this machine's loopback alone, because the text would be readable on the way; use https: %w", paddock.Invalid)
	}
	return fmt.Errorf("it begins with neither https:// nor http://127.0.0.1: %w", paddock.Invalid)
}

// loopback reports whether a host is this machine's loopback by its name or address.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// errRedirect is about an endpoint that points elsewhere: the input is for nobody else.
var errRedirect = errors.New("it redirects elsewhere, which is not followed")

func newClient(address string, config *tls.Config) (*http.Client, error) {
	if err := CheckURL(address); err != nil {
		return nil, err
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, MaxIdleConns: judgesAtOnce, IdleConnTimeout: time.Minute,
		MaxResponseHeaderBytes: maxAnswer, DisableCompression: true, ForceAttemptHTTP2: true,
	}
	if u.Scheme == "http" {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, network, at string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, at)
			if err != nil {
				return nil, err
			}
			if a, ok := conn.RemoteAddr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
				return nil, errors.Join(fmt.Errorf("%s is not this machine's loopback: %w", at, paddock.Denied), conn.Close())
			}
			return conn, nil
		}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect }}, nil
}

// Kind implements Judge.
func (u *URL) Kind() string { return "url" }

// Judge implements Judge.
func (u *URL) Judge(ctx context.Context, input []byte) (Answer, error) {
	header := http.Header{}
	if u.key != "" {
		header.Set("Authorization", "Bearer "+u.key)
	}
	data, err := post(ctx, u.client, u.address, header, input)
	if err != nil {
		return Answer{}, err
	}
	return parseAnswer(data)
}

// post sends JSON, and returns the body of an answer 200. An error holds no text of the answer.
func post(ctx context.Context, client *http.Client, address string, header http.Header, body []byte) ([]byte, error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", hostOf(address), err)
	}
	q.Header = header
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json")
	r, err := client.Do(q)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // whose text does not repeat the address
		}
		return nil, fmt.Errorf("ask %s: %w: %w", hostOf(address), err, paddock.Unavailable)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer+1))
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("ask %s: the answer was cut off: %w: %w", hostOf(address), err, paddock.Unavailable)
	case r.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("ask %s: it answered with the status %d: %w", hostOf(address), r.StatusCode, paddock.Unavailable)
	case len(data) > maxAnswer:
		return nil, errTooLong
	}
	return data, nil
}

// hostOf returns the host of an address: its path may hold what is secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "the monitor"
	}
	return u.Host
}
