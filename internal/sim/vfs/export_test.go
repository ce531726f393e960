package vfs_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/driver/sim/snapshotentry"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// portable describes an FS without what an export does not keep: numbers and
// times of change.
func portable(t testing.TB, fs *vfs.FS) string {
	t.Helper()
	text := show(t, root(fs), "/")
	text = regexp.MustCompile(`(?m)^(/\S*) \d+ `).ReplaceAllString(text, "$1 ")
	text = regexp.MustCompile(`(?m)^(/(?:\S+ ){5}\S+) \d+`).ReplaceAllString(text, "$1")
	return text
}

func TestAnExportIntoItsBaseGivesTheSameTree(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	store, err := snapshot.Open(dir, snapshot.Options{})
	must(t, err)
	defer store.Close()
	for seed := range 60 {
		r := rand.New(rand.NewPCG(uint64(seed), 11))
		fs := vfs.New(vfs.Options{})
		scribble(r, root(fs), r.IntN(400))
		base := fs.Snapshot()
		if seed%2 == 0 {
			fs = base.FS(vfs.Options{})
		}
		scribble(r, root(fs), r.IntN(300))
		v := root(fs)
		_ = v.Chmod("/1", 0o4711)
		_ = v.Chown("/2", 5, 6, false)
		_ = v.Mknod("/0/dev", linux.S_IFCHR|0o600, 1<<8|3)
		_ = v.Mkfifo("/3/fifo", 0o640)
		_ = v.Chtimes("/", time.Time{}, time.Unix(12345, 678), true)
		now := fs.Snapshot()
		want := portable(t, fs)
		for what, from := range map[string]*vfs.Snapshot{"its base": base, "nothing": nil} {
			to := vfs.New(vfs.Options{})
			if from != nil {
				to = from.FS(vfs.Options{})
			}
			id := snapshot.NewID()
			must(t, store.Write(t.Context(), snapshot.Meta{ID: id}, snapshotentry.Export(now.Export(from))))
			x, err := store.Read(id)
			must(t, err)
			must(t, to.Import(snapshotentry.Import(x.Entries())))
			must(t, x.Close())
			if got := portable(t, to); got != want {
				t.Fatalf("seed %d, relative to %s:\n%s\nwant\n%s", seed, what, got, want)
			}
			vfs.CheckForTest(t, to)
			if n := count(t, to.Snapshot().Export(to.Snapshot())); n != 0 {
				t.Errorf("seed %d: nothing changed, and %d entries differ", seed, n)
			}
		}
		if n := count(t, now.Export(now)); n != 0 {
			t.Errorf("seed %d: a tree differs from itself by %d entries", seed, n)
		}
	}
}

func count(t *testing.T, entries iter.Seq2[vfs.Change, error]) int {
	t.Helper()
	n := 0
	for _, err := range entries {
		must(t, err)
		n++
	}
	return n
}

func TestAnExportTakesTimeByTheChange(t *testing.T) {
	cost := func(files int) float64 {
		fs := filled(t, files)
		base := fs.Snapshot()
		must(t, root(fs).WriteFile("/home/user/x", []byte("text"), 0o644))
		now := fs.Snapshot()
		return testing.AllocsPerRun(20, func() {
			for _, err := range now.Export(base) {
				must(t, err)
			}
		})
	}
	if few, many := cost(10), cost(100_000); many > few+20 {
		t.Errorf("%v allocations with 10 files, %v with 100,000", few, many)
	}
}

