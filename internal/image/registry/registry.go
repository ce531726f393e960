// Package registry pulls images: it speaks the distribution protocol of OCI and
// Docker to registries.
//
// A registry is a stranger, also where the caller named it. All that it sends is
// bounded, and has the sum that its manifest says, which for a reference with a
// digest is the caller's word. It leads to other hosts, by redirects and by the
// address of what gives tokens: each connection is made by the function that the
// client was given, which decides. A password goes to the registry that it is for
// and to what that registry names for tokens, encrypted unless both are this
// machine's own; it stands in no error.
package registry

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of what is taken from a registry.
const (
	maxManifest = 4 << 20
	maxToken    = 1 << 20
	maxLayers   = 200
	headTime    = time.Minute
	idleTime    = time.Minute
	maxHops     = 5
)

// Credentials are those of a registry. The zero value is nobody's.
type Credentials struct{ Username, Password string }

// String tells nothing, so that no log has it.
func (Credentials) String() string { return "credentials" }

// GoString is String.
func (c Credentials) GoString() string { return c.String() }

// A Client pulls from one registry at a time, for one caller.
type Client struct {
	// Dial makes every connection; it decides where to.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Transport takes the place of one that uses Dial, for tests; nil is none.
	Transport http.RoundTripper

	Credentials Credentials
	OS, Arch    string

	// Size bounds the sum of an image's layers, as they are sent.
	Size int64
}

// An Image is one that a registry has.
type Image struct {
	Digest string // of its manifest for this machine
	Size   int64  // of its layers, as they are sent
	Config Config

	layers []descriptor
	at     *session
}

// A Config is what an image says of the programs in it.
type Config struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
	Config       struct {
		Env        []string `json:"Env"`
		User       string   `json:"User"`
		WorkingDir string   `json:"WorkingDir"`
	} `json:"config"`
}

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int64  `json:"size"`
	Platform  *struct {
		OS           string `json:"os"`
		Architecture string `json:"architecture"`
	} `json:"platform"`
}

// A session is what is known of a registry while an image is pulled.
type session struct {
	c      *Client
	http   *http.Client
	ref    Reference
	bearer string
	basic  bool
}

// Kinds of what registries send.
const (
	ociIndex       = "application/vnd.oci.image.index.v1+json"
	ociManifest    = "application/vnd.oci.image.manifest.v1+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)

// Find asks the registry for an image, for the client's system and architecture. It
// is [paddock.NotFound] where there is none, and [paddock.Denied] where the registry
// or Dial says so.
func (c *Client) Find(ctx context.Context, ref Reference) (*Image, error) {
	s := &session{c: c, ref: ref}
	s.http = &http.Client{Transport: c.Transport, CheckRedirect: s.redirect}
	if c.Transport == nil {
		s.http.Transport = &http.Transport{
			DialContext: c.Dial, TLSHandshakeTimeout: headTime, ResponseHeaderTimeout: headTime, MaxResponseHeaderBytes: 64 << 10,
			DisableCompression: true, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		}
	}
	img, err := s.find(ctx)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	return img, nil
}

func (s *session) find(ctx context.Context) (*Image, error) {
	wanted := s.ref.Digest
	if wanted == "" {
		wanted = s.ref.Tag
	}
	var m struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Config        descriptor   `json:"config"`
		Layers        []descriptor `json:"layers"`
		Manifests     []descriptor `json:"manifests"`
	}
	digest := ""
	for range 2 {
		data, kind, err := s.manifest(ctx, wanted)
		if err != nil {
			return nil, err
		}
		digest = sumOf(data)
		if goodDigest(wanted) && digest != wanted {
			return nil, fmt.Errorf("the registry sent %s in its place: %w", digest, paddock.Conflict)
		}
		m.Manifests, m.Layers, m.MediaType, m.SchemaVersion = nil, nil, "", 0
		if err := json.Unmarshal(data, &m); err != nil {
			return nil, fmt.Errorf("its manifest cannot be read: %w", paddock.Invalid)
		}
		if m.MediaType != "" {
			kind = m.MediaType
		}
		if kind != ociIndex && kind != dockerList {
			break
		}
		if wanted, err = s.c.choose(m.Manifests); err != nil {
			return nil, err
		}
	}
	if m.SchemaVersion != 2 || len(m.Manifests) > 0 || !goodDigest(m.Config.Digest) || len(m.Layers) > maxLayers {
		return nil, fmt.Errorf("its manifest is of a kind that is not known: %w", paddock.Unsupported)
	}
	img := &Image{Digest: digest, layers: m.Layers, at: s}
	for _, l := range m.Layers {
		if !goodDigest(l.Digest) || l.Size < 0 {
			return nil, fmt.Errorf("its manifest has a layer without a sum or a size: %w", paddock.Invalid)
		}
		if img.Size += l.Size; l.Size > s.c.Size || img.Size > s.c.Size {
			return nil, fmt.Errorf("its layers are more than %d MiB, which is the most that is pulled: %w", s.c.Size>>20, paddock.Exhausted)
		}
	}
	return img, s.config(ctx, m.Config, &img.Config)
}

