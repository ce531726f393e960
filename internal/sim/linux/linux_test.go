package linux_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

func TestErrorsOfTheHostBecomeThoseOfLinux(t *testing.T) {
	_, err := os.Open(t.TempDir() + "/nosuch")
	for _, row := range []struct {
		err  error
		want linux.Errno
		ok   bool
	}{
		{err, linux.ENOENT, true}, {syscall.EACCES, linux.EACCES, true}, {fmt.Errorf("x: %w", syscall.ELOOP), linux.ELOOP, true},
		{linux.ENOSPC, linux.ENOSPC, true}, {&fs.PathError{Err: linux.EROFS}, linux.EROFS, true}, {errors.New("x"), linux.EIO, false}, {nil, linux.EIO, false},
	} {
		if got, ok := linux.FromHost(row.err); got != row.want || ok != row.ok {
			t.Errorf("%v: %v %v, want %v", row.err, got, ok, row.want)
		}
	}
}

func TestErrorsAreFoundByTheirMeaning(t *testing.T) {
	for _, row := range []struct{ err, is error }{
		{linux.ENOENT, fs.ErrNotExist}, {linux.EEXIST, fs.ErrExist}, {linux.ENOTEMPTY, fs.ErrExist}, {linux.EACCES, fs.ErrPermission}, {linux.EPERM, fs.ErrPermission}, {linux.ENOSYS, errors.ErrUnsupported},
	} {
		if !errors.Is(row.err, row.is) {
			t.Errorf("%v is not %v", row.err, row.is)
		}
	}
	if errors.Is(linux.ENOTDIR, fs.ErrNotExist) {
		t.Error("ENOTDIR is taken for a file that is not there")
	}
}

// On Linux the host's numbers and words are the referee.
func TestNumbersAreThoseOfLinux(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the host has numbers of another system")
	}
	for n := range 140 {
		own, host := linux.Errno(n), syscall.Errno(n)
		if own.Error() != host.Error() || own.Temporary() != host.Temporary() || own.Timeout() != host.Timeout() {
			t.Errorf("error %d: %q, the host says %q", n, own, host)
		}
	}
	for n := range 66 {
		if own, host := linux.Signal(n).String(), syscall.Signal(n).String(); own != host {
			t.Errorf("signal %d: %q, the host says %q", n, own, host)
		}
	}
	for _, row := range [][2]int{
		{linux.O_CREAT, syscall.O_CREAT}, {linux.O_EXCL, syscall.O_EXCL}, {linux.O_TRUNC, syscall.O_TRUNC}, {linux.O_APPEND, syscall.O_APPEND}, {linux.O_NONBLOCK, syscall.O_NONBLOCK},
		{linux.O_DIRECTORY, syscall.O_DIRECTORY}, {linux.O_NOFOLLOW, syscall.O_NOFOLLOW}, {linux.O_CLOEXEC, syscall.O_CLOEXEC}, {linux.O_ACCMODE, syscall.O_ACCMODE},
		{linux.S_IFMT, syscall.S_IFMT}, {linux.S_IFREG, syscall.S_IFREG}, {linux.S_IFDIR, syscall.S_IFDIR}, {linux.S_IFLNK, syscall.S_IFLNK}, {linux.S_IFIFO, syscall.S_IFIFO},
		{linux.S_IFSOCK, syscall.S_IFSOCK}, {linux.S_IFCHR, syscall.S_IFCHR}, {linux.S_IFBLK, syscall.S_IFBLK}, {linux.S_ISUID, syscall.S_ISUID}, {linux.S_ISGID, syscall.S_ISGID}, {linux.S_ISVTX, syscall.S_ISVTX},
	} {
		if row[0] != row[1] {
			t.Errorf("%#o, the host has %#o", row[0], row[1])
		}
	}
}
