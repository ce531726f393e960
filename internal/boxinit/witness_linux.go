package boxinit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A witness reports to the host what the broker changes in trees of the host. It may be nil. Its calls are in the order
// of the changes, because the broker makes one at a time.
type witness struct {
	mu      sync.Mutex
	channel *sys.Channel // guarded by mu
	broken  error        // guarded by mu: from now on nothing is recorded, so nothing may change
}

// newWitness takes the file of FileWitness, if it came.
func newWitness(files *Files) (*witness, error) {
	f := files.One(FileWitness)
	if f == nil {
		return nil, nil
	}
	f, err := sys.Duplicate(f) // the others are closed when the tree is built
	if err != nil {
		return nil, err
	}
	c, err := sys.NewChannelOf(f)
	if err != nil {
		return nil, err
	}
	return &witness{channel: c}, nil
}

// tell reports a change. If it is one that waits, a nil error means that it may be made now.
func (w *witness) tell(c Change) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return syscall.EIO
	}
	err := w.channel.Send(c.Append(nil))
	if err == nil && c.Kind.Waits() {
		var data []byte
		var files []*os.File
		data, files, err = w.channel.Receive()
		for _, f := range files {
			f.Close()
		}
		if err == nil && len(data) != 4 {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			if no := syscall.Errno(binary.BigEndian.Uint32(data)); no != 0 {
				return no
			}
			return nil
		}
	}
	if err != nil {
		w.broken = fmt.Errorf("report a change: %w", err)
		return syscall.EIO
	}
	return nil
}

// observe begins to report to a witness, which may be nil.
func (b *broker) observe(w *witness) error {
	if b.witness = w; w == nil {
		return nil
	}
	for i := range b.trees {
		t := &b.trees[i]
		if t.private() {
			continue
		}
		fd, err := sys.ResolvePlain(t.path)
		if err != nil {
			return fmt.Errorf("report changes of %q: %w", t.path, err)
		}
		t.top = os.NewFile(uintptr(fd), t.path) // as long as the box
	}
	return nil
}

// tellable returns an error unless a report can have the path of a place, and the host finds the place by it: a command may
// keep a directory open, and take away the right to search one above. What the host cannot be told, or cannot look at, is
// not changed.
func (b *broker) tellable(p *place) error {
	switch {
	case p.tree == nil || p.tree.private():
		return nil
	case !plainPath(p.rel()):
		return syscall.ENAMETOOLONG
	case b.witness == nil || p.rel() == "":
		return nil
	}
	is, err := sys.StatAt(p.dir, "")
	if err != nil {
		return err
	}
	above, _ := split(p.rel())
	at, err := p.tree.stat(above)
	if err != nil || at.Dev != is.Dev || at.Ino != is.Ino {
		return syscall.EACCES
	}
	return nil
}

// stat looks at a path below a reported tree, as the host does: from its top, and through no link.
func (t *tree) stat(path string) (sys.FileStat, error) {
	if path == "" {
		return sys.StatAt(int(t.top.Fd()), "")
	}
	fd, err := sys.OpenPlaceBeneath(int(t.top.Fd()), path)
	if err != nil {
		return sys.FileStat{}, err
	}
	defer sys.Close(fd)
	return sys.StatAt(fd, "")
}

// before reports a change of a place that is about to be made. It fails if nothing may change there now.
func (b *broker) before(kind ChangeKind, p *place) error {
	if b.witness == nil || p.tree == nil || p.tree.private() {
		return nil
	}
	err := b.witness.tell(Change{Kind: kind, Tree: p.tree.number, Path: p.rel()})
	if errors.Is(err, syscall.EBUSY) && !p.there() { // another sandbox was faster
		return syscall.ENOENT
	}
	return err
}

// undone reports that a change of a place was not made after before, and returns the error with which it failed.
func (b *broker) undone(p *place, err error) error {
	if err != nil && b.witness != nil && p.tree != nil && !p.tree.private() {
		_ = b.witness.tell(Change{Kind: ChangeFailed, Tree: p.tree.number, Path: p.rel()})
	}
	return err
}

