// Package registry pulls OCI and Docker images from registries. go-containerregistry implements the
// protocol; this package decides which requests are allowed and which answers are accepted.
//
// A registry is hostile, even if the caller named it. The size of every answer is bounded. Content
// must match the digest in the manifest, and a manifest must match the digest in a reference that has
// one. A registry can lead to other hosts, by redirects and by the address of its token server. Each
// request therefore passes a guard, which refuses unencrypted requests. Each connection is made by the
// dial function that the client was given, which decides about the address. A password is sent only to
// its own registry and to that registry's token server, and only encrypted, unless both are on this
// machine. No error contains it. The package reads none of the host's Docker configuration: no file,
// no variable and no credential helper.
package registry

import (
	"bytes"
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

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
)

// Bounds of what is taken from a registry.
const (
	maxManifest = 4 << 20
	maxLayers   = 200
	findTime    = 3 * time.Minute // for all but layers
)

// Credentials are a user name and a password for a registry, or a token that the registry exchanges for others. The
// zero value means anonymous access.
type Credentials struct{ Username, Password, Token string }

// String returns a constant, so that no log contains the password.
func (Credentials) String() string { return "credentials" }

// GoString returns the same as String.
func (c Credentials) GoString() string { return c.String() }

// A Client pulls images from one registry at a time, for one caller.
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

// An Image is an image that a registry offers.
type Image struct {
	Digest string // of its manifest for this machine
	Top    string // of what the reference leads to: the same, or a list of images that has it
	Size   int64  // of its layers, as they are sent

	Manifest  []byte
	MediaType string // of the manifest
	Config    []byte
	Layers    []v1.Descriptor

	ConfigDigest string

	at *session
}

// platform is the part of a configuration that tells where the image runs.
type platform struct {
	OS           string `json:"os"`
	Architecture string `json:"architecture"`
}

// A session is what is known of a registry while an image is pulled.
type session struct {
	c     *Client
	ref   reference.Reference
	repo  name.Repository
	pull  *remote.Puller
	guard *guard
	wire  http.RoundTripper // with the registry's credentials
}

// Find asks the registry for the image for the client's system and architecture. A missing image is
// [paddock.NotFound]. If the registry or Dial refuses, the error is [paddock.Denied].
func (c *Client) Find(ctx context.Context, ref reference.Reference) (*Image, error) {
	within, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	s, err := c.begin(within, ref)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	img, err := s.find(within)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", ref, err)
	}
	return img, nil
}

func (c *Client) begin(ctx context.Context, ref reference.Reference) (*session, error) {
	s := &session{c: c, ref: ref, guard: &guard{next: c.Transport, plain: ref.Plain(), idle: idleTime}}
	if c.Transport == nil {
		s.guard.next = &http.Transport{
			DialContext: c.Dial, TLSHandshakeTimeout: headTime, ResponseHeaderTimeout: headTime, MaxResponseHeaderBytes: 64 << 10,
			DisableCompression: true, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		}
	}
	how := []name.Option{name.StrictValidation}
	if ref.Plain() {
		how = append(how, name.Insecure)
	}
	reg, err := name.NewRegistry(ref.Server(), how...)
	if err != nil {
		return nil, fmt.Errorf("its host is none: %w", paddock.Invalid)
	}
	s.repo = reg.Repo(ref.Name)
	s.guard.expect(maxManifest, true)
	s.wire, err = transport.NewWithContext(ctx, reg, c.Credentials.authenticator(), transport.NewUserAgent(s.guard, "paddock"), []string{s.repo.Scope(transport.PullScope)})
	if err != nil {
		return nil, s.told(ctx, err)
	}
	s.pull, err = remote.NewPuller(remote.WithTransport(s.wire), remote.WithRetryBackoff(remote.Backoff{Steps: 1}))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	return s, nil
}

func (c Credentials) authenticator() authn.Authenticator {
	switch {
	case c == Credentials{}:
		return authn.Anonymous
	case c.Token != "":
		return authn.FromConfig(authn.AuthConfig{Username: c.Username, IdentityToken: c.Token})
	}
	return &authn.Basic{Username: c.Username, Password: c.Password}
}

func (s *session) find(ctx context.Context) (*Image, error) {
	wanted := s.ref.Digest
	img := &Image{at: s}
	var m *v1.Manifest
	for list := true; ; list = false { // an image, or a list of images
		data, kind, err := s.manifest(ctx, wanted)
		if err != nil {
			return nil, err
		}
		wanted = sumOf(data)
		if list {
			img.Top = wanted
		}
		img.Manifest = data
		if m, err = v1.ParseManifest(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("its manifest cannot be read: %w", paddock.Invalid)
		}
		if m.MediaType != "" {
			kind = m.MediaType
		}
		if img.MediaType = string(kind); !kind.IsIndex() {
			break
		}
		if !list {
			return nil, fmt.Errorf("it is a list of lists, and one of images is read: %w", paddock.Unsupported)
		}
		index, err := v1.ParseIndexManifest(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("its manifest cannot be read: %w", paddock.Invalid)
		}
		if wanted, err = Choose(index.Manifests, s.c.OS, s.c.Arch); err != nil {
			return nil, err
		}
	}
	if m.SchemaVersion != 2 || !good(m.Config) || len(m.Layers) > maxLayers {
		return nil, fmt.Errorf("its manifest is of a kind that is not known: %w", paddock.Unsupported)
	}
	img.Digest, img.Layers, img.ConfigDigest = wanted, m.Layers, m.Config.Digest.String()
	for _, l := range m.Layers {
		if !good(l) {
			return nil, fmt.Errorf("its manifest has a layer without a sum or a size: %w", paddock.Invalid)
		}
		if img.Size += l.Size; l.Size > s.c.Size || img.Size > s.c.Size {
			return nil, fmt.Errorf("its layers are more than %d MiB, which is the most that is pulled: %w", s.c.Size>>20, paddock.Exhausted)
		}
	}
	if err := s.config(ctx, m.Config, img); err != nil {
		return nil, err
	}
	return img, nil
}

