package guestkernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/box/layer"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// A Saver pauses a box by saving and ending it, and resumes it in another box. It
// implements box.Pauser.
type Saver struct {
	// Kernel names the guest kernel with its release. No other kernel reads what it saved.
	Kernel string

	// Memory returns the maximum size of a box's saved memory, in bytes, if that is as
	// large as the machine and mostly holes. Nil means that only used memory is written.
	Memory func(b *box.Box) int64

	// Dialect is how the kernel writes and reads archives of files.
	Dialect layer.Dialect

	// Attributes reports whether the kernel can keep an extended attribute. Nil means all.
	Attributes func(key string) bool
}

// Pause implements box.Pauser.
func (s Saver) Pause(ctx context.Context, l *box.Life) error {
	err := l.Suspend(ctx, func(ctx context.Context, b *box.Box) (box.Saved, error) {
		m, err := s.save(ctx, l, b, boxinit.OpStop)
		if err != nil {
			return nil, err
		}
		return m, nil
	})
	if err != nil {
		return fmt.Errorf("pause: %w", err)
	}
	return nil
}

// Resume implements box.Pauser.
func (s Saver) Resume(ctx context.Context, l *box.Life) error {
	err := l.Continue(ctx, func(saved box.Saved) (first boxinit.Files, err error) {
		m, ok := saved.(*checkpoint)
		if !ok {
			return first, fmt.Errorf("a saved box of another kind (%T): %w", saved, paddock.Internal)
		}
		parts, err := m.open(s.Kernel, l.Plan().Programs.One(FileAgent), nil)
		if err == nil {
			first.Add(boxinit.FileImage, parts...)
		}
		return first, err
	})
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	return nil
}

// Snapshot implements box.Pauser. The box continues to run.
func (s Saver) Snapshot(ctx context.Context, l *box.Life, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	if !o.Memory {
		return s.files(ctx, l, o.Name)
	}
	m, err := s.save(ctx, l, l.Box(), boxinit.OpSave)
	if err != nil {
		return "", err
	}
	m.about.Name = o.Name
	if err := m.seal(l.Plan().Programs.One(FileAgent)); err != nil {
		return "", errors.Join(err, m.Remove())
	}
	return paddock.SnapshotID(filepath.Base(m.dir)), nil
}

// files stores a snapshot of files in the form of all tiers, from the archive that the kernel writes.
func (s Saver) files(ctx context.Context, l *box.Life, name string) (id paddock.SnapshotID, err error) {
	meta, err := layer.NewMeta(l, name)
	if err != nil {
		return "", err
	}
	m, err := s.save(ctx, l, l.Box(), boxinit.OpFiles)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, m.Remove()) }()
	f, err := os.Open(filepath.Join(m.dir, fileParts[0]))
	if err != nil {
		return "", box.HostFault(err)
	}
	defer f.Close()
	return layer.Write(ctx, l, meta, layer.FromArchive(f, s.room(l.Box(), false).Content, s.Dialect))
}

// Discard implements box.Pauser. A snapshot that was not removed as a whole is not used.
func (s Saver) Discard(l *box.Life, id paddock.SnapshotID) error {
	if layer.Known(id) {
		return layer.Discard(context.Background(), l.Files(), id)
	}
	return discard(l.Data(), id)
}