// made reports that something is at a place where nothing was. If the host cannot know it any more, no further change is
// made, so the error does not matter to this one.
func (b *broker) made(p *place) {
	if b.witness != nil && p.tree != nil && !p.tree.private() {
		_ = b.witness.tell(Change{Kind: ChangeMade, Tree: p.tree.number, Path: p.rel()})
	}
}

// linked reports that a place is another name of the file at a path.
func (b *broker) linked(from string, to *place) {
	t := b.treeOf(from)
	if b.witness == nil || to.tree.private() {
		return
	}
	if t == nil || t.private() || !plainPath(t.rel(from)) {
		b.made(to)
		return
	}
	_ = b.witness.tell(Change{Kind: ChangeLinked, Tree: t.number, Path: t.rel(from), ToTree: to.tree.number, To: to.rel()})
}

// moved reports a rename. Between private trees and others there is none: they are different mounts.
func (b *broker) moved(from, to *place, exchange bool) {
	if b.witness == nil || from.tree.private() || to.tree.private() {
		return
	}
	c := Change{Kind: ChangeMoved, Tree: from.tree.number, Path: from.rel(), ToTree: to.tree.number, To: to.rel()}
	if exchange {
		c.Kind = ChangeExchanged
	}
	_ = b.witness.tell(c)
}

// replaced reports that a file of the broker's own is about to get a name in a directory, which may have another file of
// that name. Call after with how that ended.
func (b *broker) replaced(dir int, base string) (after func(error) error, err error) {
	if b.witness == nil {
		return func(err error) error { return err }, nil
	}
	full, err := b.pathIn(dir, base)
	if err != nil {
		return nil, err
	}
	p := &place{dir: dir, base: base, full: full, tree: b.treeOf(full)}
	if err := b.tellable(p); err != nil {
		return nil, err
	}
	was := p.there()
	if was {
		if err := b.before(ChangeRemoved, p); err != nil {
			return nil, err
		}
	}
	return func(err error) error {
		switch {
		case err == nil:
			b.made(p)
		case was:
			return b.undone(p, err)
		}
		return err
	}, nil
}

// private reports whether a tree has no files of the host.
func (t *tree) private() bool { return t.protected == nil }

// Held returns the files of the host's trees that processes of the box have open for writing, or have mapped so. Their
// contents can change without a report. An empty path stands for files that cannot be named: their path is too long for a
// report, or the name by which they were opened is gone, and they have others. If there are too many, the list has HeldMax of them. What was reported before has
// come to its end.
func (b *broker) Held() []Change {
	b.turn.Lock()
	defer b.turn.Unlock()
	if b.witness != nil {
		_ = b.witness.tell(Change{Kind: ChangeSettled}) // if the host is gone, nobody needs the list
	}
	var list []Change
	seen, known := map[string]bool{}, map[openName]bool{}
	add := func(path string, is *sys.FileStat) {
		t := b.treeOf(path)
		if t == nil || t.private() || path == t.path || len(list) >= HeldMax {
			return
		}
		if is != nil && is.Links == 0 {
			return // nobody finds it any more
		}
		st, err := sys.StatAt(sys.AtCWD, path)
		switch {
		case is != nil && (err != nil || st.Dev != is.Dev || st.Ino != is.Ino), !plainPath(t.rel(path)), err != nil && !errors.Is(err, syscall.ENOENT):
			path = t.path // it has another name, or none that can be told
		case err != nil: // it was removed, and the kernel says so in the name
			return
		}
		if !seen[path] {
			seen[path] = true
			list = append(list, Change{Kind: ChangeContent, Tree: t.number, Path: t.rel(path)})
		}
	}
	processes, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, dir := range processes {
		if dir == "/proc/"+strconv.Itoa(os.Getpid()) {
			continue // what the agent writes is complete when its call ends
		}
		if b.heldBy(dir, known, add) {
			continue
		}
		threads, _ := filepath.Glob(dir + "/task/[0-9]*") // of a process whose first thread has ended
		for _, thread := range threads {
			if b.heldBy(thread, known, add) {
				break
			}
		}
	}
	return list
}

