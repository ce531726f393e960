// Package boxinittest takes over the init process of a box, for tests of guest kernels.
package boxinittest

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// Taken is a supervisor that somebody takes over as soon as its kernel runs. It tries to change the host's files. If it
// can, no sandbox is made, and the error says what it changed.
type Taken struct {
	boxinit.GuestKernel

	Mounted []string               // patterns of files of the host that are mounted for the supervisor
	Own     func(name string) bool // reports whether a file belongs to this box only, by the name of its descriptor
	Idle    bool                   // a box that begins with nothing saved may have no file that could be tried
}

// Start implements boxinit.GuestKernel.
func (k Taken) Start(c *boxinit.Config, f boxinit.GuestKernelFiles) error {
	if err := k.GuestKernel.Start(c, f); err != nil {
		return err
	}
	if how := c.Env[spoilVariable]; how != "" {
		return os.Setenv(spoilVariable, how) // later
	}
	tried, changed, err := k.changeFiles()
	switch {
	case err != nil:
		return err
	case len(changed) > 0:
		return fmt.Errorf("the supervisor changed %q: %w", changed, paddock.Denied)
	case len(tried) == 0 && (len(f.Image) > 0 || !k.Idle):
		return fmt.Errorf("the supervisor has no file that it could try to change: %w", paddock.Denied)
	}
	return nil
}

// changeFiles tries to write to every file of the host that this process has open, and to those that are mounted.
func (k Taken) changeFiles() (tried, changed []string, err error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil, nil, err
	}
	var paths []string
	for _, e := range entries {
		path := "/proc/self/fd/" + e.Name()
		var fs syscall.Statfs_t
		if err := syscall.Statfs(path, &fs); err != nil || fs.Type == procFS {
			continue // it was closed meanwhile, or is the process's own
		}
		if name, err := os.Readlink(path); err == nil && !k.Own(name) {
			paths = append(paths, path)
		}
	}
	for _, pattern := range k.Mounted {
		mounted, err := filepath.Glob(pattern)
		if err != nil {
			return nil, nil, err
		}
		for _, path := range mounted {
			_ = syscall.Mount("", path, "", syscall.MS_REMOUNT|syscall.MS_BIND, "")
		}
		paths = append(paths, mounted...)
	}
	for _, path := range paths {
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() {
			continue
		}
		name, _ := os.Readlink(path) // a mounted file is no link
		name = path + " " + name
		tried = append(tried, name)
		if rewrite(path) {
			changed = append(changed, name)
		}
	}
	return tried, changed, nil
}

// procFS is the type of the file system of processes.
const procFS = 0x9fa0

// rewrite reports whether the first byte of a file can be written.
func rewrite(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, 0); err != nil {
		return false
	}
	_, err = f.WriteAt(b, 0)
	return err == nil
}
