package sys

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SeekData returns the offset of the first byte from at on that is not in a hole, or the file's
// size if there is none. On a file system without holes it returns at.
func SeekData(f *os.File, at int64) (int64, error) {
	next, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, syscall.ENXIO):
		st, err := f.Stat()
		if err != nil {
			return 0, err
		}
		return st.Size(), nil
	case errors.Is(err, syscall.EINVAL):
		return at, nil
	case err != nil:
		return 0, os.NewSyscallError("lseek", err)
	}
	return next, nil
}
