package vminit

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/protocol"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// privateDir returns a directory that can be an upper layer.
func privateDir(t *testing.T) *os.File {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("what an overlay keeps is root's")
	}
	dir := t.TempDir()
	if err := sys.MountAt("tmpfs", dir, sys.NoSUID|sys.NoDev, "size=16m"); err != nil {
		t.Skip("no tmpfs: ", err)
	}
	t.Cleanup(func() { _ = sys.Detach(dir) })
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func descriptor(t *testing.T, f *os.File) int {
	t.Helper()
	fd, err := sys.Descriptor(f)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

var generous = &protocol.Archive{All: math.MaxInt64, Content: math.MaxInt64, File: math.MaxInt64}

// fill makes everything that an overlay can contain.
func fill(t *testing.T, d *os.File) {
	t.Helper()
	fd, long := descriptor(t, d), strings.Repeat("long", 60)
	at := func(name string) string { return filepath.Join(d.Name(), name) }
	sparse := func() error {
		f, err := os.Create(at("sparse"))
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("middle"), 1<<20)
		return errors.Join(err, f.Truncate(8<<20), f.Close())
	}
	for i, err := range []error{
		os.Chmod(d.Name(), 0o750),
		os.Mkdir(at("dir"), 0o711),
		os.WriteFile(at("dir/file"), []byte("content"), 0o640),
		os.Chown(at("dir/file"), 1234, 3_000_000),
		os.Link(at("dir/file"), at("linked")),
		os.Chmod(at("dir"), 0o1777),
		os.Mkdir(at(long), 0o700),
		os.WriteFile(at(long+"/ü\n\xff"), nil, 0o600),
		os.Symlink("/no/where/"+long, at("link")),
		sys.MakeAt(fd, "removed", syscall.S_IFCHR, 0, 0),
		sys.MakeAt(fd, "pipe", syscall.S_IFIFO|0o600, 0, 0),
		sys.SetAttributeAt(fd, "dir", "trusted.overlay.opaque", "y"),
		sys.SetAttributeAt(fd, "dir", "trusted.overlay.origin", "another layer's"),
		sys.SetAttributeAt(fd, long, "trusted.overlay.redirect", "/ä\nb"),
		sparse(),
		sys.TouchAt(fd, "dir", time.Unix(1e9, 123456789)),
		sys.TouchAt(fd, "link", time.Unix(-5, 5)),
	} {
		if err != nil {
			t.Fatal(i, err)
		}
	}
}

// A fact describes an entry.
type fact struct {
	sys.FileStat
	link, content string
	attributes    map[string]string
}