// choose finds the image of the client's architecture in a list.
func (c *Client) choose(list []descriptor) (string, error) {
	var others []string
	for _, d := range list {
		if d.Platform == nil || !goodDigest(d.Digest) {
			continue
		}
		if d.Platform.OS == c.OS && d.Platform.Architecture == c.Arch {
			return d.Digest, nil
		}
		if name := d.Platform.OS + "/" + d.Platform.Architecture; name != "unknown/unknown" && len(name) < 50 && len(others) < 20 && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	return "", fmt.Errorf("there is none for %s/%s, which this machine is, but for %q: %w", c.OS, c.Arch, others, paddock.Unsupported)
}

func (s *session) config(ctx context.Context, d descriptor, into *Config) error {
	if d.Size > maxManifest {
		return fmt.Errorf("its configuration is too large: %w", paddock.Exhausted)
	}
	body, err := s.blob(ctx, d)
	if err != nil {
		return err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxManifest+1))
	if err != nil {
		return unreachable(ctx, err)
	}
	if sumOf(data) != d.Digest {
		return fmt.Errorf("its configuration is not what its manifest says: %w", paddock.Conflict)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("its configuration cannot be read: %w", paddock.Invalid)
	}
	if into.OS != s.c.OS || into.Architecture != s.c.Arch {
		return fmt.Errorf("it is for %q, and this machine is %s/%s: %w", clip(into.OS+"/"+into.Architecture), s.c.OS, s.c.Arch, paddock.Unsupported)
	}
	return nil
}

func clip(text string) string {
	if len(text) > 100 {
		return text[:100] + "…"
	}
	return text
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Layers gives each layer in turn to a function, not compressed. One that is not
// what the manifest says is an error, when the function has had all of it: what it
// made is not to be used then.
func (i *Image) Layers(ctx context.Context, f func(n, of int, r io.Reader) error) error {
	for n, d := range i.layers {
		if err := i.at.layer(ctx, d, func(r io.Reader) error { return f(n+1, len(i.layers), r) }); err != nil {
			return fmt.Errorf("image %s: layer %d of %d: %w", i.at.ref, n+1, len(i.layers), err)
		}
	}
	return nil
}

func (s *session) layer(ctx context.Context, d descriptor, f func(io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := s.blob(ctx, d)
	if err != nil {
		return err
	}
	defer body.Close()
	idle := time.AfterFunc(idleTime, cancel) // of a registry that says no more
	defer idle.Stop()
	sum := sha256.New()
	raw := &counted{r: io.TeeReader(io.LimitReader(body, d.Size+1), sum), seen: func() { idle.Reset(idleTime) }}
	in, err := expand(raw)
	if err == nil {
		err = f(in)
	}
	if err != nil {
		if raw.err != nil && !errors.Is(raw.err, io.EOF) {
			return unreachable(ctx, raw.err)
		}
		return err
	}
	if _, err := io.Copy(io.Discard, raw); err != nil { // what stands behind the archive is a part of the sum
		return unreachable(ctx, err)
	}
	if raw.n != d.Size || "sha256:"+hex.EncodeToString(sum.Sum(nil)) != d.Digest {
		return fmt.Errorf("it is not what the manifest says: %w", paddock.Conflict)
	}
	return nil
}

// A counted reader remembers how it ended.
type counted struct {
	r    io.Reader
	n    int64
	err  error
	seen func()
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if n > 0 {
		c.seen()
	}
	if err != nil {
		c.err = err
	}
	return n, err
}

// expand finds out by its first bytes how a layer is compressed.
func expand(r io.Reader) (io.Reader, error) {
	head := make([]byte, 4)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, err
	}
	all := io.MultiReader(bytes.NewReader(head[:n]), r)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(all)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
		}
		return z, nil
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return nil, fmt.Errorf("it is compressed with zstd, which is not read here; gzip is: %w", paddock.Unsupported)
	}
	return all, nil
}

