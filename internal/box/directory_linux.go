package box

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// directoryDescriptor is the descriptor at which every keeper holds the directory of its sandbox, so
// that another process can tell whether that still exists. See [Unowned].
const directoryDescriptor = 200

const (
	// lookEvery is the interval in which a keeper looks for the directory of its sandbox. A look
	// costs two system calls, and no access to a disk.
	lookEvery = 5 * time.Second

	// mostMisses is how many looks in a row must not find the path of a directory that the kernel
	// does not call removed: it is on a file system that was unmounted, or out of reach.
	mostMisses = 12
)

// A directory is the directory that represents a kept sandbox in a state directory, as the keeper
// holds it. While it exists, a driver can find the sandbox. Without it nobody can.
type directory struct {
	path   string
	held   *os.File
	misses int // looks in a row that did not find it by a path

	name func() string // the present path, as the kernel tells it
}

func newDirectory(path string, held *os.File) *directory {
	return &directory{path: path, held: held, name: func() string {
		name, _ := os.Readlink(fdPath(int(held.Fd())))
		return name
	}}
}

// holdDirectory opens a directory that the maker has locked once more, for a keeper at
// directoryDescriptor. Call it before the process has that many descriptors.
//
// It does not go by the path. A keeper that is late, because the host was busy, may have been given
// up, and another sandbox may have the path by now.
func holdDirectory(path string, locked *os.File) (*directory, error) {
	fd, err := sys.Descriptor(locked)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(fdPath(fd)) // a copy would keep the lock
	if err != nil {
		return nil, err
	}
	if held, err := sys.DuplicateTo(f, directoryDescriptor); err == nil {
		return newDirectory(path, held), f.Close()
	}
	return newDirectory(path, f), nil // the process may not have so many: then only the keeper itself can tell
}

func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// inside is a path to the directory that never leads to another one.
func (d *directory) inside(name string) string {
	return filepath.Join(fdPath(int(d.held.Fd())), name)
}

// gone reports whether the directory has ceased to exist. A directory that was renamed, with those
// above it or alone, has not: the kernel tells its new name. An error that does not say that there
// is no such directory, as of a slow or broken disk, decides nothing.
func (d *directory) gone() bool {
	now, err := d.held.Stat()
	switch {
	case err == nil && unlinked(now):
		return true
	case err != nil && !errors.Is(err, syscall.ESTALE):
		return false
	case err == nil && (d.leads(d.path, now) || d.leads(d.name(), now)):
		d.misses = 0
		return false
	}
	d.misses++
	return d.misses >= mostMisses
}

// leads reports whether a path leads to the directory, or may do so.
func (d *directory) leads(path string, now fs.FileInfo) bool {
	if !filepath.IsAbs(path) {
		return false
	}
	there, err := os.Lstat(path)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return os.SameFile(there, now)
}

// unlinked reports whether a directory was removed, though somebody holds it.
func unlinked(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && st.Nlink == 0
}

// watchDirectory ends the sandbox when the directory that represents it is gone, because nobody can
// find or end it any more. It returns when over is closed.
func (k *keeper) watchDirectory(over <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-over:
			return
		case <-tick.C:
		}
		if k.directory.gone() && k.abandon() == nil {
			return
		}
	}
}

// abandon ends a sandbox that nobody can find any more. It removes nothing by the path of the
// directory, because another sandbox may have that by now. What a pause has saved stays, because a
// driver finds it by itself.
func (k *keeper) abandon() error {
	k.pausing.Lock() // a pause that is under way may make it one that is saved
	defer k.pausing.Unlock()
	if k.life.suspended() {
		return nil
	}
	k.mu.Lock()
	busy := k.removals > 0
	k.mu.Unlock()
	if busy {
		return fmt.Errorf("it is being removed: %w", paddock.Conflict)
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeTime)
	defer cancel()
	if err := k.remove(func() error { return k.life.remove(ctx) }); err != nil {
		return err
	}
	k.finish()
	return nil
}
