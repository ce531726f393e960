package vfs_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// root is user 0 at the top of an FS.
func root(fs *vfs.FS) *vfs.View { return &vfs.View{FS: fs, Dir: vfs.Root, Umask: 0o022} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// show describes all that is in an FS.
func show(t testing.TB, v *vfs.View, dir string) string {
	t.Helper()
	var b strings.Builder
	entries, err := v.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		p := strings.TrimRight(dir, "/") + "/" + e.Name
		i := e.Info
		fmt.Fprintf(&b, "%s %d %o %d %d:%d %d %v %v", p, i.Ino, i.Mode, i.Nlink, i.UID, i.GID, i.Size, i.Mtime.UnixNano(), i.Ctime.UnixNano())
		switch {
		case i.IsDir():
			b.WriteString("\n" + show(t, v, p))
		case i.IsLink():
			target, err := v.Readlink(p)
			must(t, err)
			b.WriteString(" " + target)
		case i.IsRegular():
			text, err := v.ReadFile(p, 1<<30)
			must(t, err)
			fmt.Fprintf(&b, " %x", text)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// scribble makes random changes.
func scribble(r *rand.Rand, v *vfs.View, n int) {
	name := func() string {
		p := ""
		for range 1 + r.IntN(3) {
			p += fmt.Sprintf("/%d", r.IntN(6))
		}
		return p
	}
	for range n {
		p := name()
		switch r.IntN(9) {
		case 0, 1:
			_ = v.Mkdir(p, 0o755)
		case 2, 3:
			if h, err := v.Open(p, 0x41|2, 0o644); err == nil { // O_CREAT|O_RDWR
				_, _ = h.WriteAt(bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(300)), int64(r.IntN(3))*65500)
				if r.IntN(4) == 0 {
					_ = h.Truncate(int64(r.IntN(140_000)))
				}
				_ = h.Close()
			}
		case 4:
			_ = v.Unlink(p)
		case 5:
			_ = v.Rename(p, name())
		case 6:
			_ = v.Link(p, name())
		case 7:
			_ = v.Symlink(p, name())
		case 8:
			_ = v.RemoveAll(p)
		}
	}
}

func TestWhatIsWrittenAfterAForkNeverShowsInTheOther(t *testing.T) {
	for seed := range 10 {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		type state struct {
			fs   *vfs.FS
			snap *vfs.Snapshot
			text string // of snap
		}
		first := vfs.New(vfs.Options{})
		states := []*state{{fs: first}}
		for range 120 {
			s := states[r.IntN(len(states))]
			before := make([]string, len(states))
			for i, x := range states {
				before[i] = show(t, root(x.fs), "/")
			}
			scribble(r, root(s.fs), 30)
			for i, x := range states {
				if x != s && show(t, root(x.fs), "/") != before[i] {
					t.Fatalf("seed %d: what was written to one shows in another", seed)
				}
			}
			switch r.IntN(3) {
			case 0:
				s.snap, s.text = s.fs.Snapshot(), show(t, root(s.fs), "/")
			case 1:
				if s.snap != nil {
					x := &state{fs: s.snap.FS(vfs.Options{})}
					if len(states) < 5 {
						states = append(states, x)
					} else {
						states[r.IntN(len(states))] = x
					}
				}
			}
			for _, x := range states {
				vfs.CheckForTest(t, x.fs)
				if x.snap != nil && show(t, root(x.snap.FS(vfs.Options{})), "/") != x.text {
					t.Fatalf("seed %d: a snapshot changed", seed)
				}
			}
		}
	}
}

func TestForksOfOneSnapshotAreUsedAtOnce(t *testing.T) {
	base := vfs.New(vfs.Options{})
	scribble(rand.New(rand.NewPCG(1, 1)), root(base), 300)
	snap := base.Snapshot()
	want := show(t, root(snap.FS(vfs.Options{})), "/")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 3 {
				fs := snap.FS(vfs.Options{})
				if show(t, root(fs), "/") != want {
					t.Error("a fork begins with something else than its snapshot")
				}
				scribble(rand.New(rand.NewPCG(uint64(i), 2)), root(fs), 100)
				fs.Snapshot()
				scribble(rand.New(rand.NewPCG(uint64(i), 3)), root(fs), 100)
				vfs.CheckForTest(t, fs)
			}
		})
	}
	wg.Wait()
}

