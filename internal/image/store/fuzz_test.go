package store_test

import (
	"bytes"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/paddock-sandbox/paddock/internal/image/store"
)

// Whatever an archive holds, nothing of it is written but blobs by their digest, and a failed load leaves no image.
func FuzzLoad(f *testing.F) {
	c, err := empty.Image.ConfigFile()
	if err != nil {
		f.Fatal(err)
	}
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", runtime.GOARCH
	img, err := mutate.ConfigFile(empty.Image, c)
	if err != nil {
		f.Fatal(err)
	}
	var b bytes.Buffer
	if err := tarball.Write(name.MustParseReference("x:1"), img, &b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(archive(f, file{"oci-layout", "{}", 0}, file{"index.json", `{"manifests":[{"digest":"sha256:` + strings.Repeat("0", 64) + `","size":2}]}`, 0}))
	f.Add(archive(f, file{"etc/passwd", "root", 0}))
	f.Add(archive(f, file{"manifest.json", `[{"Config":"../x","Layers":["/etc/passwd"]}]`, 0}))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		s, err := store.Open(store.Options{Dir: filepath.Join(dir, "store"), Sent: 1 << 20, Unpacked: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.Load(t.Context(), store.Load{Input: bytes.NewReader(data)})
		kept, wrong := s.Images("")
		if wrong != nil || err != nil && len(list) > 0 || err == nil && len(kept) == 0 {
			t.Errorf("%d images, of which %d are kept: %v, %v", len(list), len(kept), err, wrong)
		}
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(names) != 1 {
			t.Errorf("beside the store there is %v", names)
		}
	})
}
