package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// failed says in words what went wrong with a file, with its kind.
func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	kind, words := classify(err)
	return fmt.Errorf("%s %q: %s: %w", op, name, words, kind)
}

func invalid(op, name, words string) error {
	return fmt.Errorf("%s %q: %s: %w", op, name, words, paddock.Invalid)
}

// classify gives the kind of a file's error.
func classify(err error) (paddock.Kind, string) {
	var kind paddock.Kind
	var errno syscall.Errno
	if errors.As(err, &kind) {
		return kind, err.Error()
	}
	var of *fs.PathError
	switch {
	case errors.As(err, &errno):
	case errors.As(err, &of): // what a directory of the host refuses, not its kernel
		return paddock.Denied, "leads out of the mount: " + of.Err.Error()
	default:
		return paddock.Internal, err.Error()
	}
	switch errno {
	case syscall.ENOSPC:
		return paddock.Exhausted, "the disk is full"
	case syscall.EFBIG:
		return paddock.Exhausted, "the file would be larger than is allowed"
	case syscall.EMFILE, syscall.ENOMEM, syscall.EMLINK:
		return paddock.Exhausted, vfs.Message(err)
	case syscall.ENOENT:
		return paddock.NotFound, "does not exist"
	case syscall.EEXIST:
		return paddock.Exists, "is already there"
	case syscall.EACCES, syscall.EPERM:
		return paddock.Denied, vfs.Message(err)
	case syscall.EROFS:
		return paddock.Denied, "is on a read-only file system"
	case syscall.EISDIR:
		return paddock.Invalid, "is a directory"
	case syscall.ENOTDIR:
		return paddock.Invalid, "is not a directory, or goes through something that is not one"
	case syscall.ENAMETOOLONG:
		return paddock.Invalid, "the name is too long"
	case syscall.ELOOP:
		return paddock.Invalid, "too many links, one after another"
	case syscall.EXDEV:
		return paddock.Invalid, "the new name is on another file system: copy it there, then remove it"
	case syscall.EINVAL, syscall.ENXIO:
		return paddock.Invalid, vfs.Message(err)
	case syscall.ENOTEMPTY:
		return paddock.Conflict, "the directory is not empty"
	case syscall.EBUSY:
		return paddock.Conflict, vfs.Message(err)
	}
	return paddock.Internal, vfs.Message(err)
}
