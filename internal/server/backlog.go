package server

import (
	"math/bits"
	"sort"
)

const (
	// piece is the largest payload of one frame.
	piece = 32 << 10
	// batch bounds the output that one look returns, in bytes. The last piece may go beyond it.
	batch = 2 * piece
	// batchPieces bounds the pieces that one look returns. Where the streams alternate with
	// every byte, a piece is a byte, and its description is 32 bytes.
	batchPieces = 1024
)

// A backlog holds consecutive output of a process, both streams in the order of writing. The
// process chooses how often the streams alternate, so every byte takes the same memory in any
// order: itself and one bit, which is the stream. A charge for each piece instead would shrink
// the window below the output after which a client acknowledges, and then both would wait
// forever. The zero value is empty.
type backlog struct {
	blocks []block // consecutive
}

// A block has at most piece bytes. All blocks but the first and the last are full.
type block struct {
	at     int64    // offset of data[0]
	data   []byte   // only appended to, because readers use it without a lock
	stderr []uint64 // bit i is set if data[i] is of stderr
}

// An output is a part of stdout or stderr.
type output struct {
	stderr bool
	data   []byte
}

// add appends output, whose offset is at.
func (l *backlog) add(at int64, p []byte, stderr bool) {
	for len(p) > 0 {
		last := len(l.blocks) - 1
		if last < 0 || len(l.blocks[last].data) == piece {
			l.blocks = append(l.blocks, block{at: at})
			last++
		}
		n := l.blocks[last].add(p, stderr)
		p, at = p[n:], at+int64(n)
	}
}

// add appends as much of p as there is space for.
func (b *block) add(p []byte, stderr bool) int {
	start := len(b.data)
	end := min(start+len(p), piece)
	if end > cap(b.data) { // append would make a full block larger than piece
		b.data = append(make([]byte, 0, min(max(end, 2*start), piece)), b.data...)
	}
	b.data = append(b.data, p[:end-start]...)
	for len(b.stderr)*64 < end {
		b.stderr = append(b.stderr, 0)
	}
	if stderr {
		for i := start; i < end; i++ {
			b.stderr[i/64] |= 1 << (i % 64)
		}
	}
	return end - start
}

// drop discards output before an offset, and returns the number of bytes that this frees. It
// keeps about half of a block longer at most.
func (l *backlog) drop(offset int64) (freed int64) {
	gone := 0
	for ; gone < len(l.blocks) && l.blocks[gone].end() <= offset; gone++ {
		freed += int64(len(l.blocks[gone].data))
	}
	if gone > 0 {
		l.blocks = append([]block(nil), l.blocks[gone:]...)
	}
	if len(l.blocks) > 0 {
		freed += l.blocks[0].drop(offset)
	}
	return freed
}

// drop moves the block to less memory if more than half of it is before an offset.
func (b *block) drop(offset int64) int64 {
	n := max(0, offset-b.at) &^ 63 // whole words of stderr
	if n <= int64(len(b.data)/2) {
		return 0
	}
	b.data = append([]byte(nil), b.data[n:]...)
	b.stderr = append([]uint64(nil), b.stderr[n/64:]...)
	b.at += n
	return n
}

// from returns output from an offset on and the offset after it. It returns a bounded part.
func (l *backlog) from(offset int64) (list []output, next int64) {
	next = offset
	i := sort.Search(len(l.blocks), func(i int) bool { return l.blocks[i].end() > offset })
	for i < len(l.blocks) && next-offset < batch && len(list) < batchPieces {
		b := &l.blocks[i]
		start := int(next - b.at)
		end, stderr := b.run(start)
		list = append(list, output{stderr, b.data[start:end:end]})
		if next = b.at + int64(end); end == len(b.data) {
			i++
		}
	}
	return list, next
}

// run returns where the bytes end that are of the same stream as byte i, and the stream.
func (b *block) run(i int) (end int, stderr bool) {
	stderr = b.stderr[i/64]>>(i%64)&1 == 1
	for ; i < len(b.data); i = (i/64 + 1) * 64 {
		others := b.stderr[i/64]
		if stderr {
			others = ^others
		}
		if others >>= i % 64; others != 0 {
			return min(i+bits.TrailingZeros64(others), len(b.data)), stderr
		}
	}
	return len(b.data), stderr
}

func (b *block) end() int64 { return b.at + int64(len(b.data)) }
