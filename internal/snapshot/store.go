package snapshot

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math/rand/v2"
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
	for _, name := range []string{dirBlobs, dirLists, dirDraft, dirTemp} {
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

// Write stores a snapshot. The entries must be in order. After an error there is no snapshot, and nothing of what was
// written for it. An ID in use is [paddock.Exists]. The ID of a snapshot that was removed must not be used again.
func (s *Store) Write(ctx context.Context, m Meta, entries iter.Seq2[Entry, error]) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write snapshot %s: %w", m.ID, err)
		}
	}()
	if !paddock.ID(m.ID).Valid() {
		return fmt.Errorf("the name %q: %w", m.ID, paddock.Invalid)
	}
	name := path.Join(dirLists, string(m.ID))
	if _, err := s.root.Lstat(name); err == nil {
		return paddock.Exists
	}
	d, err := s.draft(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if gone := d.remove(); err != nil { // otherwise the snapshot is there, and a collector takes what is left
			err = errors.Join(err, gone)
		}
	}()
	if err := d.write(ctx, m, entries); err != nil {
		return err
	}
	return d.commit(ctx, name)
}

// A draft is a directory with what is written for a snapshot, until that is whole: its list, and all of its blobs. Those
// that the store has already are there by a second name, so that nobody can take them away meanwhile. So writers do
// not wait for those that collect, nor the other way around, and what fails is removed as a whole.
type draft struct {
	store *Store
	dir   string
	held  io.Closer // says that its writer is alive
}

const draftList = "list" // of a draft, beside the directories of its blobs

func (s *Store) draft(ctx context.Context) (*draft, error) {
	held, err := s.share(ctx) // nobody takes it for a dead one before it is locked
	if err != nil {
		return nil, err
	}
	defer held.Close()
	d := &draft{store: s, dir: path.Join(dirDraft, crand.Text())}
	if err := s.root.Mkdir(d.dir, 0o700); err != nil {
		return nil, err
	}
	if d.held, err = s.tryDraft(d.dir); err != nil {
		return nil, errors.Join(err, s.root.Remove(d.dir))
	}
	return d, nil
}

// tryDraft locks a draft. That of a living writer is [paddock.Conflict].
func (s *Store) tryDraft(dir string) (io.Closer, error) {
	f, err := s.root.Open(dir)
	if err != nil {
		return nil, err
	}
	return flock(f, true)
}

// remove removes the draft, or what is left of it.
func (d *draft) remove() error {
	return errors.Join(d.store.root.RemoveAll(d.dir), d.held.Close())
}

// write writes everything of a snapshot into the draft.
func (d *draft) write(ctx context.Context, m Meta, entries iter.Seq2[Entry, error]) error {
	return d.store.create(path.Join(d.dir, draftList), func(f *os.File) error {
		w, err := newWriter(f, m, cmp.Or(d.store.opts.List, defaultList))
		if err != nil {
			return err
		}
		in := &intake{draft: d, ctx: ctx, list: w, buf: make([]byte, 0, chunkSize)}
		var o order
		for e, err := range entries {
			if err != nil {
				return err
			}
			if err := cmp.Or(context.Cause(ctx), o.next(&e)); err != nil {
				return err
			}
			if err := w.entry(&e); err != nil {
				return err
			}
			if !hasParts(&e) {
				continue
			}
			if err := in.file(&e); err != nil {
				return fmt.Errorf("%q: %w", e.Path, err)
			}
		}
		return w.finish(f)
	})
}

