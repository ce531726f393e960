package bootfiles

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"

	"github.com/paddock-sandbox/paddock"
)

var errXZ = fmt.Errorf("xz: corrupt, or of a kind that is not known here: %w", paddock.Invalid)

// Filters of a block.
const (
	filterX86   = 4
	filterLZMA2 = 33
)

// An xzReader decompresses one xz stream. It parses the container itself for two reasons:
// kernels use a filter for processor instructions, and no header may ask for more memory
// than the bound.
type xzReader struct {
	in    *counter
	check func() hash.Hash
	block io.Reader // nil between blocks
	sum   hash.Hash
	start int64
}

// A counter counts the bytes read.
type counter struct {
	r *bufio.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counter) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

func (c *counter) take(n int64) ([]byte, error) {
	data := make([]byte, n)
	_, err := io.ReadFull(c, data)
	if err != nil {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}

func unxz(r io.Reader) (io.Reader, error) {
	x := &xzReader{in: &counter{r: bufio.NewReaderSize(r, 64<<10)}}
	head, err := x.in.take(12)
	if err != nil {
		return nil, err
	}
	if string(head[:7]) != "\xfd7zXZ\x00\x00" || crc32.ChecksumIEEE(head[6:8]) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, errXZ
	}
	switch head[7] {
	case 0:
		x.check = func() hash.Hash { return nothing{} }
	case 1:
		x.check = func() hash.Hash { return crc32.NewIEEE() }
	case 4:
		x.check = func() hash.Hash { return crc64.New(crc64.MakeTable(crc64.ECMA)) }
	case 10:
		x.check = sha256.New
	default:
		return nil, errXZ
	}
	return x, nil
}

// nothing is the checksum of a stream without one.
type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }
func (nothing) Sum(b []byte) []byte         { return b }
func (nothing) Reset()                      {}
func (nothing) Size() int                   { return 0 }
func (nothing) BlockSize() int              { return 1 }

func (x *xzReader) Read(p []byte) (int, error) {
	for {
		if x.block == nil {
			if err := x.next(); err != nil {
				return 0, err // io.EOF after the last block
			}
		}
		n, err := x.block.Read(p)
		x.sum.Write(p[:n])
		switch {
		case errors.Is(err, io.EOF):
			if err := x.end(); err != nil {
				return n, err
			}
		case err != nil:
			return n, fmt.Errorf("xz: %w", err)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// next starts a block.
func (x *xzReader) next() error {
	x.start = x.in.n
	size, err := x.in.ReadByte()
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	if size == 0 {
		return io.EOF // the index follows, which has no new information
	}
	rest, err := x.in.take(4*(int64(size)+1) - 1)
	if err != nil {
		return err
	}
	head := append([]byte{size}, rest...)
	sum := head[len(head)-4:]
	head = head[:len(head)-4]
	if crc32.ChecksumIEEE(head) != binary.LittleEndian.Uint32(sum) {
		return errXZ
	}
	flags := head[1]
	head = head[2:]
	for range flags>>6&1 + flags>>7 { // lengths, which are not needed
		if _, head, err = xzNumber(head); err != nil {
			return err
		}
	}
	convert := false
	for left := flags & 3; ; left-- {
		var id, n uint64
		if id, head, err = xzNumber(head); err != nil {
			return err
		}
		if n, head, err = xzNumber(head); err != nil || n > uint64(len(head)) {
			return errXZ
		}
		properties := head[:n]
		head = head[n:]
		switch {
		case id == filterX86 && left > 0 && n == 0 && !convert:
			convert = true
		case id == filterLZMA2 && left == 0 && n == 1:
			return x.open(properties[0], convert)
		default:
			return errXZ
		}
	}
}

// open starts the data of a block.
func (x *xzReader) open(size byte, convert bool) error {
	dict, err := lzma.DecodeDictCap(size)
	if err != nil || dict > maxWindow {
		return errXZ
	}
	z, err := lzma.Reader2Config{DictCap: int(max(dict, lzma.MinDictCap))}.NewReader2(x.in)
	if err != nil {
		return fmt.Errorf("xz: %w", err)
	}
	x.block, x.sum = z, x.check()
	if convert {
		data, err := readAll(z, maxKernel)
		if err != nil {
			return fmt.Errorf("xz: %w", err)
		}
		absolute(data)
		x.block = bytes.NewReader(data)
	}
	return nil
}

// end checks the end of a block.
func (x *xzReader) end() error {
	x.block = nil
	if _, err := x.in.take(-(x.in.n - x.start) & 3); err != nil {
		return err
	}
	want := x.sum.Sum(nil)
	if len(want) <= 8 { // hashes of that length are little-endian
		for i, j := 0, len(want)-1; i < j; i, j = i+1, j-1 {
			want[i], want[j] = want[j], want[i]
		}
	}
	have, err := x.in.take(int64(len(want)))
	if err == nil && !bytes.Equal(have, want) {
		err = errXZ
	}
	return err
}

// xzNumber parses a number of seven bits per byte.
func xzNumber(b []byte) (uint64, []byte, error) {
	n, k := binary.Uvarint(b)
	if k <= 0 {
		return 0, nil, errXZ
	}
	return n, b[k:], nil
}

// absolute reverses the filter for instructions, which made the targets of calls and jumps
// absolute so that more of them are equal.
func absolute(data []byte) {
	outer := func(b byte) bool { return b == 0 || b == 0xff }
	bits := [5]uint32{0, 1, 2, 2, 3}
	var mask uint32
	last := -5
	for at := 0; at+5 <= len(data); {
		if data[at]&0xfe != 0xe8 {
			at++
			continue
		}
		distance := at - last
		last = at
		if distance > 5 {
			mask = 0
		} else {
			for range distance {
				mask = mask & 0x77 << 1
			}
		}
		top := data[at+4]
		if !outer(top) || mask>>1 > 4 || mask>>1 == 3 {
			at++
			if mask |= 1; outer(top) {
				mask |= 0x10
			}
			continue
		}
		target := binary.LittleEndian.Uint32(data[at+1:])
		place := uint32(at) + 5
		for {
			target -= place
			if mask == 0 {
				break
			}
			n := bits[mask>>1] * 8
			if !outer(byte(target >> (24 - n))) {
				break
			}
			target ^= 1<<(32-n) - 1
		}
		binary.LittleEndian.PutUint32(data[at+1:], target&0x01ffffff)
		data[at+4] = -(byte(target>>24) & 1)
		at += 5
		mask = 0
	}
}
