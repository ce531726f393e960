package serve

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	hubs "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/image"
	imagestore "github.com/paddock-sandbox/paddock/internal/image/store"
	"github.com/paddock-sandbox/paddock/internal/server/api"
)

// A painter is the tier sim, which takes images as the other tiers do, and notes which. A snapshot is above the image of
// its sandbox.
type painter struct {
	paddock.Driver
	images image.Source

	mu    sync.Mutex
	taken []string                      // guarded by mu; digests
	below map[paddock.SnapshotID]string // guarded by mu
}

func newPainter(t *testing.T, l *library) *painter {
	t.Helper()
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &painter{Driver: d, images: l, below: map[paddock.SnapshotID]string{}}
}

func (p *painter) Unwrap() paddock.Driver { return p.Driver }

func (p *painter) Create(ctx context.Context, spec paddock.Spec) (paddock.Sandbox, error) {
	p.mu.Lock()
	digest := p.below[spec.Root.Snapshot]
	p.mu.Unlock()
	if spec.Root.Kind == paddock.RootImage {
		digest, spec.Root = spec.Root.Image, paddock.Root{}
	}
	if digest == "" {
		return p.Driver.Create(ctx, spec)
	}
	tree, hold, err := p.images.Tree(ctx, digest, image.FormDir)
	if err != nil {
		return nil, err
	}
	defer hold.Close()
	if _, err := os.Stat(filepath.Join(tree.Path, "marker")); err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.taken = append(p.taken, digest)
	p.mu.Unlock()
	sb, err := p.Driver.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &painted{sb, p, digest}, nil
}

// A painted sandbox begins with an image.
type painted struct {
	paddock.Sandbox
	p      *painter
	digest string
}

func (s *painted) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	id, err := s.Sandbox.Snapshot(ctx, o)
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.below[id] = s.digest
	return id, err
}

func (p *painter) took() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.taken)
}