func (s *session) url(parts ...string) string {
	u := url.URL{Scheme: "https", Host: s.ref.server(), Path: "/v2/" + s.ref.Name + "/" + strings.Join(parts, "/")}
	if s.ref.plain() {
		u.Scheme = "http"
	}
	return u.String()
}

func (s *session) manifest(ctx context.Context, what string) (data []byte, kind string, err error) {
	ctx, cancel := context.WithTimeout(ctx, headTime)
	defer cancel()
	res, err := s.get(ctx, s.url("manifests", what), strings.Join([]string{ociIndex, ociManifest, dockerList, dockerManifest}, ", "))
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	data, err = io.ReadAll(io.LimitReader(res.Body, maxManifest+1))
	switch {
	case err != nil:
		return nil, "", unreachable(ctx, err)
	case len(data) > maxManifest:
		return nil, "", fmt.Errorf("its manifest is too large: %w", paddock.Exhausted)
	}
	kind, _, _ = mime.ParseMediaType(res.Header.Get("Content-Type"))
	return data, kind, nil
}

func (s *session) blob(ctx context.Context, d descriptor) (io.ReadCloser, error) {
	res, err := s.get(ctx, s.url("blobs", d.Digest), "")
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// redirect allows what leads to another place as safe as this. Go's client takes
// credentials to no other host.
func (s *session) redirect(r *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxHops:
		return fmt.Errorf("the registry leads on and on: %w", paddock.Invalid)
	case r.URL.Scheme != "https" && (r.URL.Scheme != "http" || !s.ref.plain() || !loopback(r.URL.Host)), r.URL.User != nil:
		return fmt.Errorf("the registry leads to what is not encrypted: %w", paddock.Denied)
	}
	return nil
}

// get asks for something, and again with a token where the registry wants one.
func (s *session) get(ctx context.Context, address, accept string) (*http.Response, error) {
	for try := 0; ; try++ {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, paddock.Invalid)
		}
		r.Header.Set("User-Agent", "paddock")
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		switch {
		case s.bearer != "":
			r.Header.Set("Authorization", "Bearer "+s.bearer)
		case s.basic:
			r.SetBasicAuth(s.c.Credentials.Username, s.c.Credentials.Password)
		}
		res, err := s.http.Do(r)
		if err != nil {
			return nil, unreachable(ctx, err)
		}
		if res.StatusCode == http.StatusOK {
			return res, nil
		}
		_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized || try > 0 || res.Request.URL.Host != r.URL.Host {
			return nil, s.refused(res.StatusCode)
		}
		if err := s.authorize(ctx, res.Header.Values("WWW-Authenticate")); err != nil {
			return nil, err
		}
	}
}

