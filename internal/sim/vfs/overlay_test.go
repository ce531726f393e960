package vfs_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// over mounts a directory of the host at /w.
func over(t *testing.T, dir string, o vfs.MountOptions) *vfs.View {
	t.Helper()
	r, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	h, err := vfs.HostDir(r)
	must(t, err)
	t.Cleanup(func() { h.Close() })
	v := root(vfs.New(vfs.Options{}))
	must(t, v.FS.Mount("/w", h, o))
	return v
}

func put(t *testing.T, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o644))
}

func read(v *vfs.View, name string) string {
	b, err := v.ReadFile(name, 1<<20)
	if err != nil {
		return "error: " + vfs.Message(err)
	}
	return string(b)
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestALinkOfTheHostLeadsToTheSimulatedTree(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside+"/secret", "of the host")
	put(t, dir+"/plain", "inside")
	for name, target := range map[string]string{
		"abs": outside + "/secret", "up": "../../../../../../.." + outside + "/secret",
		"dir": outside, "etc": "/etc/passwd", "in": "plain", "loop": "loop", "proc": "/proc/self/root/etc/passwd",
	} {
		must(t, os.Symlink(target, dir+"/"+name))
	}
	v := over(t, dir, vfs.MountOptions{})
	must(t, v.Mkdir("/etc", 0o755))
	must(t, v.WriteFile("/etc/passwd", []byte("simulated"), 0o644))
	gone := "error: " + vfs.Message(linux.ENOENT)
	expect(t, "an absolute link", read(v, "/w/abs"), gone)
	expect(t, "a link upwards", read(v, "/w/up"), gone)
	expect(t, "below a link to a directory", read(v, "/w/dir/secret"), gone)
	expect(t, "through /proc", read(v, "/w/proc"), gone)
	expect(t, "a link to what is in the tree", read(v, "/w/etc"), "simulated")
	expect(t, "a link beside it", read(v, "/w/in"), "inside")
	expect(t, "a link to itself", read(v, "/w/loop"), "error: "+vfs.Message(linux.ELOOP))
	target, err := v.Readlink("/w/abs")
	must(t, err)
	expect(t, "what a link says", target, outside+"/secret")
	must(t, v.WriteFile("/w/etc", []byte("mine"), 0o644))
	expect(t, "written through a link", read(v, "/etc/passwd"), "mine")
}

func TestANameThatTurnsIntoALinkIsNotFollowed(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, outside+"/file", "secret")
	put(t, dir+"/sub/file", "inside")
	put(t, dir+"/other/file", "secret too, by a link that stays inside")
	v := over(t, dir, vfs.MountOptions{})
	expect(t, "before", read(v, "/w/sub/file"), "inside")
	h, err := v.Open("/w/sub", linux.O_DIRECTORY, 0)
	must(t, err)
	defer h.Close()
	for _, target := range []string{outside, "other", dir + "/other"} {
		must(t, os.RemoveAll(dir+"/sub"))
		must(t, os.Symlink(target, dir+"/sub"))
		if got := read(v, "/w/sub/file"); strings.Contains(got, "secret") && target != "other" {
			t.Errorf("a directory that became a link to %s: %q", target, got)
		}
		in := *v
		if err := in.Chdir("/w/sub"); err == nil {
			if got := read(&in, "file"); strings.Contains(got, "of the host") {
				t.Errorf("%q", got)
			}
		}
	}
	// A file that becomes a link, while it is looked at again and again.
	name := dir + "/flip"
	put(t, name, "inside")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Remove(name)
			switch i % 3 {
			case 0:
				_ = os.Symlink(outside+"/file", name)
			case 1:
				_ = os.WriteFile(name, []byte("inside"), 0o644)
			case 2:
				_ = os.Symlink("other/file", name)
			}
		}
	})
	for range 3000 {
		if got := read(v, "/w/flip"); strings.Contains(got, "secret") && !strings.Contains(got, "by a link") {
			t.Errorf("the link was followed: %q", got)
		}
	}
	close(stop)
	wg.Wait()
}

