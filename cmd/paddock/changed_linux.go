package main

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime is when the kernel last saw a change of the file: a program can
// set the time of modification, but not this one.
func changeTime(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix())
	}
	return info.ModTime()
}