// create makes a file of a draft.
func (s *Store) create(name string, fill func(*os.File) error) error {
	f, err := s.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = fill(f)
	if err == nil && s.opts.Sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// keep writes a blob into the draft, unless it is there.
func (d *draft) keep(k sum, b []byte) error {
	name := path.Join(d.dir, k.name())
	if _, err := d.store.root.Lstat(name); err == nil {
		return nil
	}
	if err := d.store.root.Mkdir(path.Dir(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := d.store.blob(chunk{size: int64(len(b)), sum: k}); err == nil { // a damaged one is written again
		if err := d.store.root.Link(k.path(), name); err == nil {
			return nil
		}
		// It was just collected, or the file system knows no second names.
	}
	return d.store.create(name, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
}

// commit puts the draft in its place, the list last. It does not stop halfway if the caller goes.
func (d *draft) commit(ctx context.Context, name string) error {
	held, err := d.store.share(ctx)
	if err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return errors.Join(err, held.Close())
	}
	err = d.move(name)
	held.Close()
	if err != nil { // some blobs are in their places, and others may rely on them by now
		return errors.Join(err, d.store.free(ctx))
	}
	return nil
}

func (d *draft) move(name string) error {
	root := d.store.root
	shelves, err := d.store.names(d.dir)
	if err != nil {
		return err
	}
	for _, shelf := range shelves {
		if shelf == draftList {
			continue
		}
		to := path.Join(dirBlobs, shelf)
		if err := root.Mkdir(to, 0o700); err == nil {
			err = d.store.settle(dirBlobs)
			if err != nil {
				return err
			}
		} else if !errors.Is(err, fs.ErrExist) {
			return err
		}
		names, err := d.store.names(path.Join(d.dir, shelf))
		if err != nil {
			return err
		}
		for _, blob := range names {
			if err := root.Rename(path.Join(d.dir, shelf, blob), path.Join(to, blob)); err != nil {
				return err
			}
		}
		if err := d.store.settle(to); err != nil {
			return err
		}
	}
	if err := root.Rename(path.Join(d.dir, draftList), name); err != nil {
		return err
	}
	if err := d.store.settle(dirLists); err != nil {
		return errors.Join(err, root.Remove(name))
	}
	return nil
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
	draft *draft
	ctx   context.Context
	list  *writer
	buf   []byte // the part being filled
	from  int64  // its offset
	parts int    // of the file
}

func (in *intake) file(e *Entry) error {
	in.buf, in.parts = in.buf[:0], 0
	end := int64(0)
	for x, err := range e.Data {
		if err != nil {
			return err
		}
		if x.Offset < end || x.Offset > e.Size-int64(len(x.Bytes)) {
			return fmt.Errorf("bytes at %d of %d, after %d: %w", x.Offset, e.Size, end, paddock.Invalid)
		}
		if x.Offset > end {
			if err := in.flush(); err != nil {
				return err
			}
		}
		end = x.Offset + int64(len(x.Bytes))
		if err := in.add(x.Offset, x.Bytes); err != nil {
			return err
		}
	}
	if err := in.flush(); err != nil {
		return err
	}
	return in.list.parted()
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
	if in.parts++; in.parts > maxChunks {
		return fmt.Errorf("more than %d parts: %w", maxChunks, paddock.Exhausted)
	}
	c := chunk{in.from, int64(len(in.buf)), sha256.Sum256(in.buf)}
	if err := in.list.part(c); err != nil {
		return err // before there is one more file
	}
	err := in.draft.keep(c.sum, in.buf)
	in.buf = in.buf[:0]
	return err
}

// name returns the name of a blob: the directory, and its file there.
func (k sum) name() string {
	name := hex.EncodeToString(k[:])
	return path.Join(name[:2], name[2:])
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

// Discard removes a snapshot and the blobs that only it had. It goes on if the caller goes, because nothing else might
// remove these blobs later.
func (s *Store) Discard(ctx context.Context, id paddock.SnapshotID) error {
	if err := s.Remove(id); err != nil {
		return err
	}
	return s.free(ctx)
}

// freeTime bounds free.
const freeTime = 5 * time.Minute

// free is Free for a caller who may go.
func (s *Store) free(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freeTime)
	defer cancel()
	return s.Free(ctx)
}

// Free removes blobs that no snapshot has at this moment. Until ctx ends it waits for another one that collects, and
// then collects itself, unless one has begun since.
func (s *Store) Free(ctx context.Context) error {
	asked, err := s.root.OpenFile(fileOnly, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer asked.Close()
	before, _ := passes(asked)
	only, err := s.lock(ctx, fileOnly, true)
	if err != nil {
		return fmt.Errorf("wait for another one that collects snapshots: %w", err)
	}
	defer only.Close()
	if _, whole := passes(asked); whole > before {
		return nil // that of another one began since
	}
	_, err = s.collect(ctx, asked)
	return err
}

// passes reads how many collections began, and the number of the last one that came to its end.
func passes(f *os.File) (begun, whole uint64) {
	var b [16]byte
	_, _ = f.ReadAt(b[:], 0) // a file without numbers is of before the first
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}

// Collect removes blobs that no snapshot has, and what killed writers left. It returns the number of bytes of the blobs.
// While somebody else collects, it returns [paddock.Conflict]. If a snapshot cannot be read it removes nothing, because
// that snapshot may still be recovered.
//
// Writers wait for it only at their end, and only while it removes a small share of the blobs.
func (s *Store) Collect(ctx context.Context) (freed int64, err error) {
	only, err := s.tryLock(fileOnly, true)
	if err != nil {
		return 0, fmt.Errorf("collect snapshots: %w", err)
	}
	defer only.Close()
	count, err := s.root.OpenFile(fileOnly, os.O_RDWR, 0)
	if err != nil {
		return 0, fmt.Errorf("collect snapshots: %w", err)
	}
	defer count.Close()
	return s.collect(ctx, count)
}

// collect is Collect of the one that has the lock of it. It counts in the file.
func (s *Store) collect(ctx context.Context, count *os.File) (freed int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("collect snapshots: %w", err)
		}
	}()
	begun, whole := passes(count)
	begun++
	note := func() error {
		_, err := count.WriteAt(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, begun), whole), 0)
		return err
	}
	noted := note() == nil // a full disk may refuse it; then this one spares no other one
	c := collection{store: s, ctx: ctx, read: map[paddock.SnapshotID]bool{}, used: map[uint64]bool{}}
	if c.dirs, err = s.names(dirBlobs); err != nil {
		return 0, err
	}
	// One that is often cut short still comes by all of them.
	first := rand.N(len(c.dirs) + 1) //nolint:gosec // nobody gains by guessing it
	c.dirs = slices.Concat(c.dirs[first:], c.dirs[:first])
	for more := true; more; {
		err := c.alone(func() (err error) {
			for end := time.Now().Add(turnTime); err == nil && more && time.Now().Before(end); {
				more, err = c.step()
			}
			return err
		})
		if err != nil {
			return c.freed, err
		}
		select { // whoever waits looks meanwhile
		case <-ctx.Done():
			return c.freed, context.Cause(ctx)
		case <-time.After(2 * pause):
		}
	}
	if err := c.leftovers(); err != nil {
		return c.freed, err
	}
	if whole = begun; noted {
		_ = note() // as above
	}
	return c.freed, nil
}

