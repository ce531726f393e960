package parent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// snapshotTime bounds the taking of a snapshot, and sending one to a child.
const snapshotTime = 10 * time.Minute

// store opens the place for snapshots, for lists of at most so many bytes; zero is the store's own bound.
// Where it is a temporary place, it is made when it is first needed.
func (d *Driver) store(list int64) (*snapshot.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.snapshots == "" {
		dir, err := os.MkdirTemp("", "paddock-snapshots-")
		if err != nil {
			return nil, fmt.Errorf("make a directory for snapshots: %w: %w", err, paddock.Unavailable)
		}
		d.snapshots = dir
	}
	s, err := snapshot.Open(d.snapshots, snapshot.Options{List: list})
	if err != nil {
		return nil, fmt.Errorf("open the snapshots in %s: %w", d.snapshots, err)
	}
	return s, nil
}

// collectTime bounds a collection.
const collectTime = 5 * time.Minute

// collect frees what no snapshot has.
func (d *Driver) collect(ctx context.Context) (err error) {
	s, err := d.store(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	return s.Free(ctx)
}

// removeStore takes away snapshots that nobody could find again.
func (d *Driver) removeStore() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.snapshots == d.o.Snapshots {
		return nil
	}
	dir := d.snapshots
	d.snapshots = d.o.Snapshots
	return os.RemoveAll(dir)
}

// begins has use read the files that a spec begins with, if that is a snapshot. One that cannot fit into
// the sandbox is refused before.
func (d *Driver) begins(ctx context.Context, spec *paddock.Spec, use func(iter.Seq2[snapshot.Entry, error]) error) (err error) {
	if spec.Root.Kind != paddock.RootSnapshot {
		return use(nil)
	}
	s, err := d.store(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	x, err := s.Read(spec.Root.Snapshot)
	if err != nil {
		return fmt.Errorf("snapshot %q: %w", string(spec.Root.Snapshot), err)
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := description.CheckBase(x.Meta); err != nil {
		return err
	}
	size, err := x.Size(ctx)
	if ctx.Err() != nil {
		return fmt.Errorf("create: %w", paddock.Canceled)
	}
	if err != nil {
		return err
	}
	if err := d.fits(size, spec.Limits); err != nil {
		return fmt.Errorf("snapshot %q: %w", string(spec.Root.Snapshot), err)
	}
	fit := description.FitOf(x.Meta)
	if err := fit.Check(x.Entries()); err != nil {
		return fmt.Errorf("snapshot %q: %w", string(spec.Root.Snapshot), err)
	}
	return use(fit.Adopt(x.Entries()))
}

// SnapshotTier implements [paddock.SnapshotKeeper].
func (d *Driver) SnapshotTier(_ context.Context, id paddock.SnapshotID) (_ paddock.Tier, err error) {
	s, err := d.store(0)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	x, err := s.Read(id)
	if err != nil {
		return "", err
	}
	return x.Meta.Tier, x.Close()
}

// baseFiles is more than the system has that every computer begins with. A snapshot may change them.
const baseFiles = 10_000

// fits refuses what a sandbox with these limits has no room for. The child counts exactly.
func (d *Driver) fits(size snapshot.Size, l paddock.Limits) error {
	_, counted := description.Limits(d.o.Limits, l)
	switch {
	case size.Bytes > counted.Disk:
		return fmt.Errorf("its files have %d bytes, and the limit disk is %d: raise it: %w", size.Bytes, counted.Disk, paddock.Exhausted)
	case size.Files > counted.Inodes+baseFiles:
		return fmt.Errorf("it has %d files, and with the limit disk of %d there can be %d: raise it: %w",
			size.Files, counted.Disk, counted.Inodes, paddock.Exhausted)
	}
	return nil
}

// Snapshot keeps the files as they are now, in the store of the host. It takes
// time by what differs from the system that every computer begins with.
func (s *sandbox) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (_ paddock.SnapshotID, err error) {
	if o.Memory {
		return "", fmt.Errorf("a snapshot of memory: tasks are not kept on this tier: %w", paddock.Unsupported)
	}
	limits := s.d.o.Limits.Filled()
	disk := max(limits.Disk, s.largest().Disk)
	store, err := s.d.store(protocol.Names(limits.Inodes) + disk/64 + 1<<20)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	meta := description.NewMeta(o.Name, s.spec.Root.Snapshot)
	err = s.converse(ctx, func() error {
		return s.awake(func() error {
			room := protocol.RoomOf(disk, limits.Inodes, limits.Path)
			if err := protocol.Send(s.control, protocol.Order{Op: "snapshot", Room: room}); err != nil {
				return s.link.Failed(err)
			}
			x := protocol.Bounded(s.control, room)
			last := time.Now().Add(snapshotTime)
			x.Ready = func() error {
				until := time.Now().Add(s.d.answer)
				if until.After(last) {
					until = last
				}
				return s.control.SetDeadline(until)
			}
			err := store.Write(ctx, meta, x.Entries())
			if rest := x.Drain(); rest != nil {
				return s.link.Failed(rest)
			}
			return err
		})
	})
	if err != nil {
		return "", fmt.Errorf("snapshot of sandbox %s: %w", s.spec.ID, err)
	}
	return meta.ID, nil
}
