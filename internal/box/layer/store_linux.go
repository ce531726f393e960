package layer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Roots that entries are relative to, as [snapshot.Meta.Base] has them.
const (
	baseHost  = "host"
	baseDir   = "dir:"
	baseImage = "image:"
	baseSim   = "sim:" // its own system, which no other tier has
)

// baseOf names the root of a box.
func baseOf(root paddock.Root) (string, error) {
	switch root.Kind {
	case paddock.RootHost:
		return baseHost, nil
	case paddock.RootDir:
		return baseDir + root.Path, nil
	case paddock.RootImage:
		return baseImage + root.Image, nil
	}
	return "", fmt.Errorf("a snapshot of files over the root %.64q: %w", string(root.Kind), paddock.Unsupported)
}

// rootOf is baseOf the other way around. What was made over the system of the simulated computer is put over the host's.
func rootOf(base string) (paddock.Root, error) {
	if dir, ok := strings.CutPrefix(base, baseDir); ok {
		return paddock.Root{Kind: paddock.RootDir, Path: dir}, nil
	}
	if image, ok := strings.CutPrefix(base, baseImage); ok {
		return paddock.Root{Kind: paddock.RootImage, Image: image}, nil
	}
	if base == baseHost || strings.HasPrefix(base, baseSim) {
		return paddock.Root{}, nil
	}
	return paddock.Root{}, fmt.Errorf("it is relative to %.64q, which this version does not know: %w", base, paddock.Unsupported)
}

// NewMeta describes a snapshot of the files of a living box.
func NewMeta(l *box.Life, name string) (snapshot.Meta, error) {
	p := l.Plan()
	base, err := baseOf(p.Root)
	if err != nil {
		return snapshot.Meta{}, err
	}
	u, limits, standard := p.Layout.ID.User, l.Box().Limits(), box.Defaults()
	m := snapshot.Meta{
		ID: snapshot.NewID(), Tier: l.Tier(), Base: base, Name: name, Created: time.Now().UTC(), User: p.User,
		Owner: &snapshot.Owner{UID: uint32(u.UID), GID: uint32(u.GID), Home: u.Home}, Limits: paddock.Limits{Files: limits.Files},
	}
	if limits.Disk != standard.Disk { // else it was not asked for
		m.Limits.Disk = limits.Disk
	}
	if limits.Memory != standard.Memory {
		m.Limits.Memory = limits.Memory
	}
	return m, nil
}

// Write stores a snapshot of a living box.
func Write(ctx context.Context, l *box.Life, m snapshot.Meta, entries iter.Seq2[snapshot.Entry, error]) (id paddock.SnapshotID, err error) {
	s, err := open(l.Files())
	if err != nil {
		return "", box.HostFault(err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Write(ctx, m, entries); err != nil {
		return "", err
	}
	return m.ID, nil
}

func open(dir string) (*snapshot.Store, error) {
	if err := box.OwnDirectory(dir); err != nil {
		return nil, err
	}
	return snapshot.Open(dir, snapshot.Options{})
}

// Save stores a snapshot of the files of a box on the host's kernel. None of its processes runs meanwhile.
func Save(ctx context.Context, l *box.Life, name string) (id paddock.SnapshotID, err error) {
	m, err := NewMeta(l, name)
	if err != nil {
		return "", err
	}
	if m.Base != baseHost {
		return "", fmt.Errorf("the layer over an image or a directory is not read on this tier; gvisor and microvm have snapshots of it: %w", paddock.Unsupported)
	}
	w := walkOf(l.Plan().Layout)
	err = l.Box().Still(ctx, func(root *os.File) error {
		id, err = Write(ctx, l, m, w.entries(ctx, root))
		return err
	})
	if err != nil {
		return "", errors.Join(err, discard(ctx, l.Files(), id))
	}
	return id, nil
}

// discard removes a snapshot that nobody is told of.
func discard(ctx context.Context, dir string, id paddock.SnapshotID) error {
	if id == "" {
		return nil
	}
	return Discard(ctx, dir, id)
}

// walkOf plans a walk over the private files of a box of this layout.
func walkOf(l *box.Layout) walk {
	w := walk{own: func(uid, gid uint32) (uint32, uint32, bool) {
		return uint32(l.ID.User.UID), uint32(l.ID.User.GID), int(uid) == l.ID.KUID && int(gid) == l.ID.KGID
	}}
	stubs := map[string]boxinit.MountKind{}
	for _, m := range l.Config.Mounts {
		p := strings.Trim(m.Target, "/")
		switch m.Kind {
		case boxinit.MountPrivate:
			if !hostroot.Within(m.Target, "/dev") {
				w.dirs = append(w.dirs, p)
			}
		case boxinit.MountTmpfs, boxinit.MountDir, boxinit.MountPin:
		default:
			stubs[p] = m.Kind
		}
	}
	all := slices.Clone(w.dirs)
	w.dirs = slices.DeleteFunc(w.dirs, func(dir string) bool {
		return slices.ContainsFunc(all, func(o string) bool { return o != dir && hostroot.Within("/"+dir, "/"+o) })
	})
	w.stub = func(path string, e *snapshot.Entry) bool {
		kind, ok := stubs[path]
		return ok && (e.Size == 0 && e.Kind != snapshot.Link || kind == boxinit.MountLink && e.Kind == snapshot.Link)
	}
	return w
}

// Known reports whether a name can be that of a snapshot in a store. Older snapshots of guest kernels have other names.
func Known(id paddock.SnapshotID) bool { return strings.HasPrefix(string(id), "snap-") }

// Discard removes a snapshot. A missing one is not an error.
func Discard(ctx context.Context, dir string, id paddock.SnapshotID) (err error) {
	if !paddock.ID(id).Valid() {
		return fmt.Errorf("not a name: %w", paddock.Invalid)
	}
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil // nobody took any
	}
	s, err := open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Discard(ctx, id)
}

// A Beginning is a snapshot with which a box begins.
type Beginning struct {
	dir  string
	Meta snapshot.Meta
}

// Find finds a snapshot in the store in dir.
func Find(dir string, id paddock.SnapshotID) (_ *Beginning, err error) {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("snapshot %q: %w", string(id), paddock.NotFound)
	}
	s, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	x, err := s.Read(id)
	if err != nil {
		return nil, fmt.Errorf("snapshot %q: %w", string(id), err)
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if x.Meta.Owner == nil { // before it was told
		x.Meta.Owner = &snapshot.Owner{UID: 1000, GID: 1000, Home: "/home/user"}
	}
	return &Beginning{dir: dir, Meta: x.Meta}, nil
}

// Taker returns the tier that took a snapshot.
func Taker(dir string, id paddock.SnapshotID) (paddock.Tier, error) {
	b, err := Find(dir, id)
	if err != nil {
		return "", err
	}
	return b.Meta.Tier, nil
}

// Archive opens an archive of a snapshot in dir, as [WriteArchive] writes it, with what was removed.
func Archive(ctx context.Context, dir string, id paddock.SnapshotID) (_ *os.File, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("snapshot %q: %w", string(id), err)
		}
	}()
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("there is none of this ID: %w", paddock.NotFound)
	}
	s, err := open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	x, err := s.Read(id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	return archiveIn(dir, until(ctx, x.Entries()), Dialect{Parents: true, Removed: true})
}