func TestOnlyRegularFilesOfTheHostAreOpened(t *testing.T) {
	dir := t.TempDir()
	must(t, syscall.Mkfifo(dir+"/fifo", 0o666))
	must(t, syscall.Mknod(dir+"/sock", linux.S_IFSOCK|0o666, 0))
	devices := syscall.Mknod(dir+"/null", linux.S_IFCHR|0o666, 1<<8|3) == nil
	v := over(t, dir, vfs.MountOptions{})
	for name, typ := range map[string]uint32{"fifo": linux.S_IFIFO, "sock": linux.S_IFSOCK, "null": linux.S_IFCHR} {
		if name == "null" && !devices {
			continue
		}
		i, err := v.Stat("/w/" + name)
		must(t, err)
		if i.Mode&linux.S_IFMT != typ || i.Rdev != 0 {
			t.Errorf("%s has mode %o, device %#x", name, i.Mode, i.Rdev)
		}
		for _, flags := range []int{linux.O_RDONLY, linux.O_WRONLY, linux.O_RDWR | linux.O_TRUNC} {
			if _, err := v.Open("/w/"+name, flags, 0); err != linux.EACCES {
				t.Errorf("opening %s: %v", name, err)
			}
		}
	}
	// What was a file a moment ago.
	put(t, dir+"/file", "text")
	expect(t, "a file", read(v, "/w/file"), "text")
	must(t, os.Remove(dir+"/file"))
	must(t, syscall.Mkfifo(dir+"/file", 0o666))
	expect(t, "a file that became a pipe", read(v, "/w/file"), "error: "+vfs.Message(linux.EACCES))
	// A directory that becomes a pipe must not make anybody wait.
	put(t, dir+"/sub/file", "text")
	expect(t, "below", read(v, "/w/sub/file"), "text")
	must(t, os.RemoveAll(dir+"/sub"))
	must(t, syscall.Mkfifo(dir+"/sub", 0o666))
	expect(t, "below a pipe", strings.HasPrefix(read(v, "/w/sub/file"), "error: "), true)
}

func TestAnOverlayFollowsTheHost(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/file", "short")
	put(t, dir+"/sub/a", "a")
	put(t, dir+"/sub/b", "b")
	v := over(t, dir, vfs.MountOptions{UID: 7, GID: 8})
	i, err := v.Stat("/w/file")
	must(t, err)
	expect(t, "the owner", fmt.Sprint(i.UID, i.GID), "7 8")
	put(t, dir+"/file", "longer than before")
	i, err = v.Stat("/w/file")
	must(t, err)
	expect(t, "the size", i.Size, 18)
	expect(t, "the text", read(v, "/w/file"), "longer than before")
	put(t, dir+"/new", "new")
	expect(t, "a new file", read(v, "/w/new"), "new")
	must(t, os.Remove(dir+"/new"))
	if _, err := v.Stat("/w/new"); err != linux.ENOENT {
		t.Errorf("a file that went: %v", err)
	}
	must(t, v.WriteFile("/w/sub/mine", []byte("mine"), 0o644))
	must(t, os.RemoveAll(dir+"/sub"))
	names, err := v.Names("/w/sub")
	must(t, err)
	expect(t, "a directory that went, with something of ours", names, []string{"mine"})
	expect(t, "what was in it", read(v, "/w/sub/a"), "error: "+vfs.Message(linux.ENOENT))
	expect(t, "what we made in it", read(v, "/w/sub/mine"), "mine")
	h, err := v.Open("/w/file", 0, 0)
	must(t, err)
	defer h.Close()
	must(t, v.WriteFile("/w/file", []byte("ours"), 0o644))
	b := make([]byte, 10)
	n, err := h.ReadAt(b, 0)
	expect(t, "a handle from before the write", fmt.Sprint(string(b[:n]), " ", err), "ours <nil>")
	put(t, dir+"/file", "theirs")
	expect(t, "what we wrote", read(v, "/w/file"), "ours")
	vfs.CheckForTest(t, v.FS)
}

