package buildcache

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Bounds of one workspace's caches. Above one of them they are removed as a whole, because a part that is missing would
// mislead some tools.
const (
	MaxBytes = 10 << 30
	MaxFiles = 1_000_000
)

const (
	dataName    = "data"
	aboutName   = "workspace" // holds the path of the workspace
	lockName    = "lock"
	measureName = "measured"
	// often is how often the size of a workspace's caches is measured, because that reads all directories.
	often = 10 * time.Minute
)

// A place is a cache of a tool: a directory of ours, and where tools look for it.
type place struct{ name, target string }

// places covers go, pip, uv, ccache, yarn and others (~/.cache), modules of Go, npm, cargo, Maven and Gradle.
func places() []place {
	return []place{
		{"cache", "~/.cache"}, {"go", "~/go/pkg"}, {"npm", "~/.npm"}, {"cargo-registry", "~/.cargo/registry"}, {"cargo-git", "~/.cargo/git"},
		{"maven", "~/.m2/repository"}, {"gradle-caches", "~/.gradle/caches"}, {"gradle-wrapper", "~/.gradle/wrapper"},
	}
}

// A Cache is that of one workspace, held for a sandbox.
type Cache struct {
	Mounts []paddock.Mount

	dir  string
	lock *os.File
	max  bound
}

type bound struct{ bytes, files int64 }

// Open returns the caches of a workspace below dir, and makes them if they are missing. A workspace is the directory at
// a path: another directory that takes its place gets caches of its own, also if it gets the same inode number. Close
// them when the sandbox has ended.
func Open(dir, workspace string) (*Cache, error) {
	real, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return nil, err
	}
	id, err := idOf(real)
	if err != nil {
		return nil, err
	}
	if err := makeOwn(dir); err != nil {
		return nil, err
	}
	prune(dir)
	c := &Cache{dir: filepath.Join(dir, id), max: bound{MaxBytes, MaxFiles}}
	if c.lock, err = hold(c.dir); err != nil {
		return nil, fmt.Errorf("caches of %s: %w", real, err)
	}
	about := filepath.Join(c.dir, aboutName)
	if err := os.WriteFile(about, []byte(real), 0o600); err != nil { // its time says when they were used
		return nil, errors.Join(err, c.lock.Close())
	}
	data := filepath.Join(c.dir, dataName)
	for _, p := range places() {
		source := filepath.Join(data, p.name)
		if err := os.MkdirAll(source, 0o700); err != nil {
			return nil, errors.Join(err, c.lock.Close())
		}
		c.Mounts = append(c.Mounts, paddock.Mount{Source: source, Target: p.target, Write: true, Cache: true})
	}
	return c, nil
}

// hold makes the directory of a workspace's caches, and takes the lock that keeps it from removal.
func hold(dir string) (*os.File, error) {
	for {
		if err := makeOwn(dir); err != nil {
			return nil, err
		}
		f, err := lock(dir, syscall.LOCK_SH)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		held, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Lstat(f.Name()); err == nil && os.SameFile(held, there) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// idOf returns the ID of the caches of the directory at a path. A file system gives a new directory the inode number of
// one that was removed, but not its time of birth.
func idOf(real string) (string, error) {
	st, err := sys.StatAt(sys.AtCWD, real)
	if err != nil {
		return "", err
	}
	born, err := sys.BornAt(sys.AtCWD, real)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%d\x00%s", st.Ino, born, real))
	return hex.EncodeToString(sum[:8]), nil
}

// prune removes the caches of workspaces that are gone. What cannot be removed is tried again the next time.
func prune(dir string) {
	names, err := ids(dir)
	if err != nil {
		return
	}
	for _, id := range names {
		data, err := os.ReadFile(filepath.Join(dir, id, aboutName))
		if err != nil || len(data) == 0 {
			continue // somebody makes it at the moment
		}
		if now, err := idOf(string(data)); now == id || err != nil && !errors.Is(err, syscall.ENOENT) {
			continue
		}
		_ = Remove(dir, id)
	}
}

// makeOwn makes a directory that only the caller can enter, and refuses one of somebody else's.
func makeOwn(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() || !sys.Owned(st, 0o077) {
		return fmt.Errorf("%s: not a directory of this user alone: %w", dir, paddock.Denied)
	}
	return nil
}

// lock takes a lock on a workspace's caches, which ends with the file.
func lock(dir string, how int) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close gives the caches back. If they are too large, it removes them and returns true. Caches that another sandbox uses
// are left, and measured when that one ends.
func (c *Cache) Close() (removed bool, err error) {
	defer c.lock.Close()
	mark := filepath.Join(c.dir, measureName)
	if st, err := os.Lstat(mark); err == nil && time.Since(st.ModTime()) < often {
		return false, nil
	}
	size, err := measure(filepath.Join(c.dir, dataName), c.max)
	if err != nil {
		return false, err
	}
	if size.bytes <= c.max.bytes && size.files <= c.max.files {
		return false, os.WriteFile(mark, nil, 0o600)
	}
	if err := syscall.Flock(int(c.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return false, nil // another sandbox uses them
	}
	return true, clearAll(filepath.Join(c.dir, dataName))
}

// An Entry is what List knows of a workspace's caches.
type Entry struct {
	ID        string    `json:"id"`
	Workspace string    `json:"workspace"`
	Bytes     int64     `json:"bytes"`
	Files     int64     `json:"files"`
	Used      time.Time `json:"used"`
}

// List returns the caches below dir, those that were used last first.
func List(dir string) ([]Entry, error) {
	names, err := ids(dir)
	if err != nil {
		return nil, err
	}
	entries := []Entry{}
	for _, id := range names {
		at := filepath.Join(dir, id)
		e := Entry{ID: id}
		if data, err := os.ReadFile(filepath.Join(at, aboutName)); err == nil {
			e.Workspace = string(data)
		}
		if st, err := os.Lstat(filepath.Join(at, aboutName)); err == nil {
			e.Used = st.ModTime()
		}
		size, err := measure(filepath.Join(at, dataName), bound{1 << 62, 1 << 62})
		if err != nil {
			return nil, err
		}
		e.Bytes, e.Files = size.bytes, size.files
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return b.Used.Compare(a.Used) })
	return entries, nil
}

// ids lists the directories of workspaces.
func ids(dir string) ([]string, error) {
	found, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range found {
		if e.IsDir() && isID(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func isID(name string) bool {
	raw, err := hex.DecodeString(name)
	return err == nil && len(raw) == 8 && strings.ToLower(name) == name
}

// Remove removes the caches with this ID. If a sandbox uses them, the error is paddock.Conflict.
func Remove(dir, id string) error {
	at := filepath.Join(dir, id)
	if _, err := os.Lstat(at); !isID(id) || err != nil {
		return fmt.Errorf("caches %q: %w", id, paddock.NotFound)
	}
	l, err := lock(at, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("caches %s: a sandbox uses them: %w", id, paddock.Conflict)
	}
	if err != nil {
		return err
	}
	defer l.Close()
	if err := clearAll(filepath.Join(at, dataName)); err != nil {
		return err
	}
	// Whoever waits for the lock makes everything anew.
	for _, name := range []string{aboutName, measureName, lockName} {
		if err := os.Remove(filepath.Join(at, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, syscall.ENOTEMPTY) { // somebody has begun to make it anew
		return err
	}
	return nil
}
