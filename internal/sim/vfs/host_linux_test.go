package vfs_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// The referee of what calls answer is the kernel: the same random calls are
// made on a directory of the host and on an FS that has one of the same name.

// twins are the two sides of a comparison.
type twins struct {
	t    *testing.T
	r    *rand.Rand
	dir  string
	view vfs.View
	uid  int
	log  []string
	over bool // the sim's side lies over a directory of the host
}

func newTwins(t *testing.T, seed uint64) *twins {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("it takes user 0 to act as several users")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	fs := vfs.New(vfs.Options{})
	w := &twins{t: t, r: rand.New(rand.NewPCG(seed, 9)), dir: dir, view: vfs.View{FS: fs, Dir: vfs.Root}}
	if err := w.view.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for d := dir; len(d) > len(os.TempDir()); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.same("chown", os.Chown(dir, 1000, 1000), w.view.Chown(dir, 1000, 1000, true))
	w.same("chmod", os.Chmod(dir, 0o755), w.view.Chmod(dir, 0o755))
	syscall.Umask(0o022)
	w.view.Umask = 0o022
	return w
}

// become makes the calling thread's file accesses those of a user.
func (w *twins) become(uid int) {
	for _, call := range [][2]uintptr{{syscall.SYS_SETFSGID, uintptr(uid)}, {syscall.SYS_SETFSUID, uintptr(uid)}} {
		if _, _, e := syscall.RawSyscall(call[0], call[1], 0, 0); int(e) < 0 {
			w.t.Fatal(e)
		}
	}
	w.uid, w.view.UID, w.view.GID = uid, uid, uid
}

func bare(err error) string {
	switch e := err.(type) {
	case nil:
		return "ok"
	case syscall.Errno, linux.Errno:
		return vfs.Message(e)
	case *os.PathError:
		return bare(e.Err)
	case *os.LinkError:
		return bare(e.Err)
	case *os.SyscallError:
		return bare(e.Err)
	}
	return err.Error()
}

func (w *twins) same(what string, host, sim error) {
	w.t.Helper()
	w.equal(what, bare(host), bare(sim))
}

func (w *twins) equal(what string, host, sim any) {
	w.t.Helper()
	h, s := fmt.Sprint(host), fmt.Sprint(sim)
	w.log = append(w.log, fmt.Sprintf("[%d] %s: %s", w.uid, what, h))
	if h != s {
		from := max(0, len(w.log)-60)
		w.t.Fatalf("%s\nhost says %s\nsim says  %s", strings.Join(w.log[from:], "\n"), h, s)
	}
}

// path makes up a path of few names, so that they meet.
func (w *twins) path() string {
	p := w.dir
	for range 1 + w.r.IntN(3) {
		p += []string{"/", "/", "/", "/", "/", "//", "/./"}[w.r.IntN(7)]
		p += []string{"a", "b", "c", "d", "a", "b", "c", "d", "..", "."}[w.r.IntN(10)]
	}
	// Not above the directory: what is there differs.
	if c := filepath.Clean(p); c != w.dir && !strings.HasPrefix(c, w.dir+"/") {
		return w.dir
	}
	if strings.Contains(p, "..") {
		// A link on the way may lead up; "a/.." is safe only without one.
		if real, err := w.view.Realpath(p); err == nil && real != w.dir && !strings.HasPrefix(real, w.dir+"/") {
			return w.dir + "/a"
		}
	}
	switch w.r.IntN(8) {
	case 0:
		p += "/"
	case 1:
		if w.r.IntN(10) == 0 {
			p += "/" + strings.Repeat("x", 256)
		}
	}
	return p
}

func (w *twins) mode() uint32 {
	return []uint32{0o755, 0o644, 0o777, 0o700, 0, 0o555, 0o444, 0o311, 0o2775, 0o1777, 0o6755, 0o070, 0o007}[w.r.IntN(13)]
}

