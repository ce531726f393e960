package volume

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/buildcache"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

const (
	// DefaultSize is the bound of a volume that was made without one.
	DefaultSize = 10 << 30
	// MaxFiles bounds the files of a volume, because each use of it counts them.
	MaxFiles = 1_000_000

	dataName   = "data" // internal/box knows this name, too
	recordName = "record.json"
	lockName   = "lock"
	storeLock  = ".lock" // held by who makes, changes or removes a volume
	maxRecord  = 4096
)

// A record is what a volume's file says of it.
type record struct {
	Version int       `json:"version"`
	Size    int64     `json:"size"`
	Created time.Time `json:"created"`
}

// An Entry describes a volume.
type Entry struct {
	Name    string    `json:"name"`
	Size    int64     `json:"size"`  // its bound, in bytes
	Bytes   int64     `json:"bytes"` // of its files, each counted as 4 KiB at least
	Files   int64     `json:"files"`
	Created time.Time `json:"created"`
	InUse   bool      `json:"in_use"`
	Deep    bool      `json:"deep,omitempty"` // too many directories in each other: Bytes and Files are of a part
	// Fault says why it cannot be used. Only its name is known then.
	Fault string `json:"fault,omitempty"`
}

// A Use is a volume that is held for a sandbox.
type Use struct {
	name  string
	dir   string
	size  int64
	write bool
	lock  *os.File
}

func check(name string) error {
	if !paddock.ID(name).Valid() {
		return fmt.Errorf("%.80q is no name of a volume, which has 1 to 63 lower-case letters, digits and dashes, and no dash at either end: %w", name, paddock.Invalid)
	}
	return nil
}

func checkSize(size int64) error {
	if size < 1<<20 || size > 1<<50 {
		return fmt.Errorf("the size of a volume is between 1 MiB and 1 PiB: %w", paddock.Invalid)
	}
	return nil
}

