package archive

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// What can be wrong with an xz file, in the words of xz.
var (
	errXZFormat  = errors.New("File format not recognized")                                  //nolint:staticcheck // xz's words
	errXZCorrupt = errors.New("Compressed data is corrupt")                                  //nolint:staticcheck // xz's words
	errXZEnd     = errors.New("Unexpected end of input")                                     //nolint:staticcheck // xz's words
	errXZOptions = errors.New("Unsupported options")                                         //nolint:staticcheck // xz's words
	errXZMemory  = errors.New("Memory usage limit reached: the dictionary would be too big") //nolint:staticcheck // xz's words
)

// An xzReader reads xz streams. It reads the container itself, so that no
// header can ask for more memory than is allowed.
type xzReader struct {
	u     *unpacker
	in    *bufio.Reader
	n     int64 // bytes read
	begun bool
	open  bool // within a stream

	check byte
	sum   hash.Hash
	block io.Reader // nil between blocks
	start int64     // where the block's data begin
	dict  int
	err   error
}

func newXZReader(u *unpacker, r io.Reader) *xzReader {
	return &xzReader{u: u, in: bufio.NewReaderSize(r, 32<<10)}
}

func (x *xzReader) ReadByte() (byte, error) {
	c, err := x.in.ReadByte()
	if err == nil {
		x.n++
	}
	return c, err
}

// raw reads what the container holds, byte by byte exact.
type raw struct{ x *xzReader }

func (r raw) ReadByte() (byte, error) { return r.x.ReadByte() }

func (r raw) Read(p []byte) (int, error) {
	n, err := r.x.in.Read(p)
	r.x.n += int64(n)
	return n, err
}

func (x *xzReader) take(n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(raw{x}, b)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errXZEnd
		}
		return nil, err
	}
	return b, nil
}

func (x *xzReader) Read(p []byte) (int, error) {
	for x.err == nil {
		if x.block != nil {
			n, err := x.block.Read(p)
			if x.sum != nil {
				_, _ = x.sum.Write(p[:n]) // never fails
			}
			switch {
			case err == io.EOF:
				x.block = nil
				x.err = x.endBlock()
			case err != nil:
				if errors.Is(err, io.ErrUnexpectedEOF) {
					err = errXZEnd
				}
				x.err = err
			}
			if n > 0 {
				return n, nil
			}
			continue
		}
		if !x.open {
			x.err = x.beginStream()
			continue
		}
		x.err = x.beginBlock()
	}
	return 0, x.err
}

func (x *xzReader) beginStream() error {
	for {
		c, err := x.in.Peek(1)
		if err != nil {
			if err == io.EOF && !x.begun {
				return errXZFormat
			}
			return err
		}
		if c[0] != 0 || !x.begun {
			break
		}
		if _, err := x.take(4); err != nil { // padding
			return err
		}
	}
	h, err := x.take(12)
	if err != nil {
		return err
	}
	if !bytes.Equal(h[:6], []byte("\xfd7zXZ\x00")) {
		if x.begun {
			return errXZCorrupt
		}
		return errXZFormat
	}
	if crc32.ChecksumIEEE(h[6:8]) != binary.LittleEndian.Uint32(h[8:]) {
		return errXZCorrupt
	}
	x.begun, x.open, x.check = true, true, h[7]
	if h[6] != 0 || h[7]&0xf0 != 0 {
		return errXZOptions
	}
	return nil
}

// checkSize is how long the check of a kind is.
func checkSize(kind byte) int {
	sizes := [...]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}
	return sizes[kind&15]
}

func varint(b []byte) (v uint64, n int) {
	for n < len(b) && n < 9 {
		v |= uint64(b[n]&0x7f) << (7 * n)
		n++
		if b[n-1]&0x80 == 0 {
			return v, n
		}
	}
	return 0, -1
}

func (x *xzReader) beginBlock() error {
	c, err := x.ReadByte()
	if err != nil {
		if err == io.EOF {
			err = errXZEnd
		}
		return err
	}
	if c == 0 {
		return x.index()
	}
	rest, err := x.take((int(c)+1)*4 - 1)
	if err != nil {
		return err
	}
	h := append([]byte{c}, rest...)
	body := h[:len(h)-4]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(h[len(h)-4:]) {
		return errXZCorrupt
	}
	bits := body[1]
	body = body[2:]
	if bits&0x3c != 0 || bits&3 != 0 {
		return errXZOptions // several filters
	}
	for _, given := range []bool{bits&0x40 != 0, bits&0x80 != 0} {
		if given {
			_, n := varint(body)
			if n < 0 {
				return errXZCorrupt
			}
			body = body[n:]
		}
	}
	if len(body) < 3 || body[0] != 0x21 || body[1] != 1 {
		return errXZOptions
	}
	dict, err := lzma.DecodeDictCap(body[2])
	if err != nil {
		return errXZOptions
	}
	if dict > maxWindow {
		return errXZMemory
	}
	if int(dict) > x.dict {
		x.u.hold(int(dict) - x.dict)
		x.dict = int(dict)
	}
	switch x.check {
	case 0:
		x.sum = nil
	case 1:
		x.sum = crc32.NewIEEE()
	case 4:
		x.sum = crc64.New(crc64.MakeTable(crc64.ECMA))
	case 10:
		x.sum = sha256.New()
	default:
		x.sum = nil
	}
	x.start = x.n
	x.block, err = lzma.Reader2Config{DictCap: max(int(dict), lzma.MinDictCap)}.NewReader2(raw{x})
	return err
}

func (x *xzReader) endBlock() error {
	if pad := int(-(x.n - x.start) & 3); pad > 0 {
		b, err := x.take(pad)
		if err != nil {
			return err
		}
		for _, c := range b {
			if c != 0 {
				return errXZCorrupt
			}
		}
	}
	want, err := x.take(checkSize(x.check))
	if err != nil || x.sum == nil {
		return err
	}
	have := x.sum.Sum(nil)
	if x.check != 10 { // sums are big-endian in Go
		for i, j := 0, len(have)-1; i < j; i, j = i+1, j-1 {
			have[i], have[j] = have[j], have[i]
		}
	}
	if !bytes.Equal(have, want) {
		return errXZCorrupt
	}
	return nil
}

// index passes over the index and the footer of a stream.
func (x *xzReader) index() error {
	start := x.n - 1
	number := func() (uint64, error) {
		v := uint64(0)
		for i := range 9 {
			c, err := x.ReadByte()
			if err != nil {
				return 0, errXZEnd
			}
			v |= uint64(c&0x7f) << (7 * i)
			if c&0x80 == 0 {
				return v, nil
			}
		}
		return 0, errXZCorrupt
	}
	count, err := number()
	if err != nil {
		return err
	}
	for range count {
		x.u.t.Step(1)
		for range 2 {
			if _, err := number(); err != nil {
				return err
			}
		}
	}
	if pad := int(-(x.n - start) & 3); pad > 0 {
		if _, err := x.take(pad); err != nil {
			return err
		}
	}
	if _, err := x.take(4); err != nil {
		return err
	}
	foot, err := x.take(12)
	if err != nil {
		return err
	}
	if foot[10] != 'Y' || foot[11] != 'Z' || crc32.ChecksumIEEE(foot[4:10]) != binary.LittleEndian.Uint32(foot) {
		return errXZCorrupt
	}
	x.open = false
	return nil
}