func filled(t testing.TB, files int) *vfs.FS {
	t.Helper()
	fs := vfs.New(vfs.Options{})
	v := root(fs)
	must(t, v.MkdirAll("/home/user", 0o755))
	must(t, v.Mkdir("/many", 0o755))
	for i := range files {
		must(t, v.WriteFile(fmt.Sprintf("/many/%d", i), []byte("text"), 0o644))
	}
	return fs
}

func TestASnapshotAndAForkTakeTheSameWhateverTheSize(t *testing.T) {
	cost := func(files int) (snapshot, fork, write float64) {
		fs := filled(t, files)
		snapshot = testing.AllocsPerRun(100, func() { fs.Snapshot() })
		snap := fs.Snapshot()
		fork = testing.AllocsPerRun(100, func() { snap.FS(vfs.Options{}) })
		write = testing.AllocsPerRun(100, func() {
			if err := root(snap.FS(vfs.Options{})).WriteFile("/home/user/x", []byte("text"), 0o644); err != nil {
				t.Fatal(err)
			}
		})
		return snapshot, fork, write
	}
	s1, f1, w1 := cost(10)
	s2, f2, w2 := cost(100_000)
	if s1 != s2 || f1 != f2 || s2 > 10 || f2 > 10 {
		t.Errorf("10 files: %v and %v allocations, 100,000 files: %v and %v", s1, f1, s2, f2)
	}
	if w2 > w1+16 { // a path in a tree that is a few levels higher
		t.Errorf("the first write takes %v allocations with 10 files, %v with 100,000", w1, w2)
	}
}

// heap tells how many bytes each of n things takes.
func heap(n int, thing func() any) float64 {
	keep := make([]any, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range keep {
		keep[i] = thing()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(keep)
	return float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
}

func TestAForkIsSmall(t *testing.T) {
	snap := filled(t, 1000).Snapshot()
	idle := heap(1000, func() any { return snap.FS(vfs.Options{}) })
	written := heap(1000, func() any {
		fs := snap.FS(vfs.Options{})
		must(t, root(fs).WriteFile("/home/user/file", []byte("hello"), 0o644))
		return fs
	})
	t.Logf("a fork takes %.0f bytes, one with a file %.0f", idle, written)
	if idle > 2<<10 || written > 8<<10 {
		t.Errorf("a fork takes %.0f bytes, one with a file %.0f", idle, written)
	}
}

func BenchmarkStat(b *testing.B) {
	v := root(filled(b, 1000))
	for b.Loop() {
		if _, err := v.Stat("/home/user"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkForkAndWrite(b *testing.B) {
	snap := filled(b, 1000).Snapshot()
	for b.Loop() {
		if err := root(snap.FS(vfs.Options{})).WriteFile("/home/user/x", []byte("text"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenReadClose(b *testing.B) {
	v := root(filled(b, 1000))
	buf := make([]byte, 100)
	for b.Loop() {
		h, err := v.Open("/many/77", 0, 0)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Read(buf); err != nil {
			b.Fatal(err)
		}
		_ = h.Close()
	}
}

func BenchmarkAppendLines(b *testing.B) {
	v := root(vfs.New(vfs.Options{Disk: 1 << 40, FileSize: 1 << 40}))
	h, err := v.Open("/x", 0x41, 0o644)
	if err != nil {
		b.Fatal(err)
	}
	line := []byte("a line of some forty bytes, as they are\n")
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, err := h.Write(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReadAll(b *testing.B) {
	v := root(vfs.New(vfs.Options{}))
	must(b, v.WriteFile("/x", make([]byte, 64<<20), 0o644))
	h, err := v.Open("/x", 0, 0)
	must(b, err)
	buf := make([]byte, 64<<10)
	b.SetBytes(64 << 20)
	for b.Loop() {
		_, _ = h.Seek(0, io.SeekStart)
		for {
			if _, err := h.Read(buf); err == io.EOF {
				break
			}
		}
	}
}
