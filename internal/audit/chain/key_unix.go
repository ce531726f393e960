//go:build unix

package chain

import (
	"io/fs"
	"os"
	"syscall"
)

// own tells whether a file is the caller's and its mode has nothing of forbidden.
func own(st fs.FileInfo, forbidden fs.FileMode) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && sys.Uid == uint32(os.Geteuid()) && st.Mode().Perm()&forbidden == 0
}

// safe tells whether nobody but the caller, the superuser and a group that either
// trusts can put something else in the place of what is in a directory.
func safe(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && (sys.Uid == uint32(os.Geteuid()) || sys.Uid == 0) &&
		(st.Mode().Perm()&0o002 == 0 || st.Mode()&fs.ModeSticky != 0)
}
