package boxinit

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

func archiveOf(t testing.TB, list []*tar.Header, contents string) *os.File {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range list {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := w.Write([]byte(contents[:h.Size])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := sys.SealedData("archive", buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestFilesOfASnapshotAreUnpacked(t *testing.T) {
	dir := t.TempDir()
	root, err := sys.OpenPath(nil, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	then := time.Unix(1600000000, 5000)
	if err := unpack(root, archiveOf(t, []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "./home/user/", Mode: 0o500, ModTime: then, Format: tar.FormatPAX},
		{Typeflag: tar.TypeReg, Name: "./home/user/a\xff", Mode: 0o4640, Size: 3, ModTime: then, Format: tar.FormatPAX},
		{Typeflag: tar.TypeLink, Name: "./home/user/b", Linkname: "./home/user/a\xff"},
		{Typeflag: tar.TypeSymlink, Name: "./home/user/l", Linkname: "/etc/passwd", ModTime: then, Format: tar.FormatPAX},
		{Typeflag: tar.TypeFifo, Name: "./tmp/p", Mode: 0o600},
	}, "abc")); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home", "user")
	t.Cleanup(func() { _ = os.Chmod(home, 0o700) })
	for name, want := range map[string]string{"": "dr-x------", "a\xff": "urw-r-----", "b": "urw-r-----", "l": "Lrwxrwxrwx"} {
		st, err := os.Lstat(filepath.Join(home, name))
		if err != nil || st.Mode().String() != want || !st.ModTime().Equal(then) {
			t.Errorf("%q is %v, %v", name, st, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(home, "b")); string(b) != "abc" {
		t.Errorf("%q, %v", b, err)
	}
}

// The host writes only archives that it has checked. Nothing leads out even if it does not.
func TestNothingOfASnapshotLeadsOut(t *testing.T) {
	for what, list := range map[string][]*tar.Header{
		"a link on the way":    {{Typeflag: tar.TypeSymlink, Name: "./l", Linkname: "OUT"}, {Typeflag: tar.TypeReg, Name: "./l/made", Size: 3}},
		"a link in its place":  {{Typeflag: tar.TypeSymlink, Name: "./l", Linkname: "OUT/made"}, {Typeflag: tar.TypeReg, Name: "./l", Size: 3}},
		"dots":                 {{Typeflag: tar.TypeReg, Name: "./../out/made", Size: 3}},
		"a directory of dots":  {{Typeflag: tar.TypeDir, Name: "./../out/made/"}},
		"a hard link out":      {{Typeflag: tar.TypeLink, Name: "./h", Linkname: "./../out/there"}},
		"through a hard link":  {{Typeflag: tar.TypeSymlink, Name: "./l", Linkname: "OUT"}, {Typeflag: tar.TypeLink, Name: "./h", Linkname: "./l/there"}},
		"an absolute name":     {{Typeflag: tar.TypeReg, Name: "OUT/made", Size: 3}},
		"a device":             {{Typeflag: tar.TypeChar, Name: "./null", Devmajor: 1, Devminor: 3}},
		"a file that is twice": {{Typeflag: tar.TypeReg, Name: "./f", Size: 3}, {Typeflag: tar.TypeReg, Name: "./f", Size: 3}},
	} {
		t.Run(what, func(t *testing.T) {
			both := t.TempDir()
			in, out := filepath.Join(both, "in"), filepath.Join(both, "out")
			for _, dir := range []string{in, out} {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(filepath.Join(out, "there"), []byte("there"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, h := range list {
				h.Name, h.Linkname = strings.Replace(h.Name, "OUT", out, 1), strings.Replace(h.Linkname, "OUT", out, 1)
			}
			root, err := sys.OpenPath(nil, in, false)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			err = unpack(root, archiveOf(t, list, "abc"))
			if within := what == "an absolute name" || strings.Contains(what, "dots"); err == nil && !within { // these are below the root
				t.Error("it was unpacked")
			}
			if _, err := os.Lstat(filepath.Join(out, "made")); err == nil {
				t.Error("something was made outside")
			}
			if _, err := os.Lstat(filepath.Join(in, "h")); err == nil {
				t.Error("a file of outside got a name inside")
			}
		})
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("./a"), []byte("./b"), byte(tar.TypeLink))
	f.Add([]byte("./l"), []byte("/etc"), byte(tar.TypeSymlink))
	f.Add([]byte("./../x"), []byte(""), byte(tar.TypeReg))
	f.Fuzz(func(t *testing.T, name, link []byte, kind byte) {
		var buf bytes.Buffer
		w := tar.NewWriter(&buf)
		for _, h := range []*tar.Header{{Typeflag: tar.TypeSymlink, Name: "./s", Linkname: "../out"}, {Typeflag: kind, Name: string(name), Linkname: string(link)}} {
			if w.WriteHeader(h) != nil {
				return
			}
		}
		if w.Close() != nil {
			return
		}
		both := t.TempDir()
		in, out := filepath.Join(both, "in"), filepath.Join(both, "out")
		for _, dir := range []string{in, out} {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		file, err := sys.SealedData("archive", buf.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		root, err := sys.OpenPath(nil, in, false)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		_ = unpack(root, file)
		if list, err := os.ReadDir(out); err != nil || len(list) != 0 {
			t.Fatalf("outside is %v, %v", list, err)
		}
		if list, err := os.ReadDir(both); err != nil || len(list) != 2 {
			t.Fatalf("above is %v, %v", list, err)
		}
	})
}
