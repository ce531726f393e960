package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// Files here are control files of the kernel. They are read and written with
// plain system calls: package os would offer each to the poller, which doubles
// the cost of the dozen writes that a start needs.

// again repeats a call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func openFile(name string, flags int) (fd int, err error) {
	err = again(func() error {
		fd, err = syscall.Open(name, flags|syscall.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// writeFile writes value to an existing control file in one write, as the
// kernel wants it.
func writeFile(name, value string) error {
	fd, err := openFile(name, syscall.O_WRONLY|syscall.O_TRUNC)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	err = again(func() error {
		_, err := syscall.Write(fd, []byte(value))
		return err
	})
	if err != nil {
		return fmt.Errorf("write %q to %s: %w", value, name, err)
	}
	return nil
}

// readFile reads a file of at most limit bytes; a longer one is an error.
func readFile(name string, limit int) ([]byte, error) {
	fd, err := openFile(name, syscall.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	b := make([]byte, 0, min(limit, 4096))
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		var n int
		err := again(func() error {
			n, err = syscall.Read(fd, b[len(b):cap(b)])
			return err
		})
		if err != nil {
			return nil, &fs.PathError{Op: "read", Path: name, Err: err}
		}
		b = b[:len(b)+n]
		if len(b) > limit {
			return nil, fmt.Errorf("read %s: more than %d bytes: %w", name, limit, errMalformed)
		}
		if n == 0 {
			return b, nil
		}
	}
}

const (
	small = 64 << 10 // more than any control file of one group
	large = 32 << 20 // more than four million process numbers
)

// readCount reads a file of one number.
func readCount(name string) (int64, error) {
	b, err := readFile(name, small)
	if err != nil {
		return 0, err
	}
	v, err := parseCount(b)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return v, nil
}

// readKey reads the number after a key in a flat keyed file.
func readKey(name, key string) (int64, error) {
	b, err := readFile(name, small)
	if err != nil {
		return 0, err
	}
	v, ok := parseKey(b, key)
	if !ok {
		return 0, fmt.Errorf("read %s of %s: %w", key, name, errMalformed)
	}
	return v, nil
}

// exists tells whether a file is there.
func exists(name string) bool {
	var st syscall.Stat_t
	return again(func() error { return syscall.Lstat(name, &st) }) == nil
}

// permitted asks whether we, with our effective identity, may write.
func permitted(name string, dir bool) error {
	const (
		atFDCWD   = -0x64
		atEAccess = 0x200
		execute   = 1
		write     = 2
	)
	mode := uint32(write)
	if dir {
		mode |= execute
	}
	return again(func() error { return syscall.Faccessat(atFDCWD, name, mode, atEAccess) })
}

// gone tells that a file or the group it was in is not there any more.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}

// classify gives the kind of a failed file operation.
func classify(err error) error {
	var k paddock.Kind
	switch {
	case err == nil:
		return nil
	case errors.As(err, &k):
		return err
	case gone(err):
		k = paddock.NotFound
	case errors.Is(err, fs.ErrExist):
		k = paddock.Exists
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		k = paddock.Denied
	case errors.Is(err, syscall.EBUSY):
		k = paddock.Conflict
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.ENOMEM), errors.Is(err, syscall.ENOSPC):
		k = paddock.Exhausted
	default:
		return err
	}
	return fmt.Errorf("%w: %w", k, err)
}

// A tree makes and removes directories of a hierarchy. The kernel's is the
// only real one; a test has one that behaves like a version 2 hierarchy with
// controllers where the host has none.
type tree struct {
	mkdir func(dir string) error
	rmdir func(dir string) error
}

func kernelTree() tree {
	return tree{
		mkdir: func(dir string) error {
			if err := again(func() error { return syscall.Mkdir(dir, 0o755) }); err != nil {
				return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
			}
			return nil
		},
		rmdir: func(dir string) error {
			if err := again(func() error { return syscall.Rmdir(dir) }); err != nil {
				return &fs.PathError{Op: "rmdir", Path: dir, Err: err}
			}
			return nil
		},
	}
}

// children lists the groups directly below dir.
func children(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
