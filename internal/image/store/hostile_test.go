package store_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
	"github.com/paddock-sandbox/paddock/internal/image/signature"
	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// left lists the files of a store, without locks and directories.
func left(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(name string, e os.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != "lock" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func isLayer(r *http.Request, img v1.Image, n int) bool {
	layers, err := img.Layers()
	if err != nil {
		return false
	}
	h, err := layers[n].Digest()
	return err == nil && strings.HasSuffix(r.URL.Path, "/blobs/"+h.String())
}

func TestAnImageThatCannotBeHadIsRefusedAndNothingIsRecorded(t *testing.T) {
	hub := newShop(t)
	good := build(t, runtime.GOARCH, archive(t, file{"a", noise(300_000), 0}))
	ref := hub.push(t, "a/b:1", good)
	other := hub.push(t, "a/other:1", build(t, "s390x", archive(t, file{"a", "b", 0})))
	many := hub.push(t, "a/env:1", func() v1.Image {
		c, err := good.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		c = c.DeepCopy()
		for n := range 5000 {
			c.Config.Env = append(c.Config.Env, fmt.Sprintf("A%d=b", n))
		}
		img, err := mutate.ConfigFile(good, c)
		if err != nil {
			t.Fatal(err)
		}
		return img
	}())
	lie := func(change func([]byte) []byte) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			if !isLayer(r, good, 0) || r.Method != http.MethodGet {
				return false
			}
			layers, _ := good.Layers()
			in, err := layers[0].Compressed()
			if err != nil {
				return false
			}
			data, _ := io.ReadAll(in)
			_, _ = w.Write(change(data))
			return true
		}
	}
	for _, c := range []struct {
		what, ref string
		odd       func(http.ResponseWriter, *http.Request) bool
		change    func(*store.Options)
		words     string
		kind      error
	}{
		{"unknown", hub.host + "/a/none:1", nil, nil, "no such image", paddock.NotFound},
		{"another architecture", other, nil, nil, "s390x", paddock.Unsupported},
		{"no name", "a b", nil, nil, "names no image", paddock.Invalid},
		{"a wrong byte", ref, lie(func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), nil, "not what", paddock.Conflict},
		{"truncated", ref, lie(func(b []byte) []byte { return b[:len(b)-9] }), nil, "not what", paddock.Conflict},
		{"longer", ref, lie(func(b []byte) []byte { return append(b, 0) }), nil, "not what", paddock.Conflict},
		{"a redirect inward", ref, func(w http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.URL.Path, "/blobs/") {
				http.Redirect(w, r, "http://169.254.169.254/latest/meta-data", http.StatusTemporaryRedirect)
				return true
			}
			return false
		}, nil, "not encrypted", paddock.Denied},
		{"more than is sent", ref, nil, func(o *store.Options) { o.Sent = 1000 }, "more than", paddock.Exhausted},
		{"more than all", ref, nil, func(o *store.Options) { o.All = 1000 }, "room", paddock.Exhausted},
		{"a thousand variables", many, nil, nil, "environment", paddock.Exhausted},
		{"no Dial", ref, nil, func(o *store.Options) { o.Dial = nil }, "nothing is pulled", paddock.NotFound},
	} {
		hub.be(c.odd)
		dir := t.TempDir()
		s := open(t, dir, c.change)
		img, err := s.Pull(t.Context(), store.Request{Reference: c.ref})
		if !errors.Is(err, c.kind) || !strings.Contains(fmt.Sprint(err), c.words) {
			t.Errorf("%s: %+v, %v", c.what, img, err)
		}
		list, err := s.Images("")
		if err != nil || len(list) > 0 {
			t.Errorf("%s: it is listed: %v, %v", c.what, list, err)
		}
		if _, err := s.Prune(t.Context(), store.Prune{Now: time.Now()}); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		if names := left(t, dir); len(names) > 0 {
			t.Errorf("%s: after a prune there is %v", c.what, names)
		}
	}
}

