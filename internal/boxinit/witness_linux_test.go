package boxinit

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// witnessed returns a witness, and its reports. answer says with what each that waits is answered.
func witnessed(t *testing.T, answer func(Change) syscall.Errno) (*witness, func() []Change) {
	t.Helper()
	ours, theirs, err := sys.NewChannelPair()
	if err != nil {
		t.Fatal(err)
	}
	files := &Files{}
	files.Add(FileWitness, theirs)
	w, err := newWitness(files)
	if err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	all := make(chan []Change, 1)
	go func() { // ends with the witness's end
		var list []Change
		defer func() { all <- list }()
		for {
			data, _, err := ours.Receive()
			if err != nil {
				return
			}
			c, err := ParseChange(data)
			if err != nil {
				t.Error(err)
				return
			}
			list = append(list, c)
			if c.Kind.Waits() {
				if err := ours.Send(binary.BigEndian.AppendUint32(nil, uint32(answer(c)))); err != nil {
					t.Error(err)
				}
			}
		}
	}()
	return w, func() []Change {
		w.channel.Close()
		defer ours.Close()
		return <-all
	}
}

func TestAChangeThatIsNotRecordedIsNotMade(t *testing.T) {
	w, reports := witnessed(t, func(c Change) syscall.Errno {
		if c.Path == "full" {
			return syscall.EDQUOT
		}
		return 0
	})
	for path, want := range map[string]error{"a": nil, "full": syscall.EDQUOT} {
		if err := w.tell(Change{Kind: ChangeRemoved, Path: path}); !errors.Is(err, want) {
			t.Errorf("the removal of %s: %v", path, err)
		}
	}
	if err := w.tell(Change{Kind: ChangeMade, Path: "b"}); err != nil {
		t.Error(err)
	}
	if got := reports(); len(got) != 3 {
		t.Errorf("the host was told %+v", got)
	}
	// The owner of the box is gone, so nobody records anything.
	for range 2 {
		if err := w.tell(Change{Kind: ChangeContent, Path: "a"}); !errors.Is(err, syscall.EIO) {
			t.Errorf("without a recorder a file may change: %v", err)
		}
	}
}

// The host found nothing where the change was to be: another sandbox moved it, or was faster.
func TestAChangeThatTheHostDoesNotFindIsNotMade(t *testing.T) {
	b, full := bareTree(t, "d")
	if err := os.WriteFile(filepath.Join(full, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w, reports := witnessed(t, func(Change) syscall.Errno { return syscall.EBUSY })
	if err := b.observe(w); err != nil {
		t.Fatal(err)
	}
	d, err := sys.ResolvePlain(full)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(d)
	c := &call{broker: b}
	for name, want := range map[string]error{"f": syscall.EBUSY, "g": syscall.ENOENT} {
		p, err := c.resolve(d, name, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.before(ChangeRemoved, p); !errors.Is(err, want) {
			t.Errorf("the removal of %s: %v, want %v", name, err, want)
		}
		fd, err := c.openSeen(p, syscall.O_WRONLY|syscall.O_CREAT, 0o600, true)
		if made := name == "g"; made != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			sys.Close(fd)
		}
		p.close()
	}
	if got := reports(); len(got) != 5 || !slices.Contains(got, Change{Kind: ChangeMade, Path: "d/g"}) {
		t.Errorf("the host was told %+v", got)
	}
}

// A private directory, such as the home, may be below one of the host's.
func TestWhatIsPrivateInATreeIsNotReported(t *testing.T) {
	top := t.TempDir()
	home := filepath.Join(top, "me")
	b, err := newBroker(&Config{Trees: []Tree{{Path: top, Protected: true}}, Writable: []string{home, "/dev"}})
	if err != nil {
		t.Fatal(err)
	}
	if t1 := b.treeOf(home + "/f"); !t1.private() || !b.ours(home+"/f") || b.ours(top+"/f") || b.treeOf(top+"/f").private() {
		t.Errorf("%+v", b.trees)
	}
}

func TestFilesThatAreOpenForWritingAreListed(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "d")
	b, err := newBroker(&Config{Trees: []Tree{{Path: top, Protected: true}}})
	if err := errors.Join(err, os.Mkdir(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	names := []string{"written", "read", "mapped", "private", "gone", "lost"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 4096), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(dir, "lost"), filepath.Join(dir, "found")); err != nil {
		t.Fatal(err)
	}
	// A child holds them: what this process has open does not count.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ready, told, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	child, err := os.StartProcess("/proc/self/exe", []string{holderArgv0, dir}, &os.ProcAttr{Files: []*os.File{r, told, os.Stderr}})
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	told.Close()
	defer func() { _, _ = child.Wait() }()
	defer w.Close()
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gone", "lost"} { // of which the last has another name
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	held := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range b.Held() {
			if c.Kind != ChangeContent || c.Tree != 0 {
				t.Errorf("%+v", c)
			}
			got = append(got, c.Path)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("held are %q, not %q", got, want)
		}
	}
	held("", "d/mapped", "d/written")
	if err := os.Remove(filepath.Join(dir, "found")); err != nil { // and nobody finds it
		t.Fatal(err)
	}
	held("d/mapped", "d/written")

	// The kernel tells no path that is too long.
	part := strings.Repeat("d", 200)
	r2, err := os.OpenRoot(top)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := r2.Mkdir(part, 0o700); err != nil {
			t.Fatal(err)
		}
		below, err := r2.OpenRoot(part)
		if err != nil {
			t.Fatal(err)
		}
		r2.Close()
		r2 = below
	}
	defer r2.Close()
	deep, err := r2.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	defer deep.Close()
	if err := sys.RenameAt(sys.AtCWD, dir, int(deep.Fd()), part); err != nil {
		t.Fatal(err)
	}
	held("")
	n := 0
	b.heldBy(fmt.Sprint("/proc/", child.Pid), map[openName]bool{}, func(path string, is *sys.FileStat) {
		if is != nil && is.Links > 0 && b.treeOf(path) != nil { // a descriptor, and no mapping
			n++
		}
	})
	if n != 1 {
		t.Errorf("%d descriptors are found", n)
	}
}

