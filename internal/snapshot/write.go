package snapshot

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"

	"github.com/paddock-sandbox/paddock"
)

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

	lasting bool            // it is of a Draft, whose blobs are in its directory itself: most are few
	shelves map[string]bool // directories that were made
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
	return d.list(ctx, draftList, m, entries)
}

// list writes the list of a snapshot into a file of the draft, and contents that are not held yet.
func (d *draft) list(ctx context.Context, name string, m Meta, entries iter.Seq2[Entry, error]) error {
	return d.store.create(path.Join(d.dir, name), func(f *os.File) error {
		w, err := newWriter(f, m, cmp.Or(d.store.opts.List, defaultList))
		if err != nil {
			return err
		}
		in := &intake{draft: d, ctx: ctx, note: w.part, buf: make([]byte, 0, chunkSize)}
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
			if err := w.parted(); err != nil {
				return err
			}
		}
		return w.finish(f)
	})
}

// moveShelves moves the blobs of directories to their places.
func (d *draft) moveShelves(shelves []string) error {
	for _, shelf := range shelves {
		if len(shelf) != 2 { // it is the list
			continue
		}
		if err := d.store.shelf(shelf); err != nil {
			return err
		}
		names, err := d.store.names(path.Join(d.dir, shelf))
		if err != nil {
			return err
		}
		to := path.Join(dirBlobs, shelf)
		for _, blob := range names {
			if err := d.store.root.Rename(path.Join(d.dir, shelf, blob), path.Join(to, blob)); err != nil {
				return err
			}
		}
		if err := d.store.settle(to); err != nil {
			return err
		}
	}
	return nil
}

// moveFlat moves blobs that are in the directory of the draft itself to their places.
func (d *draft) moveFlat(names []string) error {
	made := map[string]bool{}
	for _, name := range names {
		k, ok := parseSum(name)
		if !ok {
			continue
		}
		shelf := path.Dir(k.name())
		if !made[shelf] {
			if err := d.store.shelf(shelf); err != nil {
				return err
			}
			made[shelf] = true
		}
		if err := d.store.root.Rename(path.Join(d.dir, name), k.path()); err != nil {
			return err
		}
	}
	for shelf := range made {
		if err := d.store.settle(path.Join(dirBlobs, shelf)); err != nil {
			return err
		}
	}
	return nil
}

// shelf makes a directory of blobs, unless it is there.
func (s *Store) shelf(name string) error {
	err := s.root.Mkdir(path.Join(dirBlobs, name), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return cmp.Or(err, s.settle(dirBlobs))
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

// keep writes a blob into the draft, unless it is there. It returns the name if the draft did not have it, and how many
// bytes neither the draft nor the store had.
func (d *draft) keep(k sum, b []byte) (name string, fresh int64, err error) {
	name = path.Join(d.dir, k.name())
	if d.lasting {
		name = path.Join(d.dir, k.flat())
	}
	if _, err := d.store.root.Lstat(name); err == nil {
		return "", 0, nil
	}
	if shelf := path.Dir(name); shelf != d.dir && !d.shelves[shelf] {
		if err := d.store.root.Mkdir(shelf, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", 0, err
		}
		if d.shelves == nil {
			d.shelves = map[string]bool{}
		}
		d.shelves[shelf] = true
	}
	if _, err := d.store.blob(chunk{size: int64(len(b)), sum: k}); err == nil { // a damaged one is written again
		if err := d.store.root.Link(k.path(), name); err == nil {
			return name, 0, nil
		}
		// It was just collected, or the file system knows no second names.
	}
	err = d.store.create(name, func(f *os.File) error {
		_, err := f.Write(b)
		return err
	})
	if err != nil {
		return "", 0, errors.Join(err, d.store.root.RemoveAll(name)) // a part of it would pass for the whole
	}
	return name, int64(len(b)), nil
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
	if d.lasting {
		err = d.moveFlat(shelves)
	} else {
		err = d.moveShelves(shelves)
	}
	if err != nil {
		return err
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
	note  func(chunk) error              // of each part, before it is kept
	made  func(name string, fresh int64) // of each part that the draft did not have, unless nil
	buf   []byte                         // the part being filled
	from  int64                          // its offset
	parts int                            // of the file
}

func (in *intake) file(e *Entry) error {
	if e.Held == nil {
		return in.fill(e.Size, e.Data)
	}
	if !in.draft.lasting {
		return fmt.Errorf("contents that a draft holds: %w", paddock.Invalid)
	}
	if err := e.Held.valid(e.Size); err != nil {
		return err
	}
	for _, c := range e.Held.parts {
		if err := in.note(c); err != nil {
			return err
		}
	}
	return nil
}

// fill splits the contents of a file of a size.
func (in *intake) fill(size int64, data iter.Seq2[Extent, error]) error {
	in.buf, in.parts = in.buf[:0], 0
	end := int64(0)
	for x, err := range data {
		if err != nil {
			return err
		}
		if x.Offset < end || x.Offset > size-int64(len(x.Bytes)) {
			return fmt.Errorf("bytes at %d of %d, after %d: %w", x.Offset, size, end, paddock.Invalid)
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
	return in.flush()
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
	if err := in.note(c); err != nil {
		return err // before there is one more file
	}
	name, fresh, err := in.draft.keep(c.sum, in.buf)
	if err == nil && in.made != nil {
		in.made(name, fresh)
	}
	in.buf = in.buf[:0]
	return err
}