func TestABombIsNotUnpacked(t *testing.T) {
	hub, dir := newShop(t), t.TempDir()
	s := open(t, dir, func(o *store.Options) { o.Unpacked = 1 << 20 })
	got, err := s.Pull(t.Context(), store.Request{Reference: hub.push(t, "a/b:1", build(t, runtime.GOARCH, archive(t, file{"zero", strings.Repeat("\x00", 4<<20), 0})))})
	if err != nil {
		t.Fatal(err)
	}
	before := left(t, dir)
	if _, _, err := s.Tree(t.Context(), got.Digest, image.FormDir); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("%v", err)
	}
	for _, name := range left(t, dir) {
		if strings.Contains(name, "new-") || strings.Contains(name, "zero") {
			t.Errorf("after %d files, there is %s", len(before), name)
		}
	}
}

func TestACutPullGoesOnAndBothAtOnceDownloadOnce(t *testing.T) {
	hub, dir := newShop(t), t.TempDir()
	img := build(t, runtime.GOARCH, archive(t, file{"a", noise(600_000), 0}))
	ref := hub.push(t, "a/b:1", img)
	layers, _ := img.Layers()
	in, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	data, _ := io.ReadAll(in)
	ctx, cancel := context.WithCancel(t.Context())
	hub.be(func(w http.ResponseWriter, r *http.Request) bool {
		if !isLayer(r, img, 0) || r.Method != http.MethodGet {
			return false
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:200_000])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	})
	_, err = open(t, dir, nil).Pull(ctx, store.Request{Reference: ref, Say: func(p store.Progress) {
		if p.Have == 200_000 {
			cancel()
		}
	}})
	if !errors.Is(err, paddock.Canceled) {
		t.Fatal(err)
	}
	hub.be(nil)
	type pulled struct {
		img store.Image
		err error
	}
	results := make(chan pulled)
	for range 3 { // each a store of its own, as of another process
		s := open(t, dir, nil)
		go func() {
			img, err := s.Pull(t.Context(), store.Request{Reference: ref, Always: true})
			results <- pulled{img, err}
		}()
	}
	for range 3 {
		if r := <-results; r.err != nil || r.img.Digest != digestOf(t, img) {
			t.Errorf("%+v", r)
		}
	}
	part := 0
	for _, header := range hub.ranges() {
		if header != "" {
			part++
			if header != fmt.Sprintf("bytes=200000-%d", len(data)-1) {
				t.Errorf("it asked for %q", header)
			}
		}
	}
	if whole := len(hub.ranges()) - part; part != 1 || whole != 3 { // a configuration for each
		t.Errorf("of %v, %d are of a part", hub.ranges(), part)
	}
	if text := all(t, open(t, dir, nil), digestOf(t, img)); text != "a="+noise(600_000)+";" {
		t.Error("its files are others")
	}
}

