package snapshot

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// chunkSize is the size of the parts of a file. Parts begin at its multiples, so that equal
// bytes at the same offset of two files share a blob.
const chunkSize = 1 << 20

// Options configure a Store.
type Options struct {
	// Sync makes writes survive a power failure. Without it a snapshot may be damaged after one, and reading it reports
	// the damage.
	Sync bool

	// List bounds the list of the files of a snapshot that is written, in bytes: their names, and the parts of their
	// contents. Zero is 256 MiB. Contents themselves are bounded by whoever gives them.
	List int64
}

// A Store is a directory of snapshots. It is safe for concurrent use, also by several programs.
type Store struct {
	root *os.Root
	opts Options
}

// Parts of a store's directory.
const (
	dirBlobs = "blob"
	dirLists = "snapshot"
	dirDraft = "draft"   // a directory for each snapshot that is being written
	dirKept  = "kept"    // a directory for each Draft
	dirTemp  = "temp"    // what older versions left when they were killed
	fileLock = "lock"    // shared by those that put blobs and lists in their places
	fileTurn = "turn"    // taken before fileLock, so that whoever wants that alone gets it
	fileOnly = "collect" // locked by the one that collects
)

// Open opens the store in a directory, and creates the directory (0700) if it is missing.
func Open(dir string, o Options) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open snapshots: %w", err)
	}
	for _, name := range []string{dirBlobs, dirLists, dirDraft, dirKept, dirTemp} {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, errors.Join(fmt.Errorf("open snapshots: %w", err), root.Close())
		}
	}
	return &Store{root: root, opts: o}, nil
}

// Close closes the store.
func (s *Store) Close() error { return s.root.Close() }

// NewID returns a new random snapshot ID.
func NewID() paddock.SnapshotID {
	return paddock.SnapshotID("snap-" + strings.ToLower(crand.Text()))
}

// pause is between two looks at whether a lock is free.
const pause = 5 * time.Millisecond

