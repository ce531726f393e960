package layer

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
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

func FuzzUnpack(f *testing.F) {
	f.Add(archive(f, link("a", ".."), file("a/outside")).Bytes())
	f.Add(archive(f, file("d/x"), file("d/.wh..wh..opq"), hard("b", "d/x")).Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		tree, top := planted(t)
		_ = tree.Unpack(bytes.NewReader(data))
		untouched(t, top)
	})
}
