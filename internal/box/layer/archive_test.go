//go:build linux

package layer

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

func seq(list ...snapshot.Entry) iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func pieces(list ...snapshot.Extent) iter.Seq2[snapshot.Extent, error] {
	return func(yield func(snapshot.Extent, error) bool) {
		for _, x := range list {
			if !yield(x, nil) {
				return
			}
		}
	}
}

// show describes entries with their contents, without the times.
func show(t *testing.T, entries iter.Seq2[snapshot.Entry, error]) []string {
	t.Helper()
	var list []string
	for e, err := range entries {
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%q %d %o %d:%d %q %d %x %v %v %d", e.Path, e.Kind, e.Mode, e.UID, e.GID, e.Target, e.First, e.Device, e.Opaque, e.Shared, e.Size)
		for _, key := range slices.Sorted(maps.Keys(e.Attributes)) {
			text += fmt.Sprintf(" %s=%q", key, e.Attributes[key])
		}
		if e.Data != nil {
			for x, err := range e.Data {
				if err != nil {
					t.Fatal(err)
				}
				text += fmt.Sprintf(" %d+%q", x.Offset, x.Bytes)
			}
		}
		list = append(list, text)
	}
	return list
}

func sample() []snapshot.Entry {
	now := time.Unix(1700000000, 123456789)
	return []snapshot.Entry{
		{Path: "", Kind: snapshot.Dir, Mode: 0o755, ModTime: now},
		{Path: "home", Kind: snapshot.Dir, Mode: 0o755, ModTime: now},
		{Path: "home/user", Kind: snapshot.Dir, Mode: 0o700, UID: 1000, GID: 1000, ModTime: now, Opaque: true, Attributes: map[string]string{"user.x": "a\x00\xff", "system.posix_acl_default": "\x02\x00"}},
		{Path: "home/user/a\xffb\n", Kind: snapshot.File, Mode: 0o640, UID: 1000, GID: 1000, ModTime: now, Size: 3, Shared: true, Data: pieces(snapshot.Extent{Offset: 0, Bytes: []byte("abc")})},
		{Path: "home/user/b", Kind: snapshot.Same},
		{Path: "home/user/empty", Kind: snapshot.File, ModTime: now},
		{Path: "home/user/gone", Kind: snapshot.Gone},
		{Path: "home/user/link", Kind: snapshot.Link, Mode: 0o777, Target: "../../etc/\xfepasswd", ModTime: now},
		{Path: "home/user/null", Kind: snapshot.Char, Device: 1<<32 | 3, Mode: 0o666, ModTime: now},
		{Path: "home/user/pipe", Kind: snapshot.Pipe, Mode: 0o600, ModTime: now},
		{Path: "home/user/sda", Kind: snapshot.Block, Device: 8 << 32, ModTime: now},
		{Path: "home/user/" + strings.Repeat("n", 255), Kind: snapshot.File, Mode: 0o4755, ModTime: now, Size: 40<<20 + 1, Data: pieces(
			snapshot.Extent{Offset: 20 << 20, Bytes: []byte("middle")}, snapshot.Extent{Offset: 40 << 20, Bytes: []byte("e")})},
	}
}

func ordered() []snapshot.Entry {
	list := sample()
	slices.SortFunc(list, func(a, b snapshot.Entry) int { return snapshot.Compare(a.Path, b.Path) })
	return list
}

func temp(t testing.TB) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func dialects() map[string]Dialect {
	return map[string]Dialect{"text lists": {TextLists: true, Parents: true, Removed: true}, "plain": {Parents: true, Removed: true}}
}

func TestAnArchiveHoldsWhatASnapshotHolds(t *testing.T) {
	for name, d := range dialects() {
		t.Run(name, func(t *testing.T) {
			f := temp(t)
			if err := WriteArchive(f, seq(ordered()...), d); err != nil {
				t.Fatal(err)
			}
			got, want := show(t, FromArchive(f, 1<<30, d)), show(t, seq(ordered()...))
			for i := range want { // blocks of the middle come whole
				if len(got) <= i || got[i] != want[i] && !strings.Contains(want[i], "middle") {
					t.Errorf("%d:\n got %.300s\nwant %.300s", i, got[min(i, len(got)-1)], want[i])
				}
			}
			if st, err := f.Stat(); err != nil || st.Size() < 40<<20 {
				t.Errorf("%v, %v", st, err)
			}
		})
	}
}

func TestAFileWithHolesTakesLittleRoom(t *testing.T) {
	f := temp(t)
	e := snapshot.Entry{Path: "big", Kind: snapshot.File, Size: 1 << 28, Data: pieces(snapshot.Extent{Offset: 1<<28 - 1, Bytes: []byte("e")})}
	if err := WriteArchive(f, seq(e), Dialect{}); err != nil {
		t.Fatal(err)
	}
	if n := blocks(t, f); n > 1<<20 {
		t.Errorf("the archive takes %d bytes", n)
	}
	for e, err := range FromArchive(f, 1<<30, Dialect{}) {
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for x, err := range e.Data {
			if err != nil {
				t.Fatal(err)
			}
			sum += len(x.Bytes)
		}
		if sum > 1<<20 {
			t.Errorf("%d bytes are not holes", sum)
		}
	}
}