// A process that is killed while it pulls or unpacks leaves nothing that others take for whole.
func TestAKilledProcessLeavesNothingHalf(t *testing.T) {
	if dir := os.Getenv("PADDOCK_TEST_STORE"); dir != "" {
		s := open(t, dir, nil)
		img, err := s.Pull(t.Context(), store.Request{Reference: os.Getenv("PADDOCK_TEST_REFERENCE")})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = s.Tree(t.Context(), img.Digest, image.FormDir)
		t.Fatalf("it was to be killed: %v", err)
	}
	hub, dir := newShop(t), t.TempDir()
	img := build(t, runtime.GOARCH, archive(t, file{"a", noise(400_000), 0}), archive(t, file{"b", "two", 0}))
	ref := hub.push(t, "a/b:1", img)
	hit := make(chan struct{}, 10)
	hub.be(func(_ http.ResponseWriter, r *http.Request) bool {
		if isLayer(r, img, 0) {
			hit <- struct{}{}
			<-r.Context().Done()
			return true
		}
		return false
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, "-test.run=^TestAKilledProcessLeavesNothingHalf$")
	c.Env = append(os.Environ(), "PADDOCK_TEST_STORE="+dir, "PADDOCK_TEST_REFERENCE="+ref)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	<-hit
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	hub.be(nil)
	s := open(t, dir, nil)
	if list, err := s.Images(""); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	got, err := s.Pull(t.Context(), store.Request{Reference: ref})
	if err != nil {
		t.Fatal(err)
	}
	if text := all(t, s, got.Digest); text != "a="+noise(400_000)+";b=two;" {
		t.Error("its files are others")
	}
}

func TestAnImageInUseIsNotRemoved(t *testing.T) {
	hub, dir := newShop(t), t.TempDir()
	one := hub.push(t, "a/b:1", build(t, runtime.GOARCH, archive(t, file{"a", "shared", 0}), archive(t, file{"b", "one", 0})))
	two := hub.push(t, "a/b:2", build(t, runtime.GOARCH, archive(t, file{"a", "shared", 0}), archive(t, file{"b", "two", 0})))
	s := open(t, dir, nil)
	var digests []string
	for _, ref := range []string{one, two} {
		img, err := s.Pull(t.Context(), store.Request{Reference: ref})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, img.Digest)
	}
	tree, hold, err := s.Tree(t.Context(), digests[0], image.FormDir)
	if err != nil {
		t.Fatal(err)
	}
	another := open(t, dir, nil)
	if _, err := another.Remove(t.Context(), "", one); !errors.Is(err, paddock.Conflict) || !strings.Contains(err.Error(), one) {
		t.Errorf("%v", err)
	}
	gone, err := another.Prune(t.Context(), store.Prune{Older: time.Nanosecond, Now: time.Now().Add(time.Hour)})
	if err != nil || len(gone) != 1 || gone[0].Digest != digests[1] || gone[0].Size <= 0 {
		t.Errorf("%+v, %v", gone, err)
	}
	if _, err := os.Stat(filepath.Join(tree.Path, "b")); err != nil {
		t.Error(err)
	}
	if err := hold.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err := another.Remove(t.Context(), "", one); err != nil || !r.Gone {
		t.Errorf("%+v, %v", r, err)
	}
	if names := left(t, dir); len(names) > 0 {
		t.Errorf("there is %v", names)
	}
	if _, err := another.Remove(t.Context(), "", one); !errors.Is(err, paddock.NotFound) {
		t.Errorf("%v", err)
	}
}

