package erofs_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/erofs"
)

var when = time.Unix(1_700_000_000, 123_000_000)

// An entry of a layer.
type entry struct {
	name string
	kind byte
	body string // or where a link leads
	mode int64
	uid  int
}

func (e entry) header() *tar.Header {
	h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: e.mode, Uid: e.uid, Gid: e.uid, ModTime: when, Format: tar.FormatPAX}
	if e.mode == 0 {
		h.Mode = 0o644
		if e.kind == tar.TypeDir {
			h.Mode = 0o755
		}
	}
	switch e.kind {
	case tar.TypeReg:
		h.Size = int64(len(e.body))
	case tar.TypeSymlink, tar.TypeLink:
		h.Linkname = e.body
	case tar.TypeChar, tar.TypeBlock:
		_, _ = fmt.Sscanf(e.body, "%d:%d", &h.Devmajor, &h.Devminor)
	}
	return h
}

func archive(t testing.TB, list []entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range list {
		if err := w.WriteHeader(e.header()); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			if _, err := w.Write([]byte(e.body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func opened(layers ...[]byte) []func() (io.ReadCloser, error) {
	var list []func() (io.ReadCloser, error)
	for _, l := range layers {
		list = append(list, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(l)), nil })
	}
	return list
}

var usual = erofs.Bounds{Bytes: 1 << 30, Names: 100_000}

// convert makes an image of layers and returns the path of its file.
func convert(t testing.TB, b erofs.Bounds, layers ...[]byte) (string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "image.erofs")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, err = erofs.Convert(context.Background(), f, opened(layers...), b)
	return name, err
}

func dir(name string) entry            { return entry{name: name, kind: tar.TypeDir} }
func file(name, body string) entry     { return entry{name: name, kind: tar.TypeReg, body: body} }
func symlink(name, to string) entry    { return entry{name: name, kind: tar.TypeSymlink, body: to} }
func hard(name, to string) entry       { return entry{name: name, kind: tar.TypeLink, body: to} }
func device(name, number string) entry { return entry{name: name, kind: tar.TypeChar, body: number} }

func TestWhatIsHostileIsRefused(t *testing.T) {
	deep := strings.Repeat("d/", 300)
	for what, c := range map[string]struct {
		layers [][]byte
		bounds erofs.Bounds
		kind   error
	}{
		"no archive":                 {[][]byte{bytes.Repeat([]byte("x"), 1024)}, usual, paddock.Invalid},
		"a file that ends early":     {[][]byte{archive(t, []entry{file("a", strings.Repeat("x", 5000))})[:2000]}, usual, paddock.Invalid},
		"a link in a circle":         {[][]byte{archive(t, []entry{symlink("a", "b"), symlink("b", "a"), file("a/c", "")})}, usual, paddock.Invalid},
		"a file in a file":           {[][]byte{archive(t, []entry{file("a", ""), file("a/b", "")})}, usual, paddock.Invalid},
		"a link to nothing":          {[][]byte{archive(t, []entry{hard("a", "b")})}, usual, paddock.Invalid},
		"a link to a directory":      {[][]byte{archive(t, []entry{dir("b"), hard("a", "b")})}, usual, paddock.Invalid},
		"a link to the root":         {[][]byte{archive(t, []entry{hard("a", "/")})}, usual, paddock.Invalid},
		"a long name":                {[][]byte{archive(t, []entry{file(strings.Repeat("n", 256), "")})}, usual, paddock.Invalid},
		"a long name of a directory": {[][]byte{archive(t, []entry{file(strings.Repeat("n", 256)+"/a", "")})}, usual, paddock.Invalid},
		"a long path":                {[][]byte{archive(t, []entry{file(strings.Repeat("n/", 2100)+"a", "")})}, usual, paddock.Invalid},
		"depth":                      {[][]byte{archive(t, []entry{file(deep+"a", "")})}, usual, paddock.Unsupported},
		"depth by one each":          {[][]byte{archive(t, nested(300))}, usual, paddock.Unsupported},
		"a whiteout of no name":      {[][]byte{archive(t, []entry{file(".wh...", "")})}, usual, paddock.Invalid},
		"too much":                   {[][]byte{archive(t, []entry{file("a", strings.Repeat("x", 70_000))})}, erofs.Bounds{Bytes: 65_000, Names: 10}, paddock.Exhausted},
		"too many":                   {[][]byte{archive(t, []entry{file("a", ""), file("b", ""), file("c/d", "")})}, erofs.Bounds{Bytes: 1 << 20, Names: 3}, paddock.Exhausted},
		"links that fill memory":     {[][]byte{archive(t, longLinks(3000))}, erofs.Bounds{Bytes: 4 << 20, Names: 10_000}, paddock.Exhausted},
		"small files":                {[][]byte{archive(t, smallFiles(300))}, erofs.Bounds{Bytes: 1 << 20, Names: 10_000}, paddock.Exhausted},
		"an owner":                   {[][]byte{archive(t, []entry{{name: "a", kind: tar.TypeReg, uid: 1<<32 - 1}})}, usual, paddock.Invalid},
		"a device":                   {[][]byte{archive(t, []entry{device("a", "5000:1")})}, usual, paddock.Invalid},
	} {
		t.Run(what, func(t *testing.T) {
			if _, err := convert(t, c.bounds, c.layers...); !errors.Is(err, c.kind) {
				t.Errorf("%v, want %v", err, c.kind)
			}
		})
	}
}

func TestTheSameLayersGiveTheSameBytes(t *testing.T) {
	layer := archive(t, []entry{dir("a"), file("a/b", "x"), file("a/c", "y"), symlink("d", "a"), hard("e", "a/b"), file("f/g/h", strings.Repeat("z", 9000))})
	one, err := convert(t, usual, layer)
	two, err2 := convert(t, usual, layer)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	a, _ := os.ReadFile(one)
	b, _ := os.ReadFile(two)
	if len(a) == 0 || !bytes.Equal(a, b) {
		t.Errorf("%d and %d bytes differ", len(a), len(b))
	}
}

// longLinks are links of which each takes a block.
func longLinks(n int) []entry {
	list := make([]entry, n)
	for i := range list {
		list[i] = symlink(fmt.Sprint("l", i), strings.Repeat("n/", 2040))
	}
	return list
}

// smallFiles are files of a byte, of which each takes a block.
func smallFiles(n int) []entry {
	list := make([]entry, n)
	for i := range list {
		list[i] = file(fmt.Sprint("f", i), "x")
	}
	return list
}

// nested are directories, each in the one before.
func nested(n int) []entry {
	list := make([]entry, n)
	for i := range list {
		list[i] = dir(strings.Repeat("d/", i+1))
	}
	return list
}