// lock locks a file of the store: shared, or alone. If it is not free, lock waits until ctx ends.
func (s *Store) lock(ctx context.Context, name string, alone bool) (io.Closer, error) {
	for {
		f, err := s.tryLock(name, alone)
		if !errors.Is(err, paddock.Conflict) {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// tryLock is lock without waiting: a file that is locked is [paddock.Conflict].
func (s *Store) tryLock(name string, alone bool) (io.Closer, error) {
	f, err := s.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return flock(f, alone)
}

// flock locks an open file, or closes it.
func flock(f *os.File, alone bool) (io.Closer, error) {
	how := syscall.LOCK_SH | syscall.LOCK_NB
	if alone {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	var err error
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("snapshots are being written or collected: %w", paddock.Conflict)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// share locks the places of blobs and lists together with others that put something there. It waits for a
// collector that waits for them.
func (s *Store) share(ctx context.Context) (io.Closer, error) {
	turn, err := s.lock(ctx, fileTurn, false)
	if err != nil {
		return nil, err
	}
	defer turn.Close()
	return s.lock(ctx, fileLock, false)
}

// name returns the name of a blob: the directory, and its file there.
func (k sum) name() string {
	name := hex.EncodeToString(k[:])
	return path.Join(name[:2], name[2:])
}

// flat returns the name without a slash.
func (k sum) flat() string { return hex.EncodeToString(k[:]) }

// parseSum is flat the other way around.
func parseSum(name string) (k sum, ok bool) {
	b, err := hex.DecodeString(name)
	if err != nil || len(b) != len(k) {
		return k, false
	}
	return sum(b), true
}

func (k sum) path() string { return path.Join(dirBlobs, k.name()) }

// blob reads a blob of known size and checks it.
func (s *Store) blob(c chunk) ([]byte, error) {
	f, err := s.root.OpenFile(c.sum.path(), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, corrupt("a blob is missing: %v", err)
	}
	defer f.Close()
	b := make([]byte, c.size)
	if _, err := io.ReadFull(f, b); err != nil {
		return nil, corrupt("the blob %x is cut off", c.sum)
	}
	if sha256.Sum256(b) != c.sum {
		return nil, corrupt("the blob %x holds something else", c.sum)
	}
	return b, nil
}

// A Snapshot is an open snapshot. Close it after reading.
type Snapshot struct {
	Meta  Meta
	store *Store
	file  *os.File
	err   error // of the last Held
}

// Read opens a snapshot.
func (s *Store) Read(id paddock.SnapshotID) (*Snapshot, error) {
	f, r, err := s.open(id)
	if err != nil {
		return nil, err
	}
	return &Snapshot{Meta: r.meta, store: s, file: f}, nil
}

func (s *Store) open(id paddock.SnapshotID) (*os.File, *reader, error) {
	if !paddock.ID(id).Valid() {
		return nil, nil, fmt.Errorf("the snapshot name %q: %w", id, paddock.Invalid)
	}
	return s.openList(path.Join(dirLists, string(id)), id)
}

// openList opens a list of the snapshot with this ID.
func (s *Store) openList(name string, id paddock.SnapshotID) (*os.File, *reader, error) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("there is no snapshot %s: %w", id, paddock.NotFound)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read snapshot %s: %w", id, err)
	}
	r, err := newReader(f)
	if err == nil && r.meta.ID != id {
		err = corrupt("it is %s by its own words", r.meta.ID)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read snapshot %s: %w", id, err), f.Close())
	}
	return f, r, nil
}

// Close closes the snapshot.
func (x *Snapshot) Close() error { return x.file.Close() }

// Entries yields the entries in order and stops at the first error, which it yields. Only at its end is it known that
// the list was not changed on the disk. The data of an entry can be read once, during its step.
func (x *Snapshot) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if _, err := x.file.Seek(0, io.SeekStart); err != nil {
			yield(Entry{}, err)
			return
		}
		r, err := newReader(x.file)
		for err == nil {
			var e *Entry
			if e, err = r.next(); err != nil {
				break
			}
			if r.parts {
				e.Data = x.store.data(r)
			}
			if !yield(*e, nil) {
				return
			}
		}
		if err != io.EOF {
			yield(Entry{}, fmt.Errorf("read snapshot %s: %w", x.Meta.ID, err))
		}
	}
}

// data gives the contents of the file whose entry was read last.
func (s *Store) data(r *reader) iter.Seq2[Extent, error] {
	entry, begun := r.count, false
	return func(yield func(Extent, error) bool) {
		if begun || r.count != entry {
			yield(Extent{}, fmt.Errorf("contents are read once, with their entry: %w", paddock.Internal))
			return
		}
		begun = true
		for {
			c, ok, err := r.part()
			if err != nil {
				yield(Extent{}, err)
				return
			}
			if !ok {
				return
			}
			b, err := s.blob(c)
			if !yield(Extent{c.offset, b}, err) || err != nil {
				return
			}
		}
	}
}

// A Size is how much a snapshot makes.
type Size struct {
	Bytes int64 // of contents, without holes
	Files int64 // of all types; those of the base that it only changes, too
}

// Size reads the list of the snapshot, and tells how much it makes, without reading the contents.
func (x *Snapshot) Size(ctx context.Context) (Size, error) {
	var n Size
	failed := func(err error) (Size, error) { return Size{}, fmt.Errorf("read snapshot %s: %w", x.Meta.ID, err) }
	if _, err := x.file.Seek(0, io.SeekStart); err != nil {
		return failed(err)
	}
	r, err := newReader(x.file)
	if err != nil {
		return failed(err)
	}
	for {
		e, err := r.next()
		if err == io.EOF {
			return n, nil
		}
		if err := cmp.Or(err, context.Cause(ctx)); err != nil {
			return failed(err)
		}
		if e.Kind != Gone && e.Kind != Same {
			n.Files++
		}
		for {
			c, ok, err := r.part()
			if err != nil {
				return failed(err)
			}
			if !ok {
				break
			}
			n.Bytes += c.size // at most maxChunk each: it cannot overflow
		}
	}
}

// List describes all snapshots, the oldest first. The error reports snapshots that cannot be read; the result holds the
// others.
func (s *Store) List() ([]Meta, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	var all []Meta
	var errs []error
	for _, id := range ids {
		f, r, err := s.open(id)
		switch {
		case errors.Is(err, paddock.NotFound): // it was just removed
		case err != nil:
			errs = append(errs, err)
		default:
			all = append(all, r.meta)
			errs = append(errs, f.Close())
		}
	}
	slices.SortFunc(all, func(a, b Meta) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(string(a.ID), string(b.ID)))
	})
	return all, errors.Join(errs...)
}

func (s *Store) ids() ([]paddock.SnapshotID, error) { return s.idsIn(dirLists) }

// idsIn returns the names in a directory of the store that are those of snapshots.
func (s *Store) idsIn(dir string) ([]paddock.SnapshotID, error) {
	names, err := s.names(dir)
	var ids []paddock.SnapshotID
	for _, name := range names {
		if paddock.ID(name).Valid() {
			ids = append(ids, paddock.SnapshotID(name))
		}
	}
	return ids, err
}

func (s *Store) names(dir string) ([]string, error) {
	d, err := s.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Remove removes a snapshot. A missing snapshot is not an error. [Store.Collect] frees the blobs that only this
// snapshot had.
func (s *Store) Remove(id paddock.SnapshotID) error {
	if !paddock.ID(id).Valid() {
		return fmt.Errorf("the snapshot name %q: %w", id, paddock.Invalid)
	}
	err := s.root.Remove(path.Join(dirLists, string(id)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Discard removes a snapshot and the blobs that only it had. It goes on if the caller goes, because nothing else might
// remove these blobs later.
func (s *Store) Discard(ctx context.Context, id paddock.SnapshotID) error {
	if err := s.Remove(id); err != nil {
		return err
	}
	return s.free(ctx)
}