func TestCopyingUpIsBounded(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/big", strings.Repeat("x", 300_000))
	r, err := os.OpenRoot(dir)
	must(t, err)
	defer r.Close()
	h, err := vfs.HostDir(r)
	must(t, err)
	v := root(vfs.New(vfs.Options{Disk: 200_000}))
	must(t, v.FS.Mount("/w", h, vfs.MountOptions{}))
	if _, err := v.Open("/w/big", linux.O_WRONLY|linux.O_APPEND, 0); err != linux.ENOSPC {
		t.Errorf("opening to write: %v", err)
	}
	expect(t, "what is charged", first(v.FS.Usage()), 0)
	expect(t, "the file", len(read(v, "/w/big")), 300_000)
	must(t, v.WriteFile("/w/big", []byte("cut"), 0o644))
	expect(t, "the file", read(v, "/w/big"), "cut")
	vfs.CheckForTest(t, v.FS)
}

func TestAHugeFileOfHolesIsNotCopiedUp(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/f", "x")
	must(t, os.Truncate(dir+"/f", 1<<40))
	v := over(t, dir, vfs.MountOptions{})
	began := time.Now()
	if _, err := v.Open("/w/f", linux.O_WRONLY, 0); err != linux.EFBIG {
		t.Errorf("it was opened to be changed: %v", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func first(a, _, _, _ int64) int64 { return a }

func TestManyFilesOfTheHostDoNotUseUpTheInodes(t *testing.T) {
	dir := t.TempDir()
	for i := range 400 {
		put(t, fmt.Sprintf("%s/%03d", dir, i), "text")
	}
	r, err := os.OpenRoot(dir)
	must(t, err)
	defer r.Close()
	h, err := vfs.HostDir(r)
	must(t, err)
	v := root(vfs.New(vfs.Options{Inodes: 100}))
	must(t, v.FS.Mount("/w", h, vfs.MountOptions{}))
	entries, err := v.ReadDir("/w")
	must(t, err)
	expect(t, "entries", len(entries), 400)
	for i, e := range entries {
		if e.Name != fmt.Sprintf("%03d", i) || e.Info.Size != 4 {
			t.Fatalf("entry %d is %+v", i, e)
		}
	}
	for i := range 400 {
		expect(t, "a file", read(v, fmt.Sprintf("/w/%03d", i)), "text")
	}
	d, err := v.Open("/w", linux.O_DIRECTORY, 0)
	must(t, err)
	defer d.Close()
	seen := 0
	for {
		part, err := d.ReadDir(v, 7)
		must(t, err)
		if len(part) == 0 {
			break
		}
		for _, e := range part {
			expect(t, "in parts", e.Name, fmt.Sprintf("%03d", seen))
			seen++
		}
	}
	expect(t, "in parts", seen, 400)
	vfs.CheckForTest(t, v.FS)
}

func TestAFileOfTheHostIsMountedAlone(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/file", "text")
	put(t, dir+"/other", "hidden")
	must(t, os.Symlink("other", dir+"/link"))
	r, err := os.OpenRoot(dir)
	must(t, err)
	defer r.Close()
	if _, err := vfs.HostFile(r, "link"); err != linux.ELOOP {
		t.Errorf("a link: %v", err)
	}
	h, err := vfs.HostFile(r, "file")
	must(t, err)
	for _, only := range []bool{false, true} {
		v := root(vfs.New(vfs.Options{}))
		must(t, v.FS.Mount("/deep/down/name", h, vfs.MountOptions{ReadOnly: only}))
		expect(t, "the text", read(v, "/deep/down/name"), "text")
		expect(t, "removing", v.Unlink("/deep/down/name"), linux.EBUSY)
		expect(t, "renaming", v.Rename("/deep/down/name", "/deep/x"), linux.EBUSY)
		err := v.WriteFile("/deep/down/name", []byte("ours"), 0o644)
		if only {
			expect(t, "writing", err, linux.EROFS)
			continue
		}
		must(t, err)
		expect(t, "the text", read(v, "/deep/down/name"), "ours")
		must(t, v.FS.Unmount("/deep/down/name"))
		expect(t, "what was there before", read(v, "/deep/down/name"), "")
		vfs.CheckForTest(t, v.FS)
	}
	b, err := os.ReadFile(dir + "/file")
	must(t, err)
	expect(t, "the host's file", string(b), "text")
}

func TestAReadOnlyMountRefusesEveryChange(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/file", "text")
	put(t, dir+"/sub/deep", "text")
	v := over(t, dir, vfs.MountOptions{ReadOnly: true})
	must(t, v.WriteFile("/mine", []byte("x"), 0o644))
	now := time.Now()
	for what, err := range map[string]error{
		"write":    v.WriteFile("/w/file", nil, 0o644),
		"new":      v.WriteFile("/w/new", nil, 0o644),
		"mkdir":    v.Mkdir("/w/d", 0o755),
		"symlink":  v.Symlink("x", "/w/l"),
		"fifo":     v.Mkfifo("/w/f", 0o644),
		"link":     v.Link("/w/file", "/w/l"),
		"rename":   v.Rename("/w/file", "/w/l"),
		"unlink":   v.Unlink("/w/file"),
		"rmdir":    v.Rmdir("/w/sub"),
		"chmod":    v.Chmod("/w/file", 0o600),
		"chown":    v.Chown("/w/file", 1, 1, true),
		"times":    v.Chtimes("/w/file", now, now, true),
		"touch":    v.Touch("/w/file", true),
		"truncate": v.Truncate("/w/file", 1),
		"access":   v.Access("/w/file", 2),
	} {
		expect(t, what, err, linux.EROFS)
	}
	expect(t, "out", v.Rename("/w/file", "/file"), linux.EXDEV)
	expect(t, "in", v.Rename("/mine", "/w/mine"), linux.EXDEV)
	expect(t, "link in", v.Link("/mine", "/w/mine"), linux.EROFS)
	expect(t, "the mount's root", v.Rmdir("/w"), linux.EBUSY)
	expect(t, "a file", read(v, "/w/sub/deep"), "text")
	up := *v
	must(t, up.Chdir("/w/sub"))
	wd, err := up.Getwd()
	must(t, err)
	expect(t, "the directory", wd, "/w/sub")
	expect(t, "upwards", read(&up, "../../mine"), "x")
	a, err := v.Stat("/w")
	must(t, err)
	b, err := v.Stat("/")
	must(t, err)
	if a.Dev == b.Dev {
		t.Error("a mount is another device")
	}
	expect(t, "mounts", fmt.Sprint(v.FS.Mounts()), fmt.Sprintf("[{/w   true %d}]", a.Dev))
}

func TestRulesCloseAPathHoweverItIsReached(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/.git/config", "c")
	put(t, dir+"/.git/hooks/pre-commit", "h")
	put(t, dir+"/.ssh/key", "secret")
	put(t, dir+"/src/main", "m")
	must(t, os.Symlink(".ssh/key", dir+"/innocent"))
	v := over(t, dir, vfs.MountOptions{Allow: func(p string) (bool, bool) {
		parts := strings.Split(p, "/")
		if parts[0] == ".ssh" {
			return false, false
		}
		for i := range parts {
			if parts[i] == ".git" && i+1 < len(parts) && parts[i+1] == "hooks" {
				return true, false
			}
		}
		return true, true
	}})
	no := "error: " + vfs.Message(linux.EACCES)
	in := *v
	must(t, in.Chdir("/w/.git"))
	for what, got := range map[string]string{
		"the key":       read(v, "/w/.ssh/key"),
		"by a link":     read(v, "/w/innocent"),
		"by dots":       read(v, "/w/src/../.ssh/./key"),
		"from a cwd":    read(&in, "../.ssh/key"),
		"the directory": read(v, "/w/.ssh"),
	} {
		expect(t, what, got, no)
	}
	expect(t, "a hook", read(v, "/w/.git/hooks/pre-commit"), "h")
	for what, err := range map[string]error{
		"list":               second(v.ReadDir("/w/.ssh")),
		"chdir":              new(vfs.View{FS: v.FS, Dir: vfs.Root}).Chdir("/w/.ssh"),
		"watch":              second(v.Watch("/w/.ssh", false)),
		"move what is shut":  v.Rename("/w/.ssh", "/w/x"),
		"link to it":         v.Link("/w/.ssh/key", "/w/x"),
		"write a hook":       v.WriteFile("/w/.git/hooks/pre-commit", nil, 0o644),
		"a new hook":         in.WriteFile("hooks/post-commit", nil, 0o755),
		"remove a hook":      v.Unlink("/w/.git/hooks/pre-commit"),
		"chmod a hook":       in.Chmod("hooks/pre-commit", 0o777),
		"link a hook":        v.Link("/w/.git/hooks/pre-commit", "/w/x"),
		"move a hook in":     v.Rename("/w/src/main", "/w/.git/hooks/main"),
		"move the directory": v.Rename("/w/.git/hooks", "/w/hooks"),
		"truncate":           v.Truncate("/w/.git/hooks/pre-commit", 0),
	} {
		expect(t, what, err, linux.EACCES)
	}
	expect(t, "move what holds it", v.Rename("/w/.git", "/w/x"), linux.EXDEV)
	must(t, v.MkdirAll("/w/trick/hooks", 0o755))
	must(t, v.WriteFile("/w/trick/hooks/evil", nil, 0o755))
	expect(t, "bring it in place", v.Rename("/w/trick", "/w/src/.git"), linux.EACCES)
	must(t, v.Rename("/w/trick", "/w/harmless"))
	if _, err := v.Stat("/w/.ssh"); err != nil {
		t.Errorf("it can be described: %v", err)
	}
	v.FS.SetRules(func(p string) (bool, bool) { return p != "/w/src", true })
	expect(t, "by a rule of the tree", read(v, "/w/src/main"), no)
	v.FS.SetRules(nil)
	expect(t, "without", read(v, "/w/src/main"), "m")
}

func second[T any](_ T, err error) error { return err }

func TestATreeLiesBelowAnother(t *testing.T) {
	base := root(vfs.New(vfs.Options{}))
	must(t, base.MkdirAll("/a/b", 0o755))
	must(t, base.WriteFile("/a/b/file", []byte("base"), 0o644))
	must(t, base.Symlink("b/file", "/a/link"))
	below, err := base.FS.Tree("/a")
	must(t, err)
	v := root(vfs.New(vfs.Options{}))
	must(t, v.FS.Mount("/x", below, vfs.MountOptions{}))
	expect(t, "by a link", read(v, "/x/link"), "base")
	must(t, v.WriteFile("/x/b/file", []byte("ours"), 0o644))
	must(t, v.Rename("/x/b", "/x/c"))
	expect(t, "moved", read(v, "/x/c/file"), "ours")
	expect(t, "the base", read(base, "/a/b/file"), "base")
	must(t, base.WriteFile("/a/new", []byte("new"), 0o644))
	expect(t, "made below", read(v, "/x/new"), "new")
	vfs.CheckForTest(t, v.FS)
}

func TestALazyFileIsLoadedOnce(t *testing.T) {
	v := root(vfs.New(vfs.Options{}))
	loads := 0
	load := func() ([]byte, error) {
		loads++
		if loads == 1 {
			return nil, errors.New("not yet")
		}
		return []byte("made"), nil
	}
	must(t, v.Provide("/f", 0o644, -1, load))
	must(t, v.Provide("/sized", 0o644, 4, load))
	if _, err := v.Names("/"); err != nil || loads != 0 {
		t.Errorf("names: %v, loaded %d times", err, loads)
	}
	if i, err := v.Stat("/sized"); err != nil || i.Size != 4 || loads != 0 {
		t.Errorf("a size that is known: %+v %v, loaded %d times", i, err, loads)
	}
	if _, err := v.Stat("/f"); err != linux.EIO {
		t.Errorf("an error of load: %v", err)
	}
	fork := root(v.FS.Snapshot().FS(vfs.Options{}))
	entries, err := v.ReadDir("/")
	must(t, err)
	expect(t, "the size in a list", entries[0].Info.Size, 4)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			w := *fork
			expect(t, "text", read(&w, "/f"), "made")
		})
	}
	wg.Wait()
	expect(t, "loads", loads, 2)
	must(t, fork.WriteFile("/f", []byte("ours"), 0o644))
	must(t, v.Chmod("/f", 0o600))
	h, err := v.Open("/f", linux.O_RDWR|linux.O_APPEND, 0)
	must(t, err)
	_, err = h.Write([]byte("+"))
	must(t, err)
	must(t, h.Close())
	expect(t, "text", read(v, "/f"), "made+")
	expect(t, "text", read(fork, "/f"), "ours")
	vfs.CheckForTest(t, v.FS)
	vfs.CheckForTest(t, fork.FS)
}

