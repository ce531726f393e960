package snapshot

import (
	"cmp"
	"context"
	"crypto/rand"
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
	dirTemp  = "temp"
	fileLock = "lock"
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
	for _, name := range []string{dirBlobs, dirLists, dirTemp} {
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
	return paddock.SnapshotID("snap-" + strings.ToLower(rand.Text()))
}

// lock locks the store: shared for adding, exclusive for removing blobs. Without wait, a
// store in use is [paddock.Conflict].
func (s *Store) lock(alone, wait bool) (io.Closer, error) {
	f, err := s.root.OpenFile(fileLock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX
	}
	if !wait {
		how |= syscall.LOCK_NB
	}
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = fmt.Errorf("snapshots are being written: %w", paddock.Conflict)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Write stores a snapshot. The entries must be in order. After an error there is no snapshot, and the next
// [Store.Collect] removes the blobs written for it. An ID in use is [paddock.Exists].
func (s *Store) Write(ctx context.Context, m Meta, entries iter.Seq2[Entry, error]) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write snapshot %s: %w", m.ID, err)
		}
	}()
	if !paddock.ID(m.ID).Valid() {
		return fmt.Errorf("the name %q: %w", m.ID, paddock.Invalid)
	}
	held, err := s.lock(false, true)
	if err != nil {
		return err
	}
	defer held.Close()
	name := path.Join(dirLists, string(m.ID))
	if _, err := s.root.Lstat(name); err == nil {
		return paddock.Exists
	}
	return s.place(name, func(f *os.File) error {
		w, err := newWriter(f, m)
		if err != nil {
			return err
		}
		in := &intake{store: s, ctx: ctx, buf: make([]byte, 0, chunkSize)}
		var o order
		for e, err := range entries {
			if err != nil {
				return err
			}
			if err := cmp.Or(context.Cause(ctx), e.valid()); err != nil {
				return err
			}
			if err := o.next(&e); err != nil {
				return err
			}
			chunks, err := in.file(&e)
			if err != nil {
				return fmt.Errorf("%q: %w", e.Path, err)
			}
			if err := w.entry(&e, chunks); err != nil {
				return err
			}
		}
		return w.end(f)
	})
}

// place writes a file and renames it when it is complete.
func (s *Store) place(name string, fill func(*os.File) error) error {
	temp := path.Join(dirTemp, rand.Text())
	f, err := s.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil && s.opts.Sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = s.root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, s.root.Remove(temp))
	}
	return s.settle(path.Dir(name))
}

