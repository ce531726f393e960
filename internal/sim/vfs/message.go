package vfs

import (
	"errors"
	"strings"
	"syscall"
)

// Message gives the words that Unix tools print for an error: those of the C
// library for an Errno, else the error's own.
func Message(err error) string {
	var e syscall.Errno
	if !errors.As(err, &e) {
		return err.Error()
	}
	switch e {
	case syscall.EPERM:
		return "Operation not permitted"
	case syscall.ENOENT:
		return "No such file or directory"
	case syscall.ESRCH:
		return "No such process"
	case syscall.EINTR:
		return "Interrupted system call"
	case syscall.EIO:
		return "Input/output error"
	case syscall.ENXIO:
		return "No such device or address"
	case syscall.E2BIG:
		return "Argument list too long"
	case syscall.ENOEXEC:
		return "Exec format error"
	case syscall.EBADF:
		return "Bad file descriptor"
	case syscall.ECHILD:
		return "No child processes"
	case syscall.EAGAIN:
		return "Resource temporarily unavailable"
	case syscall.ENOMEM:
		return "Cannot allocate memory"
	case syscall.EACCES:
		return "Permission denied"
	case syscall.EBUSY:
		return "Device or resource busy"
	case syscall.EEXIST:
		return "File exists"
	case syscall.EXDEV:
		return "Invalid cross-device link"
	case syscall.ENODEV:
		return "No such device"
	case syscall.ENOTDIR:
		return "Not a directory"
	case syscall.EISDIR:
		return "Is a directory"
	case syscall.EINVAL:
		return "Invalid argument"
	case syscall.ENFILE:
		return "Too many open files in system"
	case syscall.EMFILE:
		return "Too many open files"
	case syscall.ENOTTY:
		return "Inappropriate ioctl for device"
	case syscall.ETXTBSY:
		return "Text file busy"
	case syscall.EFBIG:
		return "File too large"
	case syscall.ENOSPC:
		return "No space left on device"
	case syscall.ESPIPE:
		return "Illegal seek"
	case syscall.EROFS:
		return "Read-only file system"
	case syscall.EMLINK:
		return "Too many links"
	case syscall.EPIPE:
		return "Broken pipe"
	case syscall.ENAMETOOLONG:
		return "File name too long"
	case syscall.ENOTEMPTY:
		return "Directory not empty"
	case syscall.ELOOP:
		return "Too many levels of symbolic links"
	case syscall.ERANGE:
		return "Numerical result out of range"
	case syscall.EOVERFLOW:
		return "Value too large for defined data type"
	case syscall.ESTALE:
		return "Stale file handle"
	case syscall.ECONNRESET:
		return "Connection reset by peer"
	case syscall.ENETUNREACH:
		return "Network is unreachable"
	case syscall.EHOSTUNREACH:
		return "No route to host"
	case syscall.ENOSYS:
		return "Function not implemented"
	case syscall.EOPNOTSUPP:
		return "Operation not supported"
	case syscall.ETIMEDOUT:
		return "Connection timed out"
	case syscall.ECONNREFUSED:
		return "Connection refused"
	}
	words := e.Error() // the same, but for the first letter
	return strings.ToUpper(words[:1]) + words[1:]
}
