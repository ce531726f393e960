package wall

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// Files go through the control socket as pieces, from the child when it is
// asked for a snapshot, and to it behind the order that makes a computer of
// one. A child has no directory to write to, and the host believes nothing that
// comes: the store checks each entry as one of a stranger.

// A piece is a message of such a stream: an entry, some bytes of the entry
// before, or the end of all, perhaps by an error.
type piece struct {
	Entry  *entry
	Offset int64
	Bytes  string
	End    bool
	Kind   paddock.Kind
	Error  string
}

// An entry is a snapshot.Entry without what it holds.
type entry struct {
	Path     string
	Kind     byte
	Mode     uint32
	UID, GID uint32
	ModTime  time.Time
	Target   string
	Device   uint64
	Opaque   bool
	Shared   bool
	Size     int64
}

// snapshotTime bounds the taking of one.
const snapshotTime = 10 * time.Minute

// maxPiece bounds a piece, and maxBytes what of a file is in one.
const (
	maxPiece = 4 << 20
	maxBytes = 1 << 20
)

// sendFiles writes a stream. What is wrong with the entries ends it, and is
// told to the other side.
func sendFiles(w io.Writer, entries iter.Seq2[snapshot.Entry, error]) error {
	var broken error
	for e, err := range entries {
		if broken = err; broken != nil {
			break
		}
		head := &entry{
			Path: e.Path, Kind: byte(e.Kind), Mode: e.Mode, UID: e.UID, GID: e.GID, ModTime: e.ModTime,
			Target: e.Target, Device: e.Device, Opaque: e.Opaque, Shared: e.Shared, Size: e.Size,
		}
		if err := send(w, piece{Entry: head}); err != nil {
			return err
		}
		if e.Data == nil {
			continue
		}
		for x, err := range e.Data {
			if broken = err; broken != nil {
				break
			}
			for at := 0; at < len(x.Bytes); at += maxBytes {
				part := x.Bytes[at:min(at+maxBytes, len(x.Bytes))]
				if err := send(w, piece{Offset: x.Offset + int64(at), Bytes: string(part)}); err != nil {
					return err
				}
			}
		}
		if broken != nil {
			break
		}
	}
	end := piece{End: true}
	if broken != nil {
		end.Kind, end.Error = paddock.KindOf(broken), broken.Error()
	}
	return send(w, end)
}

// A stream is what sendFiles writes, as it is read.
type stream struct {
	r     io.Reader
	ready func() error // called before each piece; nil is nothing
	next  *piece       // read already
	ended bool
	err   error

	// How much may come yet: bytes of files, and pieces. The end of a stream of
	// a child that was taken over must not be that child's affair.
	bytes, pieces int64
}

// bounded gives the stream of a computer with these limits. It leaves room:
// what breaks these bounds is no computer of ours.
func bounded(r io.Reader, disk, inodes int64) *stream {
	return &stream{r: r, bytes: 2*disk + 64<<20, pieces: 4*(inodes+disk/4096) + 100_000}
}

// look gives the next piece, without taking it.
func (s *stream) look() (*piece, error) {
	if s.next != nil || s.err != nil {
		return s.next, s.err
	}
	if s.ended {
		s.err = io.EOF
		return nil, s.err
	}
	if s.ready != nil {
		if s.err = s.ready(); s.err != nil {
			return nil, s.err
		}
	}
	var p piece
	if s.err = receive(s.r, &p, maxPiece); s.err != nil {
		return nil, s.err
	}
	s.pieces--
	s.bytes -= int64(len(p.Bytes))
	switch {
	case s.pieces < 0 || s.bytes < 0:
		s.err = fmt.Errorf("more files than there can be: %w", errNonsense)
		return nil, s.err
	case p.End:
		s.ended = true
		s.err = io.EOF
		if p.Error != "" {
			s.err = reply{Kind: p.Kind, Error: p.Error}.err()
		}
		return nil, s.err
	case (p.Entry == nil) == (p.Bytes == ""):
		s.err = fmt.Errorf("a piece of files that is neither an entry nor bytes: %w", errNonsense)
		return nil, s.err
	}
	s.next = &p
	return s.next, nil
}