// settle makes the names in a directory survive a power failure.
func (s *Store) settle(dir string) error {
	if !s.opts.Sync {
		return nil
	}
	d, err := s.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// An intake splits files into blobs.
type intake struct {
	store *Store
	ctx   context.Context
	buf   []byte // the part being filled
	from  int64  // its offset
	list  []chunk
}

func (in *intake) file(e *Entry) ([]chunk, error) {
	if e.Kind != File || e.Data == nil {
		return nil, nil
	}
	in.buf, in.list = in.buf[:0], nil
	end := int64(0)
	for x, err := range e.Data {
		if err != nil {
			return nil, err
		}
		if x.Offset < end || x.Offset > e.Size-int64(len(x.Bytes)) {
			return nil, fmt.Errorf("bytes at %d of %d, after %d: %w", x.Offset, e.Size, end, paddock.Invalid)
		}
		if x.Offset > end {
			if err := in.flush(); err != nil {
				return nil, err
			}
		}
		end = x.Offset + int64(len(x.Bytes))
		if err := in.add(x.Offset, x.Bytes); err != nil {
			return nil, err
		}
	}
	return in.list, in.flush()
}

func (in *intake) add(offset int64, b []byte) error {
	for len(b) > 0 {
		if len(in.buf) == 0 {
			in.from = offset
		}
		n := min(int64(len(b)), chunkSize-offset%chunkSize)
		in.buf = append(in.buf, b[:n]...)
		b, offset = b[n:], offset+n
		if offset%chunkSize == 0 {
			if err := in.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (in *intake) flush() error {
	if len(in.buf) == 0 {
		return nil
	}
	if err := context.Cause(in.ctx); err != nil {
		return err
	}
	if len(in.list) >= maxChunks {
		return fmt.Errorf("more than %d parts: %w", maxChunks, paddock.Exhausted)
	}
	c := chunk{in.from, int64(len(in.buf)), sha256.Sum256(in.buf)}
	in.list = append(in.list, c)
	err := in.store.keep(c.sum, in.buf)
	in.buf = in.buf[:0]
	return err
}

func (k sum) path() string {
	name := hex.EncodeToString(k[:])
	return path.Join(dirBlobs, name[:2], name[2:])
}

// keep writes a blob unless it exists.
func (s *Store) keep(k sum, b []byte) error {
	name := k.path()
	if _, err := s.blob(chunk{size: int64(len(b)), sum: k}); err == nil {
		return nil // a damaged one is written again
	}
	if err := s.root.Mkdir(path.Dir(name), 0o700); err == nil {
		err = s.settle(dirBlobs)
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.place(name, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

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
}

// Read opens a snapshot.
func (s *Store) Read(id paddock.SnapshotID) (*Snapshot, error) {
	f, r, err := s.open(id)
	if err != nil {
		return nil, err
	}
	return &Snapshot{r.meta, s, f}, nil
}

func (s *Store) open(id paddock.SnapshotID) (*os.File, *reader, error) {
	if !paddock.ID(id).Valid() {
		return nil, nil, fmt.Errorf("the snapshot name %q: %w", id, paddock.Invalid)
	}
	f, err := s.root.OpenFile(path.Join(dirLists, string(id)), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("snapshot %s: %w", id, paddock.NotFound)
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
// the list was not changed on the disk. The data of an entry can be read during its step.
func (x *Snapshot) Entries() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		if _, err := x.file.Seek(0, io.SeekStart); err != nil {
			yield(Entry{}, err)
			return
		}
		r, err := newReader(x.file)
		for err == nil {
			var e *Entry
			var chunks []chunk
			if e, chunks, err = r.next(); err != nil {
				break
			}
			if len(chunks) > 0 {
				e.Data = x.store.data(chunks)
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

func (s *Store) data(chunks []chunk) iter.Seq2[Extent, error] {
	return func(yield func(Extent, error) bool) {
		for _, c := range chunks {
			b, err := s.blob(c)
			if !yield(Extent{c.offset, b}, err) || err != nil {
				return
			}
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

func (s *Store) ids() ([]paddock.SnapshotID, error) {
	names, err := s.names(dirLists)
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

// Discard removes a snapshot and the blobs that only it had. While another snapshot is being written it leaves the
// blobs to the next Discard or Collect.
func (s *Store) Discard(ctx context.Context, id paddock.SnapshotID) error {
	if err := s.Remove(id); err != nil {
		return err
	}
	if _, err := s.Collect(ctx); err != nil && !errors.Is(err, paddock.Conflict) {
		return err
	}
	return nil
}

// Collect removes blobs that no snapshot has, and returns the number of bytes freed. While a snapshot is written it
// returns [paddock.Conflict]. If a snapshot cannot be read it removes nothing, because that snapshot may still be
// recovered.
func (s *Store) Collect(ctx context.Context) (freed int64, err error) {
	held, err := s.lock(true, false)
	if err != nil {
		return 0, fmt.Errorf("collect snapshots: %w", err)
	}
	defer held.Close()
	used, err := s.used(ctx)
	if err != nil {
		return 0, fmt.Errorf("collect snapshots: %w", err)
	}
	shelves, err := s.names(dirBlobs)
	if err != nil {
		return 0, fmt.Errorf("collect snapshots: %w", err)
	}
	for _, shelf := range shelves {
		if len(shelf) != 2 {
			continue // not a blob
		}
		n, err := s.sweep(ctx, path.Join(dirBlobs, shelf), func(name string) bool {
			var k sum
			b, err := hex.DecodeString(shelf + name)
			return err == nil && len(b) == len(k) && used[sum(b)]
		})
		freed += n
		if err != nil {
			return freed, fmt.Errorf("collect snapshots: %w", err)
		}
	}
	// No process is writing now, so these files are left over from killed ones.
	n, err := s.sweep(ctx, dirTemp, func(string) bool { return false })
	if err != nil {
		err = fmt.Errorf("collect snapshots: %w", err)
	}
	return freed + n, err
}

// used returns the blobs of all snapshots.
func (s *Store) used(ctx context.Context) (map[sum]bool, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, err
	}
	used := map[sum]bool{}
	for _, id := range ids {
		err := s.mark(ctx, id, used)
		if err != nil && !errors.Is(err, paddock.NotFound) {
			return nil, err
		}
	}
	return used, nil
}

func (s *Store) mark(ctx context.Context, id paddock.SnapshotID, used map[sum]bool) error {
	f, r, err := s.open(id)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		_, chunks, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err := cmp.Or(err, context.Cause(ctx)); err != nil {
			return fmt.Errorf("snapshot %s: %w", id, err)
		}
		for _, c := range chunks {
			used[c.sum] = true
		}
	}
}

// sweep removes the files of a directory for which keep returns false.
func (s *Store) sweep(ctx context.Context, dir string, keep func(string) bool) (freed int64, err error) {
	names, err := s.names(dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if err := context.Cause(ctx); err != nil {
			return freed, err
		}
		if keep(name) {
			continue
		}
		name = path.Join(dir, name)
		i, err := s.root.Lstat(name)
		if err != nil {
			return freed, err
		}
		if err := s.root.Remove(name); err != nil {
			return freed, err
		}
		freed += i.Size()
	}
	return freed, nil
}
