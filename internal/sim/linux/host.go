package linux

import (
	"errors"
	"runtime"
	"syscall"
)

// FromHost returns the number for an error of the host. It returns EIO and
// false for an error without a counterpart.
func FromHost(err error) (Errno, bool) {
	var own Errno
	if errors.As(err, &own) {
		return own, true
	}
	var host syscall.Errno
	if errors.As(err, &host) {
		if runtime.GOOS == "linux" {
			return Errno(host), true
		}
		for _, p := range hostErrnos() {
			if p.host == host {
				return p.own, true
			}
		}
	}
	return EIO, false
}

type hostErrno struct {
	host syscall.Errno
	own  Errno
}

func hostErrnos() []hostErrno {
	return []hostErrno{
		{syscall.E2BIG, E2BIG},
		{syscall.EACCES, EACCES},
		{syscall.EADDRINUSE, EADDRINUSE},
		{syscall.EADDRNOTAVAIL, EADDRNOTAVAIL},
		{syscall.EAFNOSUPPORT, EAFNOSUPPORT},
		{syscall.EAGAIN, EAGAIN},
		{syscall.EBADF, EBADF},
		{syscall.EBUSY, EBUSY},
		{syscall.ECANCELED, ECANCELED},
		{syscall.ECHILD, ECHILD},
		{syscall.ECONNABORTED, ECONNABORTED},
		{syscall.ECONNREFUSED, ECONNREFUSED},
		{syscall.ECONNRESET, ECONNRESET},
		{syscall.EDEADLK, EDEADLK},
		{syscall.EDOM, EDOM},
		{syscall.EDQUOT, EDQUOT},
		{syscall.EEXIST, EEXIST},
		{syscall.EFAULT, EFAULT},
		{syscall.EFBIG, EFBIG},
		{syscall.EHOSTDOWN, EHOSTDOWN},
		{syscall.EHOSTUNREACH, EHOSTUNREACH},
		{syscall.EILSEQ, EILSEQ},
		{syscall.EINPROGRESS, EINPROGRESS},
		{syscall.EINTR, EINTR},
		{syscall.EINVAL, EINVAL},
		{syscall.EIO, EIO},
		{syscall.EISCONN, EISCONN},
		{syscall.EISDIR, EISDIR},
		{syscall.ELOOP, ELOOP},
		{syscall.EMFILE, EMFILE},
		{syscall.EMLINK, EMLINK},
		{syscall.EMSGSIZE, EMSGSIZE},
		{syscall.ENAMETOOLONG, ENAMETOOLONG},
		{syscall.ENETDOWN, ENETDOWN},
		{syscall.ENETRESET, ENETRESET},
		{syscall.ENETUNREACH, ENETUNREACH},
		{syscall.ENFILE, ENFILE},
		{syscall.ENOBUFS, ENOBUFS},
		{syscall.ENODEV, ENODEV},
		{syscall.ENOENT, ENOENT},
		{syscall.ENOEXEC, ENOEXEC},
		{syscall.ENOLCK, ENOLCK},
		{syscall.ENOMEM, ENOMEM},
		{syscall.ENOPROTOOPT, ENOPROTOOPT},
		{syscall.ENOSPC, ENOSPC},
		{syscall.ENOSYS, ENOSYS},
		{syscall.ENOTCONN, ENOTCONN},
		{syscall.ENOTDIR, ENOTDIR},
		{syscall.ENOTEMPTY, ENOTEMPTY},
		{syscall.ENOTSOCK, ENOTSOCK},
		{syscall.ENOTTY, ENOTTY},
		{syscall.ENXIO, ENXIO},
		{syscall.EOPNOTSUPP, EOPNOTSUPP},
		{syscall.EOVERFLOW, EOVERFLOW},
		{syscall.EPERM, EPERM},
		{syscall.EPIPE, EPIPE},
		{syscall.EPROTO, EPROTO},
		{syscall.EPROTONOSUPPORT, EPROTONOSUPPORT},
		{syscall.EPROTOTYPE, EPROTOTYPE},
		{syscall.ERANGE, ERANGE},
		{syscall.EROFS, EROFS},
		{syscall.ESPIPE, ESPIPE},
		{syscall.ESRCH, ESRCH},
		{syscall.ESTALE, ESTALE},
		{syscall.ETIMEDOUT, ETIMEDOUT},
		{syscall.EXDEV, EXDEV},
	}
}
