package e2b_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// A hub is a registry of one image, at /open and, for who knows its password, at
// /closed.
type hub struct {
	manifest []byte
	blobs    map[string][]byte
}

func (h *hub) add(data []byte) map[string]any {
	sum := sha256.Sum256(data)
	name := "sha256:" + hex.EncodeToString(sum[:])
	h.blobs[name] = data
	return map[string]any{"digest": name, "size": len(data)}
}

var library = regexp.MustCompile(`/\S+\.so\S*`)

// newHub makes an image of this machine's bash, cat and what steps use, with what they need.
func newHub(t *testing.T) *httptest.Server {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	put := func(name string, data []byte) {
		if err := w.WriteHeader(&tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: 0o755, Size: int64(len(data)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, name := range []string{"/bin/bash", "/bin/sh", "/bin/cat", "/usr/bin/id", "/bin/tar", "/bin/gzip", "/bin/mktemp", "/bin/mkdir", "/bin/cp", "/bin/rm", "/bin/chmod", "/usr/bin/dirname"} {
		out, err := exec.CommandContext(t.Context(), "ldd", name).Output()
		if err != nil {
			t.Skipf("ldd %s: %v", name, err)
		}
		for _, file := range append(library.FindAllString(string(out), -1), name) {
			if seen[file] {
				continue
			}
			seen[file] = true
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			put(file, data)
		}
	}
	put("/marker", []byte("of the image\n"))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h := &hub{blobs: map[string][]byte{}}
	config := h.add([]byte(`{"os":"linux","architecture":"` + runtime.GOARCH + `","config":{"Env":["PATH=/usr/bin:/bin","FROM=the image"]}}`))
	var err error
	h.manifest, err = json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config, "layers": []any{h.add(layer.Bytes())},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, closed := strings.CutPrefix(r.URL.Path, "/v2/closed/")
	if _, password, _ := r.BasicAuth(); closed && password != "right" {
		w.Header().Set("WWW-Authenticate", `Basic realm="hub"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	path = strings.TrimPrefix(path, "/v2/open/")
	switch data := h.blobs[strings.TrimPrefix(path, "blobs/")]; {
	case r.URL.Path == "/v2/":
	case path == "manifests/latest":
		_, _ = w.Write(h.manifest)
	case data != nil:
		_, _ = w.Write(data)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func TestTemplatesBeginWithImages(t *testing.T) {
	r := newRig(t, "--trusted", "--tiers", "gvisor")
	r.has(t, "gvisor")
	host := strings.TrimPrefix(newHub(t).URL, "http://")
	for _, name := range scripts(t, "image") {
		if only.Match(first(t, name)) {
			r.run(t, name, "gvisor", "E2B_API_URL="+r.url, "E2B_SANDBOX_URL="+r.url, "IMAGE="+host+"/open", "PRIVATE="+host+"/closed")
		}
	}
}
