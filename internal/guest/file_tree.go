package guest

import (
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// maxOpen bounds the descriptors that a walk through a tree holds. Directories
// above those are reopened by "..", and recognised by their inode.
const maxOpen = 32

// A tree is a way down into directories, of any depth, through no link.
type tree struct {
	levels []level
}

type level struct {
	base     string   // name in the directory above
	dir      int      // O_PATH; -1 while it is given up
	dev, ino uint64   // which directory it is
	todo     []string // directories in it that are still to be visited

	err    error // clear: why something in it stays
	rounds int   // clear: how often it was found not empty
}

// fail keeps the first error.
func (l *level) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

func (t *tree) top() *level { return &t.levels[len(t.levels)-1] }

// enter goes down into base of dir.
func (t *tree) enter(dir int, base string) error {
	fd, err := sys.OpenDirAt(dir, base)
	if err != nil {
		return err
	}
	st, err := sys.StatAt(fd, "")
	if err != nil {
		syscall.Close(fd)
		return err
	}
	t.levels = append(t.levels, level{base: base, dir: fd, dev: st.Dev, ino: st.Ino})
	if i := len(t.levels) - 1 - maxOpen; i > 0 { // the first level stays open
		syscall.Close(t.levels[i].dir)
		t.levels[i].dir = -1
	}
	return nil
}

// leave goes up again. It gives the level that it left. Where the directory
// was moved away meanwhile, the one above cannot be found any more: then leave
// goes up to the next one that it still holds, and tells with lost.
func (t *tree) leave() (left level, lost bool) {
	left = *t.top()
	defer syscall.Close(left.dir)
	t.levels = t.levels[:len(t.levels)-1]
	if len(t.levels) == 0 || t.top().dir >= 0 {
		return left, false
	}
	up := t.top()
	if fd, err := sys.OpenDirAt(left.dir, ".."); err == nil {
		st, err := sys.StatAt(fd, "")
		if err == nil && st.Dev == up.dev && st.Ino == up.ino {
			up.dir = fd
			return left, false
		}
		syscall.Close(fd)
	}
	for t.top().dir < 0 { // the first level is always held
		t.levels = t.levels[:len(t.levels)-1]
	}
	return left, true
}

func (t *tree) close() {
	for _, l := range t.levels {
		if l.dir >= 0 {
			syscall.Close(l.dir)
		}
	}
	t.levels = nil
}

// each calls do with the names in the directory dir.
func each(dir int, do func(name string) error) error {
	fd, err := sys.OpenAt(dir, ".", syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "directory")
	defer f.Close()
	for {
		names, err := f.Readdirnames(512)
		for _, name := range names {
			if err := do(name); err != nil {
				return err
			}
		}
		if len(names) == 0 {
			if err != nil && !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		}
	}
}

const (
	batchFiles = 256
	batchBytes = 128 << 10
	// longestName bounds the names in a listing. Deeper files exist, but no
	// program can name them.
	longestName = 64 << 10
)

// list sends what the directory name holds, down to depth.
func (f *files) list(name string, depth int, send func([]*guestpb.File) error) error {
	if depth < 1 {
		return invalid("list", name, "the depth is less than 1")
	}
	p, err := f.find(name, search{follow: true})
	if err != nil {
		return failed("list", name, err)
	}
	defer p.close()
	l := listing{files: f, roll: f.names.now(f), depth: depth, send: send, path: []byte(tidy(name))}
	defer l.close()
	if len(l.path) == 1 {
		l.path = nil
	}
	if err := l.enter(p.fd(), p.base); err != nil {
		return failed("list", name, err)
	}
	if err := l.run(); err != nil {
		return err
	}
	return l.flush()
}

type listing struct {
	tree
	files *files
	roll  roll
	depth int
	path  []byte // of the top level
	send  func([]*guestpb.File) error
	batch []*guestpb.File
	bytes int
}

func (l *listing) run() error {
	if err := l.read(); err != nil {
		return err
	}
	for len(l.levels) > 0 {
		top := l.top()
		if len(top.todo) == 0 {
			left, lost := l.leave()
			if lost {
				return &fileError{"list", string(l.path), "it was moved while it was listed", paddock.Conflict}
			}
			if len(l.levels) > 0 {
				l.path = l.path[:len(l.path)-len(left.base)-1]
			}
			continue
		}
		base := top.todo[len(top.todo)-1]
		top.todo = top.todo[:len(top.todo)-1]
		switch err := l.enter(top.dir, base); err {
		case nil:
		case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP:
			continue // it is gone, or no directory any more
		default:
			return failed("list", string(l.path)+"/"+base, err)
		}
		l.path = append(append(l.path, '/'), base...)
		if err := l.read(); err != nil {
			return err
		}
	}
	return nil
}

// read lists the top level.
func (l *listing) read() error {
	top := l.top()
	err := each(top.dir, func(base string) error {
		name := string(l.path) + "/" + base
		if len(name) > longestName {
			return &fileError{"list", name[:64] + "…", "names below it are too long to be listed", paddock.Exhausted}
		}
		file, err := l.files.describe(top.dir, base, name, l.roll)
		switch {
		case err == syscall.ENOENT || err == syscall.EINVAL:
			return nil // it is gone, or a link no more: nothing that stands still
		case err != nil:
			return failed("list", name, err)
		}
		if file.Mode&syscall.S_IFMT == syscall.S_IFDIR && len(l.levels) < l.depth {
			top.todo = append(top.todo, base)
		}
		l.batch = append(l.batch, file)
		l.bytes += len(name) + len(file.Link) + 128
		if len(l.batch) == batchFiles || l.bytes >= batchBytes {
			return l.flush()
		}
		return nil
	})
	if errors.Is(err, syscall.ENOENT) && len(l.levels) > 1 {
		return nil // it is gone
	}
	return failed("list", string(l.path), err)
}

func (l *listing) flush() error {
	if len(l.batch) == 0 {
		return nil
	}
	err := l.send(l.batch)
	l.batch, l.bytes = l.batch[:0], 0
	return err
}

// clear removes the directory at p with all that is in it. It goes on after an
// error and tells the first one. stop is asked before each file.
func (f *files) clear(p place, stop func() error) error {
	c := clearing{files: f, stop: stop, parent: p}
	defer c.close()
	switch err := c.enter(p.fd(), p.base); err {
	case nil:
	case syscall.ENOENT: // another removed it
		return nil
	default:
		return err
	}
	err := c.empty()
	for err == nil && len(c.levels) > 0 {
		top := c.top()
		if n := len(top.todo); n > 0 {
			base := top.todo[n-1]
			top.todo = top.todo[:n-1]
			err = c.down(base)
		} else {
			err = c.up()
		}
	}
	return errors.Join(err, c.failure)
}

type clearing struct {
	tree
	files   *files
	stop    func() error
	parent  place // of the first level
	failure error // why the first level stays
}

// down goes into the directory base.
func (c *clearing) down(base string) error {
	top := c.top()
	switch err := c.enter(top.dir, base); err {
	case nil:
		return c.empty()
	case syscall.ENOENT, syscall.ENOTDIR, syscall.ELOOP:
		// Gone or swapped: when the directory above turns out not to be
		// empty, it is emptied again.
	default:
		top.fail(failed("remove", base, err))
	}
	return nil
}

// up removes the top directory, which has been emptied, and leaves it.
func (c *clearing) up() error {
	left, lost := c.leave()
	parent := c.parent.fd()
	if len(c.levels) > 0 {
		parent = c.top().dir
	}
	var err error
	if lost {
		err = &fileError{"remove", left.base, "it was moved while it was removed", paddock.Conflict}
	} else {
		err = sys.RmdirAt(parent, left.base)
	}
	switch {
	case err == nil, err == syscall.ENOENT:
		return nil
	case (err == syscall.ENOTEMPTY || err == syscall.EEXIST) && left.err == nil && left.rounds < 64:
		// Somebody puts new files there. That cannot go on for ever.
		switch err = c.enter(parent, left.base); err {
		case nil:
			c.top().rounds = left.rounds + 1
			return c.empty()
		case syscall.ENOENT: // its new owner moved or removed it
			return nil
		}
	case left.err != nil:
		err = left.err
	}
	err = failed("remove", left.base, err)
	if len(c.levels) > 0 {
		c.top().fail(err)
	} else {
		c.failure = err
	}
	return nil
}

// empty removes what is not a directory from the top level, and lists what is.
// It fails only when it is stopped.
func (c *clearing) empty() error {
	top := c.top()
	fd, err := sys.OpenDirAt(top.dir, ".")
	if err == syscall.ENOENT {
		return nil // it was removed; one that took its name is found by up
	}
	if err != nil {
		top.fail(failed("remove", top.base, err))
		return nil
	}
	at := newPlace(os.NewFile(uintptr(fd), "directory"), "")
	defer at.close()
	var stopped error
	err = each(top.dir, func(base string) error {
		if stopped = c.stop(); stopped != nil {
			return stopped
		}
		at.base = base
		err := c.files.allow("remove", at)
		if err == nil {
			err = sys.UnlinkAt(top.dir, base)
		} else if errors.Is(err, paddock.NotFound) {
			// A guard cannot name what is in a directory that was removed. It
			// is no excuse for what is still there.
			if _, gone := sys.StatAt(top.dir, base); gone == syscall.ENOENT {
				err = gone
			}
		}
		switch err {
		case nil, syscall.ENOENT:
		case syscall.EISDIR:
			top.todo = append(top.todo, base)
		default:
			top.fail(failed("remove", base, err))
		}
		return nil
	})
	if stopped == nil && err != nil && err != syscall.ENOENT {
		top.fail(failed("remove", top.base, err))
	}
	return stopped
}
