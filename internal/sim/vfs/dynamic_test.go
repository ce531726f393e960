package vfs_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// made is a dynamic file, directory or link.
type made struct {
	text string
	link bool
	in   map[string]made
	ask  bool // the text is who asks
}

func (m made) Mode() uint32 {
	switch {
	case m.in != nil:
		return linux.S_IFDIR | 0o555
	case m.link:
		return linux.S_IFLNK | 0o777
	}
	return linux.S_IFREG | 0o444
}

func (m made) Lookup(_ *vfs.View, name string) (vfs.Dynamic, bool) {
	x, ok := m.in[name]
	return x, ok
}

func (m made) Names(*vfs.View) []string {
	return slices.Collect(maps.Keys(m.in))
}

func (m made) Content(v *vfs.View) ([]byte, error) {
	if m.ask {
		return fmt.Append(nil, v.Self), nil
	}
	if m.text == "" {
		return nil, linux.EPERM
	}
	return []byte(m.text), nil
}

func TestDynamicFilesAreMadeUpForWhoAsks(t *testing.T) {
	v := root(vfs.New(vfs.Options{}))
	proc := made{in: map[string]made{
		"self": {link: true, text: "7"},
		"7":    {in: map[string]made{"name": {ask: true}, "fd": {in: map[string]made{"0": {link: true, text: "/etc/x"}}}, "shut": {}}},
		"b":    {text: "bee"},
	}}
	must(t, v.FS.MountDynamic("/proc", proc, vfs.MountOptions{Name: "proc", Type: "proc"}))
	must(t, v.Mkdir("/etc", 0o755))
	must(t, v.WriteFile("/etc/x", []byte("x"), 0o644))
	v.Self = "task 7"
	other := *v
	other.Self, other.UID, other.GID = "task 8", 1000, 1000
	expect(t, "a file", read(v, "/proc/self/name"), "task 7")
	expect(t, "for another", read(&other, "/proc/7/../7/./name"), "task 8")
	expect(t, "by a link", read(v, "/proc/self/fd/0"), "x")
	expect(t, "upwards", read(v, "/proc/self/fd/../../b"), "bee")
	expect(t, "one that refuses", read(v, "/proc/7/shut"), "error: "+vfs.Message(linux.EPERM))
	expect(t, "what is not there", read(v, "/proc/8"), "error: "+vfs.Message(linux.ENOENT))
	names, err := v.Names("/proc")
	must(t, err)
	expect(t, "names", names, []string{"7", "b", "self"})
	entries, err := v.ReadDir("/proc/7")
	must(t, err)
	expect(t, "entries", len(entries), 3)
	d, err := v.Open("/proc", linux.O_DIRECTORY, 0)
	must(t, err)
	defer d.Close()
	for _, want := range []string{"7", "b", "self"} {
		part, err := d.ReadDir(v, 1)
		must(t, err)
		expect(t, "in parts", part[0].Name, want)
	}
	for what, err := range map[string]error{
		"write":  v.WriteFile("/proc/b", nil, 0o644),
		"remove": v.Unlink("/proc/b"),
		"new":    v.WriteFile("/proc/new", nil, 0o644),
		"mkdir":  v.Mkdir("/proc/7/d", 0o755),
		"rename": v.Rename("/proc/b", "/proc/c"),
		"chmod":  v.Chmod("/proc/b", 0o777),
		"rmdir":  v.Rmdir("/proc/7"),
		"cut":    v.Truncate("/proc/b", 0),
	} {
		if err != linux.EPERM && err != linux.EACCES {
			t.Errorf("%s: %v", what, err)
		}
	}
	real, err := v.Realpath("/proc/self/fd")
	must(t, err)
	expect(t, "its path", real, "/proc/7/fd")
	h, err := v.Open("/proc/self/name", 0, 0)
	must(t, err)
	defer h.Close()
	path, err := h.Path()
	must(t, err)
	expect(t, "its path", path, "/proc/7/name")
	end, err := h.Seek(-1, io.SeekEnd)
	must(t, err)
	b, err := io.ReadAll(io.LimitReader(h, 10))
	must(t, err)
	expect(t, "from the end", fmt.Sprint(end, " ", string(b)), "5 7")
	in := *v
	must(t, in.Chdir("/proc"))
	expect(t, "from a directory", read(&in, "b"), "bee")
	a, err := v.Stat("/proc/b")
	must(t, err)
	c, err := v.Stat("/proc/7/name")
	must(t, err)
	if a.Ino == c.Ino || a.Dev != c.Dev {
		t.Error("two files are one")
	}
	snap := v.FS.Snapshot()
	expect(t, "in a fork", read(root(snap.FS(vfs.Options{})), "/proc/b"), "bee")
	for e, err := range snap.Export(nil) {
		must(t, err)
		if strings.HasPrefix(e.Path, "proc") {
			t.Errorf("%s was exported", e.Path)
		}
	}
	must(t, v.FS.Unmount("/proc"))
	expect(t, "after unmounting", read(v, "/proc/b"), "error: "+vfs.Message(linux.ENOENT))
	vfs.CheckForTest(t, v.FS)
}

