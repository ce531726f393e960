//go:build unix

package cli

import (
	"io/fs"
	"os"
	"syscall"
)

// ownFile tells whether a file is the caller's own: another user's would become the caller's when it is replaced.
func ownFile(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
