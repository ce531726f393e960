package store_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	hub "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// A shop is a registry of go-containerregistry's, between which and its callers something may come.
type shop struct {
	host string

	mu    sync.Mutex
	odd   func(w http.ResponseWriter, r *http.Request) bool // guarded by mu; answers in the registry's place
	asked []string                                          // guarded by mu; blobs
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{}
	inner := hub.New(hub.Logger(log.New(io.Discard, "", 0)))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		odd := s.odd
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			s.asked = append(s.asked, r.Header.Get("Range"))
		}
		s.mu.Unlock()
		if odd == nil || !odd(w, r) {
			inner.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	s.host = strings.TrimPrefix(srv.URL, "http://")
	return s
}

func (s *shop) be(odd func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odd, s.asked = odd, nil
}

func (s *shop) ranges() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// push makes an image, and gives its reference.
func (s *shop) push(t *testing.T, ref string, img v1.Image) string {
	t.Helper()
	at, err := name.ParseReference(s.host+"/"+ref, name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(at, img); err != nil {
		t.Fatal(err)
	}
	return at.String()
}

type file struct {
	name, text string
	mode       int64
}

func archive(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode | 0o644, Size: int64(len(f.text)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag, h.Mode = tar.TypeDir, 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// build makes an image of layers.
func build(t *testing.T, arch string, layers ...[]byte) v1.Image {
	t.Helper()
	img := empty.Image
	for _, data := range layers {
		l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, l); err != nil {
			t.Fatal(err)
		}
	}
	c, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", arch
	c.Config.Env, c.Config.WorkingDir, c.Config.User = []string{"A=b"}, "/srv", "www:www"
	if img, err = mutate.ConfigFile(img, c); err != nil {
		t.Fatal(err)
	}
	return img
}

func digestOf(t *testing.T, img v1.Image) string {
	t.Helper()
	h, err := img.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

func noise(n int) string {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(b)
	return string(b)
}

func dial(ctx context.Context, _ bool, _, network, to string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, to)
}

func open(t *testing.T, dir string, change func(*store.Options)) *store.Store {
	t.Helper()
	o := store.Options{Dir: dir, Dial: dial}
	if change != nil {
		change(&o)
	}
	s, err := store.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnImageIsPulledOnceAndUsedOffline(t *testing.T) {
	hub, dir := newShop(t), t.TempDir()
	img := build(t, runtime.GOARCH, archive(t, file{"etc/", "", 0}, file{"etc/a", "one", 0}), archive(t, file{"etc/b", "two", 0o755}, file{"etc/.wh.a", "", 0}))
	ref := hub.push(t, "a/b:1", img)
	s := open(t, dir, nil)
	got, err := s.Pull(t.Context(), store.Request{Reference: ref})
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != digestOf(t, img) || len(got.References) != 1 || got.References[0] != ref || len(got.Layers) != 2 || got.Config.Dir != "/srv" || got.Config.User != "www:www" || len(got.Config.Env) != 1 {
		t.Errorf("%+v", got)
	}
	hub.be(func(http.ResponseWriter, *http.Request) bool { t.Error("the registry was asked"); return false })
	again := open(t, dir, nil) // as another process would
	for _, text := range []string{ref, got.Digest, hub.host + "/a/b@" + got.Digest} {
		if img, err := again.Pull(t.Context(), store.Request{Reference: text}); err != nil || img.Digest != got.Digest {
			t.Errorf("%s: %+v, %v", text, img, err)
		}
	}
	tree, hold, err := again.Tree(t.Context(), got.Digest, image.FormDir)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if data, err := os.ReadFile(filepath.Join(tree.Path, "etc/b")); err != nil || string(data) != "two" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := os.Lstat(filepath.Join(tree.Path, "etc/a")); !os.IsNotExist(err) {
		t.Errorf("what a layer removes is there: %v", err)
	}
	if tree.Config.Dir != "/srv" || tree.Size <= 0 {
		t.Errorf("%+v", tree)
	}
	if _, _, err := again.Tree(t.Context(), got.Digest, "other"); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("a form that nothing makes: %v", err)
	}
	if _, _, err := again.Tree(t.Context(), "sha256:"+strings.Repeat("0", 64), image.FormDir); !errors.Is(err, paddock.NotFound) {
		t.Errorf("an image that is not here: %v", err)
	}
	if _, _, err := again.Tree(again.As(t.Context(), "other"), got.Digest, image.FormDir); !errors.Is(err, paddock.NotFound) {
		t.Errorf("another tenant's: %v", err)
	}
	if _, err := again.Resolve(t.Context(), "other", ref); !errors.Is(err, paddock.NotFound) {
		t.Errorf("another tenant's reference: %v", err)
	}
}

func all(t *testing.T, s *store.Store, digest string) string {
	t.Helper()
	tree, hold, err := s.Tree(t.Context(), digest, image.FormDir)
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	var b strings.Builder
	err = filepath.WalkDir(tree.Path, func(name string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		rel, _ := filepath.Rel(tree.Path, name)
		b.WriteString(rel + "=" + string(data) + ";")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestImagesAreSavedAndLoadedWithoutARegistry(t *testing.T) {
	hub, dir := newShop(t), t.TempDir()
	img := build(t, runtime.GOARCH, archive(t, file{"a", "one", 0}), archive(t, file{"b", "two", 0}))
	ref := hub.push(t, "a/b:1", img)
	s := open(t, filepath.Join(dir, "one"), nil)
	got, err := s.Pull(t.Context(), store.Request{Reference: ref})
	if err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(dir, "saved.tar")
	f, err := os.Create(saved)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Save(t.Context(), "", []string{ref}, f), f.Close()); err != nil {
		t.Fatal(err)
	}
	// What go-containerregistry reads of it has the same files.
	read, err := tarball.ImageFromPath(saved, nil)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := read.Layers()
	if err != nil || len(layers) != 2 {
		t.Fatalf("%d layers: %v", len(layers), err)
	}
	legacy := filepath.Join(dir, "legacy.tar")
	tag, err := name.NewTag("legacy.example.com/x:2")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(legacy, tag, img); err != nil {
		t.Fatal(err)
	}
	unpacked := filepath.Join(dir, "layout")
	untar(t, saved, unpacked)
	tree := filepath.Join(dir, "tree")
	for name, text := range map[string]string{"a": "one", "b": "two"} {
		if err := errors.Join(os.MkdirAll(tree, 0o755), os.WriteFile(filepath.Join(tree, name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	plain := filepath.Join(dir, "tree.tar")
	if err := os.WriteFile(plain, archive(t, file{"a", "one", 0}, file{"b", "two", 0}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, path, tag, ref, digest string }{
		{"a saved archive", saved, "", ref, got.Digest},
		{"a layout in a directory", unpacked, "", ref, got.Digest},
		{"by another name", saved, "own:1", "docker.io/library/own:1", got.Digest},
		{"docker save", legacy, "", "legacy.example.com/x:2", ""},
		{"a file tree", tree, "own:2", "docker.io/library/own:2", ""},
		{"an archive of a file tree", plain, "own:3", "docker.io/library/own:3", ""},
	} {
		to := open(t, filepath.Join(dir, "to", c.what), nil)
		list, err := to.Load(t.Context(), store.Load{Path: c.path, Tag: c.tag})
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %d images: %v", c.what, len(list), err)
			continue
		}
		if img := list[0]; c.digest != "" && img.Digest != c.digest || len(img.References) != 1 || img.References[0] != c.ref {
			t.Errorf("%s: %+v", c.what, img)
		}
		if text := all(t, to, list[0].Digest); text != "a=one;b=two;" {
			t.Errorf("%s: its files are %s", c.what, text)
		}
	}
	to := open(t, filepath.Join(dir, "stream"), nil)
	in, err := os.Open(saved)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if list, err := to.Load(t.Context(), store.Load{Input: in}); err != nil || len(list) != 1 || list[0].Digest != got.Digest {
		t.Errorf("from a stream: %+v, %v", list, err)
	}
	for what, path := range map[string]string{"a tree": tree, "an archive of one": plain} {
		if _, err := to.Load(t.Context(), store.Load{Path: path}); !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), "--tag") {
			t.Errorf("%s without a name: %v", what, err)
		}
	}
}

// untar unpacks an archive of this test's own.
func untar(t *testing.T, name, dir string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, h.Name)
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(to, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatIsNoImageIsNotLoaded(t *testing.T) {
	dir := t.TempDir()
	var b bytes.Buffer
	if err := tarball.Write(name.MustParseReference("x:1"), build(t, runtime.GOARCH, archive(t, file{"a", "one", 0})), &b); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(b.Bytes())
	at := bytes.Index(damaged, []byte("diff_ids")) + len(`diff_ids":["sha256:`)
	if damaged[at]++; damaged[at] == 'g' || damaged[at] == ':' {
		damaged[at] = '0'
	}
	var other bytes.Buffer
	if err := tarball.Write(name.MustParseReference("x:1"), build(t, "s390x", archive(t, file{"a", "one", 0})), &other); err != nil {
		t.Fatal(err)
	}
	index := func(text string) []byte { return archive(t, file{"oci-layout", "{}", 0}, file{"index.json", text, 0}) }
	for _, c := range []struct {
		what string
		data []byte
		kind error
	}{
		{"no archive", []byte("hello"), paddock.Invalid},
		{"half of one", b.Bytes()[:b.Len()/2], paddock.Invalid},
		{"another configuration", damaged, paddock.Conflict},
		{"another architecture", other.Bytes(), paddock.Unsupported},
		{"a name that no archive of images has", archive(t, file{"oci-layout", "{}", 0}, file{"index.json", "{}", 0}, file{strings.Repeat("n/", 2100), "", 0}), paddock.Invalid},
		{"no manifest", archive(t, file{"manifest.json", "[]", 0}), paddock.Invalid},
		{"a configuration that is not there", archive(t, file{"manifest.json", `[{"Config":"../../etc/passwd","Layers":[]}]`, 0}), paddock.Invalid},
		{"an index of nothing", index(`{"manifests":[]}`), paddock.Unsupported},
		{"a blob that is not there", index(`{"manifests":[{"digest":"sha256:` + strings.Repeat("0", 64) + `","size":2}]}`), paddock.NotFound},
		{"a digest that is a path", index(`{"manifests":[{"digest":"sha256:../../../etc/passwd","size":2}]}`), paddock.Invalid},
		{"a blob that is another", archive(t, file{"oci-layout", "{}", 0}, file{"index.json", "{}", 0}, file{"blobs/sha256/" + strings.Repeat("0", 64), "x", 0}), paddock.Conflict},
	} {
		s := open(t, filepath.Join(dir, c.what), nil)
		list, err := s.Load(t.Context(), store.Load{Input: bytes.NewReader(c.data), Tag: ""})
		if !errors.Is(err, c.kind) || len(list) > 0 {
			t.Errorf("%s: %v, %v", c.what, list, err)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, c.what, "*", "*", "*")); len(left) > 0 {
			t.Errorf("%s: it left %v", c.what, left)
		}
	}
}