// An openName is a file that a process has open, and the name by which it was opened.
type openName struct {
	file inode
	path string
}

// heldBy looks at the descriptors and mappings of a thread. It returns false if the thread has none. What is in known
// is open for writing by another descriptor, so it need not be looked at: each of the processes of a guest kernel has
// thousands of files open, and they are looked at after each step.
func (b *broker) heldBy(dir string, known map[openName]bool, add func(path string, is *sys.FileStat)) bool {
	fds, err := os.Open(dir + "/fd")
	if err != nil {
		return false // it ended
	}
	defer fds.Close()
	names, err := fds.Readdirnames(-1)
	if err != nil {
		return false
	}
	infos, err := sys.OpenDirAt(sys.AtCWD, dir+"/fdinfo")
	if err != nil {
		return false
	}
	defer sys.Close(infos)
	var buf [1024]byte
	for _, fd := range names {
		path, unnamed := sys.ReadLinkAt(int(fds.Fd()), fd)
		if errors.Is(unnamed, syscall.ENOENT) || unnamed == nil && b.treeOf(path) == nil {
			continue
		}
		st, err := sys.TargetAt(int(fds.Fd()), fd) // the file itself, whatever its path says
		if err != nil {
			continue // it was closed
		}
		name := openName{inode{st.Dev, st.Ino}, path}
		if unnamed == nil && known[name] || !openForWriting(infos, fd, buf[:]) {
			continue
		}
		if unnamed != nil { // the kernel gives no path that is too long
			t := b.treeWith(st.Dev)
			if t == nil || !isPlain(st) {
				continue
			}
			path = t.path + "/" + unnameable
		}
		known[name] = true
		add(path, &st)
	}
	maps, _ := os.ReadFile(dir + "/maps") // none of one that ended
	for line := range strings.Lines(string(maps)) {
		if path, ok := sharedMapping(strings.TrimSuffix(line, "\n")); ok {
			add(path, nil)
		}
	}
	return len(names) > 0 || len(maps) > 0
}

// unnameable stands for a path that the kernel does not tell.
const unnameable = ".."

// treeWith returns a reported tree in which a file on a device may be. One on a device of which nothing is known may be in
// any, below a mount.
func (b *broker) treeWith(dev uint64) (some *tree) {
	private := false
	on := func(path string) bool {
		st, err := sys.StatAt(sys.AtCWD, path)
		return err == nil && st.Dev == dev
	}
	for i := range b.trees {
		switch t := &b.trees[i]; {
		case t.private():
			private = private || on(t.path)
		case on(t.path):
			return t
		default:
			some = t
		}
	}
	if private || slices.ContainsFunc(b.writable, on) {
		return nil
	}
	return some
}

// openForWriting reads the text of a descriptor in a directory /proc/PID/fdinfo, the beginning of which has the flags.
func openForWriting(infos int, fd string, buf []byte) bool {
	f, err := sys.OpenAt(infos, fd, syscall.O_RDONLY, 0)
	if err != nil {
		return false // it was closed
	}
	defer sys.Close(f)
	n, err := syscall.Read(f, buf)
	return err == nil && writes(string(buf[:n]))
}

// writes reports whether the text of a file of /proc/PID/fdinfo is of a descriptor that is open for writing.
func writes(info string) bool {
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseUint(strings.TrimSpace(text), 8, 64)
			return err == nil && flags&syscall.O_ACCMODE != syscall.O_RDONLY && flags&uint64(sys.OpenPathOnly) == 0
		}
	}
	return false
}

// sharedMapping returns the file of a line of /proc/PID/maps if what is written to the mapping is written to the file. One
// that may only be read can become one that may be written.
func sharedMapping(line string) (path string, ok bool) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) != 6 || len(fields[1]) != 4 || fields[1][3] != 's' {
		return "", false
	}
	path = strings.TrimLeft(fields[5], " ")
	return strings.ReplaceAll(path, `\012`, "\n"), strings.HasPrefix(path, "/")
}