// A shop is a registry of go-containerregistry's, between which and its callers something may come.
type shop struct {
	host string

	mu  sync.Mutex
	odd func(w http.ResponseWriter, r *http.Request) bool // guarded by mu; answers in the registry's place
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{}
	inner := hubs.New(hubs.Logger(log.New(io.Discard, "", 0)))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		odd := s.odd
		s.mu.Unlock()
		if odd == nil || !odd(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(web.Close)
	s.host = strings.TrimPrefix(web.URL, "http://")
	return s
}

func (s *shop) be(odd func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odd = odd
}

// listed has a server's operator list the shop, which is at a loopback address.
func (s *shop) listed(f *serveFlags) { f.images.registries = []string{s.host} }

// push makes an image with a text in it, and returns its reference, its digest and its layer.
func (s *shop) push(t *testing.T, ref, text string) (reference, digest string, layer []byte) {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := w.WriteHeader(&tar.Header{Name: "marker", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(text))}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	img, err := mutate.AppendLayers(empty.Image, l)
	if err != nil {
		t.Fatal(err)
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", runtime.GOARCH
	if img, err = mutate.ConfigFile(img, c); err != nil {
		t.Fatal(err)
	}
	at, err := name.ParseReference(s.host+"/"+ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(at, img); err != nil {
		t.Fatal(err)
	}
	h, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	in, err := l.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	if layer, err = io.ReadAll(in); err != nil {
		t.Fatal(err)
	}
	return at.String(), h.String(), layer
}

// isBlob tells whether a request is for a blob with this content.
func isBlob(r *http.Request, data []byte) bool {
	sum := sha256.Sum256(data)
	return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/blobs/sha256:"+hex.EncodeToString(sum[:]))
}

// box asks for a sandbox with an image.
func (w *town) box(who, ref string) (int, string) {
	w.t.Helper()
	return w.ask(who+" write", "POST", "/v1/sandboxes", fmt.Sprintf(`{"tier":"sim","root":{"kind":"image","image":%q}}`, ref))
}

// pull asks for an image.
func (w *town) pull(who, ref, when string) (int, string) {
	w.t.Helper()
	return w.ask(who, "POST", "/v1/images", fmt.Sprintf(`{"reference":%q,"pull":%q}`, ref, when))
}

// images lists the digests of a tenant's images.
func (w *town) images(who string) []string {
	w.t.Helper()
	var list api.Images
	w.must(who+" read", "GET", "/v1/images", "", &list)
	digests := []string{}
	for _, img := range list.Images {
		digests = append(digests, img.Digest)
	}
	return digests
}

func TestATenantsImagesAreNobodyElses(t *testing.T) {
	s := newShop(t)
	ref, digest, _ := s.push(t, "a/b:1", "ours")
	w := newTown(t, s.listed)
	code, text := w.box("ours", ref)
	if code != http.StatusCreated {
		t.Fatalf("%d %s", code, text)
	}
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(text), &made); err != nil {
		t.Fatal(err)
	}
	if code, text := w.box("ours", digest); code != http.StatusCreated {
		t.Errorf("by the digest: %d %s", code, text)
	}
	if got := w.images("ours"); !slices.Equal(got, []string{digest}) {
		t.Errorf("it has %q", got)
	}
	if got := w.images("theirs"); len(got) > 0 {
		t.Errorf("another has %q", got)
	}

	// The digest is known, and nothing follows from it.
	none := "sha256:" + strings.Repeat("0", 64)
	request := regexp.MustCompile(`"request":"[^"]*"`)
	taken := w.painter.took()
	for _, when := range []string{api.PullMissing, api.PullNever, api.PullAlways} {
		for _, who := range []string{"theirs write", "theirs admin"} {
			code, text := w.pull(who, digest, when)
			noCode, noText := w.pull(who, none, when)
			if code < 400 || code != noCode || request.ReplaceAllString(strings.ReplaceAll(text, digest, none), "") != request.ReplaceAllString(noText, "") {
				t.Errorf("%s, pull %s: of another's image: %d %s\nof nobody's: %d %s", who, when, code, text, noCode, noText)
			}
		}
	}
	code, text = w.box("theirs", digest)
	noCode, noText := w.box("theirs", none)
	if code != http.StatusNotFound || noCode != code || request.ReplaceAllString(strings.ReplaceAll(text, digest, none), "") != request.ReplaceAllString(noText, "") {
		t.Errorf("of another's image: %d %s\nof nobody's: %d %s", code, text, noCode, noText)
	}
	if code, text := w.ask("theirs admin", "DELETE", "/v1/images?reference="+digest, ""); code != http.StatusNotFound {
		t.Errorf("removal of another's: %d %s", code, text)
	}
	// Nor from the reference: the registry decides for each tenant.
	s.be(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true })
	if code, text := w.box("theirs", s.host+"/a/b@"+digest); code < 400 || !strings.Contains(text, "/a/b@") {
		t.Errorf("where the registry refuses: %d %s", code, text)
	}
	if code, text := w.box("ours", ref); code != http.StatusCreated {
		t.Errorf("what is here needs no registry: %d %s", code, text)
	}
	s.be(nil)
	if w.painter.took() != taken+1 {
		t.Errorf("the tier took %q", w.painter.taken)
	}
	// A driver that asks without having been told gets nothing.
	if _, _, err := w.accounts.watch.images.Tree(t.Context(), digest, image.FormDir); !errors.Is(err, paddock.NotFound) {
		t.Errorf("for nobody: %v", err)
	}

	// Forks and snapshots have the image of their origin, which stays as long as they.
	w.must("ours write", "POST", "/v1/sandboxes/"+made.ID+"/fork", `{"spec":{}}`, nil)
	var snap struct{ ID string }
	w.must("ours write", "POST", "/v1/sandboxes/"+made.ID+"/snapshots", `{}`, &snap)
	root := fmt.Sprintf(`{"tier":"sim","root":{"kind":"snapshot","snapshot":%q}}`, snap.ID)
	if code, text := w.ask("theirs admin", "POST", "/v1/sandboxes", root); code != http.StatusNotFound {
		t.Errorf("of another's snapshot: %d %s", code, text)
	}
	w.must("ours write", "POST", "/v1/sandboxes", root, nil)
	if w.painter.took() != taken+3 {
		t.Errorf("the tier took %q", w.painter.taken)
	}
	var list api.Page
	w.must("ours read", "GET", "/v1/sandboxes", "", &list)
	for _, st := range list.Sandboxes {
		w.must("ours write", "DELETE", "/v1/sandboxes/"+string(st.ID), "", nil)
	}
	if code, text := w.ask("ours write", "DELETE", "/v1/images?reference="+digest, ""); code != http.StatusConflict || strings.Contains(text, string(filepath.Separator)+"state") {
		t.Errorf("with a snapshot: %d %s", code, text)
	}
	w.must("ours write", "DELETE", "/v1/snapshots/"+snap.ID, "", nil)
	w.must("ours write", "DELETE", "/v1/images?reference="+digest, "", nil)
	if got := w.images("ours"); len(got) > 0 {
		t.Errorf("it has %q", got)
	}
}

func TestASharedImageIsEveryTenants(t *testing.T) {
	s := newShop(t)
	ref, digest, _ := s.push(t, "a/b:1", "shared")
	other, otherDigest, _ := s.push(t, "a/other:1", "the operator's alone")
	spec := filepath.Join(t.TempDir(), "spec.json")
	if err := os.WriteFile(spec, fmt.Appendf(nil, `{"tier":"sim","root":{"kind":"image","image":%q}}`, ref), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newTown(t, func(f *serveFlags) {
		f.images.shared, f.account.warm = []string{ref}, []string{spec + "=1"}
	})
	l := w.accounts.watch.images
	if _, err := l.d.Pull(t.Context(), imagestore.Request{Reference: other, Private: true}); err != nil {
		t.Fatal(err)
	}
	s.be(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true })
	for _, who := range []string{"ours", "theirs"} {
		for _, text := range []string{ref, digest, s.host + "/a/b@" + digest} {
			if code, answer := w.box(who, text); code != http.StatusCreated {
				t.Errorf("%s, %s: %d %s", who, text, code, answer)
			}
		}
		for _, text := range []string{other, otherDigest} {
			if code, answer := w.box(who, text); code < 400 {
				t.Errorf("%s, %s: %d %s", who, text, code, answer)
			}
		}
		if code, answer := w.ask(who+" admin", "DELETE", "/v1/images?reference="+digest, ""); code != http.StatusNotFound {
			t.Errorf("a tenant removes it: %d %s", code, answer)
		}
		if got := w.images(who); !slices.Equal(got, []string{digest}) {
			t.Errorf("%s has %q", who, got)
		}
	}
	if _, err := l.d.Remove(t.Context(), "", ref); !errors.Is(err, paddock.Conflict) {
		t.Errorf("it is removed while it is shared: %v", err)
	}
	if err := l.ready(&paddock.Spec{Root: paddock.Root{Kind: paddock.RootImage, Image: other}}); !errors.Is(err, paddock.Denied) || !strings.Contains(err.Error(), "--warm") {
		t.Errorf("a sandbox is kept ready with what is not shared: %v", err)
	}
}

func TestARegistryCannotHarmATenant(t *testing.T) {
	s := newShop(t)
	ref, _, layer := s.push(t, "a/b:1", strings.Repeat("text", 1000))
	var inward atomic.Int64
	secret := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { inward.Add(1); _, _ = w.Write(layer) }))
	defer secret.Close()
	w := newTown(t, s.listed)
	for _, c := range []struct {
		what string
		code int
		odd  func(w http.ResponseWriter, r *http.Request) bool
	}{
		{"a layer that is another", http.StatusConflict, func(w http.ResponseWriter, r *http.Request) bool {
			if !isBlob(r, layer) {
				return false
			}
			wrong := slices.Clone(layer)
			wrong[len(wrong)-1] ^= 1
			_, _ = w.Write(wrong)
			return true
		}},
		{"a layer at an address of this host", http.StatusForbidden, func(w http.ResponseWriter, r *http.Request) bool {
			if !isBlob(r, layer) {
				return false
			}
			http.Redirect(w, r, secret.URL+"/metadata", http.StatusTemporaryRedirect)
			return true
		}},
		{"everything at an address of this host", http.StatusForbidden, func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, secret.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		}},
		{"a token at an address of this host", http.StatusForbidden, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="x"`, secret.URL+"/token"))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}},
	} {
		s.be(c.odd)
		if code, text := w.box("ours", ref); code != c.code || !strings.Contains(text, "/a/b:1") {
			t.Errorf("%s: %d %s", c.what, code, text)
		}
		if got := w.images("ours"); len(got) > 0 {
			t.Errorf("%s: it has %q", c.what, got)
		}
	}
	if inward.Load() > 0 {
		t.Errorf("it was led inward %d times", inward.Load())
	}
	// One that is not listed is not asked, wherever it is.
	if code, text := w.box("theirs", "127.0.0.1:1/a/b:1"); code != http.StatusForbidden {
		t.Errorf("not listed: %d %s", code, text)
	}
	s.be(nil)
	if code, text := w.box("ours", ref); code != http.StatusCreated {
		t.Errorf("afterwards: %d %s", code, text)
	}
}

// What a caller gives up ends, and holds up nobody.
func TestAPullEndsWithItsCaller(t *testing.T) {
	s := newShop(t)
	ref, _, layer := s.push(t, "a/b:1", strings.Repeat("text", 1000))
	w := newTown(t, s.listed)
	begun, ended := make(chan struct{}), make(chan struct{})
	s.be(func(w http.ResponseWriter, r *http.Request) bool {
		if !isBlob(r, layer) {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(layer)))
		_, _ = w.Write(layer[:len(layer)/2])
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
		close(ended)
		return true
	})
	ctx, leave := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.web.URL+"/v1/images", strings.NewReader(fmt.Sprintf(`{"reference":%q}`, ref)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.keys["ours write"])
	gone := make(chan error, 1)
	go func() {
		res, err := w.web.Client().Do(r)
		if err == nil {
			res.Body.Close()
		}
		gone <- err
	}()
	<-begun
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-ended
	s.be(nil)
	if code, text := w.box("ours", ref); code != http.StatusCreated {
		t.Errorf("afterwards: %d %s", code, text)
	}
}

func TestATenantPullsOneImageAtATime(t *testing.T) {
	l := newTurns(2, 2)
	first, err := l.take(t.Context(), "ours")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan func())
	go func() {
		next, err := l.take(context.WithoutCancel(t.Context()), "ours")
		if err != nil {
			t.Error(err)
		}
		got <- next
	}()
	waiting := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.of["ours"].count
	}
	for waiting() < 2 {
		runtime.Gosched()
	}
	if _, err := l.take(t.Context(), "ours"); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("one too many: %v", err)
	}
	theirs, err := l.take(t.Context(), "theirs")
	if err != nil {
		t.Fatalf("another's: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.take(ctx, "a third"); !errors.Is(err, paddock.Canceled) {
		t.Errorf("with both places taken: %v", err)
	}
	select {
	case <-got:
		t.Error("two at once")
	default:
	}
	first()
	(<-got)()
	theirs()
	if len(l.of) > 0 || len(l.all) > 0 {
		t.Errorf("it remembers %v", l.of)
	}
}

const killedPull = "PADDOCK_TEST_KILLED_PULL" // DIR and REFERENCE of the process that is to be killed

// A server that is killed in a pull leaves nothing that the next one takes for whole.
func TestAServerThatIsKilledInAPull(t *testing.T) {
	if dir, ref, ok := strings.Cut(os.Getenv(killedPull), " "); ok {
		host, _, _ := strings.Cut(ref, "/")
		f := &serveFlags{listen: "127.0.0.1:0", store: storeFlags{state: dir}, images: imageFlags{registries: []string{host}}}
		l, err := openLibrary(invoke(dir, nil, nil).App, f, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.pull(t.Context(), "ours", imagestore.Request{Reference: ref})
		t.Fatalf("it was to be killed: %v", err)
	}
	s := newShop(t)
	ref, digest, layer := s.push(t, "a/b:1", strings.Repeat("text", 1000))
	dir := filepath.Join(t.TempDir(), "state")
	begun := make(chan struct{}, 1)
	s.be(func(w http.ResponseWriter, r *http.Request) bool {
		if !isBlob(r, layer) {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(layer)))
		_, _ = w.Write(layer[:len(layer)/2])
		w.(http.Flusher).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
		return true
	})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe, "-test.run", "^TestAServerThatIsKilledInAPull$")
	c.Env = append(os.Environ(), killedPull+"="+dir+" "+ref)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-begun:
	case <-time.After(5 * time.Minute):
		t.Error("it pulls nothing")
	}
	if err := c.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = c.Wait() // it was killed
	s.be(nil)
	w := newTown(t, s.listed, func(f *serveFlags) { f.store.state = dir })
	if got := w.images("ours"); len(got) > 0 {
		t.Errorf("it has %q", got)
	}
	if code, text := w.pull("ours write", ref, api.PullNever); code != http.StatusNotFound {
		t.Errorf("%d %s", code, text)
	}
	if code, text := w.box("ours", ref); code != http.StatusCreated {
		t.Errorf("%d %s", code, text)
	}
	if got := w.images("ours"); !slices.Equal(got, []string{digest}) {
		t.Errorf("it has %q", got)
	}
}

// A listed registry may be at a private address, and nothing else.
func TestAListedRegistryLeadsToNoPrivateAddress(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	at := strings.TrimPrefix(web.URL, "http://")
	dial := dialListed([]string{at, "registry.test"})
	c, err := dial(t.Context(), false, at, "tcp", at)
	if err != nil {
		t.Fatalf("the registry itself: %v", err)
	}
	c.Close()
	for _, row := range [][2]string{{"registry.test", at}, {"other.test", at}, {at, "127.0.0.1:1"}, {"", at}, {at, "169.254.169.254:80"}} {
		if c, err := dial(t.Context(), false, row[0], "tcp", row[1]); !errors.Is(err, paddock.Denied) {
			t.Errorf("%s leads to %s: %v", row[0], row[1], err)
			if c != nil {
				c.Close()
			}
		}
	}
}

// The images of a server's own user are those of paddock image, and registries may be anywhere, as on the command line.
func TestTheOwnerOfASocketHasTheImagesOfTheCommandLine(t *testing.T) {
	s := newShop(t)
	ref, digest, _ := s.push(t, "a/b:1", "own")
	dir := t.TempDir()
	app, f := invoke(dir, nil, nil).App, &serveFlags{listen: "unix:" + filepath.Join(dir, "s")}
	o := &operation{log: slog.New(slog.DiscardHandler)}
	var err error
	if o.images, err = openImages(t.Context(), app, f, o.log); err != nil {
		t.Fatal(err)
	}
	p := newPainter(t, o.images)
	c, err := openOwner(t.Context(), app, p, f, "unix:"+filepath.Join(dir, "s"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	who, err := c.ownerCaller(nil)
	if err != nil {
		t.Fatal(err)
	}
	sb, err := who.Driver.Create(t.Context(), paddock.Spec{Tier: paddock.Sim, Root: paddock.Root{Kind: paddock.RootImage, Image: ref}})
	if err != nil || p.took() != 1 {
		t.Fatalf("%v, the tier took %q", err, p.taken)
	}
	place, err := app.ImagesDir()
	if err != nil {
		t.Fatal(err)
	}
	beside, err := imagestore.Open(imagestore.Options{Dir: place}) // as paddock image does
	if err != nil {
		t.Fatal(err)
	}
	if img, err := beside.Resolve(t.Context(), "", ref); err != nil || img.Digest != digest {
		t.Errorf("%+v, %v", img, err)
	}
	// No process holds it here, as with a paused sandbox.
	if _, err := beside.Remove(t.Context(), "", ref); !errors.Is(err, paddock.Conflict) || !strings.Contains(err.Error(), "a server of yours") {
		t.Errorf("it is removed: %v", err)
	}
	if gone, err := beside.Prune(t.Context(), imagestore.Prune{Keep: 1, Now: time.Now()}); err != nil || len(gone) > 0 {
		t.Errorf("it is pruned: %+v, %v", gone, err)
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := beside.Remove(t.Context(), "", ref); err != nil {
		t.Error(err)
	}
}
