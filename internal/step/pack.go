package step

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// Contents of small files go one after another into one file beside the log, because a blob for each costs more than the
// removal of the file. In the snapshot of the step they are the contents with the number zero.
const (
	packMost = 16 << 10 // bytes of a file that counts as small
	readSize = 256 << 10
	packRoom = 1 << 30 // bytes of all small files of one step; others are blobs
)

// A packFile is the file of a living recorder, or nil before there is a small file.
type packFile struct {
	f    *os.File
	size int64
}

const packSuffix = ".pack"

func packPath(n int64) string { return logPath(n) + packSuffix }

// pack adds contents, and returns their offset.
func (r *Recorder) pack(b []byte) (int64, error) {
	if r.packed == nil {
		f, err := r.j.root.OpenFile(packPath(r.number), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return 0, err
		}
		r.packed = &packFile{f: f}
		if err := r.j.settle(dirLogs); err != nil {
			return 0, err
		}
	}
	p := r.packed
	if _, err := p.f.WriteAt(b, p.size); err != nil {
		return 0, err
	}
	if r.j.opts.Sync {
		if err := p.f.Sync(); err != nil {
			return 0, err
		}
	}
	at := p.size
	p.size += int64(len(b))
	return at, nil
}

// unpack opens the pack of a dead recorder. What it does not hold is not kept.
func (r *Recorder) unpack() error {
	f, err := r.j.root.OpenFile(packPath(r.number), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err == nil {
		var i fs.FileInfo
		if i, err = f.Stat(); err != nil {
			return errors.Join(err, f.Close())
		}
		r.packed = &packFile{f: f, size: i.Size()}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, s := range r.saved {
		if s.pack > 0 && !r.stored && (r.packed == nil || s.pack-1+s.state.Size > r.packed.size) {
			s.kept, s.pack, s.why = 0, 0, "its contents are damaged"
		}
	}
	return nil
}

// data yields what the pack holds.
func (p *packFile) data() iter.Seq2[snapshot.Extent, error] {
	return func(yield func(snapshot.Extent, error) bool) {
		b := make([]byte, readSize)
		for at := int64(0); at < p.size; {
			n, err := p.f.ReadAt(b[:min(int64(len(b)), p.size-at)], at)
			if n == 0 && err == nil || err == io.EOF && n == 0 {
				err = io.ErrUnexpectedEOF
			} else if n > 0 {
				err = nil
			}
			if !yield(snapshot.Extent{Offset: at, Bytes: b[:n]}, err) || err != nil {
				return
			}
			at += int64(n)
		}
	}
}

// A stock is what the store has of one step.
type stock struct {
	store *snapshot.Store
	has   map[int]snapshot.Contents
	pack  *snapshot.Reader

	made [][]byte // contents that were put together, by number from firstMade on
}

// firstMade is more than any number of kept contents.
const firstMade = 1 << 40

// make adds contents, and returns their number.
func (s *stock) make(b []byte) int {
	s.made = append(s.made, b)
	return firstMade + len(s.made) - 1
}

// text returns contents of a size. ok is false if the store does not have them any more.
func (s *stock) text(kept int, pack, size int64) (text []byte, ok bool) {
	if size == 0 {
		return nil, true
	}
	data, ok := s.data(kept, pack, size)
	if kept == 0 || !ok {
		return nil, false
	}
	text = make([]byte, size)
	for e, err := range data {
		if err != nil || e.Offset < 0 || e.Offset+int64(len(e.Bytes)) > size {
			return nil, false
		}
		copy(text[e.Offset:], e.Bytes)
	}
	return text, true
}

// data yields the contents of a file of a size. ok is false if the store does not have them any more.
func (s *stock) data(kept int, pack, size int64) (data iter.Seq2[snapshot.Extent, error], ok bool) {
	if i := kept - firstMade; i >= 0 {
		if i >= len(s.made) || int64(len(s.made[i])) != size {
			return nil, false
		}
		return func(yield func(snapshot.Extent, error) bool) { yield(snapshot.Extent{Bytes: s.made[i]}, nil) }, true
	}
	if pack == 0 {
		c, ok := s.has[kept]
		return s.store.Data(c), ok
	}
	if s.pack == nil {
		c, ok := s.has[0]
		if !ok {
			return nil, false
		}
		s.pack = s.store.Reader(c)
	}
	return func(yield func(snapshot.Extent, error) bool) {
		if size > packMost {
			yield(snapshot.Extent{}, fmt.Errorf("a small file of %d bytes: %w", size, io.ErrUnexpectedEOF))
			return
		}
		b, err := s.pack.Read(pack-1, size)
		if err != nil || len(b) > 0 {
			yield(snapshot.Extent{Bytes: b}, err)
		}
	}, true
}
