package layer

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func archive(t testing.TB, list ...tar.Header) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range list {
		text := ""
		if h.Typeflag == tar.TypeReg {
			text = "new"
		}
		h.Mode, h.Size = 0o755, int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
func link(name, to string) tar.Header {
	return tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeSymlink}
}
func hard(name, to string) tar.Header {
	return tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeLink}
}

// planted gives a tree beside a file that is not of it.
func planted(t testing.TB) (*Tree, string) {
	t.Helper()
	top := t.TempDir()
	if err := os.Mkdir(top+"/tree", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(top+"/outside", []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(top + "/tree")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return &Tree{Root: root, Bytes: 1 << 20, Names: 1000}, top
}

// untouched fails the test where something but the tree changed.
func untouched(t testing.TB, top string) {
	t.Helper()
	list, err := os.ReadDir(top)
	data, err2 := os.ReadFile(top + "/outside")
	if err != nil || err2 != nil || len(list) != 2 || string(data) != "old" {
		t.Errorf("something outside changed: %v, %q, %v, %v", list, data, err, err2)
	}
}

func TestNothingLeavesTheTree(t *testing.T) {
	for name, list := range map[string][]tar.Header{
		"upwards":                 {file("../outside")},
		"absolute":                {file("/../../outside")},
		"through a link":          {link("a", ".."), file("a/outside")},
		"through an absolute":     {link("a", "/.."), file("a/outside")},
		"through two":             {link("a", "b/.."), link("b", "../.."), file("a/outside")},
		"over a link":             {link("outside", "../outside"), file("outside")},
		"by another name":         {hard("a", "../outside"), file("a")},
		"by another name, linked": {link("b", ".."), hard("a", "b/outside")},
		"a whiteout":              {link("a", ".."), file("a/.wh.outside")},
		"an opaque whiteout":      {link("a", ".."), file("a/.wh..wh..opq")},
		"a whiteout upwards":      {file("a/.wh...")},
		"in a circle":             {link("a", "b"), link("b", "a"), file("a/c")},
	} {
		tree, top := planted(t)
		err := tree.Unpack(archive(t, list...))
		untouched(t, top)
		t.Logf("%s: %v", name, err)
	}
}

func TestLayersLieOverEachOther(t *testing.T) {
	tree, top := planted(t)
	for _, list := range [][]tar.Header{
		{file("usr/bin/a"), link("bin", "usr/bin"), link("var/run", "/run"), file("gone"), file("d/old"), file("d/e/old"), file("as/dir/x")},
		{file("bin/b"), file("var/run/c"), file(".wh.gone"), file("d/new"), file("d/.wh..wh..opq"), file("as"), hard("a2", "bin/a")},
	} {
		if err := tree.Unpack(archive(t, list...)); err != nil {
			t.Fatal(err)
		}
	}
	for name, there := range map[string]bool{"usr/bin/a": true, "usr/bin/b": true, "run/c": true, "gone": false, "d/old": false, "d/e": false, "d/new": true, "as": true, "a2": true} {
		if _, err := os.Lstat(filepath.Join(top, "tree", name)); (err == nil) != there {
			t.Errorf("%s: %v; wanted there: %v", name, err, there)
		}
	}
	tree.Bytes = 600
	if err := tree.Unpack(archive(t, file("x"), file("y"))); err == nil {
		t.Error("more than its bytes were unpacked")
	}
	tree.Bytes, tree.Names = 1<<20, 1
	if err := tree.Unpack(archive(t, file("x"), file("y"))); err == nil {
		t.Error("more than its names were unpacked")
	}
}

// An endless archive begins with what it is told, and goes on with the same for ever.
type endless struct {
	data []byte
	at   int
	sent int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.data[e.at:])
	e.at = (e.at + n) % len(e.data)
	e.sent += int64(n)
	return n, nil
}

// record gives the header of an entry, and as many zeros behind it as it is told.
func record(t testing.TB, name string, kind byte, size, zeros int64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size, Mode: 0o755, Format: tar.FormatUSTAR}); err != nil {
		t.Fatal(err)
	}
	head := b.Bytes()[:512]
	head[156] = kind
	copy(head[148:156], "        ")
	sum := 0
	for _, c := range head {
		sum += int(c)
	}
	copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return append(head, make([]byte, zeros)...)
}

