//go:build !linux

package cli

import (
	"io/fs"
	"time"
)

// ChangeTime is when the file was last changed.
func ChangeTime(info fs.FileInfo) time.Time { return info.ModTime() }
