// Package snapshotentry converts between the entries of stored snapshots and those of the simulated file
// system. The engine does not know stored snapshots, so that it can become a module of its own.
package snapshotentry

import (
	"iter"

	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// Both packages number kinds alike; these lines do not compile otherwise.
var (
	_ = [1]struct{}{}[snapshot.File-snapshot.Kind(vfs.ChangeFile)]
	_ = [1]struct{}{}[snapshot.Dir-snapshot.Kind(vfs.ChangeDir)]
	_ = [1]struct{}{}[snapshot.Link-snapshot.Kind(vfs.ChangeLink)]
	_ = [1]struct{}{}[snapshot.Pipe-snapshot.Kind(vfs.ChangePipe)]
	_ = [1]struct{}{}[snapshot.Socket-snapshot.Kind(vfs.ChangeSocket)]
	_ = [1]struct{}{}[snapshot.Char-snapshot.Kind(vfs.ChangeChar)]
	_ = [1]struct{}{}[snapshot.Block-snapshot.Kind(vfs.ChangeBlock)]
	_ = [1]struct{}{}[snapshot.Gone-snapshot.Kind(vfs.ChangeGone)]
	_ = [1]struct{}{}[snapshot.Same-snapshot.Kind(vfs.ChangeSame)]
)

// Export converts changes of the simulated file system into those of a
// snapshot.
func Export(entries iter.Seq2[vfs.Change, error]) iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		for e, err := range entries {
			x := snapshot.Entry{
				Path: e.Path, Kind: snapshot.Kind(e.Kind), Mode: e.Mode, UID: e.UID, GID: e.GID, ModTime: e.ModTime,
				Target: e.Target, First: e.First, Device: e.Device, Opaque: e.Opaque, Shared: e.Shared, Size: e.Size,
			}
			if e.Data != nil {
				x.Data = func(yield func(snapshot.Extent, error) bool) {
					for piece, err := range e.Data {
						if !yield(snapshot.Extent(piece), err) {
							return
						}
					}
				}
			}
			if !yield(x, err) {
				return
			}
		}
	}
}

// Import converts entries of a snapshot into those of the simulated file
// system. It checks nothing: [vfs.FS.Import] does.
func Import(entries iter.Seq2[snapshot.Entry, error]) iter.Seq2[vfs.Change, error] {
	return func(yield func(vfs.Change, error) bool) {
		for e, err := range entries {
			x := vfs.Change{
				Path: e.Path, Kind: vfs.ChangeKind(e.Kind), Mode: e.Mode, UID: e.UID, GID: e.GID, ModTime: e.ModTime,
				Target: e.Target, First: e.First, Device: e.Device, Opaque: e.Opaque, Shared: e.Shared, Size: e.Size,
			}
			if e.Data != nil {
				x.Data = func(yield func(vfs.Extent, error) bool) {
					for piece, err := range e.Data {
						if !yield(vfs.Extent(piece), err) {
							return
						}
					}
				}
			}
			if !yield(x, err) {
				return
			}
		}
	}
}
