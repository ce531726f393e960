package kernel

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SeekData gives where, from at on, a file has bytes that are not in a hole; its
// size where there are none. On a file system without holes that is at.
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