// entries gives what the stream holds, once.
func (s *stream) entries() iter.Seq2[snapshot.Entry, error] {
	return func(yield func(snapshot.Entry, error) bool) {
		for {
			p, err := s.look()
			if errors.Is(err, io.EOF) && s.ended {
				return
			}
			if err == nil && p.Entry == nil {
				s.err = fmt.Errorf("bytes that belong to no entry: %w", errNonsense)
				err = s.err
			}
			if err != nil {
				yield(snapshot.Entry{}, err)
				return
			}
			s.next = nil
			h := p.Entry
			e := snapshot.Entry{
				Path: h.Path, Kind: snapshot.Kind(h.Kind), Mode: h.Mode, UID: h.UID, GID: h.GID, ModTime: h.ModTime,
				Target: h.Target, Device: h.Device, Opaque: h.Opaque, Shared: h.Shared, Size: h.Size,
			}
			if e.Kind == snapshot.File {
				e.Data = s.data()
			}
			if !yield(e, nil) {
				return
			}
			s.pass()
		}
	}
}

// data gives the bytes up to the next entry. An error is told by what follows,
// too.
func (s *stream) data() iter.Seq2[snapshot.Extent, error] {
	return func(yield func(snapshot.Extent, error) bool) {
		for {
			p, err := s.look()
			if err != nil {
				if !s.ended || !errors.Is(err, io.EOF) {
					yield(snapshot.Extent{}, err)
				}
				return
			}
			if p.Entry != nil {
				return
			}
			s.next = nil
			if !yield(snapshot.Extent{Offset: p.Offset, Bytes: []byte(p.Bytes)}, nil) {
				return
			}
		}
	}
}

// pass goes over what is left of an entry's bytes. An error stays for look.
func (s *stream) pass() {
	for {
		p, err := s.look()
		if err != nil || p.Entry != nil {
			return
		}
		s.next = nil
	}
}

// drain reads on to the end, so that the next message is what it should be.
func (s *stream) drain() error {
	for {
		if _, err := s.look(); err != nil {
			if s.ended {
				return nil
			}
			return err
		}
		s.next = nil
	}
}

// store opens the place for snapshots. Where it is a temporary one, it is made
// when it is first needed.
func (d *Driver) store() (*snapshot.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.snapshots == "" {
		dir, err := os.MkdirTemp("", "paddock-snapshots-")
		if err != nil {
			return nil, fmt.Errorf("make a directory for snapshots: %w: %w", err, paddock.Unavailable)
		}
		d.snapshots = dir
	}
	s, err := snapshot.Open(d.snapshots, snapshot.Options{})
	if err != nil {
		return nil, fmt.Errorf("open the snapshots in %s: %w", d.snapshots, err)
	}
	return s, nil
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

// begins has use read the files that a spec begins with, if that is a snapshot.
func (d *Driver) begins(spec *paddock.Spec, use func(iter.Seq2[snapshot.Entry, error]) error) (err error) {
	if spec.Root.Kind != paddock.RootSnapshot {
		return use(nil)
	}
	s, err := d.store()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	x, err := s.Read(spec.Root.Snapshot)
	if err != nil {
		return fmt.Errorf("snapshot %q: %w", string(spec.Root.Snapshot), err)
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err := sim.CheckBase(x.Meta); err != nil {
		return err
	}
	return use(x.Entries())
}

// Snapshot keeps the files as they are now, in the store of the host. It takes
// time by what differs from the system that every computer begins with.
func (s *sandbox) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (_ paddock.SnapshotID, err error) {
	if o.Memory {
		return "", fmt.Errorf("a snapshot of memory: tasks are not kept on this tier: %w", paddock.Unsupported)
	}
	store, err := s.d.store()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	meta := sim.NewMeta(o.Name, s.spec.Root.Snapshot)
	err = s.converse(func() error {
		if err := send(s.control, order{Op: "snapshot"}); err != nil {
			return fmt.Errorf("ask: %w: %w", err, paddock.Unavailable)
		}
		limits := s.d.o.Limits.Filled()
		x := bounded(s.control, max(limits.Disk, s.spec.Limits.Disk, s.grown.Load()), limits.Inodes)
		last := time.Now().Add(snapshotTime)
		x.ready = func() error {
			until := time.Now().Add(s.d.answer)
			if until.After(last) {
				until = last
			}
			return s.control.SetDeadline(until)
		}
		err := store.Write(ctx, meta, x.entries())
		if rest := x.drain(); rest != nil {
			return s.link.failed(rest)
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("snapshot of sandbox %s: %w", s.spec.ID, err)
	}
	return meta.ID, nil
}