func TestThoseUsedLongestAgoGoFirst(t *testing.T) {
	hub, dir := newShop(t), t.TempDir()
	s := open(t, dir, nil)
	var digests []string
	for _, text := range []string{"one", "two", "three"} {
		img, err := s.Pull(t.Context(), store.Request{Reference: hub.push(t, "a/b:"+text, build(t, runtime.GOARCH, archive(t, file{"a", noise(100_000) + text, 0})))})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, img.Digest)
		at := time.Now().Add(time.Duration(len(digests)-10) * time.Hour)
		names, err := filepath.Glob(filepath.Join(dir, "*", "images", strings.TrimPrefix(img.Digest, "sha256:"), "hold"))
		if err != nil || len(names) != 1 {
			t.Fatal(names, err)
		}
		if err := os.Chtimes(names[0], at, at); err != nil {
			t.Fatal(err)
		}
	}
	gone, err := s.Prune(t.Context(), store.Prune{Keep: 250_000, Now: time.Now()})
	if err != nil || len(gone) != 1 || gone[0].Digest != digests[0] {
		t.Errorf("by size: %+v, %v", gone, err)
	}
	if gone, err = s.Prune(t.Context(), store.Prune{Older: 7*time.Hour + 30*time.Minute, Now: time.Now()}); err != nil || len(gone) != 1 || gone[0].Digest != digests[1] {
		t.Errorf("by age: %+v, %v", gone, err)
	}
	// A tag that leads to another now leaves the image that it led to without a name.
	next := build(t, runtime.GOARCH, archive(t, file{"a", "next", 0}))
	if _, err := s.Pull(t.Context(), store.Request{Reference: hub.push(t, "a/b:three", next), Always: true}); err != nil {
		t.Fatal(err)
	}
	if gone, err = s.Prune(t.Context(), store.Prune{Now: time.Now()}); err != nil || len(gone) != 1 || gone[0].Digest != digests[2] {
		t.Errorf("without a name: %+v, %v", gone, err)
	}
	if list, err := s.Images(""); err != nil || len(list) != 1 || list[0].Digest != digestOf(t, next) {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestTenantsShareNothingAndTheRegistryDecides(t *testing.T) {
	hub, dir := newShop(t), t.TempDir()
	ref := hub.push(t, "a/b:1", build(t, runtime.GOARCH, archive(t, file{"a", "one", 0})))
	hub.be(func(w http.ResponseWriter, r *http.Request) bool {
		if _, password, _ := r.BasicAuth(); password != "right" {
			w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	})
	s := open(t, dir, nil)
	pull := func(tenant, password, ref string) (store.Image, error) {
		return s.Pull(t.Context(), store.Request{Tenant: tenant, Reference: ref, Always: true, Credentials: func(context.Context, string) (registry.Credentials, error) {
			return registry.Credentials{Username: "u", Password: password}, nil
		}})
	}
	got, err := pull("acme", "right", ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"acme", "other"} {
		for _, text := range []string{ref, hub.host + "/a/b@" + got.Digest} {
			if img, err := pull(tenant, "wrong", text); !errors.Is(err, paddock.Denied) || strings.Contains(err.Error(), "wrong") {
				t.Errorf("%s: %+v, %v", tenant, img, err)
			}
		}
	}
	hub.be(nil)
	if _, err := s.Pull(t.Context(), store.Request{Tenant: "other", Reference: ref}); err != nil {
		t.Fatal(err)
	}
	if asked := len(hub.ranges()); asked != 2 {
		t.Errorf("another tenant's was pulled with %d blobs", asked)
	}
	for _, name := range left(t, dir) {
		if data, err := os.ReadFile(name); err != nil || bytes.Contains(data, []byte("right")) {
			t.Errorf("%s has the password: %v", name, err)
		}
	}
}

func keyPEM(t *testing.T, key crypto.PublicKey) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// sign puts a signature beside an image, as cosign does.
func sign(t *testing.T, hub *shop, repo, digest string, value func(payload []byte) []byte) {
	t.Helper()
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":"x"},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`, digest)
	img, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer:       static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(value(payload))},
	})
	if err != nil {
		t.Fatal(err)
	}
	hub.push(t, repo+":"+strings.Replace(digest, ":", "-", 1)+".sig", img)
}