// turnTime is how long one that collects lets others wait at a time.
const turnTime = 50 * time.Millisecond

// A collection is a Collect that goes on.
type collection struct {
	store *Store
	ctx   context.Context
	read  map[paddock.SnapshotID]bool // lists that were read: they never change
	used  map[uint64]bool             // keys of the blobs that they have
	dirs  []string                    // shelves still to come
	shelf string                      // the present one
	names []string                    // its files still to come
	freed int64
}

// key is what a blob in use is remembered by: there may be many. That another one with the same
// key is kept as well does no harm.
func (k sum) key() uint64 { return binary.BigEndian.Uint64(k[:]) }

// alone runs do while nobody puts anything in its place, when all snapshots have been read. Most are read before
// writers have to wait. New ones wait for it, so that it comes to its turn.
func (c *collection) alone(do func() error) error {
	if err := c.mark(); err != nil {
		return err
	}
	turn, err := c.store.lock(c.ctx, fileTurn, true)
	if err != nil {
		return err
	}
	defer turn.Close()
	held, err := c.store.lock(c.ctx, fileLock, true)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := c.mark(); err != nil {
		return err
	}
	return do()
}

// mark notes the blobs of the snapshots that were not read yet.
func (c *collection) mark() error {
	ids, err := c.store.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if c.read[id] {
			continue
		}
		if err := c.markOne(id); err != nil && !errors.Is(err, paddock.NotFound) { // it was just removed
			return err
		}
		c.read[id] = true
	}
	return nil
}

func (c *collection) markOne(id paddock.SnapshotID) error {
	f, r, err := c.store.open(id)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		_, err := r.next()
		if err == io.EOF {
			return nil
		}
		for err == nil {
			var k chunk
			var ok bool
			if k, ok, err = r.part(); !ok {
				break
			}
			c.used[k.sum.key()] = true
		}
		if err := cmp.Or(err, context.Cause(c.ctx)); err != nil {
			return fmt.Errorf("snapshot %s: %w", id, err)
		}
	}
}

// step looks at the next blob, or goes to the next shelf. more is false after the last one.
func (c *collection) step() (more bool, err error) {
	if err := context.Cause(c.ctx); err != nil {
		return true, err
	}
	if len(c.names) == 0 {
		if len(c.dirs) == 0 {
			return false, nil
		}
		c.shelf, c.dirs = c.dirs[0], c.dirs[1:]
		if len(c.shelf) == 2 { // otherwise there are no blobs
			c.names, err = c.store.names(path.Join(dirBlobs, c.shelf))
		}
		return true, err
	}
	name := c.names[0]
	c.names = c.names[1:]
	var k sum
	b, err := hex.DecodeString(c.shelf + name)
	if err == nil && len(b) == len(k) && c.used[sum(b).key()] {
		return true, nil
	}
	return true, c.take(path.Join(dirBlobs, c.shelf, name))
}

// take removes a file.
func (c *collection) take(name string) error {
	i, err := c.store.root.Lstat(name)
	if err != nil {
		return err
	}
	if err := c.store.root.Remove(name); err != nil {
		return err
	}
	c.freed += i.Size()
	return nil
}

// leftovers removes what killed writers left.
func (c *collection) leftovers() (err error) {
	var dead []*draft
	defer func() {
		for _, d := range dead { // nobody else touches them
			err = errors.Join(err, d.remove())
		}
	}()
	return c.alone(func() error {
		names, err := c.store.names(dirTemp) // older versions write there only while nobody is alone
		if err != nil {
			return err
		}
		for _, name := range names {
			if err := c.take(path.Join(dirTemp, name)); err != nil {
				return err
			}
		}
		if names, err = c.store.names(dirDraft); err != nil {
			return err
		}
		for _, name := range names {
			dir := path.Join(dirDraft, name)
			held, err := c.store.tryDraft(dir)
			switch {
			case err == nil:
				dead = append(dead, &draft{c.store, dir, held})
			case !errors.Is(err, paddock.Conflict) && !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
		return nil
	})
}