func TestHolesAreFound(t *testing.T) {
	v := root(vfs.New(vfs.Options{}))
	h, err := v.Open("/f", linux.O_RDWR|linux.O_CREAT, 0o644)
	must(t, err)
	_, err = h.WriteAt([]byte("x"), 1<<20)
	must(t, err)
	must(t, h.Truncate(2<<20))
	for _, x := range []struct {
		off, want int64
		whence    int
		err       error
	}{
		{0, 1 << 20, vfs.SeekData, nil},
		{0, 0, vfs.SeekHole, nil},
		{1 << 20, 1 << 20, vfs.SeekData, nil},
		{1 << 20, 1<<20 + 64<<10, vfs.SeekHole, nil},
		{1<<20 + 64<<10, 0, vfs.SeekData, linux.ENXIO},
		{2 << 20, 0, vfs.SeekHole, linux.ENXIO},
		{-1, 0, vfs.SeekData, linux.ENXIO},
		{-1, 0, io.SeekStart, linux.EINVAL},
		{0, 0, 9, linux.EINVAL},
	} {
		got, err := h.Seek(x.off, x.whence)
		if got != x.want || !errors.Is(err, x.err) {
			t.Errorf("from %d by %d: %d %v, want %d %v", x.off, x.whence, got, err, x.want, x.err)
		}
	}
	i, err := h.Info()
	must(t, err)
	expect(t, "blocks", i.Blocks, 8)
	must(t, v.Rename("/f", "/g"))
	p, err := h.Path()
	must(t, err)
	expect(t, "the path", p, "/g")
	must(t, v.Unlink("/g"))
	if p, err := h.Path(); err != linux.ENOENT {
		t.Errorf("the path of what has no name: %s %v", p, err)
	}
	must(t, h.Close())
	must(t, h.Close())
	if _, err := h.Read(make([]byte, 1)); err != linux.EBADF {
		t.Errorf("after Close: %v", err)
	}
	vfs.CheckForTest(t, v.FS)
}

func TestManyDirectoriesOfTheHostAreNotKeptOpen(t *testing.T) {
	dir := t.TempDir()
	for i := range 200 {
		put(t, fmt.Sprintf("%s/%d/sub/file", dir, i), fmt.Sprint(i))
	}
	v := over(t, dir, vfs.MountOptions{})
	for range 2 {
		for i := range 200 {
			expect(t, "a file", read(v, fmt.Sprintf("/w/%d/sub/file", i)), i)
		}
	}
}

func TestADeepTreeIsRemoved(t *testing.T) {
	v := root(vfs.New(vfs.Options{}))
	in := *v
	for range 5000 {
		must(t, in.Mkdir("d", 0o755))
		must(t, in.WriteFile("f", []byte("x"), 0o644))
		must(t, in.Chdir("d"))
	}
	expect(t, "removing", v.RemoveAll("/d"), nil)
	if _, err := in.Stat("."); err != linux.ENOENT {
		t.Errorf("a directory that is gone: %v", err)
	}
	_, files, _, _ := v.FS.Usage()
	expect(t, "what is left", files, 2)
	vfs.CheckForTest(t, v.FS)
}