// facts describes all entries below a directory.
func facts(t *testing.T, root *os.File) map[string]fact {
	t.Helper()
	all := map[string]fact{}
	err := filepath.WalkDir(root.Name(), func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := sys.StatAt(sys.AtCWD, path)
		if err != nil {
			return err
		}
		f := fact{FileStat: st}
		f.Dev, f.Ino = 0, 0
		if e.IsDir() {
			f.Size, f.Links = 0, 0
		}
		dir, err := os.Open(filepath.Dir(path))
		if err != nil {
			return err
		}
		defer dir.Close()
		if f.attributes, err = sys.AttributesAt(descriptor(t, dir), filepath.Base(path)); err != nil {
			return err
		}
		delete(f.attributes, "trusted.overlay.origin")
		switch {
		case e.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			f.content = string(data)
		case e.Type()&os.ModeSymlink != 0:
			if f.link, err = os.Readlink(path); err != nil {
				return err
			}
		}
		all[strings.TrimPrefix(path, root.Name())] = f
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestALayerIsTheSameAfterItWasKept(t *testing.T) {
	from, to := privateDir(t), privateDir(t)
	fill(t, from)
	if err := count(from, generous); err != nil {
		t.Fatal(err)
	}
	var wired, kept bytes.Buffer
	c := newChunker(&wired)
	if err := errors.Join(archive(from, c), c.end()); err != nil {
		t.Fatal(err)
	}
	if err := unpack(io.TeeReader(&chunks{r: &wired}, &kept), to); err != nil {
		t.Fatal(err)
	}
	want, got := facts(t, from), facts(t, to)
	for name, w := range want {
		g := got[name]
		if w.FileStat != g.FileStat || w.content != g.content || w.link != g.link || len(w.attributes) != len(g.attributes) {
			t.Errorf("%q: %+v, want %+v", name, g.FileStat, w.FileStat)
		}
		for key, value := range w.attributes {
			if g.attributes[key] != value {
				t.Errorf("%q: %s is %q, want %q", name, key, g.attributes[key], value)
			}
		}
	}
	if len(want) != len(got) || len(want) < 10 {
		t.Errorf("%d entries of %d", len(got), len(want))
	}
	if kept.Len() > 64<<10 {
		t.Errorf("a hole takes room: %d bytes", kept.Len())
	}
	f, err := os.Open(filepath.Join(to.Name(), "sparse"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if e, err := sys.Extents(f, 8<<20, 10); err != nil || !slices.Equal(e, []sys.Extent{{Offset: 1 << 20, Length: 4096}}) {
		t.Errorf("extents %v, %v", e, err)
	}
}

func TestACountIsAsLargeAsTheArchive(t *testing.T) {
	from := privateDir(t)
	fill(t, from)
	var all bytes.Buffer
	if err := archive(from, &all); err != nil {
		t.Fatal(err)
	}
	room := *generous
	room.All = int64(all.Len())
	if err := count(from, &room); err != nil {
		t.Error(err)
	}
	room.All--
	if err := count(from, &room); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("a byte less: %v", err)
	}
}

func TestWhatIsTooLargeIsRefusedByName(t *testing.T) {
	from := privateDir(t)
	f, err := os.Create(filepath.Join(from.Name(), "huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<60), f.Close()); err != nil {
		t.Fatal(err)
	}
	for what, room := range map[string]*protocol.Archive{
		"a file":  {All: 1 << 40, Content: math.MaxInt64, File: 1 << 40},
		"content": {All: 1 << 40, Content: 1 << 40, File: math.MaxInt64},
	} {
		if err := count(from, room); !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "/huge") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestManyExtentsAreCutShort(t *testing.T) {
	from := privateDir(t)
	f, err := os.Create(filepath.Join(from.Name(), "many"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i := range 8 {
		if _, err := f.WriteAt([]byte{1}, int64(i)<<16); err != nil {
			t.Fatal(err)
		}
	}
	e, err := sys.Extents(f, 1<<20, 3)
	want := []sys.Extent{{Offset: 0, Length: 4096}, {Offset: 1 << 16, Length: 4096}, {Offset: 2 << 16, Length: 1<<20 - 2<<16}}
	if err != nil || !slices.Equal(e, want) {
		t.Errorf("%v, %v, want %v", e, err, want)
	}
}

func TestNothingIsUnpackedElsewhere(t *testing.T) {
	for what, list := range map[string][]tar.Header{
		"through a link": {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, {Name: "out/file", Typeflag: tar.TypeReg, Mode: 0o644}},
		"linked from elsewhere": {{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "/etc"},
			{Name: "x", Typeflag: tar.TypeLink, Linkname: "out/hostname"}},
		"into nothing": {{Name: "no/file", Typeflag: tar.TypeReg, Mode: 0o644}},
	} {
		to := privateDir(t)
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range list {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := unpack(&b, to); err == nil {
			t.Errorf("%s: it is unpacked", what)
		}
	}
}

func TestAnArchiveThatIsSpoiledIsNone(t *testing.T) {
	to := privateDir(t)
	var b bytes.Buffer
	c := newChunker(&b)
	if err := errors.Join(c.spoil(), c.end()); err != nil {
		t.Fatal(err)
	}
	if err := unpack(&chunks{r: &b}, to); err == nil {
		t.Error("it is taken for an empty one")
	}
}

func TestChunksThatEndEarlyAreAnError(t *testing.T) {
	var b bytes.Buffer
	if err := protocol.WriteChunk(&b, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(&chunks{r: &b}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
