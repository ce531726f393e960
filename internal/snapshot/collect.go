package snapshot

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
)

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
	if err := cmp.Or(c.mark(), c.markKept()); err != nil {
		return err
	}
	return do()
}

// markKept notes the blobs of drafts that were on the way to their places when their writers failed. Whoever resumes such
// a draft goes on with it. Nothing is on the way meanwhile.
func (c *collection) markKept() error {
	ids, err := c.store.Drafts()
	if err != nil {
		return err
	}
	for _, id := range ids {
		err := c.markList(path.Join(dirKept, string(id), draftList), id)
		if err != nil && !errors.Is(err, paddock.NotFound) { // most have no list yet
			return err
		}
	}
	return nil
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
	return c.markList(path.Join(dirLists, string(id)), id)
}

func (c *collection) markList(name string, id paddock.SnapshotID) error {
	f, r, err := c.store.openList(name, id)
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
	if k, ok := parseSum(c.shelf + name); ok && c.used[k.key()] {
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
				dead = append(dead, &draft{store: c.store, dir: dir, held: held})
			case !errors.Is(err, paddock.Conflict) && !errors.Is(err, fs.ErrNotExist):
				return err
			}
		}
		return nil
	})
}
