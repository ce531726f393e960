package registry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/reference"
)

const ociManifest, ociIndex = "application/vnd.oci.image.manifest.v1+json", "application/vnd.oci.image.index.v1+json"

// A shop is a registry of one image, of which each part can be a lie.
type shop struct {
	*httptest.Server
	layer    []byte
	config   []byte
	manifest []byte
	kind     string                                            // of the manifest, as its header has it
	odd      func(w http.ResponseWriter, r *http.Request) bool // answers in the registry's place

	mu   sync.Mutex
	seen []string // guarded by mu; what was asked, with whose credentials
}

func newShop(t *testing.T, layer []byte) *shop {
	t.Helper()
	s := &shop{layer: layer, config: []byte(`{"os":"linux","architecture":"amd64"}`), kind: ociManifest}
	s.describe(sumOf(s.layer), int64(len(s.layer)), sumOf(s.config), int64(len(s.config)))
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *shop) describe(layer string, size int64, config string, configSize int64) {
	s.manifest = fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"digest":%q,"size":%d},"layers":[{"digest":%q,"size":%d}]}`, ociManifest, config, configSize, layer, size)
}

func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r.URL.Path+" "+r.Header.Get("Authorization"))
	s.mu.Unlock()
	if s.odd != nil && s.odd(w, r) {
		return
	}
	switch what := strings.TrimPrefix(r.URL.Path, "/v2/a/b/"); {
	case r.URL.Path == "/v2/":
	case strings.HasPrefix(what, "manifests/"):
		w.Header().Set("Content-Type", s.kind)
		_, _ = w.Write(s.manifest)
	case what == "blobs/"+sumOf(s.config):
		_, _ = w.Write(s.config)
	case strings.HasPrefix(what, "blobs/"):
		_, _ = w.Write(s.layer)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (s *shop) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.seen, "\n")
}

func (s *shop) host() string { return strings.TrimPrefix(s.URL, "http://") }

// get pulls an image, and gives its layers. Nothing but loopback is dialled.
func get(t *testing.T, ref string, who Credentials) (string, error) {
	t.Helper()
	r, err := reference.Parse(ref)
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{OS: "linux", Arch: "amd64", Size: 1 << 20, Credentials: who, Dial: func(ctx context.Context, network, to string) (net.Conn, error) {
		if !reference.Loopback(to) {
			return nil, fmt.Errorf("dialled %s: %w", to, paddock.Denied)
		}
		var d net.Dialer
		return d.DialContext(ctx, network, to)
	}}
	img, err := c.Find(t.Context(), r)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for _, d := range img.Layers {
		f, err := os.Create(filepath.Join(t.TempDir(), "layer"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := img.Download(t.Context(), d, f, func(int64) {}); err != nil {
			if st, _ := f.Stat(); errors.Is(err, errOther) && st.Size() != 0 {
				t.Errorf("what is not the layer stays: %d bytes", st.Size())
			}
			return "", err
		}
		data, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		text := data
		if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if text, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		all.Write(text)
	}
	return all.String(), nil
}

func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnImageIsGotByTagAndByDigest(t *testing.T) {
	s := newShop(t, gzipped(t, "the layer"))
	for _, ref := range []string{s.host() + "/a/b", s.host() + "/a/b@" + sumOf(s.manifest)} {
		if got, err := get(t, ref, Credentials{}); err != nil || got != "the layer" {
			t.Errorf("%s: %q, %v", ref, got, err)
		}
	}
}

func TestALieOfARegistryIsRefusedInWords(t *testing.T) {
	none := strings.Repeat("0", 64)
	for _, c := range []struct {
		what   string
		change func(*shop)
		pinned bool // by the sum of what was there before the change
		words  string
		kind   error
	}{
		{"another manifest", func(s *shop) { s.manifest = append(s.manifest, ' ') }, true, "in its place", paddock.Conflict},
		{"another, signed", func(s *shop) {
			was := sumOf(s.manifest)
			s.manifest, s.kind = append(s.manifest, ' '), "application/vnd.docker.distribution.manifest.v1+prettyjws"
			s.odd = func(w http.ResponseWriter, _ *http.Request) bool {
				w.Header().Set("Docker-Content-Digest", was)
				return false
			}
		}, true, "in its place", paddock.Conflict},
		{"no manifest", func(s *shop) { s.manifest = []byte("<html>") }, false, "cannot be read", paddock.Invalid},
		{"an old manifest", func(s *shop) { s.manifest = []byte(`{"schemaVersion":1}`) }, false, "not known", paddock.Unsupported},
		{"a huge manifest", func(s *shop) { s.manifest = bytes.Repeat([]byte(" "), maxManifest+1) }, false, "too large", paddock.Exhausted},
		{"a manifest of many parts", func(s *shop) { s.manifest = []byte(`{"layers":[{}` + strings.Repeat(",{}", maxParts+1) + "]}") }, false, "parts", paddock.Exhausted},
		{"many layers", func(s *shop) {
			one := fmt.Sprintf(`{"digest":%q,"size":1}`, sumOf(s.layer))
			s.manifest = fmt.Appendf(nil, `{"schemaVersion":2,"config":%s,"layers":[%s]}`, one, one+strings.Repeat(","+one, maxLayers))
		}, false, "not known", paddock.Unsupported},
		{"no size", func(s *shop) { s.describe(sumOf(s.layer), -1, sumOf(s.config), 9) }, false, "without a sum or a size", paddock.Invalid},
		{"sizes that wrap around", func(s *shop) {
			one := fmt.Sprintf(`{"digest":%q,"size":%d}`, sumOf(s.layer), int64(1<<63-1))
			s.manifest = fmt.Appendf(nil, `{"schemaVersion":2,"config":{"digest":%q,"size":1},"layers":[%s,%s]}`, sumOf(s.config), one, one)
		}, false, "more than", paddock.Exhausted},
		{"a configuration without a size", func(s *shop) { s.describe(sumOf(s.layer), 9, sumOf(s.config), -1) }, false, "not known", paddock.Unsupported},
		{"a huge configuration", func(s *shop) { s.describe(sumOf(s.layer), 9, sumOf(s.config), maxManifest+1) }, false, "configuration is too large", paddock.Exhausted},
		{"a longer configuration", func(s *shop) { s.describe(sumOf(s.layer), 9, sumOf(s.config), 9) }, false, "not what", paddock.Conflict},
		{"another configuration", func(s *shop) { s.describe(sumOf(s.layer), 9, "sha256:"+none, int64(len(s.layer))) }, false, "not what", paddock.Conflict},
		{"a longer layer", func(s *shop) {
			s.describe(sumOf(s.layer), int64(len(s.layer)-1), sumOf(s.config), int64(len(s.config)))
		}, false, "not what", paddock.Conflict},
		{"a shorter layer", func(s *shop) {
			s.describe(sumOf(s.layer), int64(len(s.layer)+1), sumOf(s.config), int64(len(s.config)))
		}, false, "not what", paddock.Conflict},
		{"another layer", func(s *shop) { s.layer[len(s.layer)-1] ^= 1 }, false, "not what", paddock.Conflict},
		{"a layer that ends early", func(s *shop) { s.layer = s.layer[:len(s.layer)-3] }, false, "not what", paddock.Conflict},
		{"a sum that is no sum", func(s *shop) { s.describe("sha256:../../x", 9, sumOf(s.config), 9) }, false, "cannot be read", paddock.Invalid},
		{"a list of itself", func(s *shop) {
			s.kind = ociIndex
			s.manifest = fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"manifests":[{"digest":"sha256:%s","size":9,"platform":{"os":"linux","architecture":"amd64"}}]}`, ociIndex, none)
		}, false, "in its place", paddock.Conflict},
		{"a list of lists", func(s *shop) {
			list := func(digest string) []byte {
				return fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"manifests":[{"digest":%q,"size":9,"platform":{"os":"linux","architecture":"amd64"}}]}`, ociIndex, digest)
			}
			inner := list(sumOf(s.manifest))
			s.manifest = list(sumOf(inner))
			s.odd = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, sumOf(inner)) {
					_, _ = w.Write(inner)
					return true
				}
				return false
			}
		}, false, "list of lists", paddock.Unsupported},
		{"an error of many words", func(s *shop) {
			s.odd = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = w.Write([]byte("<script>" + strings.Repeat("x", 1<<20)))
				return true
			}
		}, false, "answers 500", paddock.Unavailable},
		{"redirects without end", func(s *shop) {
			s.odd = func(w http.ResponseWriter, r *http.Request) bool {
				http.Redirect(w, r, r.URL.Path, http.StatusFound)
				return true
			}
		}, false, "on and on", paddock.Invalid},
		{"a redirect to plain text", func(s *shop) {
			s.odd = away("http://images.example.com/x")
		}, false, "not encrypted", paddock.Denied},
		{"a redirect with a password", func(s *shop) { s.odd = away("https://u:p@images.example.com/x") }, false, "not encrypted", paddock.Denied},
		{"a redirect to metadata", func(s *shop) { s.odd = away("https://169.254.169.254/x") }, false, "private", paddock.Denied},
		{"a redirect to a name", func(s *shop) { s.odd = away("https://metadata.example.com/x") }, false, "dialled metadata", paddock.Denied},
		{"a redirect to a file", func(s *shop) { s.odd = away("file:///etc/passwd") }, false, "not encrypted", paddock.Denied},
		{"tokens of metadata", func(s *shop) { s.odd = wants(`Bearer realm="http://169.254.169.254/t"`) }, false, "tokens", paddock.Denied},
		{"tokens of a name", func(s *shop) { s.odd = wants(`Bearer realm="https://internal.example.com/t"`) }, false, "dialled internal", paddock.Denied},
		{"tokens in plain text", func(s *shop) { s.odd = wants(`Bearer realm="http://tokens.example.com/t"`) }, false, "not encrypted", paddock.Denied},
		{"tokens of nobody", func(s *shop) { s.odd = wants(`Bearer service="x"`) }, false, "tokens", paddock.Invalid},
		{"a strange challenge", func(s *shop) { s.odd = wants(`Negotiate`) }, false, "credentials", paddock.Denied},
	} {
		s := newShop(t, gzipped(t, "the layer"))
		ref := s.host() + "/a/b"
		if c.pinned {
			ref += "@" + sumOf(s.manifest)
		}
		c.change(s)
		got, err := get(t, ref, Credentials{Username: "user", Password: "pass-word"})
		if !errors.Is(err, c.kind) || err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %q, %v; wanted %v and %q", c.what, got, err, c.kind, c.words)
			continue
		}
		if text := err.Error(); strings.Contains(text, "pass-word") || strings.Contains(text, "<") || len(text) > 400 {
			t.Errorf("%s: the error tells too much: %s", c.what, text)
		}
	}
}

// away leads what is asked of manifests elsewhere.
func away(to string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/manifests/") {
			return false
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	}
}

// wants asks for credentials in a way.
func wants(challenge string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}
}

func TestCredentialsGoToNoOtherHost(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("u:right"))
	for _, way := range []string{"basic", "bearer"} {
		s, other := newShop(t, gzipped(t, "the layer")), newShop(t, gzipped(t, "the layer"))
		s.odd = func(w http.ResponseWriter, r *http.Request) bool {
			who := r.Header.Get("Authorization")
			switch {
			case r.URL.Path == "/token" && who == basic && r.URL.Query().Get("scope") == "repository:a/b:pull" && r.URL.Query().Get("service") == "shop":
				_, _ = w.Write([]byte(`{"token":"t0k"}`))
			case way == "basic" && who != basic:
				return wants(`Basic realm="shop"`)(w, r)
			case way == "bearer" && who != "Bearer t0k":
				return wants(`Bearer realm="`+s.URL+`/token",service="shop"`)(w, r)
			case strings.Contains(r.URL.Path, "/blobs/"):
				http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
			default:
				return false
			}
			return true
		}
		if got, err := get(t, s.host()+"/a/b", Credentials{Username: "u", Password: "right"}); err != nil || got != "the layer" {
			t.Errorf("%s: %q, %v", way, got, err)
		}
		if there := other.asked(); strings.Contains(there, "asic") || strings.Contains(there, "earer") || strings.Count(there, "\n") != 1 {
			t.Errorf("%s: the other host saw %q", way, there)
		}
		if _, err := get(t, s.host()+"/a/b", Credentials{Username: "u", Password: "wrong"}); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s, with another password: %v", way, err)
		}
		if _, err := get(t, s.host()+"/a/b", Credentials{}); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s, with none: %v", way, err)
		}
	}
}

func TestATokenThatEndsBetweenLayersIsAskedForAnew(t *testing.T) {
	s := newShop(t, gzipped(t, "the layer"))
	given := 0
	s.odd = func(w http.ResponseWriter, r *http.Request) bool {
		token := fmt.Sprintf("%d%s", given, strings.Repeat("t", 3000)) // longer than the layer
		switch {
		case r.URL.Path == "/token":
			given++
			_, _ = fmt.Fprintf(w, `{"token":"%d%s"}`, given, token[1:])
		case r.Header.Get("Authorization") != "Bearer "+token,
			strings.HasSuffix(r.URL.Path, sumOf(s.layer)) && given == 1:
			return wants(`Bearer realm="`+s.URL+`/token",service="shop"`)(w, r)
		default:
			return false
		}
		return true
	}
	if got, err := get(t, s.host()+"/a/b", Credentials{Username: "u", Password: "right"}); err != nil || got != "the layer" || given != 2 {
		t.Errorf("%q with %d tokens: %v", got, given, err)
	}
}

func TestCredentialsOfTheHostAreNotUsed(t *testing.T) {
	s := newShop(t, gzipped(t, "the layer"))
	dir := t.TempDir()
	text := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, s.host(), base64.StdEncoding.EncodeToString([]byte("host:secret")))
	for _, name := range []string{"config.json", ".docker/config.json", "containers/auth.json", ".config/containers/auth.json"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{"HOME": dir, "DOCKER_CONFIG": dir, "XDG_RUNTIME_DIR": dir, "REGISTRY_AUTH_FILE": dir + "/config.json", "DOCKER_AUTH_CONFIG": text} {
		t.Setenv(name, value)
	}
	s.odd = func(w http.ResponseWriter, r *http.Request) bool {
		return r.Header.Get("Authorization") == "" && wants(`Basic realm="shop"`)(w, r)
	}
	if _, err := get(t, s.host()+"/a/b", Credentials{}); !errors.Is(err, paddock.Denied) || strings.Contains(s.asked(), "asic") {
		t.Errorf("%v; it was shown %q", err, s.asked())
	}
}

func TestARegistryThatFallsSilentIsGivenUp(t *testing.T) {
	for _, when := range []string{"at once", "in its answer"} {
		s := newShop(t, nil)
		stop := make(chan struct{})
		t.Cleanup(func() { close(stop) })
		s.odd = func(w http.ResponseWriter, _ *http.Request) bool {
			if when != "at once" {
				_, _ = w.Write([]byte("{"))
				_ = http.NewResponseController(w).Flush()
			}
			<-stop
			return true
		}
		g := &guard{next: &http.Transport{DisableKeepAlives: true}, plain: true, idle: 1e6}
		g.expect(100, true)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if res, err := g.RoundTrip(r); !errors.Is(err, paddock.Timeout) {
			t.Errorf("%s: %v, %v", when, res, err)
		}
	}
}

// A cut download goes on where it ended if the registry can, and anew if it cannot. What was there before is used, and
// dropped if it is not the beginning of the layer.
func TestACutDownloadGoesOn(t *testing.T) {
	text := strings.Repeat("0123456789", 20_000)
	for _, c := range []struct {
		what, before string
		parts        bool // the registry sends parts
		want         string
	}{
		{"by range", "", true, " bytes=100000-199999"},
		{"from the beginning", "", false, " bytes=100000-199999"},
		{"after another process", text[:50_000], true, "bytes=50000-199999 bytes=150000-199999"},
		{"after what is damaged", "x" + text[1:50_000], true, "bytes=50000-199999 bytes=150000-199999 "},
		{"after what is too long", text + "x", true, " bytes=100000-199999"},
		{"with all of it", text, true, ""},
	} {
		s := newShop(t, []byte(text))
		cut := false
		var asked []string
		s.odd = func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, sumOf(s.layer)) {
				return false
			}
			asked = append(asked, r.Header.Get("Range"))
			from := 0
			if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil && c.parts {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(text)-1, len(text)))
			} else {
				from = 0
			}
			rest := text[from:]
			w.Header().Set("Content-Length", fmt.Sprint(len(rest)))
			if from > 0 {
				w.WriteHeader(http.StatusPartialContent)
			}
			if !cut {
				cut = true
				_, _ = io.WriteString(w, rest[:100_000])
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
			_, _ = io.WriteString(w, rest)
			return true
		}
		r, err := reference.Parse(s.host() + "/a/b")
		if err != nil {
			t.Fatal(err)
		}
		var d net.Dialer
		img, err := (&Client{OS: "linux", Arch: "amd64", Size: 1 << 20, Dial: d.DialContext}).Find(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "layer")
		if err := os.WriteFile(name, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		told := int64(0)
		err = img.Download(t.Context(), img.Layers[0], f, func(n int64) { told += n })
		data, _ := os.ReadFile(name)
		if err != nil || string(data) != text || told != int64(len(text)) {
			t.Errorf("%s: %d bytes, of which %d were told: %v", c.what, len(data), told, err)
		}
		if got := strings.Join(asked, " "); got != c.want {
			t.Errorf("%s: it asked for %q, not %q", c.what, got, c.want)
		}
	}
}

func TestADownloadWithoutEndIsGivenUp(t *testing.T) {
	s := newShop(t, []byte(strings.Repeat("a", 1000)))
	asked := 0
	s.odd = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, sumOf(s.layer)) {
			asked++
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}
	if _, err := get(t, s.host()+"/a/b", Credentials{}); !errors.Is(err, paddock.Unavailable) || asked != maxVain {
		t.Errorf("after %d attempts: %v", asked, err)
	}
}
