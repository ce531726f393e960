package attack

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A watch records, on the host, every change of certain names during a case, even one that
// is undone. A sandbox's own kernel may show changes inside that did not happen, so the
// attacker's view of files does not count there.
type watch struct {
	events *os.File
	fd     int // inotify descriptor
	is     func(name string) bool
	dirs   map[int32]watched
	first  map[string]fileNumber // names that were there at first
	seen   []string
	missed error
	done   chan struct{}

	mu     sync.Mutex
	unread []byte // guarded by mu; events not examined yet
	news   chan struct{}
}

// A watched directory has the name by which it was found, also after it was moved.
type watched struct {
	path string
	made bool // during the case
}

// A fileNumber is that of an inode, and of its file system.
type fileNumber struct{ dev, ino uint64 }

func numberOf(d fs.DirEntry) (fileNumber, error) {
	info, err := d.Info()
	if err != nil {
		return fileNumber{}, err
	}
	st := info.Sys().(*syscall.Stat_t)
	return fileNumber{st.Dev, st.Ino}, nil
}

// errOverflow means that the machine was too busy, and says nothing about the case.
var errOverflow = errors.New("more changed than could be watched")

// changes are the watched events. Times and modes are compared afterwards.
const changes = syscall.IN_CREATE | syscall.IN_MODIFY | syscall.IN_MOVED_FROM | syscall.IN_MOVED_TO | syscall.IN_DELETE

// newWatch watches the names below roots for which is returns true.
func newWatch(is func(name string) bool, roots ...string) (*watch, error) {
	fd, err := syscall.InotifyInit1(syscall.IN_CLOEXEC | syscall.IN_NONBLOCK)
	if err != nil {
		return nil, err
	}
	w := &watch{events: os.NewFile(uintptr(fd), "changes"), fd: fd, is: is, dirs: map[int32]watched{}, first: map[string]fileNumber{}, done: make(chan struct{}), news: make(chan struct{}, 1)}
	for _, root := range roots {
		if err := w.add(root, false); err != nil {
			return nil, errors.Join(err, w.events.Close())
		}
	}
	go w.take()
	go w.look()
	return w, nil
}

// add watches a tree. With news, its present content counts as a change, except what was there at
// first: the directory that was made may have gone, and the former one may be back in its place.
func (w *watch) add(dir string, news bool) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if replaced(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if p != dir && w.is(p) {
			n, err := numberOf(d)
			if replaced(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if !news {
				w.first[p] = n
			} else if n != w.first[p] && !expected(p, foundMask(d)) {
				w.seen = append(w.seen, p+" was made")
			}
		}
		if !d.IsDir() {
			return nil
		}
		n, err := syscall.InotifyAddWatch(w.fd, p, changes|syscall.IN_ONLYDIR|syscall.IN_DONT_FOLLOW)
		if replaced(err) {
			return nil
		}
		if err == nil {
			old, known := w.dirs[int32(n)] // it may be back in its place
			w.dirs[int32(n)] = watched{p, news && (!known || old.made)}
		}
		return err
	})
}

// foundMask is the event of a name that was found in a new directory.
func foundMask(d fs.DirEntry) uint32 {
	if d.IsDir() {
		return syscall.IN_CREATE | syscall.IN_ISDIR
	}
	return syscall.IN_MOVED_TO
}

// expected reports whether a change of what was not there at first is one that git makes in a new repository, and that
// cannot run anything. A configuration comes whole, under another name, and is looked into; it is not written to
// afterwards.
func expected(p string, mask uint32) bool {
	base := filepath.Base(p)
	sample := strings.HasSuffix(base, ".sample") && filepath.Base(filepath.Dir(p)) == "hooks"
	if base != "hooks" && base != "config" && !sample {
		return false
	}
	switch mask & changes {
	case syscall.IN_DELETE:
		return true
	case syscall.IN_MOVED_TO:
		return (sample || base == "config") && ofNewRepository(p)
	case syscall.IN_CREATE, syscall.IN_MODIFY:
		if base == "hooks" {
			return mask&syscall.IN_ISDIR != 0
		}
		_, err := os.Lstat(p)
		return sample && (ofNewRepository(p) || errors.Is(err, fs.ErrNotExist))
	}
	return false
}

// replaced reports that a directory was replaced.
func replaced(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP)
}

// take empties the kernel's queue, which is short, and does nothing else.
func (w *watch) take() {
	defer close(w.news)
	buf := make([]byte, 1<<20)
	for {
		n, err := w.events.Read(buf)
		if err != nil {
			return // stop was called
		}
		w.mu.Lock()
		w.unread = append(w.unread, buf[:n]...)
		w.mu.Unlock()
		select {
		case w.news <- struct{}{}:
		default:
		}
	}
}

// look examines the events.
func (w *watch) look() {
	defer close(w.done)
	for more := true; more; {
		_, more = <-w.news
		w.mu.Lock()
		events := w.unread
		w.unread = nil
		w.mu.Unlock()
		w.parse(events)
	}
}

func (w *watch) parse(b []byte) {
	for len(b) >= syscall.SizeofInotifyEvent {
		number := int32(binary.NativeEndian.Uint32(b))
		mask := binary.NativeEndian.Uint32(b[4:])
		size := syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
		name, _, _ := bytes.Cut(b[syscall.SizeofInotifyEvent:size], []byte{0})
		w.note(number, mask, string(name))
		b = b[size:]
	}
}

func (w *watch) note(number int32, mask uint32, name string) {
	if mask&syscall.IN_Q_OVERFLOW != 0 {
		w.missed = errOverflow
		return
	}
	dir, ok := w.dirs[number]
	if !ok || mask&changes == 0 {
		return
	}
	p := filepath.Join(dir.path, name)
	_, first := w.first[p]
	if w.is(p) && (first && !dir.made || !expected(p, mask)) {
		w.seen = append(w.seen, fmt.Sprintf("%s changed for a while (%#x)", p, mask&changes))
	}
	if mask&syscall.IN_ISDIR != 0 && mask&(syscall.IN_CREATE|syscall.IN_MOVED_TO) != 0 {
		// A moved file is not a new one: a directory with a repository in it may be moved.
		made := mask&syscall.IN_CREATE != 0 || name == ".git"
		if err := w.add(p, made); err != nil {
			w.missed = fmt.Errorf("watch %s: %w", p, err)
		}
	}
}

// stop ends the watch and returns what it saw. With an error there may have been more.
func (w *watch) stop() ([]string, error) {
	const most = 8
	err := w.events.SetReadDeadline(time.Now())
	<-w.done
	// The kernel has queued everything that happened.
	buf := make([]byte, 64<<10)
	for err == nil {
		n, e := syscall.Read(w.fd, buf)
		if e != nil || n <= 0 {
			break
		}
		w.parse(buf[:n])
	}
	if n := len(w.seen) - most; n > 0 {
		w.seen = append(w.seen[:most], fmt.Sprintf("and %d more", n))
	}
	return w.seen, errors.Join(err, w.missed, w.events.Close())
}
