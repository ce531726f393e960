package git

import (
	"bufio"
	be "encoding/binary"
	"errors"
	"io"
)

// What the library makes of the index: of each file, and at most of a byte behind the files, where small things stand
// that become maps.
const (
	perEntry     = 250
	perExtension = 40
)

// indexCost looks the index through, as the library is going to read it, and gives what that takes in memory. The
// names of version 4 say what they share with the one before, so a small file can hold many long ones.
func indexCost(r io.Reader) (int, error) {
	in := bufio.NewReader(r)
	var head [12]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, nil //nolint:nilerr // the library says what is wrong
	}
	version := be.BigEndian.Uint32(head[4:])
	if string(head[:4]) != "DIRC" || version < 2 || version > 4 {
		return 0, nil
	}
	cost, last := 0, 0
	for range be.BigEndian.Uint32(head[8:]) {
		n, err := entryName(in, version, last)
		if err != nil {
			return 0, err
		}
		cost, last = cost+perEntry+n, n
		if cost < 0 || cost > 1<<50 {
			return 0, errCorrupt
		}
	}
	rest, err := io.Copy(io.Discard, in)
	return cost + perExtension*int(rest), err
}

// entryName reads a file of the index, and gives the length of its name; last is that of the one before.
func entryName(in *bufio.Reader, version uint32, last int) (int, error) {
	var fixed [62]byte
	if _, err := io.ReadFull(in, fixed[:]); err != nil {
		return 0, errCorrupt
	}
	flags, used := be.BigEndian.Uint16(fixed[60:]), len(fixed)
	if flags&0x4000 != 0 {
		if _, err := in.Discard(2); err != nil {
			return 0, errCorrupt
		}
		used += 2
	}
	if version < 4 {
		n := int(flags & 0xfff)
		if _, err := in.Discard(n + 8 - (used+n)%8); err != nil {
			return 0, errCorrupt
		}
		return n, nil
	}
	strip, err := backwards(in)
	if err != nil || strip > int64(last) {
		return 0, errCorrupt
	}
	n := last - int(strip)
	for {
		b, err := in.ReadSlice(0)
		n += len(b)
		if err == nil {
			return n - 1, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return 0, errCorrupt
		}
	}
}

// backwards reads a number as packs have it for how far back something is.
func backwards(in io.ByteReader) (int64, error) {
	for n := int64(0); ; n++ {
		b, err := in.ReadByte()
		if err != nil || n > 1<<40 {
			return 0, errCorrupt
		}
		if n = n<<7 | int64(b&0x7f); b&0x80 == 0 {
			return n, nil
		}
	}
}
