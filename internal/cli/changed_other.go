//go:build !linux

package cli

import (
	"io/fs"
	"time"
)

// ChangeTime returns the file's modification time.
func ChangeTime(info fs.FileInfo) time.Time { return info.ModTime() }
