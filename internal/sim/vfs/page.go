package vfs

import (
	"bytes"
	"io"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// pageSize is the unit in which contents are shared and copied.
const pageSize = 64 << 10

// blockSize is the unit in which contents are charged, as on a disk: it is
// more than a page costs beside its bytes.
const blockSize = 4096

type page struct {
	owner *token
	b     []byte // up to pageSize; what is missing at its end is zeros
}

// charge tells what n bytes of one page, or of a file, take on the disk.
func charge(n int64) int64 { return (n + blockSize - 1) &^ (blockSize - 1) }

// readAt reads contents that are in memory.
func (n *node) readAt(p []byte, off int64) (int, error) {
	if off >= n.size {
		return 0, io.EOF
	}
	if rest := n.size - off; int64(len(p)) > rest {
		p = p[:rest]
	}
	done := 0
	for done < len(p) {
		at := int(off % pageSize)
		part := p[done:min(len(p), done+pageSize-at)]
		got := 0
		if pg := n.pages.get(uint64(off / pageSize)); pg != nil && at < len(pg.b) {
			got = copy(part, pg.b[at:])
		}
		clear(part[got:])
		done += len(part)
		off += int64(len(part))
	}
	return done, nil
}

// writeAt writes into an owned node, as far as there is room.
func (f *FS) writeAt(n *node, p []byte, off int64) (int, error) {
	var short error
	if len(p) == 0 {
		return 0, nil
	}
	if off >= f.opts.FileSize {
		return 0, linux.EFBIG
	}
	if rest := f.opts.FileSize - off; int64(len(p)) > rest {
		p, short = p[:rest], linux.EFBIG
	}
	done := 0
	for done < len(p) {
		at := int(off % pageSize)
		part := p[done:min(len(p), done+pageSize-at)]
		m, err := f.writePage(n, uint64(off/pageSize), at, part)
		done += m
		off += int64(m)
		n.size = max(n.size, off)
		if err != nil {
			return done, err
		}
	}
	return done, short
}

// roomier is how much room a page gets that has so many bytes and needs more. It is little more than what is charged.
func roomier(had, need int) int {
	return min(pageSize, max(need, had+had/4, min(2*had, blockSize)))
}

// writePage writes into page i from byte at on, as far as there is room.
func (f *FS) writePage(n *node, i uint64, at int, part []byte) (int, error) {
	pg := n.pages.get(i)
	have := 0
	if pg != nil {
		have = len(pg.b)
	}
	var err error
	if more := charge(int64(at+len(part))) - charge(int64(have)); more > 0 {
		if room := (f.opts.Disk - f.used) &^ (blockSize - 1); more > room {
			// What is charged already can be filled.
			fits := int(charge(int64(have)) + max(room, 0))
			if fits <= at {
				return 0, linux.ENOSPC
			}
			part, err = part[:fits-at], linux.ENOSPC
			more = charge(int64(fits)) - charge(int64(have))
		}
		f.used += more
		n.held += more
	}
	end := at + len(part)
	switch {
	case pg == nil || at == 0 && end >= have && pg.owner != f.owner:
		b := make([]byte, end)
		copy(b[at:], part)
		n.pages.set(f.owner, i, &page{owner: f.owner, b: b})
		return len(part), err
	case pg.owner != f.owner:
		b := make([]byte, max(end, have))
		copy(b, pg.b)
		pg = &page{owner: f.owner, b: b}
		n.pages.set(f.owner, i, pg)
	case end > have && end <= cap(pg.b):
		pg.b = pg.b[:end]
	case end > have:
		b := make([]byte, end, roomier(cap(pg.b), end))
		copy(b, pg.b)
		pg.b = b
	}
	copy(pg.b[at:], part)
	return len(part), err
}

// resize sets the size of an owned node; what is new is a hole.
func (f *FS) resize(n *node, size int64) {
	if size < n.size {
		f.shrink(n, size)
	}
	n.size = size
}

func (f *FS) shrink(n *node, size int64) {
	give := func(bytes int64) {
		f.used -= bytes
		n.held -= bytes
	}
	keep := uint64(size+pageSize-1) / pageSize
	n.pages.cut(f.owner, keep, func(pg *page) { give(charge(int64(len(pg.b)))) })
	if keep == 0 {
		return
	}
	pg := n.pages.get(keep - 1)
	cut := int(size - int64(keep-1)*pageSize)
	if pg == nil || cut >= len(pg.b) {
		return
	}
	give(charge(int64(len(pg.b))) - charge(int64(cut)))
	if pg.owner == f.owner && cap(pg.b) <= roomier(cut, 0) {
		clear(pg.b[cut:])
		pg.b = pg.b[:cut]
		return
	}
	n.pages.set(f.owner, keep-1, &page{owner: f.owner, b: bytes.Clone(pg.b[:cut])})
}

// nextData gives the first offset from off on that is not in a hole, or the
// first that is in one. The end of a file is a hole.
func (n *node) nextData(off int64, data bool) int64 {
	for i := uint64(off / pageSize); ; i++ {
		start := int64(i) * pageSize
		if start >= n.size {
			return n.size
		}
		pg := n.pages.get(i)
		switch {
		case data && pg != nil:
			return max(off, start)
		case data:
			// Holes can be long; the next page that is there ends this one.
			next := n.size
			n.pages.from(i, func(k uint64, _ *page) bool {
				next = int64(k) * pageSize
				return false
			})
			return min(next, n.size)
		case pg == nil:
			return max(off, start)
		}
	}
}
