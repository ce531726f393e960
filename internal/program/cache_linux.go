package program

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// Open returns an executable file of the program: a file of the cache, or else a sealed copy in
// memory. An empty cache is no cache.
//
// A box that obtained its init's executable must not be able to change the program of the next box.
// Its commands cannot open the file (the agent is not dumpable), and no box may change the cache.
// Before its use the file is checked to belong to the caller alone.
func (p Program) Open(cache string) (*os.File, error) {
	content := p.content
	switch {
	case p.absent:
		return nil, p.missing()
	case p.file != nil:
		return p.reopen()
	case p.data == nil:
		content = func() ([]byte, error) { return os.ReadFile("/proc/self/exe") }
	case cache != "":
		if f, err := p.cached(cache); err == nil {
			return kernel.HighFile(f)
		}
		// It is only faster.
	}
	data, err := content()
	if err != nil {
		return nil, fmt.Errorf("read this program: %w", err)
	}
	f, err := kernel.SealedFile("paddock-guest", data)
	if err != nil {
		return nil, err
	}
	return kernel.HighFile(f)
}

// reopen opens what was handed on, of which each caller gets a file of its own.
func (p Program) reopen() (*os.File, error) {
	fd, err := syscall.Open(fmt.Sprintf("/proc/self/fd/%d", p.file.Fd()), syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the program %s: %w", p.Name, err)
	}
	return kernel.HighFile(os.NewFile(uintptr(fd), p.file.Name()))
}

// OpenToMount is Open for a program that is only mounted, read-only. For the calling program it may
// return that program's own file, if the file still exists.
func (p Program) OpenToMount(cache string) (*os.File, error) {
	if p.Self() {
		if path, err := filepath.EvalSymlinks("/proc/self/exe"); err == nil {
			if f, err := os.Open(path); err == nil {
				return kernel.HighFile(f)
			}
		}
	}
	return p.Open(cache)
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
	name := p.cacheName()
	dir, err := os.OpenRoot(cache)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.MkdirAll(cache, 0o700); err == nil { //nolint:gosec // the caller's own directory
			dir, err = os.OpenRoot(cache)
		}
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if st, err := dir.Stat("."); err != nil || !kernel.Owned(st, 0o022) {
		return nil, fs.ErrPermission
	}
	f, err := p.openIn(dir, name)
	if err == nil {
		return f, nil
	}
	if err := p.write(dir, name); err != nil {
		return nil, err
	}
	return p.openIn(dir, name)
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

func (p Program) openIn(dir *os.Root, name string) (*os.File, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || !kernel.Owned(st, 0o222) || st.Size() != p.size() || !executable(f) || !p.whole(f) {
		f.Close()
		return nil, errors.Join(err, fs.ErrPermission)
	}
	return f, nil
}

// whole tells whether a file holds a program's beginning, middle and end. A
// machine that lost power while the file was new may have kept its length only.
// Of a compressed one it would take long to find out; what is asked for is
// that nothing at its end is missing.
func (p Program) whole(f *os.File) bool {
	const piece = 4096
	if p.gzip {
		end := make([]byte, piece)
		_, err := f.ReadAt(end, max(p.size()-piece, 0))
		return err == nil && !bytes.Equal(end, make([]byte, piece))
	}
	program := p.data
	buf := make([]byte, piece)
	for _, at := range []int{0, len(program) / 2, max(len(program)-piece, 0)} {
		n, err := f.ReadAt(buf, int64(at))
		if err != nil && err != io.EOF || !bytes.Equal(buf[:n], program[at:min(at+piece, len(program))]) {
			return false
		}
	}
	return true
}

// executable tells whether the file system lets programs be executed.
func executable(f *os.File) bool {
	info, err := kernel.FileSystemOf(f)
	return err == nil && info.Flags&syscall.MS_NOEXEC == 0
}

// write makes the file in one step, and removes those of other
// versions; boxes that run go on with theirs.
func (p Program) write(dir *os.Root, name string) error {
	program, err := p.content()
	if err != nil {
		return err
	}
	tmp := fmt.Sprintf("new-%s-%d", p.Name, os.Getpid())
	f, err := dir.OpenFile(tmp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = f.Write(program)
	// The box's user executes it, which for a root caller is nobody.
	err = errors.Join(err, f.Chmod(0o555), f.Sync(), f.Close())
	if err == nil {
		err = dir.Rename(tmp, name)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(tmp))
	}
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), p.Name+"-") && e.Name() != name {
			_ = dir.Remove(e.Name()) // another process may have done it
		}
	}
	return nil
}