// gVisor writes the names of a directory in any order.
func TestAnArchiveInAnyOrderIsRead(t *testing.T) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range []*tar.Header{
		{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		{Typeflag: tar.TypeDir, Name: "./z/", Mode: 0o700},
		{Typeflag: tar.TypeReg, Name: "./z/file", Size: 4},
		{Typeflag: tar.TypeReg, Name: "./m", Size: 4},
		{Typeflag: tar.TypeLink, Name: "./a", Linkname: "./z/file"},
		{Typeflag: tar.TypeLink, Name: "./z/again", Linkname: "./z/file"},
		{Typeflag: tar.TypeChar, Name: "./b"},
	} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			fmt.Fprintf(w, "%4.4s", strings.TrimPrefix(h.Name, "./"))
		}
	}
	w.Close()
	f := temp(t)
	if _, err := f.Write(buf.Bytes()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`"" 2 755 0:0 "" 0 0 false false 0`, `"a" 1 0 0:0 "" 0 0 false true 4 0+"z/fi"`, `"b" 8 0 0:0 "" 0 0 false false 0`,
		`"m" 1 0 0:0 "" 0 0 false false 4 0+"   m"`, `"z" 2 700 0:0 "" 0 0 false false 0`,
		`"z/again" 9 0 0:0 "" 0 0 false false 0`, `"z/file" 9 0 0:0 "" 0 0 false false 0`,
	}
	if got := show(t, FromArchive(f, 1<<20, Dialect{})); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func hostile() map[string][]*tar.Header {
	reg := func(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeReg, Name: name} }
	return map[string][]*tar.Header{
		"a name that leads out":         {reg("./../etc/passwd")},
		"a name with ..":                {reg("./a/../../b")},
		"an absolute name":              {reg("/etc/passwd")},
		"a name twice":                  {reg("./a"), reg("./a")},
		"a file below a link":           {{Typeflag: tar.TypeSymlink, Name: "./l", Linkname: "/etc"}, reg("./l/passwd")},
		"a hard link out":               {{Typeflag: tar.TypeLink, Name: "./a", Linkname: "/etc/shadow"}},
		"a hard link to itself":         {{Typeflag: tar.TypeLink, Name: "./a", Linkname: "./a"}},
		"a hard link to a directory":    {{Typeflag: tar.TypeDir, Name: "./d/"}, {Typeflag: tar.TypeLink, Name: "./a", Linkname: "./d/"}},
		"a hard link to a removed file": {{Typeflag: tar.TypeChar, Name: "./b"}, {Typeflag: tar.TypeLink, Name: "./a", Linkname: "./b"}},
		"hard links around":             {{Typeflag: tar.TypeLink, Name: "./a", Linkname: "./b"}, {Typeflag: tar.TypeLink, Name: "./b", Linkname: "./a"}},
		"a link to nothing":             {{Typeflag: tar.TypeSymlink, Name: "./l"}},
		"an unknown type":               {{Typeflag: 'Z', Name: "./z"}},
		"a name that is too long":       {reg("./" + strings.Repeat("n", 256))},
		"an attribute with a long name": {{Typeflag: tar.TypeReg, Name: "./a", PAXRecords: map[string]string{attributePrefix + strings.Repeat("k", 300): "v"}}},
		"a file that is the root":       {reg(".")},
	}
}

func write(t testing.TB, headers []*tar.Header) *os.File {
	t.Helper()
	f := temp(t)
	w := tar.NewWriter(f)
	for _, h := range headers {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestAHostileArchiveIsRefused(t *testing.T) {
	for what, headers := range hostile() {
		s, err := snapshot.Open(t.TempDir(), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		id := snapshot.NewID()
		err = s.Write(t.Context(), snapshot.Meta{ID: id}, FromArchive(write(t, headers), 1<<20, Dialect{}))
		if !errors.Is(err, paddock.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := s.Read(id); !errors.Is(err, paddock.NotFound) {
			t.Errorf("%s: a snapshot stays: %v", what, err)
		}
		s.Close()
	}
	large := write(t, []*tar.Header{{Typeflag: tar.TypeReg, Name: "./a", Size: 0}})
	for range FromArchive(large, 1<<20, Dialect{}) {
	}
	f := temp(t)
	w := tar.NewWriter(f)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "./a", Size: 2 << 20}); err != nil {
		t.Fatal(err)
	}
	for _, err := range FromArchive(f, 1<<20, Dialect{}) {
		if !errors.Is(err, paddock.Exhausted) {
			t.Errorf("more than its bound: %v", err)
		}
	}
	for _, err := range FromArchive(f, 1<<30, Dialect{}) {
		if !errors.Is(err, paddock.Invalid) {
			t.Errorf("cut off: %v", err)
		}
	}
}

func FuzzArchive(f *testing.F) {
	for _, d := range dialects() {
		out := temp(f)
		if err := WriteArchive(out, seq(ordered()[:8]...), d); err != nil {
			f.Fatal(err)
		}
		b, err := io.ReadAll(io.NewSectionReader(out, 0, 1<<20))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, headers := range hostile() {
		b, err := io.ReadAll(io.NewSectionReader(write(f, headers), 0, 1<<20))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		in := temp(t)
		if _, err := in.Write(b); err != nil {
			t.Fatal(err)
		}
		s, err := snapshot.Open(t.TempDir(), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		id := snapshot.NewID()
		d := Dialect{TextLists: true, Parents: true, Removed: true}
		if err := s.Write(t.Context(), snapshot.Meta{ID: id}, FromArchive(in, 1<<20, d)); err != nil {
			if !errors.Is(err, paddock.Invalid) && !errors.Is(err, paddock.Exhausted) {
				t.Fatal(err)
			}
			return
		}
		x, err := s.Read(id)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		for e, err := range x.Entries() { // what was accepted is a snapshot
			if err != nil {
				t.Fatalf("%q: %v", e.Path, err)
			}
		}
	})
}
