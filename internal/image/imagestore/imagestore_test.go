package imagestore

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
)

// A hub is a registry of one image, which asks for a password if it has one.
type hub struct {
	*httptest.Server
	manifest []byte
	blobs    map[string][]byte
	password string
	asked    int                   // blobs that it sent
	slow     func(r *http.Request) // is called before a blob is sent; nil does nothing
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func newHub(t *testing.T, arch string, files map[string]string) *hub {
	t.Helper()
	var layer bytes.Buffer
	z := gzip.NewWriter(&layer)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o4755, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	config := []byte(`{"os":"linux","architecture":"` + arch + `","config":{"Env":["A=b"]}}`)
	h := &hub{blobs: map[string][]byte{digest(config): config, digest(layer.Bytes()): layer.Bytes()}}
	var err error
	h.manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": map[string]any{"digest": digest(config), "size": len(config)},
		"layers": []any{map[string]any{"digest": digest(layer.Bytes()), "size": layer.Len()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Server = httptest.NewServer(http.HandlerFunc(h.answer))
	t.Cleanup(h.Close)
	return h
}

func (h *hub) answer(w http.ResponseWriter, r *http.Request) {
	if _, password, _ := r.BasicAuth(); h.password != "" && password != h.password {
		w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	switch what := strings.TrimPrefix(r.URL.Path, "/v2/a/b/"); {
	case r.URL.Path == "/v2/":
	case what == "manifests/latest", what == "manifests/"+digest(h.manifest):
		_, _ = w.Write(h.manifest)
	case h.blobs[strings.TrimPrefix(what, "blobs/")] != nil:
		if h.slow != nil {
			h.slow(r)
		}
		h.asked++
		_, _ = w.Write(h.blobs[strings.TrimPrefix(what, "blobs/")])
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (h *hub) name() string { return strings.TrimPrefix(h.URL, "http://") + "/a/b" }

func open(t *testing.T, change func(*Options)) *Store {
	t.Helper()
	o := Options{Dir: t.TempDir(), Dial: func(ctx context.Context, _ bool, network, to string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, to)
	}}
	if change != nil {
		change(&o)
	}
	d, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func pull(t *testing.T, d *Store, tenant, name, password string) (Image, error) {
	t.Helper()
	q := Request{Tenant: tenant, Reference: name, Say: func(string) {}}
	if password != "" {
		q.Credentials = registry.Credentials{Username: "u", Password: password}
	}
	return d.Pull(t.Context(), q)
}

var shell = map[string]string{"bin/bash": "#!", "etc/passwd": "root:x:0:0::/root:/bin/sh\nnode:x:1000:1000::/home/node:/bin/sh"}

func TestAnImageIsPulledWhole(t *testing.T) {
	h, d := newHub(t, runtime.GOARCH, shell), open(t, nil)
	img, err := pull(t, d, "acme", h.name(), "")
	if err != nil || len(img.Env) != 1 || img.Env[0] != "A=b" {
		t.Fatalf("%+v: %v", img, err)
	}
	data, err := os.ReadFile(filepath.Join(img.Dir, "etc/passwd"))
	if err != nil || !strings.Contains(string(data), "\nuser:x:1001:1001:") {
		t.Errorf("%q: %v", data, err)
	}
	if st, err := os.Lstat(filepath.Join(img.Dir, "etc/resolv.conf")); err != nil || !st.Mode().IsRegular() {
		t.Errorf("a box could not put its own over resolv.conf: %v", err)
	}
	if st, err := os.Stat(filepath.Join(img.Dir, "bin/bash")); err != nil || st.Mode()&os.ModeSetuid != 0 || st.Mode().Perm() != 0o755 {
		t.Errorf("%v: %v", st, err)
	}
	for dir, want := range map[string]string{
		img.Dir: digest(h.manifest), img.Dir + "/": digest(h.manifest), filepath.Dir(img.Dir): "", filepath.Join(img.Dir, "etc"): "", "/": "",
		filepath.Join(d.o.Dir, "root"): "", filepath.Join(img.Dir, "..", "..", strings.Repeat("0", 64), "root"): "",
	} {
		if got := Digest(d.o.Dir, dir); got != want {
			t.Errorf("the image of %s is %q, not %q", dir, got, want)
		}
	}
	if got := Digest(t.TempDir(), img.Dir); got != "" {
		t.Errorf("another store has the image %q", got)
	}
	sent := h.asked
	if again, err := pull(t, d, "acme", h.name()+"@"+digest(h.manifest), ""); err != nil || again.Dir != img.Dir || h.asked != sent+1 { // its configuration
		t.Errorf("%+v, %d blobs after %d: %v", again, h.asked, sent, err)
	}
}

func TestWhatIsPulledWithCredentialsIsNobodysWithoutThem(t *testing.T) {
	h, d := newHub(t, runtime.GOARCH, shell), open(t, nil)
	h.password = "right"
	img, err := pull(t, d, "acme", h.name(), "right")
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"other", "acme"} {
		for _, password := range []string{"", "wrong"} {
			for _, name := range []string{h.name(), h.name() + "@" + digest(h.manifest)} {
				if got, err := pull(t, d, tenant, name, password); !errors.Is(err, paddock.Denied) || got.Dir != "" {
					t.Errorf("%s, with the password %q: %+v, %v", tenant, password, got, err)
				} else if password != "" && strings.Contains(err.Error(), password) {
					t.Errorf("the error tells the password: %v", err)
				}
			}
		}
	}
	// A registry of the other tenant's that names the same sums and has none of
	// the layers gets nothing out of what is here.
	thief := newHub(t, runtime.GOARCH, shell)
	thief.manifest = h.manifest
	for sum, data := range h.blobs {
		delete(thief.blobs, sum)
		if bytes.HasPrefix(data, []byte("{")) {
			thief.blobs[sum] = data
		}
	}
	for sum := range thief.blobs {
		if h.blobs[sum] == nil {
			delete(thief.blobs, sum)
		}
	}
	if got, err := pull(t, d, "other", thief.name(), ""); !errors.Is(err, paddock.NotFound) || got.Dir != "" {
		t.Errorf("by its sum: %+v, %v", got, err)
	}
	h.password = ""
	if got, err := pull(t, d, "other", h.name(), ""); err != nil || got.Dir == img.Dir {
		t.Errorf("two tenants share %s: %v", got.Dir, err)
	}
	var all strings.Builder
	err = filepath.WalkDir(d.o.Dir, func(name string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		all.Write(data)
		return err
	})
	if err != nil || strings.Contains(all.String(), "right") {
		t.Errorf("the password was kept: %v", err)
	}
}

func TestAnImageThatCannotBeHadIsRefusedAndLeavesNothing(t *testing.T) {
	good := newHub(t, runtime.GOARCH, shell)
	other := newHub(t, "s390x", shell)
	bare := newHub(t, runtime.GOARCH, map[string]string{"bin/sh": ""})
	large := newHub(t, runtime.GOARCH, map[string]string{"bin/bash": strings.Repeat("a", 1<<20)})
	broken := newHub(t, runtime.GOARCH, shell)
	for sum, data := range broken.blobs {
		broken.blobs[sum] = append(bytes.Clone(data[:len(data)-1]), data[len(data)-1]^1)
	}
	d := open(t, func(o *Options) { o.Unpacked = 1 << 19 })
	for _, c := range []struct {
		what, name, words string
		kind              error
	}{
		{"unknown", good.name() + ":none", "no such image", paddock.NotFound},
		{"another architecture", other.name(), "s390x", paddock.Unsupported},
		{"no shell", bare.name(), "/bin/bash", paddock.Unsupported},
		{"too large", large.name(), "larger", paddock.Exhausted},
		{"damaged", broken.name(), "not what", paddock.Conflict},
		{"no name", "a b", "names no image", paddock.Invalid},
	} {
		if got, err := pull(t, d, "acme", c.name, ""); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %+v, %v", c.what, got, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(d.o.Dir, "*", "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	few := open(t, func(o *Options) { o.Images = 1 })
	if _, err := pull(t, few, "acme", good.name(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := pull(t, few, "acme", large.name(), ""); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("more than its number: %v", err)
	}
	if err := few.Sweep("acme", func(string) bool { return false }); err != nil {
		t.Error(err)
	}
	if _, err := pull(t, few, "acme", large.name(), ""); err != nil {
		t.Errorf("after the other went: %v", err)
	}
}

// empty fails the test where a store holds anything but so many images.
func empty(t *testing.T, d *Store, images int) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(d.o.Dir, "*", "*"))
	if err != nil || len(list) != images {
		t.Errorf("the store holds %v, and %d images were to be in it: %v", list, images, err)
	}
}

func TestAPullThatIsGivenUpLeavesNothing(t *testing.T) {
	h, d := newHub(t, runtime.GOARCH, shell), open(t, nil)
	for _, blob := range []int{1, 2} { // the configuration, the layer
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		h.slow = func(r *http.Request) {
			if n++; n == blob {
				cancel()
				<-r.Context().Done()
			}
		}
		img, err := d.Pull(ctx, Request{Tenant: "acme", Reference: h.name(), Say: func(string) {}})
		if !errors.Is(err, paddock.Canceled) || img.Dir != "" {
			t.Errorf("given up at blob %d: %+v, %v", blob, img, err)
		}
		empty(t, d, 0)
	}
	h.slow = nil
	if _, err := pull(t, d, "acme", h.name(), ""); err != nil {
		t.Errorf("after it was given up: %v", err)
	}
	empty(t, d, 1)
}

func TestTwoPullsOfAnImageAtOnceMakeOne(t *testing.T) {
	h, d := newHub(t, runtime.GOARCH, shell), open(t, nil)
	type got struct {
		img Image
		err error
	}
	all := make(chan got)
	for range 4 {
		go func() {
			img, err := d.Pull(t.Context(), Request{Tenant: "acme", Reference: h.name(), Say: func(string) {}})
			all <- got{img, err}
		}()
	}
	first := <-all
	for range 3 {
		if next := <-all; next.err != nil || first.err != nil || next.img.Dir != first.img.Dir {
			t.Errorf("%+v and %+v", first, next)
		}
	}
	empty(t, d, 1)
}

func TestASweepLeavesWhatIsBeingPulled(t *testing.T) {
	h, d := newHub(t, runtime.GOARCH, shell), open(t, nil)
	h.slow = func(*http.Request) {
		if err := d.Sweep("acme", func(string) bool { return false }); err != nil {
			t.Error(err)
		}
	}
	if img, err := pull(t, d, "acme", h.name(), ""); err != nil || img.Dir == "" {
		t.Errorf("%+v, %v", img, err)
	}
	empty(t, d, 1)
}

// A registry that names the sum of another's image does not come to stand in its
// place, whatever it says of the sum of what it sends.
func TestNoImageStandsInAnothersPlace(t *testing.T) {
	good, d := newHub(t, runtime.GOARCH, shell), open(t, nil)
	bad := newHub(t, runtime.GOARCH, map[string]string{"bin/bash": "#! bad"})
	inner := bad.Config.Handler
	bad.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.v1+prettyjws")
			w.Header().Set("Docker-Content-Digest", digest(good.manifest))
		}
		inner.ServeHTTP(w, r)
	})
	for _, name := range []string{bad.name(), bad.name() + "@" + digest(bad.manifest)} {
		if img, err := pull(t, d, "acme", name, ""); err == nil && img.ID == strings.TrimPrefix(digest(good.manifest), "sha256:") {
			t.Errorf("%s is kept as %s", name, img.ID)
		}
	}
	img, err := pull(t, d, "acme", good.name(), "")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(img.Dir, "bin/bash")); err != nil || string(data) != "#!" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestAFullDiskIsToldAsOne(t *testing.T) {
	if err := full(fmt.Errorf("a: %w", syscall.ENOSPC)); !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "disk") {
		t.Error(err)
	}
	if err := full(paddock.Conflict); !errors.Is(err, paddock.Conflict) || errors.Is(err, paddock.Exhausted) {
		t.Error(err)
	}
}