// good tells whether a descriptor has a size, and a sum that is checked.
func good(d v1.Descriptor) bool { return d.Size >= 0 && reference.GoodDigest(d.Digest.String()) }

// manifest gets what a digest, or without one the reference's tag, leads to.
func (s *session) manifest(ctx context.Context, digest string) ([]byte, types.MediaType, error) {
	var ref name.Reference = s.repo.Tag(s.ref.Tag)
	if digest != "" {
		ref = s.repo.Digest(digest)
	}
	s.guard.expect(maxManifest, true)
	d, err := s.pull.Get(ctx, ref)
	if err != nil {
		return nil, "", s.told(ctx, err)
	}
	// The library takes a registry's word for the sum of a manifest of the first
	// version that is signed.
	if sum := sumOf(d.Manifest); digest != "" && sum != digest {
		return nil, "", fmt.Errorf("the registry sent %s in its place: %w", sum, paddock.Conflict)
	}
	kind, _, _ := mime.ParseMediaType(string(d.MediaType))
	return d.Manifest, types.MediaType(kind), nil
}

// Choose returns the digest of the image for a system and an architecture in a list of images. If there is none, the error
// is [paddock.Unsupported] and names the others.
func Choose(list []v1.Descriptor, system, arch string) (string, error) {
	var others []string
	for _, d := range list {
		if d.Platform == nil || !good(d) {
			continue
		}
		if d.Platform.OS == system && d.Platform.Architecture == arch {
			return d.Digest.String(), nil
		}
		if name := d.Platform.OS + "/" + d.Platform.Architecture; name != "unknown/unknown" && len(name) < 50 && len(others) < 20 && !slices.Contains(others, name) {
			others = append(others, name)
		}
	}
	return "", fmt.Errorf("there is none for %s/%s, which this machine is, but for %q: %w", system, arch, others, paddock.Unsupported)
}

func (s *session) config(ctx context.Context, d v1.Descriptor, img *Image) error {
	if d.Size > maxManifest {
		return fmt.Errorf("its configuration is too large: %w", paddock.Exhausted)
	}
	data, err := s.small(ctx, d)
	if err != nil {
		return fmt.Errorf("its configuration: %w", err)
	}
	var p platform
	if err := json.Unmarshal(data, &p); err != nil {
		return fmt.Errorf("its configuration cannot be read: %w", paddock.Invalid)
	}
	if p.OS != s.c.OS || p.Architecture != s.c.Arch {
		return fmt.Errorf("it is for %q, and this machine is %s/%s: %w", clip(p.OS+"/"+p.Architecture), s.c.OS, s.c.Arch, paddock.Unsupported)
	}
	img.Config = data
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

// told says in our words what the library says, which tells what it was sent: texts
// of the registry, and addresses that may hold what it was asked with.
func (s *session) told(ctx context.Context, err error) error {
	var status *transport.Error
	if errors.As(err, &status) {
		return s.refused(status.StatusCode)
	}
	var ours refusal
	var u *url.Error
	var k paddock.Kind
	if errors.As(err, &ours) {
		err = ours
	} else if errors.As(err, &u) {
		err = u.Err
	}
	var d net.Error
	switch text := err.Error(); {
	case errors.As(err, &k):
		return fmt.Errorf("reach the registry: %w", err)
	case ctx.Err() != nil:
		return ended(ctx)
	case strings.Contains(text, "does not match requested digest"):
		return fmt.Errorf("the registry sent another in its place: %w", paddock.Conflict)
	case strings.HasPrefix(text, "error verifying"):
		return fmt.Errorf("it is not what the manifest says: %w", paddock.Conflict)
	case strings.Contains(text, "missing realm"):
		return fmt.Errorf("the registry names nothing that gives tokens: %w", paddock.Invalid)
	case strings.Contains(text, "realm"):
		return fmt.Errorf("the registry has tokens given by what may not be asked: an address of a private network, or one that is not encrypted: %w", paddock.Denied)
	case strings.Contains(text, "private/link-local"):
		return fmt.Errorf("the registry leads to an address of a private network: %w", paddock.Denied)
	case strings.Contains(text, "no token in"):
		return fmt.Errorf("the registry gives no token: %w", paddock.Invalid)
	case errors.As(err, &d), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), u != nil:
		return fmt.Errorf("reach the registry: %w: %w", err, paddock.Unavailable)
	}
	return fmt.Errorf("the registry does not answer as one does: %w", paddock.Unavailable)
}