func TestAPolicyBoundsRegistriesDigestsAndSignatures(t *testing.T) {
	hub, dir := newShop(t), t.TempDir()
	img := build(t, runtime.GOARCH, archive(t, file{"a", "one", 0}))
	ref := hub.push(t, "a/b:1", img)
	digest := digestOf(t, img)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var keys []crypto.PublicKey
	for _, k := range []crypto.PublicKey{private.Public(), public} {
		key, err := signature.ParseKey(keyPEM(t, k))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	pull := func(text string, policy store.Policy, always bool) error {
		_, err := open(t, dir, nil).Pull(t.Context(), store.Request{Reference: text, Policy: policy, Always: always})
		return err
	}
	refused := func(what string, err error, words string) {
		t.Helper()
		if !errors.Is(err, paddock.Denied) || !strings.Contains(fmt.Sprint(err), words) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n, what := range []string{"before it is here", "when it is here"} {
		refused("another registry, "+what, pull(ref, store.Policy{Registries: []string{"registry.example.com"}}, false), "registry.example.com")
		refused("a tag, "+what, pull(ref, store.Policy{Digest: true}, false), "demands a digest")
		refused("no signature, "+what, pull(ref, store.Policy{Keys: keys[:1]}, n == 1), "signed")
		if err := pull(ref, store.Policy{Registries: []string{"registry.example.com", hub.host}}, false); err != nil {
			t.Fatal(err)
		}
		if err := pull(hub.host+"/a/b@"+digest, store.Policy{Digest: true}, false); err != nil {
			t.Fatal(err)
		}
	}
	// Signatures of another digest, by another key, and none.
	sum := func(b []byte) []byte { s := sha256.Sum256(b); return s[:] }
	by := func(payload []byte) []byte {
		value, err := ecdsa.SignASN1(rand.Reader, private, sum(payload))
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	sign(t, hub, "a/b", digest, func([]byte) []byte { return []byte("none") })
	refused("a signature that is none", pull(ref, store.Policy{Keys: keys}, true), "signed")
	sign(t, hub, "a/b", digest, func([]byte) []byte { return by([]byte("another payload")) })
	refused("that of another payload", pull(ref, store.Policy{Keys: keys}, true), "signed")
	sign(t, hub, "a/b", digest, by)
	refused("by another key", pull(ref, store.Policy{Keys: keys[1:]}, true), "signed")
	if err := pull(ref, store.Policy{Keys: keys}, true); err != nil {
		t.Errorf("signed with ECDSA: %v", err)
	}
	if err := pull(ref, store.Policy{Keys: keys[:1]}, false); err != nil {
		t.Errorf("verified before, and offline now: %v", err)
	}
	refused("verified by another key before", pull(ref, store.Policy{Keys: keys[1:]}, false), "signed")
	sign(t, hub, "a/b", digest, func(payload []byte) []byte { return ed25519.Sign(edwards, payload) })
	if err := pull(ref, store.Policy{Keys: keys[1:]}, true); err != nil {
		t.Errorf("signed with ed25519: %v", err)
	}
	// The store's own policy holds for what is here too.
	strict := open(t, dir, func(o *store.Options) { o.Policy = store.Policy{Registries: []string{"registry.example.com"}} })
	_, err = strict.Resolve(t.Context(), "", digest)
	refused("by its digest", err, "registry.example.com")
}

// The real cosign signs, and a pull verifies.
func TestTheSignatureOfCosignIsVerified(t *testing.T) {
	program := os.Getenv("PADDOCK_TEST_COSIGN")
	if program == "" {
		t.Skip("PADDOCK_TEST_COSIGN names no cosign")
	}
	hub, dir := newShop(t), t.TempDir()
	img := build(t, runtime.GOARCH, archive(t, file{"a", "one", 0}))
	ref := hub.push(t, "a/b:1", img)
	run := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), program, args...)
		c.Dir, c.Env = dir, append(os.Environ(), "COSIGN_PASSWORD=", "HOME="+dir)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("cosign %v: %v: %s", args, err, out)
		}
	}
	run("generate-key-pair")
	data, err := os.ReadFile(filepath.Join(dir, "cosign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := signature.ParseKey(data)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, filepath.Join(dir, "images"), nil)
	q := store.Request{Reference: ref, Policy: store.Policy{Keys: []crypto.PublicKey{key}}}
	if _, err := s.Pull(t.Context(), q); !errors.Is(err, paddock.Denied) {
		t.Errorf("before it is signed: %v", err)
	}
	run("sign", "--key", "cosign.key", "--tlog-upload=false", "--allow-insecure-registry", "--yes", strings.TrimSuffix(ref, ":1")+"@"+digestOf(t, img))
	got, err := s.Pull(t.Context(), q)
	if err != nil || len(got.Signers) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
