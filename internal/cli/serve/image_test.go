package serve

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/image/e2broot"
	imagestore "github.com/paddock-sandbox/paddock/internal/image/store"
)

func TestAnOrdinaryKeyReachesNoRegistryOfAPrivateAddress(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "169.254.169.254", "10.0.0.1", "192.168.0.1", "[::1]", "[fd00::1]", "[64:ff9b::7f00:1]", "0.0.0.0", "2130706433", "0x7f.1"} {
		if c, err := dialRegistry(t.Context(), false, "", "tcp", host+":"+port); err == nil {
			c.Close()
			t.Errorf("%s was dialled", host)
		} else if !errors.Is(err, paddock.Denied) && !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v", host, err)
		}
	}
	c, err := dialRegistry(t.Context(), true, "", "tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("a key of the scope admin: %v", err)
	}
	c.Close()
}

// hub gives the name of an image in a registry at a loopback address.
func hub(t *testing.T) string {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: "bin/bash", Typeflag: tar.TypeReg, Mode: 0o755}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	blobs := map[string][]byte{}
	add := func(data []byte) string {
		sum := sha256.Sum256(data)
		digest := "sha256:" + hex.EncodeToString(sum[:])
		blobs["/v2/base/blobs/"+digest] = data
		return fmt.Sprintf(`{"digest":%q,"size":%d}`, digest, len(data))
	}
	config := add([]byte(`{"os":"linux","architecture":"` + runtime.GOARCH + `","config":{"Env":["FROM=the image"]}}`))
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":%s,"layers":[%s]}`, config, add(layer.Bytes()))
	blobs["/v2/"], blobs["/v2/base/manifests/latest"] = []byte("{}"), manifest
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, ok := blobs[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://") + "/base"
}

func TestBaseIsTheImageThatTheServerIsStartedWith(t *testing.T) {
	d, err := imagestore.Open(imagestore.Options{Dir: t.TempDir(), Dial: dialRegistry, Converters: []imagestore.Converter{e2broot.Converter()}})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	name := hub(t)
	img, err := baseImage(t.Context(), imageStore{d}, name, log)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Join(img.Dir, "bin/bash")); err != nil || !st.Mode().IsRegular() || len(img.Env) != 1 || img.Env[0] != "FROM=the image" {
		t.Errorf("%+v: %v, %v", img, st, err)
	}
	if img, err := baseImage(t.Context(), imageStore{d}, "", log); err != nil || img != nil {
		t.Errorf("without a name: %+v, %v", img, err)
	}
	if img, err := baseImage(t.Context(), imageStore{d}, name+"-none", log); !errors.Is(err, paddock.NotFound) || !strings.Contains(err.Error(), "--e2b-base") {
		t.Errorf("of an image that is not there: %+v, %v", img, err)
	}
}

func TestAServersPolicyHoldsForEveryTenant(t *testing.T) {
	name := hub(t)
	for _, c := range []struct {
		flags imageFlags
		words string
	}{
		{imageFlags{registries: []string{"registry.example.com"}}, "registry.example.com"},
		{imageFlags{digest: true}, "demands a digest"},
	} {
		policy, err := c.flags.policy()
		if err != nil {
			t.Fatal(err)
		}
		d, err := imagestore.Open(imagestore.Options{Dir: t.TempDir(), Dial: dialRegistry, Policy: policy, Converters: []imagestore.Converter{e2broot.Converter()}})
		if err != nil {
			t.Fatal(err)
		}
		img, err := imageStore{d}.Pull(t.Context(), e2b.Pull{Tenant: "acme", Image: name, Private: true, Say: func(string) {}})
		if !errors.Is(err, paddock.Denied) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%+v: %+v, %v", c.flags, img, err)
		}
	}
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (&imageFlags{keys: []string{file}}).policy(); !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), "--image-cosign-key") {
		t.Errorf("%v", err)
	}
}
