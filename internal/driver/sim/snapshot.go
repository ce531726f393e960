package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/description"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/snapshotentry"
	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// A kept snapshot is the files of a box as they were, and the directories of
// the host that lie below some of them.
type kept struct {
	tree   *vfs.Snapshot
	mounts []mounted
}

// snapshots are those that a driver knows: in memory those that it took
// itself, and on disk, where it has a directory, those of all.
type snapshots struct {
	base  func() (*vfs.Snapshot, error)
	store *snapshot.Store // nil keeps them in memory alone

	mu  sync.Mutex
	all map[paddock.SnapshotID]kept // guarded by mu
}

func openSnapshots(dir string, base func() (*vfs.Snapshot, error)) (*snapshots, error) {
	s := &snapshots{base: base, all: map[paddock.SnapshotID]kept{}}
	if dir == "" {
		return s, nil
	}
	var err error
	if s.store, err = snapshot.Open(dir, snapshot.Options{}); err != nil {
		return nil, fmt.Errorf("open the snapshots in %s: %w", dir, err)
	}
	return s, nil
}

// Export returns the files of a sandbox of this driver as they are now, for a
// snapshot that is kept elsewhere.
func (d *Driver) Export(sb paddock.Sandbox) iter.Seq2[snapshot.Entry, error] {
	failed := func(err error) iter.Seq2[snapshot.Entry, error] {
		return func(yield func(snapshot.Entry, error) bool) { yield(snapshot.Entry{}, err) }
	}
	b, ok := sb.(*box)
	if !ok {
		return failed(fmt.Errorf("sandbox %s is not of this tier: %w", sb.ID(), paddock.Invalid))
	}
	base, err := d.base()
	if err != nil {
		return failed(err)
	}
	b.gate.RLock()
	defer b.gate.RUnlock()
	if b.gone {
		return failed(fmt.Errorf("sandbox %s was removed: %w", b.id, paddock.Unavailable))
	}
	return snapshotentry.Export(b.fs.Snapshot().Export(base))
}

// Import makes a snapshot known whose files are kept elsewhere, for a sandbox
// with these limits. They are checked as those of a stranger.
func (d *Driver) Import(id paddock.SnapshotID, l paddock.Limits, entries iter.Seq2[snapshot.Entry, error]) error {
	_, counted := description.Limits(d.bounds(), l)
	_, err := d.snapshots.learn(id, fileBounds(counted), entries)
	return err
}

// fileBounds are the limits that a file system counts.
func fileBounds(l budget.Limits) vfs.Options {
	return vfs.Options{Disk: l.Disk, Inodes: l.Inodes, FileSize: l.FileSize, Path: l.Path, Deepest: l.Deepest()}
}

// Snapshot keeps the files as they are now, in constant time; where the driver
// has a directory for snapshots, it also writes what differs from the system
// that every computer begins with. What lies below a mount and was not changed
// stays the host's.
func (b *box) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	b.gate.RLock()
	defer b.gate.RUnlock()
	switch {
	case b.gone:
		return "", fmt.Errorf("sandbox %s was removed: %w", b.id, paddock.Unavailable)
	case o.Memory:
		return "", fmt.Errorf("a snapshot of memory: tasks are not kept on this tier: %w", paddock.Unsupported)
	}
	s := b.d.snapshots
	m := description.NewMeta(o.Name, b.from)
	k := kept{b.fs.Snapshot(), b.mounts}
	if s.store != nil {
		base, err := s.base()
		if err != nil {
			return "", err
		}
		if err := s.store.Write(ctx, m, snapshotentry.Export(k.tree.Export(base))); err != nil {
			return "", fmt.Errorf("write the snapshot: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range k.mounts {
		m.root.hold()
	}
	s.all[m.ID] = k
	return m.ID, nil
}

// root gives the tree that a box with these bounds begins with, and what of the
// host lies below.
func (d *Driver) root(spec paddock.Spec, o vfs.Options) (*vfs.Snapshot, []mounted, error) {
	if spec.Root.Kind != paddock.RootSnapshot {
		tree, err := d.base()
		return tree, nil, err
	}
	id := spec.Root.Snapshot
	s := d.snapshots
	s.mu.Lock()
	k, ok := s.all[id]
	for _, m := range k.mounts {
		m.root.hold()
	}
	s.mu.Unlock()
	if ok {
		return k.tree, append([]mounted(nil), k.mounts...), nil
	}
	if s.store == nil {
		return nil, nil, fmt.Errorf("there is no snapshot %q: %w", string(id), paddock.NotFound)
	}
	tree, err := s.read(id, o)
	return tree, nil, err
}

// read makes a tree of what is on disk. It checks as it goes: a store may be
// damaged, or written by a stranger.
func (s *snapshots) read(id paddock.SnapshotID, o vfs.Options) (_ *vfs.Snapshot, err error) {
	x, err := s.store.Read(id)
	if err != nil {
		return nil, fmt.Errorf("snapshot %q: %w", string(id), err)
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := description.CheckBase(x.Meta); err != nil {
		return nil, err
	}
	fit := description.FitOf(x.Meta)
	if err := fit.Check(x.Entries()); err != nil {
		return nil, fmt.Errorf("snapshot %q: %w", string(id), err)
	}
	return s.learn(id, o, fit.Adopt(x.Entries()))
}

// learn makes a tree of what a snapshot holds, as far as bounds allow, and
// keeps it.
func (s *snapshots) learn(id paddock.SnapshotID, o vfs.Options, entries iter.Seq2[snapshot.Entry, error]) (*vfs.Snapshot, error) {
	base, err := s.base()
	if err != nil {
		return nil, err
	}
	fs := base.FS(o)
	// What it takes away of the base makes room only when its turn comes.
	bytes, files, _, _ := fs.Usage()
	o.Disk, o.Inodes = o.Disk+bytes, o.Inodes+files
	fs.Relimit(o)
	err = fs.Import(snapshotentry.Import(entries))
	if errors.Is(err, linux.ENOSPC) {
		return nil, fmt.Errorf("snapshot %q has more files than the limit disk has room for: raise it: %w: %w", string(id), err, paddock.Exhausted)
	}
	if errors.Is(err, linux.ENAMETOOLONG) {
		return nil, fmt.Errorf("snapshot %q has a longer path than the limit path of this computer permits: raise it: %w: %w", string(id), err, paddock.Exhausted)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot %q: %w", string(id), err)
	}
	tree := fs.Snapshot()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[id] = kept{tree: tree}
	return tree, nil
}

// remove forgets a snapshot, and what of it is on disk.
func (s *snapshots) remove(ctx context.Context, id paddock.SnapshotID) error {
	if !paddock.ID(id).Valid() {
		return fmt.Errorf("not a name: %w", paddock.Invalid)
	}
	if s.store != nil {
		if err := s.store.Discard(ctx, id); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.all[id].mounts {
		m.root.drop()
	}
	delete(s.all, id)
	return nil
}

// close lets go of what snapshots hold of the host.
func (s *snapshots) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.all {
		for _, m := range k.mounts {
			m.root.drop()
		}
	}
	s.all = map[paddock.SnapshotID]kept{}
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}
