package program

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Open returns an executable file of the program: a file of the cache, or else a sealed copy in
// memory. An empty cache is no cache. Whoever does not execute the file at once calls [Intact] before.
//
// A box that obtained its init's executable must not be able to change the program of the next box.
// Its commands cannot open the file (the agent is not dumpable), and no box may change the cache. But
// the init of an ordinary caller's box, if somebody took it over, can: by the name of its executable
// in /proc, because the caller owns the file. So before each use the file is checked to belong to the
// caller alone and to be unchanged, and a lease tells whether somebody opens it for writing until it
// is executed. From then on the kernel lets nobody write it.
func (p Program) Open(cache string) (*os.File, error) {
	content := p.content
	switch {
	case p.absent:
		return nil, p.missing()
	case p.source != nil:
		return p.source.Open()
	case p.data == nil:
		content = func() ([]byte, error) { return os.ReadFile("/proc/self/exe") }
	case cache != "":
		if f, err := p.cached(cache); err == nil {
			return sys.HighFile(f)
		}
		// It is only faster.
	}
	data, err := content()
	if err != nil {
		return nil, fmt.Errorf("read this program: %w", err)
	}
	f, err := sys.SealedFile("paddock-guest", data)
	if err != nil {
		return nil, err
	}
	return sys.HighFile(f)
}

// OpenToMount is Open for a program that is only mounted, read-only, and that no box has as its init: then
// no box can write its file. For the calling program it may return that program's own file, if the file
// still exists.
func (p Program) OpenToMount(cache string) (*os.File, error) {
	if p.Self() {
		if path, err := filepath.EvalSymlinks("/proc/self/exe"); err == nil {
			if f, err := os.Open(path); err == nil {
				return sys.HighFile(f)
			}
		}
	}
	f, err := p.Open(cache)
	if err == nil {
		_ = sys.EndLease(f) // it has none, or nobody needs it: no box can name the file through another mount
	}
	return f, err
}

// content gives the program itself.
func (p Program) content() ([]byte, error) {
	if !p.gzip {
		return p.data, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(p.data))
	if err != nil {
		return nil, err
	}
	data := bytes.NewBuffer(make([]byte, 0, p.size()+bytes.MinRead))
	_, err = data.ReadFrom(r)
	return data.Bytes(), err
}

// size is how long the program is, in bytes: what gzip keeps it modulo 2^32.
func (p Program) size() int64 {
	if !p.gzip {
		return int64(len(p.data))
	}
	return int64(binary.LittleEndian.Uint32(p.data[len(p.data)-4:]))
}

// cached opens the program's file in the cache, which it makes if need be.
func (p Program) cached(cache string) (*os.File, error) {
	c, err := openCache(cache)
	if err != nil {
		return nil, err
	}
	defer c.close()
	name := p.cacheName()
	if f, err := c.open(p, name); err == nil {
		return f, nil
	}
	if err := c.write(p, name); err != nil {
		return nil, err
	}
	return c.open(p, name)
}

// cacheName tells programs apart: by the identity that the linker gave them,
// which is near the beginning, and by their length. Of what is compressed, the
// beginning depends on that, and the sum at the end on everything.
func (p Program) cacheName() string {
	sum := crc32.ChecksumIEEE(p.data[:min(len(p.data), 8192)])
	if p.gzip {
		sum = binary.LittleEndian.Uint32(p.data[len(p.data)-8:])
	}
	return fmt.Sprintf("%s-%08x-%d", p.Name, sum, len(p.data))
}

// whole tells whether a file holds a program's beginning, middle and end. Of what is
// compressed, the name tells.
func (p Program) whole(f *os.File) bool {
	const piece = 4096
	if p.gzip {
		return true
	}
	buf := make([]byte, piece)
	for _, at := range []int{0, len(p.data) / 2, max(len(p.data)-piece, 0)} {
		n, err := f.ReadAt(buf, int64(at))
		if err != nil && err != io.EOF || !bytes.Equal(buf[:n], p.data[at:min(at+piece, len(p.data))]) {
			return false
		}
	}
	return true
}

// A cacheDir is a cache that belongs to the caller alone.
//
// That is not enough to execute what is in it. What is the cache now may have been a
// sandbox's to write before, which was made by another user or in another environment;
// or it came out of an archive, and a project sets XDG_CACHE_HOME. So the directory has
// an extended attribute for each file that was written here: the file's inode, and when
// it was changed last. No sandbox can set attributes of the host's files, no archive
// knows an inode, and nobody can choose when a file was changed.
type cacheDir struct {
	root *os.Root
	dir  *os.File // the same
}