// refused says what a status means.
func (s *session) refused(code int) error {
	switch code {
	case http.StatusNotFound:
		return fmt.Errorf("the registry has no such image: %w", paddock.NotFound)
	case http.StatusUnauthorized, http.StatusForbidden:
		if s.c.Credentials == (Credentials{}) {
			return fmt.Errorf("the registry wants credentials (or has no such image): %w", paddock.Denied)
		}
		return fmt.Errorf("the registry does not take these credentials for it: %w", paddock.Denied)
	case http.StatusTooManyRequests:
		return fmt.Errorf("the registry has had too many requests: %w", paddock.Exhausted)
	}
	return fmt.Errorf("the registry answers %d: %w", code, paddock.Unavailable)
}

// unreachable says why a registry was not reached, without an address that may
// hold what it was asked with.
func unreachable(ctx context.Context, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var k paddock.Kind
	switch {
	case errors.As(err, &k):
		return fmt.Errorf("reach the registry: %w", err)
	case ctx.Err() != nil:
		return fmt.Errorf("the registry says nothing any more: %w", paddock.Timeout)
	}
	return fmt.Errorf("reach the registry: %w: %w", err, paddock.Unavailable)
}

// authorize answers a challenge.
func (s *session) authorize(ctx context.Context, challenges []string) error {
	for _, text := range challenges {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
		switch strings.ToLower(scheme) {
		case "bearer":
			return s.token(ctx, parameters(rest))
		case "basic":
			if s.c.Credentials == (Credentials{}) {
				return s.refused(http.StatusUnauthorized)
			}
			s.basic = true
			return nil
		}
	}
	return fmt.Errorf("the registry asks for credentials in a way that is not known: %w", paddock.Unsupported)
}

// parameters reads key="value" pairs.
func parameters(text string) map[string]string {
	list := map[string]string{}
	for text != "" && len(list) < 20 {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			break
		}
		name = strings.ToLower(strings.Trim(name, " ,\t"))
		if quoted, in := strings.CutPrefix(rest, `"`); in {
			list[name], text, _ = strings.Cut(quoted, `"`)
		} else {
			list[name], text, _ = strings.Cut(rest, ",")
		}
	}
	return list
}

func (s *session) token(ctx context.Context, p map[string]string) error {
	realm, err := url.Parse(p["realm"])
	if err != nil || realm.Host == "" || realm.User != nil {
		return fmt.Errorf("the registry names nothing that gives tokens: %w", paddock.Invalid)
	}
	if realm.Scheme != "https" && (realm.Scheme != "http" || !s.ref.plain() || !loopback(realm.Host)) {
		return fmt.Errorf("the registry has tokens given by what is not encrypted: %w", paddock.Denied)
	}
	q := realm.Query()
	if p["service"] != "" {
		q.Set("service", p["service"])
	}
	q.Set("scope", "repository:"+s.ref.Name+":pull")
	realm.RawQuery = q.Encode()
	ctx, cancel := context.WithTimeout(ctx, headTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, realm.String(), http.NoBody)
	if err != nil {
		return fmt.Errorf("the registry names nothing that gives tokens: %w", paddock.Invalid)
	}
	if s.c.Credentials != (Credentials{}) {
		r.SetBasicAuth(s.c.Credentials.Username, s.c.Credentials.Password)
	}
	res, err := s.http.Do(r)
	if err != nil {
		return unreachable(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return s.refused(res.StatusCode)
	}
	var t struct {
		Token  string `json:"token"`
		Access string `json:"access_token"`
	}
	data, err := io.ReadAll(io.LimitReader(res.Body, maxToken))
	if err != nil {
		return unreachable(ctx, err)
	}
	if err := json.Unmarshal(data, &t); err != nil || t.Token == "" && t.Access == "" {
		return fmt.Errorf("the registry gives no token: %w", paddock.Invalid)
	}
	if s.bearer = t.Token; s.bearer == "" {
		s.bearer = t.Access
	}
	return nil
}
