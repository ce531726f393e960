package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// Space returns how many bytes an unprivileged user can still write to the file system of path, and
// the size of the file system.
func Space(path string) (free, total int64, err error) {
	var st unix.Statfs_t
	if err := again(func() error { return unix.Statfs(path, &st) }); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	unit := st.Frsize
	if unit == 0 {
		unit = st.Bsize
	}
	return int64(st.Bavail) * unit, int64(st.Blocks) * unit, nil
}
