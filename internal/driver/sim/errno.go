package sim

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
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
	errno, ok := linux.FromHost(err)
	var limit *budget.Exceeded
	if errors.As(err, &kind) {
		return kind, err.Error()
	}
	if errors.As(err, &limit) {
		return paddock.Exhausted, err.Error()
	}
	var of *fs.PathError
	switch {
	case ok:
	case errors.As(err, &of): // what a directory of the host refuses, not its kernel
		return paddock.Denied, "leads out of the mount: " + of.Err.Error()
	default:
		return paddock.Internal, err.Error()
	}
	switch errno {
	case linux.ENOSPC:
		return paddock.Exhausted, "the disk is full"
	case linux.EFBIG:
		return paddock.Exhausted, "the file would be larger than is allowed"
	case linux.EMFILE, linux.ENOMEM, linux.EMLINK:
		return paddock.Exhausted, vfs.Message(err)
	case linux.ENOENT:
		return paddock.NotFound, "does not exist"
	case linux.EEXIST:
		return paddock.Exists, "is already there"
	case linux.EACCES, linux.EPERM:
		return paddock.Denied, vfs.Message(err)
	case linux.EROFS:
		return paddock.Denied, "is on a read-only file system"
	case linux.EISDIR:
		return paddock.Invalid, "is a directory"
	case linux.ENOTDIR:
		return paddock.Invalid, "is not a directory, or goes through something that is not one"
	case linux.ENAMETOOLONG:
		return paddock.Invalid, "the name is too long"
	case linux.ELOOP:
		return paddock.Invalid, "too many links, one after another"
	case linux.EXDEV:
		return paddock.Invalid, "the new name is on another file system: copy it there, then remove it"
	case linux.EINVAL, linux.ENXIO:
		return paddock.Invalid, vfs.Message(err)
	case linux.ENOTEMPTY:
		return paddock.Conflict, "the directory is not empty"
	case linux.EBUSY:
		return paddock.Conflict, vfs.Message(err)
	}
	return paddock.Internal, vfs.Message(err)
}
