package vfs

import (
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// Message returns the words that Unix tools print for an error: those of the C
// library for an Errno, else the error's own.
func Message(err error) string {
	e, ok := linux.FromHost(err)
	if !ok {
		return err.Error()
	}
	switch e {
	case linux.EPERM:
		return "Operation not permitted"
	case linux.ENOENT:
		return "No such file or directory"
	case linux.ESRCH:
		return "No such process"
	case linux.EINTR:
		return "Interrupted system call"
	case linux.EIO:
		return "Input/output error"
	case linux.ENXIO:
		return "No such device or address"
	case linux.E2BIG:
		return "Argument list too long"
	case linux.ENOEXEC:
		return "Exec format error"
	case linux.EBADF:
		return "Bad file descriptor"
	case linux.ECHILD:
		return "No child processes"
	case linux.EAGAIN:
		return "Resource temporarily unavailable"
	case linux.ENOMEM:
		return "Cannot allocate memory"
	case linux.EACCES:
		return "Permission denied"
	case linux.EBUSY:
		return "Device or resource busy"
	case linux.EEXIST:
		return "File exists"
	case linux.EXDEV:
		return "Invalid cross-device link"
	case linux.ENODEV:
		return "No such device"
	case linux.ENOTDIR:
		return "Not a directory"
	case linux.EISDIR:
		return "Is a directory"
	case linux.EINVAL:
		return "Invalid argument"
	case linux.ENFILE:
		return "Too many open files in system"
	case linux.EMFILE:
		return "Too many open files"
	case linux.ENOTTY:
		return "Inappropriate ioctl for device"
	case linux.ETXTBSY:
		return "Text file busy"
	case linux.EFBIG:
		return "File too large"
	case linux.ENOSPC:
		return "No space left on device"
	case linux.ESPIPE:
		return "Illegal seek"
	case linux.EROFS:
		return "Read-only file system"
	case linux.EMLINK:
		return "Too many links"
	case linux.EPIPE:
		return "Broken pipe"
	case linux.ENAMETOOLONG:
		return "File name too long"
	case linux.ENOTEMPTY:
		return "Directory not empty"
	case linux.ELOOP:
		return "Too many levels of symbolic links"
	case linux.ERANGE:
		return "Numerical result out of range"
	case linux.EOVERFLOW:
		return "Value too large for defined data type"
	case linux.ESTALE:
		return "Stale file handle"
	case linux.ECONNRESET:
		return "Connection reset by peer"
	case linux.ENETUNREACH:
		return "Network is unreachable"
	case linux.EHOSTUNREACH:
		return "No route to host"
	case linux.ENOSYS:
		return "Function not implemented"
	case linux.EOPNOTSUPP:
		return "Operation not supported"
	case linux.ETIMEDOUT:
		return "Connection timed out"
	case linux.ECONNREFUSED:
		return "Connection refused"
	}
	words := e.Error() // the same, but for the first letter
	return strings.ToUpper(words[:1]) + words[1:]
}