func TestAnExportOfAnOverlayHoldsWhatChanged(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/keep", "keep")
	put(t, dir+"/change", "old")
	put(t, dir+"/remove", "x")
	put(t, dir+"/sub/deep/file", "deep")
	put(t, dir+"/mode", "mode")
	must(t, os.Symlink("keep", dir+"/link"))
	make := func() *vfs.View { return over(t, dir, vfs.MountOptions{}) }
	v := make()
	base := v.FS.Snapshot()
	_, err := v.ReadDir("/w")
	must(t, err)
	must(t, v.WriteFile("/w/change", []byte("new"), 0o644))
	must(t, v.Unlink("/w/remove"))
	must(t, v.Chmod("/w/mode", 0o600))
	must(t, v.WriteFile("/w/sub/deep/more", []byte("more"), 0o644))
	must(t, v.Rename("/w/link", "/w/moved"))
	var got []string
	for e, err := range v.FS.Snapshot().Export(base) {
		must(t, err)
		got = append(got, fmt.Sprintf("%s %d", e.Path, e.Kind))
	}
	expect(t, "entries", got, []string{"w 2", "w/change 1", "w/link 8", "w/mode 1", "w/moved 3", "w/remove 8", "w/sub/deep 2", "w/sub/deep/more 1"})
	other := make()
	must(t, other.FS.Import(v.FS.Snapshot().Export(base)))
	strip := func(v *vfs.View) string {
		return regexp.MustCompile(`(?m)^/w? .*$`).ReplaceAllString(portable(t, v.FS), "")
	}
	expect(t, "the tree", strip(other), strip(v))
	vfs.CheckForTest(t, other.FS)
}