func discard(data string, id paddock.SnapshotID) error {
	if !paddock.ID(id).Valid() || !strings.HasPrefix(string(id), snapshotPrefix) {
		return fmt.Errorf("snapshot %q: not a name: %w", string(id), paddock.Internal)
	}
	m := &checkpoint{dir: filepath.Join(data, string(id))}
	if err := os.Remove(filepath.Join(m.dir, checkpointFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return m.Remove()
}

// save writes a box to files. With boxinit.OpStop the box has ended afterwards.
func (s Saver) save(ctx context.Context, l *box.Life, b *box.Box, op boxinit.Op) (*checkpoint, error) {
	prefix, stop := snapshotPrefix, op == boxinit.OpStop
	if stop {
		prefix = pausedPrefix
	}
	p := l.Plan()
	m, err := newCheckpoint(l.Data(), prefix, s.Kernel, p)
	if err != nil {
		return nil, box.HostFault(err)
	}
	m.unnamed = l.Ephemeral() && stop
	if !stop { // others begin with it, and have a spec of their own
		m.about.Order.Spec = nil
	}
	if stop {
		if err := l.Saving(m.dir); err != nil {
			return nil, box.HostFault(errors.Join(err, m.Remove()))
		}
	}
	// Everything is safe on disk before the box ends.
	err = m.fill(ctx, s, b, op)
	unfilled := err != nil
	if err == nil && p.Gateway != nil {
		if err = p.Gateway.Remember(ctx); err == nil {
			m.about.Order.Gateway = p.Gateway.Saved(stop)
		}
	}
	if err == nil && stop {
		err = box.HostFault(m.seal(p.Programs.One(FileAgent)))
	}
	if err == nil {
		if stop {
			l.Retire(ctx, b)
		}
		return m, nil
	}
	if stop {
		// It may have stopped without reporting it.
		goCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goTime)
		defer cancel()
		_ = write(goCtx, b, boxinit.OpGo, boxinit.Room{}, nil) // fails if the box has ended
	}
	_ = m.Remove() // an unfinished one is useless, and recognised as such
	if unfilled && stop {
		err = ownFault(err, l.Data())
	}
	return nil, err
}

// ownFault marks the error of a box that could not write to its files as the host's, if the host cannot write in that
// directory either. What the box wrote until then is gone: it must not be what fills the disk.
func ownFault(err error, dir string) error {
	if own := box.TryDisk(dir); own != nil {
		return box.HostFault(errors.Join(err, own))
	}
	return err
}

// goTime bounds how long a box may take to continue after saving failed. It may be in the
// middle of a large write.
const goTime = time.Minute

// A Store holds the checkpoints of a driver. It implements box.Snapshots.
type Store struct {
	Site  *box.Site
	Saver Saver
	Agent func() (*os.File, error)

	// Resupply returns the files that a resumed box needs besides its parts, and completes
	// the order. It may be nil.
	Resupply func(ctx context.Context, o *box.Order) (boxinit.Files, error)

	sums sums
}

// dir returns the directory of a snapshot.
func (s *Store) dir(id paddock.SnapshotID) (string, error) {
	if !paddock.ID(id).Valid() {
		return "", fmt.Errorf("not a name: %w", paddock.Invalid)
	}
	if !strings.HasPrefix(string(id), snapshotPrefix) {
		return "", fmt.Errorf("there is no snapshot of this ID: %w", paddock.NotFound)
	}
	return filepath.Join(s.Site.Data, string(id)), nil
}

// Remove implements box.Snapshots. It also deletes the remains of a snapshot.
func (s *Store) Remove(ctx context.Context, id paddock.SnapshotID) error {
	if layer.Known(id) {
		return layer.Discard(ctx, s.Site.Files, id)
	}
	dir, err := s.dir(id)
	if errors.Is(err, paddock.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := errors.Join(box.CheckOwn(s.Site.Data), box.CheckOwn(dir)); err != nil {
		return err
	}
	// Without this file, no box begins with the incomplete rest.
	if err := os.Remove(filepath.Join(dir, checkpointFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return (&checkpoint{dir: dir}).Remove()
}

// Taker implements box.Snapshots.
func (s *Store) Taker(id paddock.SnapshotID) (paddock.Tier, error) {
	return layer.Taker(s.Site.Files, id)
}

// Layer implements box.Snapshots.
func (s *Store) Layer(ctx context.Context, id paddock.SnapshotID) (*os.File, error) {
	if layer.Known(id) {
		return layer.Archive(ctx, s.Site.Files, id)
	}
	m, err := s.find(id)
	if err != nil {
		return nil, err
	}
	if m.about.Memory {
		return nil, fmt.Errorf("it is of memory, and has no archive of files: %w", paddock.Unsupported)
	}
	files, err := m.open(s.Saver.Kernel, nil, &s.sums)
	if err != nil {
		return nil, err
	}
	if len(files) != 1 {
		box.CloseAll(files)
		return nil, fmt.Errorf("it has %d parts: %w", len(files), paddock.Conflict)
	}
	return files[0], nil
}

// Paused implements box.Snapshots.
func (s *Store) Paused(dir string) (paused, whole bool) {
	if !strings.HasPrefix(filepath.Base(dir), pausedPrefix) {
		return false, false
	}
	st, err := os.Lstat(filepath.Join(dir, checkpointFile))
	return true, err == nil && st.Mode().IsRegular()
}

// find returns the checkpoint of a snapshot.
func (s *Store) find(id paddock.SnapshotID) (*checkpoint, error) {
	var m *checkpoint
	dir, err := s.dir(id)
	if err == nil {
		m, err = readCheckpoint(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("snapshot %q: %w", string(id), err)
	}
	return m, nil
}

// Reopen implements box.Snapshots.
func (s *Store) Reopen(ctx context.Context, dir string) (_ *box.Reopened, err error) {
	m, err := readCheckpoint(dir)
	if err != nil {
		return nil, err
	}
	agent, err := s.Agent()
	if err != nil {
		return nil, err
	}
	re := &box.Reopened{Order: m.about.Order, Saved: m}
	re.Programs.Add(FileAgent, agent)
	parts, err := m.open(s.Saver.Kernel, agent, &s.sums)
	if err != nil {
		return nil, err
	}
	re.First.Add(boxinit.FileImage, parts...)
	if s.Resupply != nil {
		if re.Files, err = s.Resupply(ctx, &re.Order); err != nil {
			re.First.Close()
			return nil, err
		}
	}
	return re, nil
}

// A Beginning is the snapshot with which a box begins; nil means none.
type Beginning struct {
	store *Store
	m     *checkpoint      // of memory, or of files of an earlier release; nil with files
	files *layer.Beginning // nil with m
}

// begin finds a snapshot, and returns the spec that begins with it.
func (s *Store) begin(spec *paddock.Spec) (*Beginning, *paddock.Spec, error) {
	id := spec.Root.Snapshot
	if layer.Known(id) {
		files, err := layer.Find(s.Site.Files, id)
		if err != nil {
			return nil, nil, err
		}
		spec, err = files.Adapt(spec)
		return &Beginning{store: s, files: files}, spec, err
	}
	m, err := s.find(id)
	if err != nil {
		return nil, nil, err
	}
	// The additions to the spec were checked when the snapshot's sandbox was made, and
	// only Paddock writes them. Whether the tree still exists is checked later.
	if spec, err = m.adapt(spec); err != nil {
		return nil, nil, fmt.Errorf("snapshot %s: %w", filepath.Base(m.dir), err)
	}
	return &Beginning{store: s, m: m}, spec, nil
}

// Draft begins a sandbox. If its root is a snapshot, the snapshot supplies what the spec
// leaves open. The tier's own supply gets the limits with which the snapshot's memory was
// made.
func (s *Store) Draft(spec *paddock.Spec, supply func(ctx context.Context, p *box.Plan, from *Beginning) error, furnish func(l *box.Layout)) (box.Draft, error) {
	var from *Beginning
	if spec.Root.Kind == paddock.RootSnapshot {
		var err error
		if from, spec, err = s.begin(spec); err != nil {
			return box.Draft{}, err
		}
	}
	d := s.Bare(spec, func(ctx context.Context, p *box.Plan) error {
		if err := from.open(ctx, p); err != nil || supply == nil {
			return err
		}
		return supply(ctx, p, from)
	}, furnish)
	if from != nil && from.m != nil {
		d.Gateway = from.m.about.Order.Gateway
		finish := d.Finish
		d.Finish = func(l *box.Layout, limits paddock.Limits) error {
			if err := finish(l, limits); err != nil {
				return err
			}
			return from.m.fits(l)
		}
	}
	return d, nil
}

// Bare begins a box with a guest kernel.
func (s *Store) Bare(spec *paddock.Spec, supply func(ctx context.Context, p *box.Plan) error, furnish func(l *box.Layout)) box.Draft {
	return box.Draft{
		Spec: spec,
		Supply: func(ctx context.Context, p *box.Plan) error {
			agent, err := s.Agent()
			if err != nil {
				return err
			}
			p.Programs.Add(FileAgent, agent)
			if supply == nil {
				return nil
			}
			return supply(ctx, p)
		},
		Finish: func(l *box.Layout, limits paddock.Limits) error {
			if err := Nest(l, spec, limits); err != nil {
				return err
			}
			if furnish != nil {
				furnish(l)
			}
			return nil
		},
	}
}

// open adds the snapshot's parts to a plan.
func (b *Beginning) open(ctx context.Context, p *box.Plan) error {
	if b == nil {
		return nil
	}
	if b.files != nil {
		s := b.store.Saver
		fit := snapshot.Fit{Devices: true, Attributes: s.Attributes, Most: archiveRoom(p.Limits).Content}
		if fit.Attributes == nil {
			fit.Attributes = func(string) bool { return true }
		}
		return b.files.Supply(ctx, p, fit, s.Dialect)
	}
	parts, err := b.m.open(b.store.Saver.Kernel, p.Programs.One(FileAgent), &b.store.sums)
	if err != nil {
		return fmt.Errorf("snapshot %s: %w", filepath.Base(b.m.dir), err)
	}
	p.First.Add(boxinit.FileImage, parts...)
	return nil
}

// Memory returns the configuration of the guest kernel whose memory the box restores; nil
// means none.
func (b *Beginning) Memory() *boxinit.GuestKernelConfig {
	if b == nil || b.m == nil || !b.m.about.Memory {
		return nil
	}
	return b.m.about.Order.Layout.Config.GuestKernel
}