func (w *twins) step() {
	v := &w.view
	p := w.path()
	switch w.r.IntN(22) {
	case 0, 1, 2:
		m := w.mode() & 0o1777
		w.same(fmt.Sprintf("mkdir %s %o", p, m), syscall.Mkdir(p, m), v.Mkdir(p, m))
	case 3:
		if w.top(p) {
			return
		}
		w.same("rmdir "+p, syscall.Rmdir(p), v.Rmdir(p))
	case 4:
		w.same("unlink "+p, syscall.Unlink(p), v.Unlink(p))
	case 5, 6:
		q := w.path()
		if strings.Contains(p+q, "xxx") {
			return // Linux looks at both ends before it measures the names
		}
		if w.top(p) || w.top(q) {
			return
		}
		w.same("rename "+p+" "+q, syscall.Rename(p, q), v.Rename(p, q))
	case 7:
		q := w.path()
		if w.top(p) || w.top(q) {
			return
		}
		w.same("link "+p+" "+q, syscall.Link(p, q), v.Link(p, q))
	case 8:
		target := []string{"a", "b/", "../a", w.dir + "/b", "c/d", "nowhere", ".", "a/", "d", "../" + filepath.Base(w.dir)}[w.r.IntN(10)]
		w.same("symlink "+target+" "+p, syscall.Symlink(target, p), v.Symlink(target, p))
	case 9, 10, 11, 12:
		w.open(p)
	case 13:
		m := w.mode()
		w.same(fmt.Sprintf("chmod %s %o", p, m), syscall.Chmod(p, m), v.Chmod(p, m))
	case 14:
		uid, gid := []int{-1, 0, 1000}[w.r.IntN(3)], []int{-1, 0, 1000}[w.r.IntN(3)]
		if w.r.IntN(2) == 0 {
			w.same(fmt.Sprintf("chown %s %d %d", p, uid, gid), syscall.Chown(p, uid, gid), v.Chown(p, uid, gid, true))
		} else {
			w.same(fmt.Sprintf("lchown %s %d %d", p, uid, gid), syscall.Lchown(p, uid, gid), v.Chown(p, uid, gid, false))
		}
	case 15:
		w.same("utimes "+p, touch(p), v.Touch(p, true))
	case 16:
		size := int64(w.r.IntN(200_000))
		w.same(fmt.Sprintf("truncate %s %d", p, size), syscall.Truncate(p, size), v.Truncate(p, size))
	case 17:
		want := uint32(w.r.IntN(8))
		w.same(fmt.Sprintf("access %s %d", p, want), access(p, want), v.Access(p, want))
	case 18:
		w.same("mkfifo "+p, syscall.Mkfifo(p, 0o644), v.Mkfifo(p, 0o644))
	case 19:
		host, herr := readlink(p)
		sim, serr := v.Readlink(p)
		w.same("readlink "+p, herr, serr)
		w.equal("readlink "+p, host, sim)
	case 20:
		w.list(p)
	case 21:
		w.stat(p)
	}
	w.stat(p)
}

// top tells whether a path may name a mount, which answers otherwise than a
// directory.
func (w *twins) top(p string) bool {
	if !w.over {
		return false
	}
	c := filepath.Clean(p)
	real, err := w.view.Realpath(p)
	return c == w.dir || err == nil && real == w.dir
}