func TestAnImportFollowsNoLink(t *testing.T) {
	seq := func(all ...vfs.Change) iter.Seq2[vfs.Change, error] {
		return func(yield func(vfs.Change, error) bool) {
			for _, e := range all {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
	for what, all := range map[string][]vfs.Change{
		"below a link of its own":    {{Path: "l", Kind: vfs.ChangeLink, Target: "etc"}, {Path: "l/passwd", Kind: vfs.ChangeFile}},
		"below a link of the base":   {{Path: "there/passwd", Kind: vfs.ChangeFile}},
		"upwards":                    {{Path: "home/../etc/passwd", Kind: vfs.ChangeFile}},
		"the name of a directory up": {{Path: "home/..", Kind: vfs.ChangeGone}},
		"a dot":                      {{Path: "etc/.", Kind: vfs.ChangeGone}},
		"another name of nothing":    {{Path: "x", Kind: vfs.ChangeSame}},
		"another name of a later":    {{Path: "w", Kind: vfs.ChangeFile, Shared: true}, {Path: "x", Kind: vfs.ChangeSame, First: 1}},
		"another name before all":    {{Path: "w", Kind: vfs.ChangeFile, Shared: true}, {Path: "x", Kind: vfs.ChangeSame, First: -1}},
		"below a file":               {{Path: "etc/passwd/x", Kind: vfs.ChangeFile}},
		"no kind":                    {{Path: "x"}},
	} {
		v := root(vfs.New(vfs.Options{}))
		must(t, v.MkdirAll("/etc", 0o755))
		must(t, v.Mkdir("/home", 0o755))
		must(t, v.Symlink("etc", "/there"))
		must(t, v.WriteFile("/etc/passwd", []byte("root"), 0o644))
		if err := v.FS.Import(seq(all...)); err == nil {
			t.Errorf("%s: taken", what)
		}
		expect(t, what, read(v, "/etc/passwd"), "root")
	}
}

// chained makes directories within each other, below a path.
func chained(t testing.TB, v *vfs.View, at, name string, levels int) {
	t.Helper()
	w := *v
	must(t, w.Chdir(at))
	for range levels {
		must(t, w.Mkdir(name, 0o755))
		must(t, w.Chdir(name))
	}
}

func TestATreeHasABoundOfDepth(t *testing.T) {
	v := root(vfs.New(vfs.Options{Path: 1024})) // and 4,096 for the whole
	must(t, v.MkdirAll("/a/b", 0o755))
	must(t, v.Mkdir("/c", 0o755))
	must(t, v.WriteFile("/file", nil, 0o644))
	name := strings.Repeat("n", 99)
	chained(t, v, "/a/b", name, 40)
	chained(t, v, "/c", name, 1)
	deepest := *v
	must(t, deepest.Chdir("/a/b"))
	for range 40 { // to 4,004 bytes
		must(t, deepest.Chdir(name))
	}
	long := strings.Repeat("x", 91)
	for what, err := range map[string]error{
		"make a directory":       deepest.Mkdir(long, 0o755),
		"make a file":            deepest.WriteFile(long, nil, 0o644),
		"make a link":            deepest.Symlink("x", long),
		"give another name":      deepest.Link("/file", long),
		"move a file":            deepest.Rename("/file", long),
		"move what is above":     v.Rename("/a", "/c/"+name+"/a"),
		"move what is in it":     v.Rename("/a/b", "/c/"+name+"/b"),
		"move to a longer name":  v.Rename("/a", "/"+long+"aa"),
		"move over an empty one": errors.Join(v.Mkdir("/c/"+name+"/e", 0o755), v.Rename("/a/b", "/c/"+name+"/e")),
	} {
		if !errors.Is(err, linux.ENAMETOOLONG) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, deepest.Mkdir(long[1:], 0o755))
	_, err := deepest.Stat(long[1:])
	must(t, err)
	// What stays short may move, near the bound too.
	must(t, v.Rename("/a/b", "/c/b"))
	must(t, v.Rename("/c/"+name, "/a/"+name))
	must(t, v.Rename("/a/"+name, "/a/"+long))
	vfs.CheckForTest(t, v.FS)
	// No number of moves makes a path longer than that.
	for i := range 200 {
		dir := fmt.Sprintf("/m%d", i)
		must(t, v.MkdirAll(dir+"/"+name, 0o755))
		if i > 0 {
			if err := v.Rename(fmt.Sprintf("/m%d", i-1), dir+"/"+name+"/x"); err != nil {
				if !errors.Is(err, linux.ENAMETOOLONG) || i < 35 {
					t.Fatal(i, err)
				}
				vfs.CheckForTest(t, v.FS)
				return
			}
		}
	}
	t.Error("a tree grew without bound")
}

// A payer counts what it is told to pay for.
type payer struct{ entries int }

func (p *payer) Traverse(n int) { p.entries += n }

// A bound that only grows once made each later move look at all that is moved.
func TestMovesBackAndForthStayCheap(t *testing.T) {
	v := root(vfs.New(vfs.Options{Path: 1024}))
	name := "/" + strings.Repeat("n", 99)
	must(t, v.Mkdir("/d", 0o755))
	must(t, v.Mkdir(name, 0o755))
	const files, moves = 1000, 400 // 40 make up the bound
	for i := range files {
		must(t, v.WriteFile(fmt.Sprintf("/d/%d", i), nil, 0o644))
	}
	var p payer
	v.Self = &p
	for range moves {
		must(t, v.Rename("/d", name+"/d"))
		must(t, v.Rename(name+"/d", "/d"))
	}
	if p.entries < files || p.entries > moves/10*3*files {
		t.Errorf("%d moves visited %d entries", moves, p.entries)
	}
	vfs.CheckForTest(t, v.FS)
}

// Each level once cost a path of its own until the end.
func TestAnExportOfADeepTreeTakesLittleMemory(t *testing.T) {
	v := root(vfs.New(vfs.Options{Path: 200_000}))
	chained(t, v, "/", strings.Repeat("d", 20), 5000)
	tree := v.FS.Snapshot()
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc + m.StackInuse
	}
	before, n := live(), 0
	for e, err := range tree.Export(nil) {
		must(t, err)
		if n++; len(e.Path) == 104_999 {
			if more := int64(live() - before); more > 64<<20 {
				t.Errorf("in the deepest directory it holds %d MiB", more>>20)
			}
		}
	}
	if n != 5001 {
		t.Errorf("%d entries", n)
	}
}

func TestAnImportGoesOnFromWhereItIs(t *testing.T) {
	v := root(vfs.New(vfs.Options{}))
	for _, path := range []string{"/a/b/c", "/a/b-c", "/a/b/c-d", "/ab"} {
		must(t, v.MkdirAll(path, 0o755))
		for _, name := range []string{"1", "2"} {
			must(t, v.WriteFile(path+"/"+name, []byte(path), 0o644))
		}
	}
	must(t, v.Link("/a/b/c/1", "/ab/3"))
	must(t, v.Link("/a/b-c/2", "/a/b/4"))
	to := vfs.New(vfs.Options{})
	must(t, to.Import(v.FS.Snapshot().Export(nil)))
	expect(t, "the tree", portable(t, to), portable(t, v.FS))
	vfs.CheckForTest(t, to)
}

// fuzzed makes entries of bytes.
func fuzzed(b []byte) iter.Seq2[vfs.Change, error] {
	return func(yield func(vfs.Change, error) bool) {
		paths := []string{"a", "a/b", "a/b/c", "b", "b/..", "a/../b", "/a", "", ".", "a//b", "c", "l", "l/x", "a\x00", "..", "b/c"}
		for len(b) >= 4 {
			e := vfs.Change{
				Path: paths[b[0]%16], Kind: vfs.ChangeKind(b[1] % 11), Mode: uint32(b[2]) << 4, Target: paths[b[3]%16], First: int64(b[3]%16) - 1,
				Opaque: b[2]&1 != 0, Shared: b[2]&2 != 0, Size: int64(b[3]) << (b[2] % 50),
			}
			if b[2]&4 != 0 {
				data := b[:4]
				e.Data = func(yield func(vfs.Extent, error) bool) {
					yield(vfs.Extent{Offset: int64(data[0]) << (data[1] % 56), Bytes: data}, nil)
				}
			}
			b = b[4:]
			if !yield(e, nil) {
				return
			}
		}
	}
}

func FuzzAnImportLeavesASoundTree(f *testing.F) {
	f.Add([]byte("\x00\x02\x00\x00\x01\x01\x07\x00\x02\x03\x00\x03"))
	f.Add([]byte("\x00\x01\x02\x00\x03\x09\x00\x00\x00\x08\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v := root(vfs.New(vfs.Options{Inodes: 30, Disk: 1 << 20}))
		must(t, v.WriteFile("/outside", []byte("x"), 0o644))
		_ = v.FS.Import(fuzzed(b))
		vfs.CheckForTest(t, v.FS)
	})
}

func FuzzCallsLeaveASoundTree(f *testing.F) {
	f.Add(uint64(1), uint16(300))
	f.Add(uint64(7), uint16(1000))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16) {
		r := rand.New(rand.NewPCG(seed, 5))
		fs := vfs.New(vfs.Options{Inodes: 40, Disk: 300_000, FileSize: 140_000})
		for range n % 50 {
			scribble(r, root(fs), 20)
			vfs.CheckForTest(t, fs)
			if r.IntN(3) == 0 {
				fs = fs.Snapshot().FS(vfs.Options{Inodes: 40, Disk: 300_000, FileSize: 140_000})
			}
		}
		if strings.Contains(portable(t, fs), "\x00") {
			t.Error("a name holds a NUL")
		}
	})
}

func FuzzPathsDoNotHarm(f *testing.F) {
	for _, p := range []string{"/a/b", "..//./l/x", "/l/../l/l", strings.Repeat("../", 2000), "a\x00", "\xff\xfe/"} {
		f.Add(p, p)
	}
	f.Fuzz(func(t *testing.T, p, q string) {
		v := root(vfs.New(vfs.Options{Inodes: 100}))
		must(t, v.MkdirAll("/a/b", 0o755))
		must(t, v.Symlink("a/../l2", "/l"))
		must(t, v.Symlink(".//a/b", "/l2"))
		_ = v.Mkdir(p, 0o755)
		_ = v.Symlink(q, p)
		_ = v.WriteFile(q, []byte("x"), 0o644)
		_ = v.Rename(p, q)
		_ = v.Link(q, p)
		if real, err := v.Realpath(p); err == nil {
			if i, err := v.Stat(p); err == nil {
				j, err := v.Lstat(real)
				if err != nil || i != j {
					t.Errorf("%q is %q, which is %+v %v, not %+v", p, real, j, err, i)
				}
			}
		}
		_ = v.RemoveAll(p)
		vfs.CheckForTest(t, v.FS)
	})
}
