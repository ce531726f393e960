//go:build unix

package cli

import (
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// inodeOf gives the number of a file, by which it is known again.
func inodeOf(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return strconv.FormatUint(st.Ino, 10)
}

// ownFile tells whether a file is the caller's own: another user's would become the caller's when it is replaced.
func ownFile(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
