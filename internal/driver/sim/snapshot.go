package sim

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/vfs"
)

// A kept snapshot is the files of a box as they were, and the directories of
// the host that lie below some of them.
type kept struct {
	tree   *vfs.Snapshot
	mounts []mounted
}

// snapshots are those that a driver knows.
type snapshots struct {
	mu  sync.Mutex
	all map[paddock.SnapshotID]kept // guarded by mu
}

func openSnapshots(string) (*snapshots, error) {
	return &snapshots{all: map[paddock.SnapshotID]kept{}}, nil
}

// Snapshot implements paddock.Sandbox. It takes constant time.
func (b *box) Snapshot(_ context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	b.gate.RLock()
	defer b.gate.RUnlock()
	if b.gone {
		return "", fmt.Errorf("sandbox %s was removed: %w", b.id, paddock.Unavailable)
	}
	if o.Memory {
		return "", fmt.Errorf("a snapshot of memory: tasks are not kept on this tier: %w", paddock.Unsupported)
	}
	id := paddock.SnapshotID("snap-" + strings.ToLower(rand.Text()[:16]))
	s := b.d.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range b.mounts {
		m.root.hold()
	}
	s.all[id] = kept{b.fs.Snapshot(), b.mounts}
	return id, nil
}

// root gives the tree that a box begins with, and what of the host lies below.
func (d *Driver) root(spec paddock.Spec) (*vfs.Snapshot, []mounted, error) {
	if spec.Root.Kind != paddock.RootSnapshot {
		return d.base, nil, nil
	}
	s := d.snapshots
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.all[spec.Root.Snapshot]
	if !ok {
		return nil, nil, fmt.Errorf("snapshot %q: %w", string(spec.Root.Snapshot), paddock.NotFound)
	}
	for _, m := range k.mounts {
		m.root.hold()
	}
	return k.tree, append([]mounted(nil), k.mounts...), nil
}

// close lets go of what snapshots hold of the host.
func (s *snapshots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.all {
		for _, m := range k.mounts {
			m.root.drop()
		}
	}
	s.all = map[paddock.SnapshotID]kept{}
}