func TestTheScriptCannotUseMoreThanItsShare(t *testing.T) {
	v := root(vfs.New(vfs.Options{Disk: 64 << 10, Inodes: 50, FileSize: 1 << 40}))
	h, err := v.Open("/sparse", linux.O_RDWR|linux.O_CREAT, 0o644)
	must(t, err)
	var full error
	for i := int64(0); full == nil; i++ {
		if i > 100 {
			t.Fatal("single bytes far apart take nothing")
		}
		_, full = h.WriteAt([]byte("x"), i<<30)
	}
	expect(t, "sparse", full, linux.ENOSPC)
	must(t, h.Truncate(0))
	n, err := h.WriteAt(bytes.Repeat([]byte("y"), 100_000), 0)
	expect(t, "what fits is written", fmt.Sprint(n, err), "65536 "+linux.ENOSPC.Error())
	must(t, h.Close())
	must(t, v.Unlink("/sparse"))
	expect(t, "nothing is left", first(v.FS.Usage()), 0)
	long := strings.Repeat("n", 250)
	must(t, v.WriteFile("/f", nil, 0o644))
	for i := 0; full != nil; i++ {
		if i > 100 {
			t.Fatal("names take nothing")
		}
		if full = v.Link("/f", fmt.Sprintf("/%s%d", long, i)); full != nil {
			break
		}
		full = linux.EAGAIN
	}
	expect(t, "names", full, linux.ENOSPC)
	vfs.CheckForTest(t, v.FS)
}

