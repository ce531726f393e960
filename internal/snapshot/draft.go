package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// Contents are the contents of one file in a store or a draft: which blobs have its parts.
type Contents struct{ parts []chunk }

// Size returns the number of bytes, without holes.
func (c Contents) Size() (n int64) {
	for _, p := range c.parts {
		n += p.size
	}
	return n
}

// MarshalBinary implements [encoding.BinaryMarshaler].
func (c Contents) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, len(c.parts)*40)
	end := int64(0)
	for _, p := range c.parts {
		b = binary.AppendUvarint(b, uint64(p.offset-end))
		b = binary.AppendUvarint(b, uint64(p.size))
		b = append(b, p.sum[:]...)
		end = p.offset + p.size
	}
	return b, nil
}

// UnmarshalBinary implements [encoding.BinaryUnmarshaler]. It does not trust the bytes.
func (c *Contents) UnmarshalBinary(b []byte) error {
	var parts []chunk
	end := uint64(0)
	for len(b) > 0 {
		gap, n := binary.Uvarint(b)
		if n <= 0 || gap > maxSize {
			return corrupt("contents have a part without an offset")
		}
		b = b[n:]
		size, n := binary.Uvarint(b)
		if n <= 0 || size == 0 || size > maxChunk || len(b)-n < len(sum{}) || len(parts) >= maxChunks {
			return corrupt("contents have a part of an invalid size")
		}
		p := chunk{offset: int64(end + gap), size: int64(size), sum: sum(b[n : n+len(sum{})])}
		b = b[n+len(sum{}):]
		if end += gap + size; end > maxSize {
			return corrupt("contents have %d bytes", end)
		}
		parts = append(parts, p)
	}
	c.parts = parts
	return nil
}

// valid checks contents against the size of the file that has them.
func (c Contents) valid(size int64) error {
	if n := len(c.parts); n > 0 && c.parts[n-1].offset+c.parts[n-1].size > size {
		return fmt.Errorf("contents are longer than %d bytes: %w", size, paddock.Invalid)
	}
	return nil
}

// Data yields contents of the store, as [Entry.Data] does. Unlike that, it may be read again.
func (s *Store) Data(c Contents) iter.Seq2[Extent, error] {
	return func(yield func(Extent, error) bool) {
		for _, p := range c.parts {
			b, err := s.blob(p)
			if !yield(Extent{p.offset, b}, err) || err != nil {
				return
			}
		}
	}
}

// A Draft is a snapshot that is written for as long as something goes on whose end nobody knows, such as a command. It
// outlives the process of its writer, until somebody resumes and ends it. Nobody collects what it holds. It is not safe
// for concurrent use.
type Draft struct {
	d    *draft
	id   paddock.SnapshotID
	dead bool // it was another one's, so that what it holds may be cut off
	buf  []byte
}

// Draft begins the draft of a snapshot.
func (s *Store) Draft(id paddock.SnapshotID) (*Draft, error) {
	dir, err := keptDir(id)
	if err != nil {
		return nil, err
	}
	if _, err := s.root.Lstat(path.Join(dirLists, string(id))); err == nil {
		return nil, fmt.Errorf("draft of snapshot %s: %w", id, paddock.Exists)
	}
	if err := s.root.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = paddock.Exists
		}
		return nil, fmt.Errorf("draft of snapshot %s: %w", id, err)
	}
	held, err := s.tryDraft(dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("draft of snapshot %s: %w", id, err), s.root.Remove(dir))
	}
	if err := s.settle(dirKept); err != nil {
		return nil, errors.Join(err, held.Close(), s.root.Remove(dir))
	}
	return &Draft{d: &draft{store: s, dir: dir, held: held, lasting: true}, id: id}, nil
}

// Resume takes over a draft whose writer died. While the writer lives, the error is [paddock.Conflict].
func (s *Store) Resume(id paddock.SnapshotID) (*Draft, error) {
	dir, err := keptDir(id)
	if err != nil {
		return nil, err
	}
	held, err := s.tryDraft(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = paddock.NotFound
	}
	if err != nil {
		return nil, fmt.Errorf("draft of snapshot %s: %w", id, err)
	}
	return &Draft{d: &draft{store: s, dir: dir, held: held, lasting: true}, id: id, dead: true}, nil
}

func keptDir(id paddock.SnapshotID) (string, error) {
	if !paddock.ID(id).Valid() {
		return "", fmt.Errorf("the name %q: %w", id, paddock.Invalid)
	}
	return path.Join(dirKept, string(id)), nil
}

// Add stores the contents of a file of a size, and returns what names them in an entry. fresh is how many bytes the store
// did not have. After an error the draft is as before, so that more can be added.
func (d *Draft) Add(ctx context.Context, size int64, data iter.Seq2[Extent, error]) (c Contents, fresh int64, err error) {
	var made []string
	defer func() {
		if err == nil {
			return
		}
		for _, name := range made {
			err = errors.Join(err, d.d.store.root.Remove(name))
		}
		c, fresh = Contents{}, 0
	}()
	if d.buf == nil {
		d.buf = make([]byte, 0, chunkSize)
	}
	in := &intake{draft: d.d, ctx: ctx, buf: d.buf, note: func(k chunk) error { c.parts = append(c.parts, k); return nil }}
	in.made = func(name string, n int64) {
		if name != "" {
			made = append(made, name)
		}
		fresh += n
	}
	if err := in.fill(size, data); err != nil {
		return c, fresh, err
	}
	if d.d.store.opts.Sync {
		if err := d.d.store.settle(d.d.dir); err != nil {
			return c, fresh, err
		}
	}
	return c, fresh, nil
}