// Create makes a volume below dir. Size bounds its files in bytes.
func Create(dir, name string, size int64, now time.Time) error {
	if err := errors.Join(check(name), checkSize(size)); err != nil {
		return err
	}
	store, err := lockStore(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	at := filepath.Join(dir, name)
	if _, err := os.Lstat(at); err == nil {
		return fmt.Errorf("volume %s: it is there already: %w", name, paddock.Conflict)
	}
	beside := filepath.Join(dir, ".made-"+rand.Text())
	if err := os.MkdirAll(filepath.Join(beside, dataName), 0o700); err != nil {
		return failed(name, err)
	}
	err = errors.Join(
		writeRecord(beside, record{Version: 1, Size: size, Created: now.UTC().Truncate(time.Second)}),
		os.WriteFile(filepath.Join(beside, lockName), nil, 0o600),
	)
	if err == nil {
		err = os.Rename(beside, at)
	}
	if err != nil {
		return failed(name, errors.Join(err, buildcache.Clear(beside)))
	}
	return nil
}

// Resize changes the bound of a volume. Sandboxes that use it keep theirs.
func Resize(dir, name string, size int64) error {
	if err := errors.Join(check(name), checkSize(size)); err != nil {
		return err
	}
	if err := exists(dir, name); err != nil {
		return err
	}
	store, err := lockStore(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	at := filepath.Join(dir, name)
	r, err := readRecord(at)
	if err != nil {
		return failed(name, err)
	}
	r.Size = size
	if err := writeRecord(at, r); err != nil {
		return failed(name, err)
	}
	return nil
}

// Open holds a volume until Close. If a sandbox may write and the volume is full, the error is paddock.Exhausted.
func Open(dir, name string, write bool) (*Use, error) {
	if err := check(name); err != nil {
		return nil, err
	}
	l, err := hold(dir, name, syscall.LOCK_SH)
	if err != nil {
		return nil, err
	}
	u := &Use{name: name, dir: filepath.Join(dir, name), write: write, lock: l}
	r, err := readRecord(u.dir)
	if err != nil {
		return nil, failed(name, errors.Join(err, l.Close()))
	}
	u.size = r.Size
	if write {
		if err := u.full(); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return u, nil
}

// Mount returns how a sandbox sees the volume at target.
func (u *Use) Mount(target string) paddock.Mount {
	return paddock.Mount{Source: filepath.Join(u.dir, dataName), Target: target, Write: u.write, Cache: true}
}

// Close gives the volume back. If the sandbox has left more in it than its bound, the error is paddock.Exhausted.
func (u *Use) Close() error {
	var err error
	if u.write {
		err = u.full()
	}
	return errors.Join(err, u.lock.Close())
}

func (u *Use) full() error {
	bytes, files, err := buildcache.Measure(filepath.Join(u.dir, dataName), u.size, MaxFiles)
	switch {
	case err != nil:
		return failed(u.name, err)
	case bytes > u.size:
		return fmt.Errorf("volume %s: its files are more than its size of %d MiB: %w", u.name, u.size>>20, paddock.Exhausted)
	case files > MaxFiles:
		return fmt.Errorf("volume %s: it has more than %d files, or directories too deep in each other: %w", u.name, MaxFiles, paddock.Exhausted)
	}
	return nil
}

// Inspect describes a volume.
func Inspect(dir, name string) (Entry, error) {
	e := Entry{Name: name}
	if err := check(name); err != nil {
		return e, err
	}
	if err := exists(dir, name); err != nil {
		return e, err
	}
	at := filepath.Join(dir, name)
	r, err := readRecord(at)
	if err != nil {
		return e, failed(name, err)
	}
	e.Size, e.Created = r.Size, r.Created
	const most = 1 << 40
	e.Bytes, e.Files, err = buildcache.Measure(filepath.Join(at, dataName), math.MaxInt64/2, most)
	if err != nil {
		return e, failed(name, err)
	}
	if e.Files > most {
		e.Deep, e.Files = true, 0
	}
	store, err := lockStore(dir) // so that nobody who removes it takes this lock for a sandbox's
	if err != nil {
		return e, err
	}
	defer store.Close()
	l, err := hold(dir, name, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, paddock.Conflict) {
		e.InUse = true
		return e, nil
	}
	if err != nil {
		return e, err
	}
	return e, l.Close()
}

// List describes the volumes below dir, by name. One that cannot be read has a Fault.
func List(dir string) ([]Entry, error) {
	found, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	list := []Entry{}
	for _, f := range found {
		if !f.IsDir() || check(f.Name()) != nil {
			continue
		}
		e, err := Inspect(dir, f.Name())
		if errors.Is(err, paddock.NotFound) {
			continue // it was removed meanwhile
		}
		if err != nil {
			e = Entry{Name: f.Name(), Fault: err.Error()}
		}
		list = append(list, e)
	}
	return list, nil
}

// Remove removes a volume. If a sandbox uses it, the error is paddock.Conflict.
func Remove(dir, name string) error {
	if err := check(name); err != nil {
		return err
	}
	if err := exists(dir, name); err != nil {
		return err
	}
	store, err := lockStore(dir)
	if err != nil {
		return err
	}
	defer store.Close()
	l, err := hold(dir, name, syscall.LOCK_EX|syscall.LOCK_NB)
	if err != nil {
		return err
	}
	defer l.Close()
	// Under another name it is gone as a whole. What is left of it if this process is killed goes with the next change.
	gone := filepath.Join(dir, ".gone-"+rand.Text())
	if err := os.Rename(filepath.Join(dir, name), gone); err != nil {
		return failed(name, err)
	}
	if err := buildcache.Clear(gone); err != nil {
		return failed(name, err)
	}
	return nil
}

// lockStore keeps others from making and removing volumes, and removes what such a one left when it was killed.
func lockStore(dir string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() || !sys.Owned(st, 0o077) {
		return nil, fmt.Errorf("%s: not a directory of this user alone: %w", dir, paddock.Denied)
	}
	f, err := os.OpenFile(filepath.Join(dir, storeLock), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	found, err := os.ReadDir(dir)
	for _, e := range found {
		if strings.HasPrefix(e.Name(), ".made-") || strings.HasPrefix(e.Name(), ".gone-") {
			err = errors.Join(err, buildcache.Clear(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// hold locks a volume that is there.
func hold(dir, name string, how int) (*os.File, error) {
	at := filepath.Join(dir, name, lockName)
	f, err := os.OpenFile(at, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil, missing(name)
	}
	if err != nil {
		return nil, failed(name, err)
	}
	if err := flock(f, how); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("volume %s: a sandbox uses it: %w", name, paddock.Conflict), f.Close())
	} else if err != nil {
		return nil, failed(name, errors.Join(err, f.Close()))
	}
	held, err := f.Stat()
	if err != nil {
		return nil, failed(name, errors.Join(err, f.Close()))
	}
	if there, err := os.Lstat(at); err != nil || !os.SameFile(held, there) {
		return nil, errors.Join(missing(name), f.Close()) // it was removed meanwhile
	}
	return f, nil
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func exists(dir, name string) error {
	st, err := os.Lstat(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) || err == nil && !st.IsDir() {
		return missing(name)
	}
	if err != nil {
		return failed(name, err)
	}
	return nil
}

func missing(name string) error {
	return fmt.Errorf("volume %s: there is none of this name: %w", name, paddock.NotFound)
}

func failed(name string, err error) error { return fmt.Errorf("volume %s: %w", name, err) }

// readRecord reads what was written of a volume.
func readRecord(at string) (record, error) {
	var r record
	f, err := os.OpenFile(filepath.Join(at, recordName), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return r, err
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return r, errors.Join(err, fmt.Errorf("its record is no file: %w", paddock.Internal))
	}
	data, err := io.ReadAll(io.LimitReader(f, maxRecord))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("its record: %w: %w", err, paddock.Internal)
	}
	if r.Version != 1 {
		return r, fmt.Errorf("its record is of version %d, which this program does not know: %w", r.Version, paddock.Unsupported)
	}
	return r, checkSize(r.Size)
}

// writeRecord puts a whole record in the place of the one before.
func writeRecord(at string, r record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	beside := filepath.Join(at, recordName+".new")
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(beside, filepath.Join(at, recordName))
}
