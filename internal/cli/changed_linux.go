package cli

import (
	"io/fs"
	"syscall"
	"time"
)

// ChangeTime returns when the kernel last recorded a change of the file. Unlike the modification
// time, a program cannot set it.
func ChangeTime(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix())
	}
	return info.ModTime()
}