func touch(p string) error {
	name, err := syscall.BytePtrFromString(p)
	if err != nil {
		return err
	}
	const cwd = -100
	at := cwd
	_, _, e := syscall.RawSyscall6(syscall.SYS_UTIMENSAT, uintptr(at), uintptr(unsafe.Pointer(name)), 0, 0, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

// access is faccessat2 with AT_EACCESS: the user is that of the thread.
func access(p string, mode uint32) error {
	name, err := syscall.BytePtrFromString(p)
	if err != nil {
		return err
	}
	at := -100
	_, _, e := syscall.RawSyscall6(439, uintptr(at), uintptr(unsafe.Pointer(name)), uintptr(mode), 0x200, 0, 0)
	if e != 0 {
		return e
	}
	return nil
}

func readlink(p string) (string, error) {
	b := make([]byte, 4096)
	n, err := syscall.Readlink(p, b)
	if err != nil {
		return "", err
	}
	return string(b[:n]), nil
}

func (w *twins) list(p string) {
	fd, err := syscall.Open(p, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	var host []string
	if err == nil {
		f := os.NewFile(uintptr(fd), p)
		if host, err = f.Readdirnames(-1); err != nil {
			w.t.Fatal(err)
		}
		f.Close()
		slices.Sort(host)
	}
	entries, serr := w.view.ReadDir(p)
	sim := make([]string, len(entries))
	for i, e := range entries {
		sim[i] = e.Name
		one, err := w.view.Lstat(p + "/" + e.Name)
		if err == nil && fmt.Sprint(one) != fmt.Sprint(e.Info) {
			w.t.Fatalf("the list says of %s: %+v, lstat %+v", e.Name, e.Info, one)
		}
	}
	names, nerr := w.view.Names(p)
	if bare(nerr) != bare(serr) || !slices.Equal(names, sim) {
		w.t.Fatalf("ReadDir gives %q %v, Names %q %v", sim, serr, names, nerr)
	}
	w.same("list "+p, err, serr)
	w.equal("list "+p, host, sim)
}

func (w *twins) open(p string) {
	flags := []int{syscall.O_RDONLY, syscall.O_WRONLY, syscall.O_RDWR}[w.r.IntN(3)]
	for _, f := range []int{syscall.O_CREAT, syscall.O_EXCL, syscall.O_TRUNC, syscall.O_APPEND, syscall.O_NOFOLLOW, syscall.O_DIRECTORY} {
		if w.r.IntN(3) == 0 {
			flags |= f
		}
	}
	if flags&syscall.O_CREAT == 0 {
		flags &^= syscall.O_EXCL // undefined
	}
	m := w.mode() & 0o777
	fd, herr := syscall.Open(p, flags|syscall.O_NONBLOCK|syscall.O_CLOEXEC, m)
	h, serr := w.view.Open(p, flags, m)
	what := fmt.Sprintf("open %s %#x %o", p, flags, m)
	if herr == syscall.ENXIO && serr == nil {
		// A pipe without a reader: that is the caller's to tell.
		if i, _ := h.Info(); i.Mode&syscall.S_IFMT == syscall.S_IFIFO {
			return
		}
	}
	if herr == syscall.EACCES && serr == syscall.ELOOP && flags&syscall.O_CREAT != 0 {
		return // a link that is another's, in a sticky directory: Linux looks at that first
	}
	w.same(what, herr, serr)
	if herr != nil {
		return
	}
	defer syscall.Close(fd)
	defer h.Close()
	if i, _ := h.Info(); !i.IsRegular() {
		return
	}
	for range w.r.IntN(4) {
		w.use(fd, h)
	}
}

// use does something with a file that is open.
func (w *twins) use(fd int, h *vfs.File) {
	switch w.r.IntN(6) {
	case 0:
		off := int64(w.r.IntN(200_000))
		hn, herr := syscall.Seek(fd, off, io.SeekStart)
		sn, serr := h.Seek(off, io.SeekStart)
		w.same("seek", herr, serr)
		w.equal("seek", hn, sn)
	case 1, 2:
		b := []byte(strings.Repeat(fmt.Sprint(w.r.IntN(10)), w.r.IntN(100_000)))
		hn, herr := syscall.Write(fd, b)
		sn, serr := h.Write(b)
		w.same("write", herr, serr)
		w.equal("write", max(hn, 0), sn)
	case 3, 4:
		hb, sb := make([]byte, 150_000), make([]byte, 150_000)
		hn, herr := syscall.Read(fd, hb)
		sn, serr := h.Read(sb)
		if serr == io.EOF {
			serr = nil
		}
		w.same("read", herr, serr)
		w.equal("read", max(hn, 0), sn)
		if sn > 0 && string(hb[:sn]) != string(sb[:sn]) {
			w.equal("read bytes", "those", "others")
		}
	case 5:
		size := int64(w.r.IntN(200_000))
		w.same(fmt.Sprint("ftruncate ", size), syscall.Ftruncate(fd, size), h.Truncate(size))
	}
}

// stat compares what is known of a path.
func (w *twins) stat(p string) {
	for _, follow := range []bool{true, false} {
		var st syscall.Stat_t
		var i vfs.Info
		var herr, serr error
		if follow {
			herr = syscall.Stat(p, &st)
			i, serr = w.view.Stat(p)
		} else {
			herr = syscall.Lstat(p, &st)
			i, serr = w.view.Lstat(p)
		}
		what := fmt.Sprintf("stat %s %v", p, follow)
		w.same(what, herr, serr)
		if herr != nil {
			continue
		}
		if st.Mode&syscall.S_IFMT == syscall.S_IFDIR {
			st.Size, i.Size = 0, 0
			if w.over && i.Nlink == 1 {
				i.Nlink = int(st.Nlink) // nobody counted what lies below
			}
		}
		w.equal(what, fmt.Sprintf("%o %d %d:%d %d", st.Mode, st.Nlink, st.Uid, st.Gid, st.Size),
			fmt.Sprintf("%o %d %d:%d %d", i.Mode, i.Nlink, i.UID, i.GID, i.Size))
	}
}

func TestCallsAnswerAsLinuxDoes(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 6
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runtime.LockOSThread() // never unlocked: the thread ends with the test
			w := newTwins(t, uint64(seed))
			t.Cleanup(func() { w.become(0) })
			for i := range 1500 {
				if i%20 == 0 {
					w.become([]int{1000, 1000, 1000, 0}[w.r.IntN(4)])
				}
				w.step()
			}
			w.become(0)
			vfs.CheckForTest(t, w.view.FS)
		})
	}
}