func openCache(path string) (c cacheDir, err error) {
	c.root, err = os.OpenRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(path, 0o700); err == nil { //nolint:gosec // the caller's own directory
			c.root, err = os.OpenRoot(path)
		}
	}
	if err != nil {
		return c, err
	}
	if c.dir, err = c.root.Open("."); err != nil {
		return c, errors.Join(err, c.root.Close())
	}
	st, err := c.dir.Stat()
	if err == nil && !sys.Owned(st, 0o022) {
		err = fs.ErrPermission
	}
	if err == nil {
		var system sys.FSInfo
		if system, err = sys.FileSystemOf(c.dir); err == nil && system.Flags&syscall.MS_NOEXEC != 0 {
			err = fs.ErrPermission
		}
	}
	if err != nil {
		c.close()
	}
	return c, err
}

func (c *cacheDir) close() {
	c.dir.Close()
	_ = c.root.Close() // it was only looked at
}

// open opens the file of a program, which was written here and not changed since.
func (c *cacheDir) open(p Program, name string) (*os.File, error) {
	f, err := c.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	err = sys.Lease(f) // before the look, so that nobody writes after it
	var st fs.FileInfo
	if err == nil {
		st, err = f.Stat()
	}
	if err == nil && st.Mode().IsRegular() && sys.Owned(st, 0o222) && st.Size() == p.size() {
		if mark, err := sys.Attribute(c.dir, markPrefix+name); err == nil && mark == markOf(st) && p.whole(f) {
			return f, nil
		}
	}
	f.Close()
	return nil, errors.Join(err, fs.ErrPermission)
}

const (
	// markPrefix begins the name of the attribute for a file.
	markPrefix = "user.paddock."

	// newPrefix begins the name of a file that is being written.
	newPrefix = "new-"

	// maxVersions is how many files are kept of one program: that of this build, and
	// of others that are used beside it.
	maxVersions = 3
)

// markOf says which file this is, and that nobody has changed it.
func markOf(st fs.FileInfo) string {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d %d.%09d", sys.Ino, sys.Ctim.Sec, sys.Ctim.Nsec)
}

// write makes the file in one step. One process writes at a time, and others do without
// the cache meanwhile.
func (c *cacheDir) write(p Program, name string) error {
	if err := syscall.Flock(int(c.dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock the cache: %w", err)
	}
	if err := c.tidy(p, name); err != nil {
		return err
	}
	tmp := newPrefix + rand.Text()
	err := c.begin(tmp, name)
	var program []byte
	if err == nil {
		program, err = p.content()
	}
	if err == nil {
		err = c.fill(tmp, program)
	}
	if err == nil {
		err = c.settle(tmp, name, program)
	}
	if err != nil {
		err = errors.Join(err, c.root.RemoveAll(tmp), c.root.RemoveAll(name))
	}
	return err
}

// begin makes an empty file, and finds out whether the file system can do what settle
// needs, before anything large is written.
func (c *cacheDir) begin(tmp, name string) error {
	f, err := c.root.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o700)
	if err != nil {
		return err
	}
	defer f.Close()
	alone, err := sys.Unwritten(f)
	if err == nil {
		err = alone()
	}
	if err == nil {
		err = sys.SetAttribute(c.dir, markPrefix+name, "")
	}
	return err
}

// fill writes the file.
func (c *cacheDir) fill(tmp string, program []byte) error {
	// A process that is being forked meanwhile would have the file open for writing,
	// which then could not be executed for a moment.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	f, err := c.root.OpenFile(tmp, os.O_WRONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(program)
	// The box's user executes it, which for a root caller is nobody.
	return errors.Join(err, f.Chmod(0o555), f.Sync(), f.Close())
}

// settle gives the file its name and its mark. A sandbox that can write to the directory
// may have the file open: so the kernel is asked that nobody has, and it is read again.
func (c *cacheDir) settle(tmp, name string, program []byte) error {
	f, err := c.root.OpenFile(tmp, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	alone, err := sys.Unwritten(f)
	if err != nil {
		return err
	}
	written, err := io.ReadAll(io.LimitReader(f, int64(len(program))+1))
	if err != nil || !bytes.Equal(written, program) {
		return errors.Join(err, fs.ErrPermission)
	}
	if err := c.root.Rename(tmp, name); err != nil {
		return err
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if err := sys.SetAttribute(c.dir, markPrefix+name, markOf(st)); err != nil {
		return err
	}
	return alone()
}

// tidy removes what writers have left that were killed, and the oldest files of other
// versions; boxes that run go on with theirs.
func (c *cacheDir) tidy(p Program, name string) error {
	entries, err := c.dir.ReadDir(-1)
	if err != nil {
		return err
	}
	type version struct {
		name string
		made time.Time
	}
	var others []version
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name(), newPrefix):
			_ = c.root.Remove(e.Name()) // or the next one does
		case strings.HasPrefix(e.Name(), p.Name+"-") && e.Name() != name:
			if st, err := e.Info(); err == nil {
				others = append(others, version{e.Name(), st.ModTime()})
			}
		}
	}
	slices.SortFunc(others, func(a, b version) int { return b.made.Compare(a.made) })
	for _, v := range others[min(len(others), maxVersions-1):] {
		_ = c.root.Remove(v.name) // likewise
		_ = sys.RemoveAttribute(c.dir, markPrefix+v.name)
	}
	return nil
}
