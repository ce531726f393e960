package cli

import (
	"io/fs"
	"syscall"
	"time"
)

// ChangeTime is when the kernel last saw a change of the file: a program can
// set the time of modification, but not this one.
func ChangeTime(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix())
	}
	return info.ModTime()
}
