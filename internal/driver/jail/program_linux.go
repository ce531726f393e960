package jail

import (
	"bytes"
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

func defaultCache(env environ) string {
	if os.Geteuid() == 0 {
		return "/var/cache/paddock"
	}
	if dir := env["XDG_CACHE_HOME"]; filepath.IsAbs(dir) {
		return filepath.Join(dir, "paddock")
	}
	if home := env["HOME"]; filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "paddock")
	}
	return ""
}

// own gives the real places of what this driver's sandboxes are made of.
func (d *Driver) own() []string {
	var list []string
	for _, path := range []string{d.cache, d.state, "/proc/self/exe"} {
		if path == "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			list = append(list, real)
		} else if filepath.IsAbs(path) {
			list = append(list, filepath.Clean(path)) // not there yet
		}
	}
	return list
}

// guestProgram gives what is executed as the guest: a file of the cache that
// holds the embedded program, or else a copy in memory that is sealed.
//
// A box that got hold of its init's executable must not be able to change what
// the next box is made of. Its commands cannot open it (the agent is not
// dumpable), no box may change the cache (see ownFiles), and the file is checked
// to be nobody's but the caller's before it is used.
func guestProgram(cache string, embedded []byte) (*os.File, error) {
	if embedded == nil {
		var err error
		if embedded, err = os.ReadFile("/proc/self/exe"); err != nil {
			return nil, fmt.Errorf("read this program: %w", err)
		}
	} else if cache != "" {
		if f, err := cached(cache, embedded); err == nil {
			return kernel.HighFile(f)
		}
		// It is only faster.
	}
	f, err := kernel.SealedFile("paddock-guest", embedded)
	if err != nil {
		return nil, err
	}
	return kernel.HighFile(f)
}

// cached opens the program's file in the cache, which it makes if need be.
func cached(cache string, embedded []byte) (*os.File, error) {
	name := cacheName(embedded)
	dir, err := os.OpenRoot(cache)
	if errors.Is(err, fs.ErrNotExist) {
		if err = ownDirectory(cache); err == nil {
			dir, err = os.OpenRoot(cache)
		}
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if st, err := dir.Stat("."); err != nil || !ours(st, 0o022) {
		return nil, fs.ErrPermission
	}
	f, err := openProgram(dir, name, embedded)
	if err == nil {
		return f, nil
	}
	if err := writeProgram(dir, name, embedded); err != nil {
		return nil, err
	}
	return openProgram(dir, name, embedded)
}

// cacheName tells programs apart: by the identity that the linker gave them,
// which is near the beginning, and by their length.
func cacheName(program []byte) string {
	return fmt.Sprintf("guest-%08x-%d", crc32.ChecksumIEEE(program[:min(len(program), 8192)]), len(program))
}

func ours(st os.FileInfo, forbidden os.FileMode) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && sys.Uid == uint32(os.Geteuid()) && st.Mode().Perm()&forbidden == 0
}

func openProgram(dir *os.Root, name string, program []byte) (*os.File, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || !ours(st, 0o222) || st.Size() != int64(len(program)) || !executable(f) || !whole(f, program) {
		f.Close()
		return nil, errors.Join(err, fs.ErrPermission)
	}
	return f, nil
}

// whole tells whether a file holds a program's beginning, middle and end. A
// machine that lost power while the file was new may have kept its length only.
func whole(f *os.File, program []byte) bool {
	const piece = 4096
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

// writeProgram makes the file in one step, and removes those of other
// versions; boxes that run go on with theirs.
func writeProgram(dir *os.Root, name string, program []byte) error {
	tmp := fmt.Sprintf("new-%d", os.Getpid())
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
		if strings.HasPrefix(e.Name(), "guest-") && e.Name() != name {
			_ = dir.Remove(e.Name()) // another process may have done it
		}
	}
	return nil
}