// archiveIn writes an archive into an unnamed file in dir, and opens it to be read.
func archiveIn(dir string, entries iter.Seq2[snapshot.Entry, error], d Dialect) (*os.File, error) {
	f, err := os.CreateTemp(dir, "begin-")
	if err != nil {
		return nil, box.HostFault(err)
	}
	defer f.Close()
	// Nobody else needs its name. The box that begins with it may read it as its own user.
	if err := errors.Join(os.Remove(f.Name()), f.Chmod(0o444)); err != nil {
		return nil, box.HostFault(err)
	}
	if err := WriteArchive(f, entries, d); err != nil {
		return nil, err
	}
	return sys.Reopen(f)
}

// Adapt returns the spec of a box that begins with the snapshot. What the spec leaves open is as it was.
func (b *Beginning) Adapt(spec *paddock.Spec) (*paddock.Spec, error) {
	root, err := rootOf(b.Meta.Base)
	if err != nil {
		return nil, fmt.Errorf("snapshot %q: %w", string(b.Meta.ID), err)
	}
	s := *spec
	s.Root = root
	if s.User == "" {
		s.User = b.Meta.User
	}
	for _, l := range []struct{ now, was *int64 }{{&s.Limits.Disk, &b.Meta.Limits.Disk}, {&s.Limits.Memory, &b.Meta.Limits.Memory}} {
		if *l.now == 0 {
			*l.now = *l.was
		}
	}
	if s.Limits.Files == 0 {
		s.Limits.Files = b.Meta.Limits.Files
	}
	return &s, nil
}

// Supply adds the archive with which a box of the plan begins, if the box can have what is in the snapshot. Of fit the
// owners and what all boxes have of their own are filled in.
func (b *Beginning) Supply(ctx context.Context, p *box.Plan, fit snapshot.Fit, d Dialect) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("snapshot %q: %w", string(b.Meta.ID), err)
		}
	}()
	u := p.Layout.ID.User
	fit.From, fit.To = b.Meta.Owner, snapshot.Owner{UID: uint32(u.UID), GID: uint32(u.GID), Home: u.Home}
	fit.Own = own(b.Meta.Base)
	s, err := open(b.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	x, err := s.Read(b.Meta.ID)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := fit.Check(x.Entries()); err != nil {
		return err
	}
	f, err := archiveIn(b.dir, until(ctx, fit.Adopt(x.Entries())), d)
	if err != nil {
		return err
	}
	p.First.Add(boxinit.FileImage, f)
	return nil
}

// own returns which paths each box has of its own, so that a snapshot tells nothing of them: what kernels mount, and of the
// simulated computer the name.
func own(base string) func(path string) bool {
	sim := strings.HasPrefix(base, baseSim)
	return func(path string) bool {
		switch path {
		case "dev", "proc", "sys":
			return true
		case "etc", "etc/hostname":
			return sim
		}
		return false
	}
}

// until ends entries with an error when ctx ends.
func until(ctx context.Context, entries iter.Seq2[snapshot.Entry, error]) iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		for e, err := range entries {
			if end := ctx.Err(); err == nil && end != nil {
				err = fmt.Errorf("%w: %w", end, box.EndKind(end))
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
