//go:build unix

package python

import (
	"os"
	"syscall"
)

// private tells what only the caller can change.
func private(st os.FileInfo) bool {
	s, ok := st.Sys().(*syscall.Stat_t)
	return ok && s.Uid == uint32(os.Geteuid()) && st.Mode().Perm()&0o022 == 0
}