// Commit makes the draft a snapshot with these entries, in which [Entry.Held] has contents that were added, and ends the
// draft. Contents that no entry has are not kept. After an error the draft is still there, and Commit may be called
// again, also by another process that resumes it.
func (d *Draft) Commit(ctx context.Context, m Meta, entries iter.Seq2[Entry, error]) error {
	if err := d.commit(ctx, m, entries); err != nil {
		return fmt.Errorf("write snapshot %s: %w", d.id, err)
	}
	_ = d.d.remove() // the snapshot is there; whoever resumes the draft removes what is left
	return nil
}

const draftNew = "new" // of a draft: its list, before that is whole

func (d *Draft) commit(ctx context.Context, m Meta, entries iter.Seq2[Entry, error]) error {
	s := d.d.store
	name := path.Join(dirLists, string(d.id))
	if _, err := s.root.Lstat(name); err == nil {
		if d.dead { // its writer died after the end
			return nil
		}
		return paddock.Exists
	}
	m.ID = d.id
	used := map[sum]bool{}
	fresh := path.Join(d.d.dir, draftNew)
	if err := s.root.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := d.d.list(ctx, draftNew, m, func(yield func(Entry, error) bool) {
		for e, err := range entries {
			if e.Held != nil {
				for _, p := range e.Held.parts {
					used[p.sum] = true
				}
			}
			if !yield(e, err) {
				return
			}
		}
	})
	if err != nil {
		return errors.Join(err, s.root.RemoveAll(fresh))
	}
	if err := d.sweep(ctx, used); err != nil {
		return err
	}
	held, err := s.share(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	// From here on a collector spares what the list names, wherever it is.
	if err := s.root.Rename(fresh, path.Join(d.d.dir, draftList)); err != nil {
		return err
	}
	if err := s.settle(d.d.dir); err != nil {
		return err
	}
	return d.d.move(name)
}

// sweep removes blobs that are not used. Of a dead writer's it removes those that were cut off too, so that none of them
// takes the place of a whole one.
func (d *Draft) sweep(ctx context.Context, used map[sum]bool) error {
	s := d.d.store
	names, err := s.names(d.d.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		k, ok := parseSum(name)
		if !ok || used[k] && (!d.dead || s.whole(path.Join(d.d.dir, name), k)) {
			continue // or it is a list
		}
		if err := s.root.Remove(path.Join(d.d.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// whole reports whether a file holds what its name says.
func (s *Store) whole(name string, k sum) bool {
	i, err := s.root.Lstat(name)
	if err != nil || !i.Mode().IsRegular() || i.Size() > maxChunk {
		return false
	}
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxChunk))
	return err == nil && sha256.Sum256(b) == k
}

// Discard ends the draft without a snapshot.
func (d *Draft) Discard() error { return d.d.remove() }

// Leave lets go of the draft as it is, so that it can be resumed.
func (d *Draft) Leave() error { return d.d.held.Close() }

// Drafts lists the snapshots of which there are drafts, also those of living writers.
func (s *Store) Drafts() ([]paddock.SnapshotID, error) { return s.idsIn(dirKept) }

// Usage returns how many bytes all blobs have, without those of drafts. It looks at each of them.
func (s *Store) Usage(ctx context.Context) (n int64, err error) {
	shelves, err := s.names(dirBlobs)
	for _, shelf := range shelves {
		names, err := s.names(path.Join(dirBlobs, shelf))
		if err := cmp.Or(err, context.Cause(ctx)); err != nil {
			return n, err
		}
		for _, name := range names {
			if i, err := s.root.Lstat(path.Join(dirBlobs, shelf, name)); err == nil { // else it was just collected
				n += i.Size()
			}
		}
	}
	return n, err
}

// Held yields the contents of the files of the snapshot, in order, with their paths, without reading them.
func (x *Snapshot) Held(ctx context.Context) iter.Seq2[string, Contents] {
	return func(yield func(string, Contents) bool) {
		x.err = x.held(ctx, yield)
	}
}

// Err returns why the last Held ended early, or nil.
func (x *Snapshot) Err() error { return x.err }

func (x *Snapshot) held(ctx context.Context, yield func(string, Contents) bool) error {
	if _, err := x.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	r, err := newReader(x.file)
	if err != nil {
		return err
	}
	for {
		e, err := r.next()
		if err == io.EOF {
			return nil
		}
		if err := cmp.Or(err, context.Cause(ctx)); err != nil {
			return fmt.Errorf("read snapshot %s: %w", x.Meta.ID, err)
		}
		if e.Kind != File {
			continue
		}
		var c Contents
		for {
			p, ok, err := r.part()
			if err != nil {
				return fmt.Errorf("read snapshot %s: %w", x.Meta.ID, err)
			}
			if !ok {
				break
			}
			c.parts = append(c.parts, p)
		}
		if !yield(strings.Clone(e.Path), c) {
			return nil
		}
	}
}