func TestWhatBecomesNoFileIsCountedToo(t *testing.T) {
	pax := append(record(t, "x", tar.TypeXHeader, 512, 0), []byte("512 comment="+strings.Repeat("a", 499)+"\n")...)
	for what, data := range map[string][]byte{
		"the top":           record(t, ".", tar.TypeReg, 1<<30, 0),
		"a whiteout":        record(t, ".wh.a", tar.TypeReg, 1<<30, 0),
		"an opaque":         record(t, ".wh..wh..opq", tar.TypeReg, 1<<30, 0),
		"a device":          record(t, "d", tar.TypeChar, 0, 0),
		"headers of others": pax,
		"global headers":    append(record(t, "g", tar.TypeXGlobalHeader, 512, 0), pax[512:]...),
		"zeros in a file":   record(t, "a", tar.TypeReg, 1<<30, 0),
		"small files":       record(t, "a", tar.TypeReg, 1, 512),
	} {
		tree, top := planted(t)
		in := &endless{data: data}
		err := tree.Unpack(in)
		untouched(t, top)
		if !errors.Is(err, paddock.Exhausted) || in.sent > 8<<20 {
			t.Errorf("%s: %v, after %d bytes of an archive for %d", what, err, in.sent, 1<<20)
		}
	}
}

func TestWhiteoutsAreCounted(t *testing.T) {
	tree, _ := planted(t)
	tree.looks = maxLooks - 1
	if err := tree.Unpack(archive(t, file(".wh.a"))); err != nil {
		t.Error(err)
	}
	if err := tree.Unpack(archive(t, file("b"), file(".wh..wh..opq"))); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("more than may be: %v", err)
	}
}

func TestDirectoriesDoNotLieTooDeep(t *testing.T) {
	down := strings.TrimSuffix(strings.Repeat("a/", 90), "/")
	for what, list := range map[string][]tar.Header{
		"a long name":    {file(strings.Repeat("a/", 300) + "x")},
		"links to links": {file(down + "/x"), link("b", down), file("b/" + down + "/x"), link("c", "b/"+down), file("c/" + down + "/x")},
	} {
		tree, top := planted(t)
		tree.Names = 10_000
		err := tree.Unpack(archive(t, list...))
		untouched(t, top)
		if !errors.Is(err, paddock.Unsupported) || !strings.Contains(err.Error(), "directories") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestRightsAndDevicesAreLeftOut(t *testing.T) {
	tree, top := planted(t)
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []tar.Header{
		{Name: "set", Typeflag: tar.TypeReg, Mode: 0o7755, PAXRecords: map[string]string{"SCHILY.xattr.user.a": "b", "SCHILY.xattr.security.capability": "\x01\x00\x00\x02"}},
		{Name: "dir", Typeflag: tar.TypeDir, Mode: 0o7777},
		{Name: "zero", Typeflag: tar.TypeChar, Mode: 0o666, Devmajor: 1, Devminor: 5}, {Name: "disk", Typeflag: tar.TypeBlock, Mode: 0o666}, {Name: "pipe", Typeflag: tar.TypeFifo, Mode: 0o666},
		hard("again", "set"),
	} {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tree.Unpack(&b); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"set": 0o755, "again": 0o755, "dir": os.ModeDir | 0o777} {
		if st, err := os.Lstat(filepath.Join(top, "tree", name)); err != nil || st.Mode() != want {
			t.Errorf("%s: %v, %v; want %v", name, st.Mode(), err, want)
		}
	}
	for _, name := range []string{"zero", "disk", "pipe"} {
		if _, err := os.Lstat(filepath.Join(top, "tree", name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheLastOfTwoEntriesCounts(t *testing.T) {
	tree, top := planted(t)
	err := tree.Unpack(archive(t, tar.Header{Name: "a", Typeflag: tar.TypeDir}, file("a/x"), link("a", "/etc"), file("a"), file("A"), hard("b", "a"), file("a"), link("b", "nowhere"), file("b")))
	untouched(t, top)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "A", "b"} {
		if st, err := os.Lstat(filepath.Join(top, "tree", name)); err != nil || !st.Mode().IsRegular() || st.Size() != 3 {
			t.Errorf("%s: %v, %v", name, st, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(top, "tree/etc")); err == nil {
		t.Error("a link that was replaced was followed")
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, link("a", ".."), file("a/outside")).Bytes())
	f.Add(archive(f, file("d/x"), file("d/.wh..wh..opq"), hard("b", "d/x")).Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, top := planted(t)
		_ = tree.Unpack(bytes.NewReader(data))
		untouched(t, top)
	})
}
