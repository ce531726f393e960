package fileserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

func work(write bool) boxinit.Bind { return boxinit.Bind{Target: "/work", Write: write} }

// tree makes a directory with a system and a workspace, and a secret beside it.
func tree(t testing.TB) string {
	t.Helper()
	top := t.TempDir()
	dir := filepath.Join(top, "root")
	for _, d := range []string{"usr/bin", "work/sub"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"../secret": "secret", "usr/bin/tool": "a tool", "work/note": "a note", "work/sub/deep": "deep"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, says := range map[string]string{"usr/out": "../../secret", "work/up": "..", "work/out": filepath.Join(top, "secret"), "work/away": top} {
		if err := os.Symlink(says, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "work/fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMachineAndServerAgree(t *testing.T) {
	c := begin(t, tree(t))
	data := c.init()
	e := binary.LittleEndian
	if len(data) != 64 || e.Uint32(data) != 7 || e.Uint32(data[4:]) != 38 || e.Uint32(data[12:]) != 0xccf029 ||
		e.Uint32(data[20:]) != maxData || e.Uint16(data[28:]) != maxData/4096 {
		t.Errorf("INIT says % x", data)
	}
	for _, tt := range []struct {
		name         string
		major, minor uint32
		want         syscall.Errno
	}{
		{"an old one", 7, 30, syscall.EPROTO},
		{"an older one", 6, 99, syscall.EPROTO},
		{"a newer one asks again", 8, 0, 0},
		{"one with more to say", 7, 99, 0},
	} {
		if got, _ := c.call(opInit, 0, new(message).u32(tt.major, tt.minor, 0, 0)); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestNothingIsAnsweredBeforeTheBeginning(t *testing.T) {
	s, err := New(options(t, tree(t)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := connect(t, s)
	if _, errno := c.lookup(rootID, "usr"); errno != syscall.EIO {
		t.Error(errno)
	}
	o := options(t, tree(t))
	o.Begun = true // by the machine's init
	begun, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer begun.Close()
	c = connect(t, begun)
	if _, errno := c.lookup(rootID, "usr"); errno != 0 {
		t.Error(errno)
	}
}

func TestFilesAreRead(t *testing.T) {
	c := begin(t, tree(t), work(true))
	for _, tt := range []struct {
		path        []string
		want        string
		name, valid uint64
		how         []uint32 // flags of two opens
	}{
		{[]string{"usr", "bin", "tool"}, "a tool", systemTime, systemTime, []uint32{openKeepCache, openKeepCache}},
		{[]string{"work", "note"}, "a note", 0, liveTime, []uint32{0, 0}},
		{[]string{"work", "sub", "deep"}, "deep", 0, liveTime, []uint32{0, 0}},
	} {
		at := c.walk(tt.path...)
		if at.name != tt.name || at.valid != tt.valid || at.size != uint64(len(tt.want)) {
			t.Errorf("%v: %+v", tt.path, at)
		}
		for _, how := range tt.how {
			h, got, errno := c.open(opOpen, at.id, syscall.O_RDONLY)
			if errno != 0 || got != how {
				t.Errorf("open %v: %v, %#x", tt.path, errno, got)
			}
			for _, part := range []struct {
				offset uint64
				size   uint32
			}{{0, 4096}, {1, 2}, {100, 10}, {0, maxData}} {
				want := tt.want[min(int(part.offset), len(tt.want)):]
				want = want[:min(int(part.size), len(want))]
				if got, errno := c.read(h, part.offset, part.size); got != want || errno != 0 {
					t.Errorf("%v from %d: %q, %v", tt.path, part.offset, got, errno)
				}
			}
			if errno := c.release(opRelease, h); errno != 0 {
				t.Error(errno)
			}
			if _, errno := c.read(h, 0, 1); errno != syscall.EBADF {
				t.Errorf("after its release: %v", errno)
			}
		}
	}
}

func TestAProgramOfAMountIsReadAgainOnceItChanged(t *testing.T) {
	dir := tree(t)
	s, err := New(options(t, dir, work(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.stillTime = time.Hour
	c := connect(t, s)
	c.init()
	note, work := c.walk("work", "note").id, c.walk("work").id
	open := func(what string, node uint64, flags int, want uint32) {
		t.Helper()
		o, end := opOpen, opRelease
		if node == work {
			o, end = opOpendir, opReleasedir
		}
		h, got, errno := c.open(o, node, flags)
		if errno != 0 || got != want {
			t.Errorf("%s: %v, %#x, not %#x", what, errno, got, want)
		}
		if errno := c.release(end, h); errno != 0 {
			t.Error(errno)
		}
	}
	for range 3 {
		open("to run what changed a moment ago", note, openExec, 0)
	}
	s.mu.Lock()
	s.stillTime = -time.Hour // as if the file had been unchanged for long
	s.mu.Unlock()
	const kept = openKeepCache | openNoFlush
	open("to run it, after an open when it was fresh", note, openExec, 0)
	open("to run it again", note, openExec, kept)
	open("to read it", note, syscall.O_RDONLY, 0)
	open("to run it after that", note, openExec, kept)
	// Keep size and modification time, so that only the change time differs.
	name := filepath.Join(dir, "work/note")
	var before, now syscall.Stat_t
	if err := syscall.Stat(name, &before); err != nil {
		t.Fatal(err)
	}
	for now = before; now.Ctim == before.Ctim; {
		was := time.Unix(before.Mtim.Unix())
		if err := errors.Join(os.WriteFile(name, []byte("a game"), 0o644), os.Chtimes(name, was, was), syscall.Stat(name, &now)); err != nil {
			t.Fatal(err)
		}
	}
	if now.Mtim != before.Mtim || now.Size != before.Size {
		t.Fatalf("%+v was %+v", now, before)
	}
	open("to run what changed", note, openExec, 0)
	open("to run that again", note, openExec, kept)
	for range 2 {
		open("a directory", work, openExec, 0)
	}
}

func TestWhatIsNotThereIsRememberedOfTheSystemAlone(t *testing.T) {
	c := begin(t, tree(t), work(true))
	if at := c.walk("work", "sub"); at.name != liveTime || at.valid != liveTime {
		t.Errorf("of a live directory: %+v", at)
	}
	if at, errno := c.lookup(c.walk("usr").id, "none"); errno != 0 || at.id != 0 || at.valid != systemTime {
		t.Errorf("%v, %+v", errno, at)
	}
	if _, errno := c.lookup(c.walk("work").id, "none"); errno != syscall.ENOENT {
		t.Error(errno)
	}
}

func TestBigDirectoriesAreListed(t *testing.T) {
	dir := tree(t)
	want := []string{".", ".."}
	for i := range 3000 {
		name := fmt.Sprint(strings.Repeat("n", i%200), i)
		want = append(want, name)
		if err := os.WriteFile(filepath.Join(dir, "work/sub", name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want = append(want, "deep")
	c := begin(t, dir, work(true))
	sub := c.walk("work", "sub")
	for _, o := range []op{opReaddir, opReaddirplus} {
		for _, size := range []uint32{512, 4096, 128 << 10} {
			found := c.list(o, sub.id, size)
			if len(found) != len(want) {
				t.Fatalf("%d in %d: %d names, not %d", o, size, len(found), len(want))
			}
			for _, name := range want {
				at, ok := found[name]
				if dot := name == "." || name == ".."; !ok || o == opReaddirplus && (at.id == 0) != dot {
					t.Fatalf("%q: %v, %+v", name, ok, at)
				}
			}
		}
	}
	// Every lookup can be forgotten.
	for name, at := range c.list(opReaddirplus, sub.id, 4096) {
		if at.id != 0 {
			c.send(opForget, at.id, new(message).u64(4))
			_ = name
		}
	}
	c.close()
	if n := len(c.server.nodes); n > 3 {
		t.Errorf("%d nodes are left", n)
	}
}

func TestWorkspaceIsChanged(t *testing.T) {
	syscall.Umask(0)
	dir := tree(t)
	c := begin(t, dir, work(true))
	host := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, "work", name))
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	workID, sub := c.walk("work").id, c.walk("work", "sub").id

	made := c.must(opCreate, workID, createBody(syscall.O_RDWR, 0o640, "new"))
	at, h := entryOf(made), binary.LittleEndian.Uint64(made[entrySize:])
	if at.mode != syscall.S_IFREG|0o640 {
		t.Errorf("mode %o", at.mode)
	}
	if errno := c.write(h, 0, 0, "hello"); errno != 0 || host("new") != "hello" {
		t.Errorf("%v, %q", errno, host("new"))
	}
	if errno := c.write(h, 0, syscall.O_APPEND, " you"); errno != 0 || host("new") != "hello you" {
		t.Errorf("%v, %q", errno, host("new"))
	}
	if got, errno := c.read(h, 6, 9); got != "you" || errno != 0 {
		t.Errorf("%q, %v", got, errno)
	}
	big := strings.Repeat("0123456789abcdef", maxData/16)
	if errno := c.write(h, 0, 0, big); errno != 0 || host("new") != big {
		t.Errorf("%v, %d bytes", errno, len(host("new")))
	}
	c.must(opFsync, at.id, new(message).u64(h).u32(0, 0))
	c.must(opFsync, at.id, new(message).u64(h).u32(1, 0))
	c.must(opFallocate, at.id, new(message).u64(h, 0, 1<<21).u32(0, 0))
	if a, _ := c.attr(at.id); a.size != 1<<21 {
		t.Errorf("%d bytes", a.size)
	}
	c.must(opLseek, at.id, new(message).u64(h, 0).u32(seekHole, 0))
	c.set(at.id, setSize|setHandle, h, 3, 0, 0)
	if host("new") != "012" {
		t.Errorf("%q", host("new"))
	}
	c.set(at.id, setSize, 0, 1, 0, 0)
	c.set(at.id, setMode, 0, 0, 0o600, 0)
	c.set(at.id, setMtime|setAtime|setAtimeNow, 0, 0, 0, 1000)
	st, err := os.Stat(filepath.Join(dir, "work/new"))
	if err != nil || st.Size() != 1 || st.Mode() != 0o600 || st.ModTime().Unix() != 1000 {
		t.Errorf("%v, %v", st, err)
	}

	c.must(opMkdir, workID, new(message).u32(0o750, 0).text("d"))
	d := c.walk("work", "d").id
	c.must(opRmdir, workID, names("d"))
	if a, errno := c.attr(d); errno != syscall.ESTALE {
		t.Errorf("a directory that was removed: %+v, %v", a, errno)
	}
	c.must(opSymlink, workID, names("link", "/etc/shadow"))
	if data := c.must(opReadlink, c.walk("work", "link").id, nil); string(data) != "/etc/shadow" {
		t.Errorf("%q", data)
	}
	c.must(opMknod, workID, new(message).u32(syscall.S_IFIFO|0o600, 0, 0, 0).text("pipe"))
	c.must(opMknod, workID, new(message).u32(syscall.S_IFREG|0o600, 0, 0, 0).text("plain"))
	c.must(opMknod, workID, new(message).u32(syscall.S_IFSOCK|0o600, 0, 0, 0).text("socket"))

	linked := entryOf(c.must(opLink, sub, new(message).u64(at.id).text("second")))
	if linked.ino != at.ino || linked.links != 2 || linked.id != at.id {
		t.Errorf("a hard link: %+v of %+v", linked, at)
	}
	c.must(opUnlink, sub, names("second"))

	// An open file outlives its name.
	c.must(opUnlink, workID, names("new"))
	if a, errno := c.attr(at.id); errno != 0 || a.links != 0 {
		t.Errorf("%+v, %v", a, errno)
	}
	if got, errno := c.read(h, 0, 9); got != "0" || errno != 0 {
		t.Errorf("%q, %v", got, errno)
	}
	c.set(at.id, setMode, 0, 0, 0o644, 0)
	c.set(at.id, setMtime, 0, 0, 0, 2000)
	c.release(opRelease, h)
	if _, errno := c.attr(at.id); errno != syscall.ESTALE {
		t.Error(errno)
	}

	data := c.must(opStatfs, workID, nil)
	if len(data) != 80 || binary.LittleEndian.Uint64(data) == 0 {
		t.Errorf("% x", data)
	}
	c.must(opAccess, workID, new(message).u32(7, 0))
}

// set sends a SETATTR.
func (c *client) set(node uint64, valid uint32, handle, size uint64, mode uint32, mtime uint64) {
	c.t.Helper()
	c.must(opSetattr, node, setBody(valid, handle, size, mode, mtime, 0))
}

func setBody(valid uint32, handle, size uint64, mode uint32, mtime uint64, owner uint32) *message {
	return new(message).u32(valid, 0).u64(handle, size, 0, 0, mtime, 0).u32(0, 0, 0, mode, 0, owner, owner, 0)
}

func TestCopiesAreMadeByTheHost(t *testing.T) {
	dir := tree(t)
	c := begin(t, dir, work(true))
	from, _, _ := c.open(opOpen, c.walk("work", "note").id, syscall.O_RDONLY)
	to, _, _ := c.open(opOpen, c.walk("work", "sub", "deep").id, syscall.O_RDWR)
	errno, data := c.call(opCopyFileRange, 0, new(message).u64(from, 2, 0, to, 0, 1<<62, 0))
	if errno == syscall.EXDEV || errno == syscall.EOPNOTSUPP {
		t.Skip("the file system copies nothing")
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "work/sub/deep")); errno != 0 || len(data) != 8 || string(got) != "note" {
		t.Errorf("%v, %q", errno, got)
	}
}

func TestNodesFollowRenames(t *testing.T) {
	dir := tree(t)
	c := begin(t, dir, work(true))
	workID, note, sub, deep := c.walk("work").id, c.walk("work", "note").id, c.walk("work", "sub").id, c.walk("work", "sub", "deep").id
	rename := func(from uint64, name string, to uint64, newName string, flags uint32) syscall.Errno {
		errno, _ := c.call(opRename2, from, new(message).u64(to).u32(flags, 0).text(name, newName))
		return errno
	}
	content := func(node uint64) string {
		h, _, errno := c.open(opOpen, node, syscall.O_RDONLY)
		if errno != 0 {
			return errno.Error()
		}
		defer c.release(opRelease, h)
		data, _ := c.read(h, 0, 100)
		return data
	}
	if errno := rename(workID, "sub", workID, "dir", 0); errno != 0 || content(deep) != "deep" || c.walk("work", "dir").id != sub {
		t.Errorf("a directory: %v, %q", errno, content(deep))
	}
	if errno := rename(workID, "note", sub, "deep", renameNoReplace); errno != syscall.EEXIST {
		t.Errorf("over what is there: %v", errno)
	}
	if errno := rename(workID, "note", sub, "deep", renameExchange); errno != 0 || content(deep) != "deep" || content(note) != "a note" {
		t.Errorf("exchanged: %v, %q, %q", errno, content(deep), content(note))
	}
	if got := c.walk("work", "note").id; got != deep {
		t.Errorf("exchanged: %d at the name of %d", got, deep)
	}
	if errno := rename(workID, "note", sub, "deep", 0); errno != 0 || content(deep) != "deep" || content(note) == "a note" {
		t.Errorf("replaced: %v, %q, %q", errno, content(deep), content(note))
	}
	if errno := rename(workID, "dir", sub, "in-itself", 0); errno != syscall.EINVAL {
		t.Errorf("into itself: %v", errno)
	}
	if errno := rename(sub, "deep", workID, "x", 4); errno != syscall.EINVAL {
		t.Errorf("a whiteout: %v", errno)
	}
	if errno, _ := c.call(opRename, sub, new(message).u64(workID).text("deep", "flat")); errno != 0 || content(deep) != "deep" {
		t.Errorf("as of old: %v, %q", errno, content(deep))
	}
}

func TestAFileIsFoundByEachOfItsNames(t *testing.T) {
	dir := tree(t)
	c := begin(t, dir, work(true))
	workID, sub, note := c.walk("work").id, c.walk("work", "sub").id, c.walk("work", "note").id
	link := func(name string) { c.must(opLink, sub, new(message).u64(note).text(name)) }
	link("a")
	link("b")
	is := func(what string) {
		t.Helper()
		a, errno := c.attr(note)
		h, _, e := c.open(opOpen, note, syscall.O_RDWR)
		if errno != 0 || e != 0 || a.size != 6 {
			t.Errorf("%s: %v, %v, %+v", what, errno, e, a)
			return
		}
		c.release(opRelease, h)
	}
	is("three names")
	c.must(opUnlink, workID, names("note"))
	is("the first is gone")
	c.must(opRename, sub, new(message).u64(workID).text("a", "note"))
	is("one is another")
	if err := os.Remove(filepath.Join(dir, "work/sub/b")); err != nil {
		t.Fatal(err)
	}
	is("the host took one away")
	link("c")
	if err := os.Rename(filepath.Join(dir, "work/sub/deep"), filepath.Join(dir, "work/note")); err != nil {
		t.Fatal(err)
	}
	is("the host put another file in place of one")
	state, err := c.server.State()
	if err != nil {
		t.Fatal(err)
	}
	c.must(opUnlink, sub, names("c"))
	if _, errno := c.attr(note); errno != syscall.ESTALE {
		t.Error(errno)
	}
	if err := os.WriteFile(filepath.Join(dir, "work/sub/c"), []byte("six by"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := Restore(options(t, dir, work(true)), state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c = connect(t, s)
	is("it goes on")
	c.forget(note, 1<<62)
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.server.nodes[note] != nil || len(c.server.names) != 2 {
		t.Errorf("names that are left: %v", c.server.names)
	}
}

func TestWhatTheHostMovedIsNoCircle(t *testing.T) {
	dir := tree(t)
	c := begin(t, dir, work(true))
	workID := c.walk("work").id
	for _, name := range []string{"a", "a/b"} {
		if err := os.Mkdir(filepath.Join(dir, "work", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b := c.walk("work", "a", "b").id
	c.must(opMkdir, b, new(message).u32(0o755, 0).text("c")) // keeps b open
	if err := os.Rename(filepath.Join(dir, "work/a/b"), filepath.Join(dir, "work/b")); err != nil {
		t.Fatal(err)
	}
	// In the table b is in a; on the host a is moved into b.
	c.must(opRename2, workID, new(message).u64(b).u32(0, 0).text("a", "a"))
	_, _ = c.attr(b)
	if _, err := c.server.State(); err != nil {
		t.Error(err)
	}
}

func TestLinksAreNotFollowed(t *testing.T) {
	c := begin(t, tree(t), boxinit.Bind{Target: "/", Write: true})
	for _, path := range [][]string{{"usr", "out"}, {"work", "up"}, {"work", "out"}, {"work", "away"}} {
		at := c.walk(path...)
		if at.mode&syscall.S_IFMT != syscall.S_IFLNK {
			t.Errorf("%v: mode %o", path, at.mode)
		}
		for _, o := range []op{opOpen, opOpendir} {
			if _, _, errno := c.open(o, at.id, syscall.O_RDONLY); errno == 0 {
				t.Errorf("%v: opened", path)
			}
		}
		if _, errno := c.lookup(at.id, "secret"); errno != syscall.ENOTDIR {
			t.Errorf("%v: looked through: %v", path, errno)
		}
		for name, m := range map[string]*message{
			"size": setBody(setSize, 0, 0, 0, 0, 0),
			"mode": setBody(setMode, 0, 0, 0o600, 0, 0),
		} {
			if errno, _ := c.call(opSetattr, at.id, m); errno == 0 {
				t.Errorf("%v: %s changed", path, name)
			}
		}
	}
}

func TestWhatBecameALinkIsNotFollowed(t *testing.T) {
	dir := tree(t)
	c := begin(t, dir, work(true))
	note, sub, deep := c.walk("work", "note").id, c.walk("work", "sub").id, c.walk("work", "sub", "deep").id
	at := filepath.Join(dir, "work")
	if err := errors.Join(os.Remove(filepath.Join(at, "note")), os.Symlink("../../secret", filepath.Join(at, "note")),
		os.Rename(filepath.Join(at, "sub"), filepath.Join(at, "was")), os.Symlink("../..", filepath.Join(at, "sub"))); err != nil {
		t.Fatal(err)
	}
	c.server.mu.Lock()
	c.server.forgetDirs()
	c.server.mu.Unlock()
	for name, node := range map[string]uint64{"file": note, "directory": sub, "in it": deep} {
		if _, errno := c.attr(node); errno != syscall.ESTALE {
			t.Errorf("%s: attributes: %v", name, errno)
		}
	}
	for _, flags := range []int{syscall.O_RDONLY, syscall.O_RDWR, syscall.O_WRONLY | syscall.O_TRUNC} {
		if _, _, errno := c.open(opOpen, note, flags); errno != syscall.ESTALE {
			t.Errorf("open: %v", errno)
		}
	}
	if _, errno := c.lookup(sub, "secret"); errno != syscall.ESTALE {
		t.Error(errno)
	}
	if errno, _ := c.call(opCreate, sub, createBody(syscall.O_RDWR, 0o644, "secret")); errno != syscall.ESTALE {
		t.Error(errno)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "../secret")); err != nil || string(data) != "secret" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestSpecialFilesAreOnlyTold(t *testing.T) {
	c := begin(t, tree(t), work(true))
	fifo := c.walk("work", "fifo")
	if fifo.mode&syscall.S_IFMT != syscall.S_IFIFO {
		t.Errorf("mode %o", fifo.mode)
	}
	for _, flags := range []int{syscall.O_RDONLY, syscall.O_WRONLY, syscall.O_RDWR} {
		if _, _, errno := c.open(opOpen, fifo.id, flags); errno != syscall.ENXIO {
			t.Error(errno)
		}
	}
	if errno, _ := c.call(opCreate, c.walk("work").id, createBody(syscall.O_RDWR, 0o644, "fifo")); errno != syscall.EEXIST {
		t.Error(errno)
	}
}

func TestHostileNamesAreRefused(t *testing.T) {
	c := begin(t, tree(t), work(true))
	workID := c.walk("work").id
	note := c.walk("work", "note").id
	for name, want := range map[string]syscall.Errno{
		"":                       syscall.EINVAL,
		".":                      syscall.EINVAL,
		"..":                     syscall.EINVAL,
		"/":                      syscall.EINVAL,
		"/etc":                   syscall.EINVAL,
		"sub/deep":               syscall.EINVAL,
		"../secret":              syscall.EINVAL,
		strings.Repeat("x", 256): syscall.ENAMETOOLONG,
		"a\x00b":                 syscall.EINVAL, // more than one name
	} {
		for o, m := range map[op]*message{
			opLookup:  names(name),
			opUnlink:  names(name),
			opRmdir:   names(name),
			opMkdir:   new(message).u32(0o755, 0).text(name),
			opMknod:   new(message).u32(0o644, 0, 0, 0).text(name),
			opCreate:  createBody(syscall.O_RDWR, 0o644, name),
			opSymlink: names(name, "x"),
			opLink:    new(message).u64(note).text(name),
			opRename:  new(message).u64(workID).text("note", name),
			opRename2: new(message).u64(workID).u32(0, 0).text(name, "note"),
		} {
			got, _ := c.call(o, workID, m)
			if name == "a\x00b" && (o == opSymlink || o == opRename2) { // three texts
				want = syscall.EINVAL
			}
			if got != want {
				t.Errorf("operation %d with %.20q: %v", o, name, got)
			}
		}
	}
}

func TestChangesThatNobodyMayMakeAreRefused(t *testing.T) {
	c := begin(t, tree(t), work(true), boxinit.Bind{Target: "/work/sub"})
	workID, note := c.walk("work").id, c.walk("work", "note").id
	usr, tool := c.walk("usr", "bin").id, c.walk("usr", "bin", "tool").id
	sub, deep := c.walk("work", "sub").id, c.walk("work", "sub", "deep").id
	me := uint32(os.Geteuid())
	c.must(opSetattr, note, setBody(setUID|setGID, 0, 0, 0, 0, me)) // a change to the present owner
	for name, tt := range map[string]struct {
		op   op
		node uint64
		m    *message
		want syscall.Errno
	}{
		"another owner":             {opSetattr, note, setBody(setUID, 0, 0, 0, 0, 12345), syscall.EPERM},
		"another group":             {opSetattr, note, setBody(setGID, 0, 0, 0, 0, 12345), syscall.EPERM},
		"a set-id bit":              {opSetattr, note, setBody(setMode, 0, 0, 0o4755, 0, 0), syscall.EPERM},
		"a new program with one":    {opCreate, workID, createBody(syscall.O_RDWR, 0o4755, "x"), syscall.EPERM},
		"a directory with one":      {opMkdir, workID, new(message).u32(0o2755, 0).text("x"), syscall.EPERM},
		"a device":                  {opMknod, workID, new(message).u32(syscall.S_IFCHR|0o600, 259, 0, 0).text("x"), syscall.EPERM},
		"a disk":                    {opMknod, workID, new(message).u32(syscall.S_IFBLK|0o600, 259, 0, 0).text("x"), syscall.EPERM},
		"a file without a name":     {51, workID, createBody(syscall.O_RDWR, 0o600, "/"), syscall.ENOSYS},
		"a time of no day":          {opSetattr, note, new(message).u32(setMtime, 0).zero(56).u32(0, 1e9).zero(24), syscall.EINVAL},
		"a negative size":           {opSetattr, note, setBody(setSize, 0, 1<<63, 0, 0, 0), syscall.EINVAL},
		"the size of a directory":   {opSetattr, workID, setBody(setSize, 0, 0, 0, 0, 0), syscall.EINVAL},
		"the system's file":         {opOpen, tool, new(message).u32(syscall.O_RDWR, 0), syscall.EROFS},
		"the same, cut":             {opOpen, tool, new(message).u32(syscall.O_RDONLY|syscall.O_TRUNC, 0), syscall.EROFS},
		"the system's size":         {opSetattr, tool, setBody(setSize, 0, 0, 0, 0, 0), syscall.EROFS},
		"a file in the system":      {opCreate, usr, createBody(syscall.O_RDWR, 0o644, "x"), syscall.EROFS},
		"a bind that is to be read": {opUnlink, sub, names("deep"), syscall.EROFS},
		"a file in one":             {opOpen, deep, new(message).u32(syscall.O_WRONLY, 0), syscall.EROFS},
		"one itself":                {opRename, workID, new(message).u64(workID).text("sub", "x"), syscall.EROFS},
		"the system's, by a link":   {opLink, workID, new(message).u64(tool).text("x"), syscall.EROFS},
		"to the system":             {opRename, workID, new(message).u64(usr).text("note", "x"), syscall.EROFS},
		"an access to write":        {opAccess, tool, new(message).u32(2, 0), syscall.EROFS},
		"an attribute":              {21, note, new(message).u32(1, 0).text("user.x", "y"), syscall.ENOSYS},
		"a node that is not":        {opGetattr, 999, new(message).u32(0, 0).u64(0), syscall.ESTALE},
		"a read without end":        {opRead, note, readBody(1, 0, maxData+1), syscall.EINVAL},
		"a read before a file":      {opRead, note, readBody(1, 1<<63, 1), syscall.EINVAL},
		"a read past all":           {opRead, note, readBody(1, 1<<63-1, 1), syscall.EINVAL},
		"a short body":              {opOpen, note, new(message).u32(0), syscall.EINVAL},
		"a long body":               {opOpen, note, new(message).u32(0, 0, 0), syscall.EINVAL},
	} {
		if got, _ := c.call(tt.op, tt.node, tt.m); got != tt.want {
			t.Errorf("%s: %v, not %v", name, got, tt.want)
		}
	}
	h, _, _ := c.open(opOpen, note, syscall.O_RDONLY)
	if errno := c.write(h, 0, 0, "x"); errno != syscall.EBADF {
		t.Errorf("a write where nothing is to be written: %v", errno)
	}
	if _, errno := c.read(h, 0, 1); errno != 0 {
		t.Error(errno)
	}
	if errno, _ := c.call(opReaddir, workID, readBody(h, 0, 4096)); errno != syscall.EBADF {
		t.Errorf("a file read as a directory: %v", errno)
	}
}

func TestHostsChangesAreSeen(t *testing.T) {
	dir := tree(t)
	c := begin(t, dir, work(true))
	replace := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o644), os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	note := c.walk("work", "note")
	h, _, _ := c.open(opOpen, note.id, syscall.O_RDONLY)
	replace("work/note", "another")
	if again := c.walk("work", "note"); again.id == note.id || again.size != 7 {
		t.Errorf("the file that took its place: %+v, was %+v", again, note)
	}
	if got, _ := c.read(h, 0, 99); got != "a note" {
		t.Errorf("what is open: %q", got)
	}
	if a, errno := c.attr(note.id); errno != 0 || a.size != 6 {
		t.Errorf("what is open: %+v, %v", a, errno)
	}
	if _, _, errno := c.open(opOpen, note.id, syscall.O_RDONLY); errno != syscall.ESTALE {
		t.Errorf("the name of the old one: %v", errno)
	}

	// A replaced file of the system keeps its number, because an overlay above knows no
	// other. Nothing of the old content is cached.
	tool := c.walk("usr", "bin", "tool")
	h, _, _ = c.open(opOpen, tool.id, syscall.O_RDONLY)
	c.release(opRelease, h)
	replace("usr/bin/tool", "a newer tool")
	h, how, errno := c.open(opOpen, tool.id, syscall.O_RDONLY)
	if got, _ := c.read(h, 0, 99); errno != 0 || how != 0 || got != "a newer tool" {
		t.Errorf("%v, %#x, %q", errno, how, got)
	}
	// A file in use keeps its old content for all its users.
	replace("usr/bin/tool", "the newest tool")
	second, _, errno := c.open(opOpen, tool.id, syscall.O_RDONLY)
	if got, _ := c.read(second, 0, 99); errno != 0 || got != "a newer tool" {
		t.Errorf("%v, %q", errno, got)
	}
	if again := c.walk("usr", "bin", "tool"); again.id != tool.id || again.size != uint64(len("a newer tool")) {
		t.Errorf("its name: %+v, was %+v", again, tool)
	}
	c.release(opRelease, h)
	c.release(opRelease, second)
	if again := c.walk("usr", "bin", "tool"); again.id != tool.id || again.size != uint64(len("the newest tool")) {
		t.Errorf("its name, when nobody uses it: %+v, was %+v", again, tool)
	}
	h, how, errno = c.open(opOpen, tool.id, syscall.O_RDONLY)
	if got, _ := c.read(h, 0, 99); errno != 0 || how != 0 || got != "the newest tool" {
		t.Errorf("%v, %#x, %q", errno, how, got)
	}
}

func TestAMachineGoesOn(t *testing.T) {
	dir := tree(t)
	binds := []boxinit.Bind{work(true)}
	c := begin(t, dir, binds...)
	note, tool := c.walk("work", "note").id, c.walk("usr", "bin", "tool").id
	sub := c.walk("work", "sub").id
	keep, _, _ := c.open(opOpen, note, syscall.O_RDWR)
	read, _, _ := c.open(opOpen, tool, syscall.O_RDONLY)
	list, _, _ := c.open(opOpendir, sub, 0)
	made := c.must(opCreate, sub, createBody(syscall.O_RDWR, 0o644, "gone"))
	gone := binary.LittleEndian.Uint64(made[entrySize:])
	c.must(opRename, c.walk("work").id, new(message).u64(sub).text("note", "moved"))
	if err := c.close(); err != nil {
		t.Fatal(err)
	}

	// On another connection.
	c = connect(t, c.server)
	if got, errno := c.read(keep, 0, 99); got != "a note" || errno != 0 {
		t.Errorf("%q, %v", got, errno)
	}
	before := c
	c = connect(t, c.server) // while the other still exists
	c.must(opUnlink, sub, names("gone"))
	if err := errors.Join(before.close(), c.close()); err != nil {
		t.Fatal(err)
	}

	// In another process.
	state, err := c.server.State()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Restore(options(t, dir, binds...), state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if again, err := s.State(); err != nil || len(again) != len(state) {
		t.Errorf("%d bytes became %d, %v", len(state), len(again), err)
	}
	c = connect(t, s)
	if got, errno := c.read(keep, 0, 99); got != "a note" || errno != 0 {
		t.Errorf("%q, %v", got, errno)
	}
	if errno := c.write(keep, 0, 0, "A"); errno != 0 {
		t.Error(errno)
	}
	if got, errno := c.read(read, 0, 99); got != "a tool" || errno != 0 {
		t.Errorf("%q, %v", got, errno)
	}
	if errno := c.write(read, 0, 0, "A"); errno != syscall.EBADF {
		t.Error(errno)
	}
	if data := c.must(opReaddir, sub, readBody(list, 0, 4096)); len(data) == 0 {
		t.Error("nothing is in the directory")
	}
	if _, errno := c.read(gone, 0, 9); errno != syscall.ESTALE {
		t.Errorf("a file that was removed: %v", errno)
	}
	if got := c.walk("work", "sub", "moved").id; got != note {
		t.Errorf("%d was %d", got, note)
	}
	fresh, _, _ := c.open(opOpen, note, syscall.O_RDONLY)
	if slices.Contains([]uint64{keep, read, list, gone}, fresh) {
		t.Error("a handle's number was used again")
	}
}

func TestAFileThatAnotherTookThePlaceOfDoesNotGoOn(t *testing.T) {
	dir := tree(t)
	c := begin(t, dir, work(true))
	tool, note := c.walk("usr", "bin", "tool").id, c.walk("work", "note").id
	h, _, _ := c.open(opOpen, tool, syscall.O_RDONLY)
	state, err := c.server.State()
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "usr/bin/tool")
	if err := errors.Join(os.WriteFile(at+"2", []byte("other"), 0o755), os.Rename(at+"2", at),
		os.Remove(filepath.Join(dir, "work/note")), os.Mkdir(filepath.Join(dir, "work/note"), 0o755)); err != nil {
		t.Fatal(err)
	}
	s, err := Restore(options(t, dir, work(true)), state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	c = connect(t, s)
	if _, errno := c.read(h, 0, 9); errno != syscall.ESTALE {
		t.Error(errno)
	}
	if _, errno := c.attr(note); errno != syscall.ESTALE {
		t.Error(errno)
	}
}

func TestWhatAMachineCanHaveIsBounded(t *testing.T) {
	c := begin(t, tree(t), work(true))
	c.server.nodeMax, c.server.handleMax, c.server.dirMax = 4, 2, 1
	workID := c.walk("work").id
	note := c.walk("work", "note").id
	_ = c.walk("work", "sub")
	if _, errno := c.lookup(workID, "fifo"); errno != syscall.ENFILE {
		t.Errorf("a node too many: %v", errno)
	}
	if found := c.list(opReaddirplus, workID, 4096); len(found) < 7 || found["fifo"].id != 0 || found["note"].id != note {
		t.Errorf("a list of too many: %v", found)
	}
	for i := range 3 {
		if _, _, errno := c.open(opOpen, note, syscall.O_RDONLY); (errno == syscall.ENFILE) != (i == 2) {
			t.Errorf("handle %d: %v", i, errno)
		}
	}
	c.forget(workID, 1<<63)
	c.forget(note, 1<<63)
	c.forget(note, 1)
	c.forget(rootID, 1<<63)
	c.walk("work")
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if n := c.server.dirs.Len(); n > 1 {
		t.Errorf("%d directories are open", n)
	}
}

// Further names of a known file count too.
func TestNamesOfOneFileAreBounded(t *testing.T) {
	dir := tree(t)
	c := begin(t, dir, work(true))
	long := func(n byte) string { return strings.Repeat(string(n), nameMax) }
	for n := range byte(4) {
		if err := os.Link(filepath.Join(dir, "work/note"), filepath.Join(dir, "work", long('a'+n))); err != nil {
			t.Fatal(err)
		}
	}
	workID := c.walk("work").id
	c.server.mu.Lock()
	c.server.nameMax = c.server.nameBytes + 3*nameMax
	c.server.mu.Unlock()
	for n := range byte(4) {
		if _, errno := c.lookup(workID, long('a'+n)); (errno == syscall.ENFILE) != (n == 3) {
			t.Errorf("name %d: %v", n, errno)
		}
	}
}

func TestConnectionsEndWithWhatIsNoRequest(t *testing.T) {
	whole := frame(opLookup, 2, rootID, []byte("usr\x00"))
	for _, tt := range []struct {
		name string
		data []byte
		want error
	}{
		{"nothing", nil, nil},
		{"half a head", whole[:20], io.ErrUnexpectedEOF},
		{"half a body", whole[:41], io.ErrUnexpectedEOF},
		{"too short", binary.LittleEndian.AppendUint32(nil, 39), nil},
		{"too long", binary.LittleEndian.AppendUint32(nil, maxMessage+1), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := begin(t, tree(t))
			if len(tt.data) == 4 {
				tt.data = append(tt.data, make([]byte, 36)...)
			}
			_, _ = c.conn.Write(tt.data)
			if len(tt.data) == 40 { // the server closes the connection
				err := <-c.ended
				c.ended <- err
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err := c.close(); !errors.Is(err, tt.want) {
				t.Error(err)
			}
		})
	}
}

func TestRequestsAreAnsweredBesideEachOther(t *testing.T) {
	dir := tree(t)
	c := begin(t, dir, work(true))
	const each = 300
	workID, sub := c.walk("work").id, c.walk("work", "sub").id
	want := map[uint64]bool{}
	together(func() {
		for i := range each {
			name := fmt.Sprint("f", i%7)
			to := fmt.Sprint("f", i%5)
			c.unique += 2
			var data []byte
			switch i % 6 {
			case 0:
				data = frame(opCreate, c.unique, workID, createBody(syscall.O_RDWR|syscall.O_CREAT, 0o644, name).data)
			case 1:
				data = frame(opRename2, c.unique, workID, new(message).u64(sub).u32(0, 0).text(name, to).data)
			case 2:
				data = frame(opLookup, c.unique, sub, names(to).data)
			case 3:
				data = frame(opUnlink, c.unique, sub, names(to).data)
			case 4:
				data = frame(opGetattr, c.unique, uint64(i%40), new(message).u32(0, 0).u64(0).data)
			case 5:
				data = frame(opRename2, c.unique, sub, new(message).u64(workID).u32(renameExchange, 0).text(to, name).data)
			}
			if _, err := c.conn.Write(data); err != nil {
				t.Error(err)
				return
			}
		}
	}, func() {
		for range each {
			unique, _, _ := c.reply()
			if want[unique] {
				t.Errorf("two answers to %d", unique)
			}
			want[unique] = true
		}
	})
	if errno := func() syscall.Errno { _, e := c.attr(rootID); return e }(); errno != 0 {
		t.Error(errno)
	}
	if _, err := c.server.State(); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheBoxesUserServes(t *testing.T) {
	o := options(t, t.TempDir())
	o.UID++
	if _, err := New(o); err == nil {
		t.Error("no error")
	}
}