// holderArgv0 is the name of a process that holds files.
const holderArgv0 = "paddock-test-holder"

// hold opens files of a directory in several ways, and keeps them until its input ends.
func hold(dir string) error {
	open := func(name string, flags int) (*os.File, error) { return os.OpenFile(filepath.Join(dir, name), flags, 0) }
	written, err := open("written", os.O_WRONLY)
	if err != nil {
		return err
	}
	defer written.Close()
	for _, name := range []string{"gone", "lost"} {
		f, err := open(name, os.O_WRONLY)
		if err != nil {
			return err
		}
		defer f.Close()
	}
	read, err := open("read", os.O_RDONLY)
	if err != nil {
		return err
	}
	defer read.Close()
	for name, how := range map[string]int{"mapped": unix.MAP_SHARED, "private": unix.MAP_PRIVATE} {
		f, err := open(name, os.O_RDWR)
		if err != nil {
			return err
		}
		if _, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, how); err != nil {
			return err
		}
		f.Close() // the mapping stays
	}
	if _, err := os.Stdout.Write([]byte{1}); err != nil {
		return err
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
	return nil
}

func TestMain(m *testing.M) {
	if os.Args[0] == holderArgv0 {
		if err := hold(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestListsOfChangesAreBounded(t *testing.T) {
	var b bytes.Buffer
	list := []Change{{Kind: ChangeContent, Path: "a"}, {Kind: ChangeMoved, Path: "b", To: "c"}}
	if err := WriteChanges(&b, list); err != nil {
		t.Fatal(err)
	}
	whole := b.Bytes()
	if got, err := ReadChanges(bytes.NewReader(whole)); err != nil || !slices.Equal(got, list) {
		t.Errorf("%+v are read as %+v, %v", list, got, err)
	}
	for n := range whole {
		if got, err := ReadChanges(bytes.NewReader(whole[:n])); err == nil {
			t.Errorf("%d of %d bytes are read as %+v", n, len(whole), got)
		}
	}
	if err := WriteChanges(&b, make([]Change, 0)); err != nil {
		t.Fatal(err)
	}
	var flood bytes.Buffer
	if err := WriteChanges(&flood, slices.Repeat(list[:1], HeldMax+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadChanges(&flood); err == nil {
		t.Error("a list without an end is read")
	}
}

// A change that the host cannot be told would be in no record, and before no monitor.
func TestWhatNoReportCanNameIsNotChanged(t *testing.T) {
	b, full := bareTree(t, strings.TrimSuffix(strings.Repeat(strings.Repeat("d", 200)+"/", 19), "/"))
	top := b.trees[0].path
	dir, err := sys.ResolvePlain(full)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(dir)
	name := strings.Repeat("e", 4080-len(full)) // as deep as a directory can be whose path the kernel tells
	if err := sys.MkdirAt(dir, name, 0o700); err != nil {
		t.Fatal(err)
	}
	deep, err := sys.OpenDirAt(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close(deep)
	above := len(full) + 1 + len(name) - len(top) // of the path in the tree, with a slash
	c := &call{broker: b}
	for n, want := range map[int]error{pathMax - above: nil, pathMax - above + 1: syscall.ENAMETOOLONG, 255: syscall.ENAMETOOLONG} {
		base := strings.Repeat("f", n)
		p, err := c.resolve(deep, base, false)
		if !errors.Is(err, want) {
			t.Errorf("a path of %d bytes: %v, want %v", above+n, err, want)
		}
		if err == nil {
			p.close()
		}
		if _, err := b.replaced(deep, base); b.witness != nil && !errors.Is(err, want) {
			t.Errorf("a file of the broker's, %d bytes: %v, want %v", above+n, err, want)
		}
		d := os.NewFile(uintptr(deep), "deep")
		if _, err := b.placeAt("write", d, base); (err == nil) != (want == nil) {
			t.Errorf("by the agent, %d bytes: %v", above+n, err)
		}
	}
}

// A command keeps a directory open, and takes away the right to search one above.
func TestWhatTheHostCannotLookAtIsNotChanged(t *testing.T) {
	runtime.LockOSThread() // never unlocked: the thread ends without capabilities
	if err := sys.DropThreadCapabilities(); err != nil {
		t.Fatal(err)
	}
	b, full := bareTree(t, "a/b", "c")
	if err := os.WriteFile(filepath.Join(full, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w, reports := witnessed(t, func(Change) syscall.Errno { return 0 })
	if err := b.observe(w); err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(full)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f, err := os.Open(filepath.Join(full, "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := &call{broker: b}
	st, err := sys.StatAt(int(f.Fd()), "")
	if err != nil {
		t.Fatal(err)
	}
	try := func(when string, want error) {
		t.Helper()
		p, err := c.resolve(int(d.Fd()), "f", false)
		if err == nil {
			p.close()
		}
		if !errors.Is(err, want) {
			t.Errorf("%s, by name: %v, want %v", when, err, want)
		}
		if err := c.findable(full+"/f", st); !errors.Is(err, want) {
			t.Errorf("%s, an open file: %v, want %v", when, err, want)
		}
		if _, err := b.placeAt("write", d, "f"); (err == nil) != (want == nil) {
			t.Errorf("%s, by the agent: %v", when, err)
		}
		if _, err := b.replaced(int(d.Fd()), "new"); !errors.Is(err, want) {
			t.Errorf("%s, a file of the broker's: %v, want %v", when, err, want)
		}
	}
	top := b.trees[0].path
	for _, dir := range []string{filepath.Join(top, "a"), top} {
		if err := os.Chmod(dir, 0); err != nil {
			t.Fatal(err)
		}
		try(dir, syscall.EACCES)
		at, err := os.Stat(dir)
		if err != nil {
			t.Fatal(err)
		}
		is, ok := at.Sys().(*syscall.Stat_t)
		if !ok {
			t.Fatal("no inode")
		}
		if err := c.findable(dir, sys.FileStat{Dev: is.Dev, Ino: is.Ino, Links: 1}); err != nil {
			t.Errorf("the mode of %s cannot be given back: %v", dir, err)
		}
		if err := os.Chmod(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		try("with a mode again", nil)
	}
	if r := c.chmodFile(int(f.Fd()), 0o200); r != done {
		t.Errorf("%+v", r)
	}
	if r := c.chmodFile(int(f.Fd()), 0o600); r != done {
		t.Errorf("%+v", r)
	}
	got := reports()
	if want := []Change{{Kind: ChangeContent, Path: "a/b/f"}, {Kind: ChangeMode, Path: "a/b/f"}}; !slices.Equal(got, want) {
		t.Errorf("the host was told %+v, not %+v", got, want)
	}
}

// The mode of a file changes under all its names, and so does what another name of it can do.
func TestAnOpenFileIsChangedOnlyByANameThatItHas(t *testing.T) {
	b, full := bareTree(t, "d")
	path := filepath.Join(full, "f")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Link(path, path+"2")); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := b.observe(&witness{}); err != nil {
		t.Fatal(err)
	}
	c := &call{broker: b}
	try := func(want error) {
		t.Helper()
		at, err := sys.PathOf(int(f.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		st, err := sys.StatAt(int(f.Fd()), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := c.findable(at, st); !errors.Is(err, want) {
			t.Errorf("%q with %d names: %v, want %v", at, st.Links, err, want)
		}
	}
	try(nil)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	try(syscall.ENOENT)
	if err := os.WriteFile(path+" (deleted)", nil, 0o600); err != nil { // what the kernel calls it is another file's name
		t.Fatal(err)
	}
	try(syscall.ENOENT)
	if err := os.Remove(path + "2"); err != nil {
		t.Fatal(err)
	}
	try(nil)
}
