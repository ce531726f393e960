//go:build unix

package store

import (
	"io/fs"
	"syscall"
)

// A fileID is that of a file with several names.
type fileID struct{ device, number uint64 }

func idOf(st fs.FileInfo) (fileID, bool) {
	s, ok := st.Sys().(*syscall.Stat_t)
	if !ok || s.Nlink < 2 {
		return fileID{}, false
	}
	return fileID{uint64(s.Dev), s.Ino}, true //nolint:unconvert // it has another type on other systems
}
