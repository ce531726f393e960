package build

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/layer"
)

type entry struct {
	tar.Header
	content string
}

func private(tb testing.TB, entries ...entry) []byte {
	tb.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		if e.Typeflag == 0 {
			e.Typeflag, e.Size = tar.TypeReg, int64(len(e.content))
		}
		if e.ModTime.IsZero() {
			e.ModTime = time.Unix(1e9, 0)
		}
		if err := w.WriteHeader(&e.Header); err != nil {
			tb.Fatal(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

func read(data []byte) (*upper, error) {
	return readUpper(context.Background(), bytes.NewReader(data), int64(len(data)))
}

// layerOf makes a layer of the difference, and returns its names.
func layerOf(tb testing.TB, before, after []byte, skip func(string) bool) (made []byte, names []string) {
	tb.Helper()
	b, err := read(before)
	if err != nil {
		tb.Fatal(err)
	}
	a, err := read(after)
	if err != nil {
		tb.Fatal(err)
	}
	var buf bytes.Buffer
	if _, err := a.write(&buf, b, skip); err != nil {
		tb.Fatal(err)
	}
	for r := tar.NewReader(bytes.NewReader(buf.Bytes())); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return buf.Bytes(), names
		}
		if err != nil {
			tb.Fatal(err)
		}
		names = append(names, h.Name)
	}
}

func none(string) bool { return false }

func TestALayerHasWhatAStepChanged(t *testing.T) {
	dir := func(name string) entry {
		return entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}}
	}
	before := private(t, dir("./"), dir("./etc/"), entry{Header: tar.Header{Name: "./etc/hosts"}, content: "own"}, dir("./tmp/"), dir("./run/"), entry{Header: tar.Header{Name: "./run/furniture"}})
	opaqueDir := dir("./new/")
	opaqueDir.PAXRecords = map[string]string{attribute + "trusted.overlay.opaque": "y", attribute + "security.capability": "cap", attribute + "trusted.other": "no"}
	after := private(t, dir("./"), dir("./etc/"), entry{Header: tar.Header{Name: "./etc/hosts"}, content: "own"}, dir("./tmp/"), dir("./run/"), entry{Header: tar.Header{Name: "./run/furniture"}},
		entry{Header: tar.Header{Name: "./etc/made", Mode: 0o4755, Uid: 3, Gid: 4}, content: "made"},
		entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: "./also", Linkname: "./etc/hosts"}},
		entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: "./more", Linkname: "./etc/hosts"}},
		entry{Header: tar.Header{Typeflag: tar.TypeChar, Name: "./gone"}},
		entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "./link", Linkname: "../../etc/passwd"}},
		opaqueDir, entry{Header: tar.Header{Name: "./new/x"}}, dir("./dev/"), entry{Header: tar.Header{Name: "./dev/shm"}},
	)
	data, names := layerOf(t, before, after, func(name string) bool { return name == "dev" })
	want := []string{"also", "etc/", "etc/made", ".wh.gone", "link", "more", "new/", "new/.wh..wh..opq", "new/x"}
	if !slices.Equal(names, want) {
		t.Errorf("the layer has\n%q, want\n%q", names, want)
	}
	// It is unpacked over what was there before.
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tree := &layer.Tree{Root: root, Bytes: 1 << 20, Names: 100}
	for _, l := range [][]byte{private(t, entry{Header: tar.Header{Name: "gone"}}, entry{Header: tar.Header{Name: "new/old"}}), data} {
		if err := tree.Unpack(bytes.NewReader(l)); err != nil {
			t.Fatal(err)
		}
	}
	for name, there := range map[string]bool{"gone": false, "new/old": false, "new/x": true, "etc/made": true, "run/furniture": false} {
		if _, err := root.Lstat(name); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"also", "more"} { // a file of the sandbox's own with a name that the step gave it
		if data, err := root.ReadFile(name); err != nil || string(data) != "own" {
			t.Errorf("%s has %q: %v", name, data, err)
		}
	}
	if _, names := layerOf(t, after, after, none); len(names) != 0 {
		t.Errorf("nothing was changed, and the layer has %q", names)
	}
}

func TestAnArchiveOfASandboxIsRefusedInWords(t *testing.T) {
	for name, c := range map[string]struct {
		list []entry
		says string
		kind error
	}{
		"twice":             {[]entry{{Header: tar.Header{Name: "a"}}, {Header: tar.Header{Name: "./b/../a"}}}, "twice", paddock.Invalid},
		"a whiteout":        {[]entry{{Header: tar.Header{Name: "a/.wh.b"}}}, "removed files", paddock.Unsupported},
		"a link to nowhere": {[]entry{{Header: tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "b"}}}, "not there", paddock.Invalid},
		"a link to a link":  {[]entry{{Header: tar.Header{Name: "c"}}, {Header: tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "c"}}, {Header: tar.Header{Typeflag: tar.TypeLink, Name: "a", Linkname: "b"}}}, "not there", paddock.Invalid},
		"too deep":          {[]entry{{Header: tar.Header{Name: strings.Repeat("d/", 300) + "x"}}}, "directories", paddock.Unsupported},
		"a long name":       {[]entry{{Header: tar.Header{Name: strings.Repeat("d", 300)}}}, "255", paddock.Invalid},
		"a device":          {[]entry{{Header: tar.Header{Typeflag: tar.TypeBlock, Name: "a", Devmajor: 1 << 13}}}, "no kernel", paddock.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(private(t, c.list...)); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
		})
	}
	if _, err := read([]byte(strings.Repeat("no archive ", 100))); !errors.Is(err, paddock.Invalid) {
		t.Errorf("it says %v", err)
	}
}

// Whatever a sandbox writes, what becomes of it is a layer that stays inside of the image, and whose whiteouts are those of
// removed files.
func FuzzTheArchiveOfASandbox(f *testing.F) {
	f.Add(private(f, entry{Header: tar.Header{Name: "./a"}, content: "x"}, entry{Header: tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "a"}}))
	f.Add(private(f, entry{Header: tar.Header{Typeflag: tar.TypeChar, Name: "../gone"}}, entry{Header: tar.Header{Typeflag: tar.TypeDir, Name: "d/", PAXRecords: map[string]string{attribute + "trusted.overlay.opaque": "y"}}}))
	f.Add(private(f, entry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "/etc"}}, entry{Header: tar.Header{Name: "l/x"}}))
	empty := private(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		after, err := read(data)
		if err != nil {
			return
		}
		before, err := read(empty)
		if err != nil {
			t.Fatal(err)
		}
		var buf bytes.Buffer
		if _, err := after.write(&buf, before, none); err != nil {
			return
		}
		removed := 0
		for _, c := range after.files {
			if c.removed() || c.opaque {
				removed++
			}
		}
		for r := tar.NewReader(bytes.NewReader(buf.Bytes())); ; {
			h, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("what was written cannot be read: %v", err)
			}
			if path.IsAbs(h.Name) || h.Name != ".." && path.Clean("/" + h.Name)[1:] != strings.TrimSuffix(h.Name, "/") {
				t.Errorf("the name %q", h.Name)
			}
			if strings.HasPrefix(path.Base(h.Name), whiteout) {
				removed--
			}
		}
		if removed < 0 {
			t.Error("there are more whiteouts than removed files")
		}
	})
}