func TestAMillionHolesTakeLittle(t *testing.T) {
	var before, after runtime.MemStats
	v := root(vfs.New(vfs.Options{FileSize: 1 << 50}))
	runtime.ReadMemStats(&before)
	for i := range 1000 {
		h, err := v.Open(fmt.Sprint("/", i), linux.O_RDWR|linux.O_CREAT, 0o644)
		must(t, err)
		_, err = h.WriteAt([]byte("x"), 1<<49)
		must(t, err)
		must(t, h.Close())
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	used, _, _, _ := v.FS.Usage()
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > used {
		t.Errorf("%d bytes of memory are charged as %d", grown, used)
	}
}

func TestManyTasksUseOneTree(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		put(t, fmt.Sprintf("%s/%d/%d", dir, i%5, i), strings.Repeat("x", 5000*i))
	}
	v := over(t, dir, vfs.MountOptions{})
	w, err := v.FS.Watch("/", true)
	must(t, err)
	defer w.Close()
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			task := *v
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for range 300 {
				p := fmt.Sprintf("/w/%d/%d", r.IntN(5), r.IntN(20))
				switch r.IntN(9) {
				case 0:
					_ = task.WriteFile(p, []byte("mine"), 0o644)
				case 1:
					_ = task.Rename(p, fmt.Sprintf("/w/%d/%d", r.IntN(5), r.IntN(20)))
				case 2:
					_ = task.Unlink(p)
				case 3:
					if _, err := task.ReadDir("/w/1"); err != nil && err != linux.ENOENT {
						t.Error(err)
					}
				case 4:
					if h, err := task.Open(p, linux.O_RDWR|linux.O_APPEND, 0); err == nil {
						_, _ = h.Write([]byte("+"))
						_ = h.Close()
					}
				case 5:
					fork := v.FS.Snapshot().FS(vfs.Options{})
					other := task
					other.FS = fork
					_ = other.RemoveAll("/w/2")
				case 6:
					_ = task.Chmod(p, 0o600)
				default:
					_ = read(&task, p)
					_, _ = task.Stat(p)
				}
			}
		})
	}
	wg.Wait()
	vfs.CheckForTest(t, v.FS)
}