// plant makes some random files in a directory.
func plant(t *testing.T, r *rand.Rand, dir string, depth int) {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		p := filepath.Join(dir, name)
		switch x := r.IntN(6); {
		case x < 2 && depth > 0:
			check(os.Mkdir(p, 0o755))
			plant(t, r, p, depth-1)
		case x == 2:
			check(os.Symlink([]string{"a", "../b", "c/d", "nowhere"}[r.IntN(4)], p))
		case x < 5:
			check(os.WriteFile(p, []byte(strings.Repeat(name, r.IntN(100_000))), 0o644))
		}
	}
}

// picture describes all that is in a directory of the host.
func picture(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		i, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %v %d", p, i.Mode(), i.ModTime(), i.Size())
		switch {
		case i.Mode().IsRegular():
			text, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(text))
		case i.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			b.WriteString(" " + target)
		}
		b.WriteString("\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAnOverlayAnswersAsACopyAndWritesNothing(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 6
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			runtime.LockOSThread() // never unlocked: the thread ends with the test
			w := newTwins(t, uint64(seed))
			w.over = true
			below := t.TempDir()
			plant(t, rand.New(rand.NewPCG(uint64(seed), 1)), below, 3)
			plant(t, rand.New(rand.NewPCG(uint64(seed), 1)), w.dir, 3)
			err := filepath.WalkDir(w.dir, func(p string, _ os.DirEntry, err error) error {
				if err != nil {
					return err
				}
				return os.Lchown(p, 1000, 1000)
			})
			if err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(below)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			host, err := vfs.HostDir(root)
			if err != nil {
				t.Fatal(err)
			}
			defer host.Close()
			if err := w.view.FS.Mount(w.dir, host, vfs.MountOptions{UID: 1000, GID: 1000}); err != nil {
				t.Fatal(err)
			}
			before := picture(t, below)
			t.Cleanup(func() { w.become(0) })
			for i := range 1000 {
				if i%20 == 0 {
					w.become([]int{1000, 1000, 1000, 0}[w.r.IntN(4)])
				}
				w.step()
			}
			w.become(0)
			vfs.CheckForTest(t, w.view.FS)
			if after := picture(t, below); after != before {
				t.Errorf("the host's directory changed:\n%s\n%s", before, after)
			}
		})
	}
}

func TestMessagesAreThoseOfTheCLibrary(t *testing.T) {
	for e := syscall.Errno(1); e < 134; e++ {
		got := vfs.Message(fmt.Errorf("wrapped: %w", e))
		if words := e.Error(); got[1:] != words[1:] || strings.ToUpper(words[:1]) != got[:1] {
			t.Errorf("%d: %q, and Go says %q", int(e), got, words)
		}
	}
	if got := vfs.Message(io.EOF); got != "EOF" {
		t.Errorf("another error: %q", got)
	}
}
