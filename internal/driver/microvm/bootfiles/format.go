package bootfiles

import (
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz/lzma"

	"github.com/paddock-sandbox/paddock"
)

// maxWindow bounds the window of a decompressor in bytes: that of zstd at its highest
// level.
const maxWindow = 128 << 20

// A format is a decompressor.
type format func(io.Reader) (io.Reader, error)

// read decompresses everything, up to a limit.
func (f format) read(r io.Reader, limit int64) ([]byte, error) {
	r, err := f(r)
	if err != nil {
		return nil, err
	}
	return readAll(r, limit)
}

// readAll reads at most limit bytes, and fails if there are more.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("more than %d bytes: %w", limit, paddock.Invalid)
	}
	return data, err
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := readAll(f, limit)
	return data, errors.Join(err, f.Close())
}

// readIn reads a file below a directory.
func readIn(dir *os.Root, name string, limit int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := readAll(f, limit)
	return data, errors.Join(err, f.Close())
}

func plain(r io.Reader) (io.Reader, error) { return r, nil }

func ungzip(r io.Reader) (io.Reader, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return z, nil
}

func unbzip2(r io.Reader) (io.Reader, error) { return bzip2.NewReader(r), nil }

func unzstd(r io.Reader) (io.Reader, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	return z, nil
}

func unlzma(r io.Reader) (io.Reader, error) {
	head := make([]byte, lzma.HeaderLen)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(head[1:]) > maxWindow {
		return nil, fmt.Errorf("unpacking it takes too much memory: %w", paddock.Invalid)
	}
	z, err := lzma.NewReader(io.MultiReader(bytes.NewReader(head), r))
	if err != nil {
		return nil, err
	}
	return z, nil
}

// magics returns the first bytes of each format.
func magics() []struct {
	magic  string
	unpack format
} {
	return []struct {
		magic  string
		unpack format
	}{
		{"\x02\x21\x4c\x18", unlz4},
		{"\x1f\x8b\x08", ungzip},
		{"\x28\xb5\x2f\xfd", unzstd},
		{"\xfd7zXZ\x00", unxz},
		{"BZh", unbzip2},
		{"\x5d\x00\x00", unlzma},
		{"\x7fELF", plain},
	}
}

// unlz4 decompresses the legacy LZ4 format, which kernels use: after the magic number,
// blocks with their lengths.
func unlz4(r io.Reader) (io.Reader, error) {
	var magic [4]byte
	_, err := io.ReadFull(r, magic[:])
	return &lz4Reader{in: r}, err
}

const lz4Block = 8 << 20 // bytes of a decompressed block

type lz4Reader struct {
	in   io.Reader
	rest []byte
	out  []byte
}

func (z *lz4Reader) Read(p []byte) (int, error) {
	for len(z.rest) == 0 {
		var size [4]byte
		if _, err := io.ReadFull(z.in, size[:]); err != nil {
			return 0, err // io.EOF at the end
		}
		n := binary.LittleEndian.Uint32(size[:])
		if n == 0 || n > lz4Block+lz4Block/255+16 {
			return 0, errLZ4
		}
		packed, err := io.ReadAll(io.LimitReader(z.in, int64(n)))
		if err != nil {
			return 0, err
		}
		if len(packed) < int(n) {
			return 0, io.ErrUnexpectedEOF
		}
		if z.out, err = lz4Unpacked(z.out[:0], packed); err != nil {
			return 0, err
		}
		z.rest = z.out
	}
	n := copy(p, z.rest)
	z.rest = z.rest[n:]
	return n, nil
}

var errLZ4 = fmt.Errorf("lz4: corrupt: %w", paddock.Invalid)

// lz4Unpacked appends the content of a block.
func lz4Unpacked(out, in []byte) ([]byte, error) {
	// length reads the further bytes of a length that does not fit four bits.
	length := func(n int) (int, bool) {
		if n < 15 {
			return n, true
		}
		for len(in) > 0 && n <= lz4Block {
			b := in[0]
			in = in[1:]
			n += int(b)
			if b < 255 {
				return n, true
			}
		}
		return 0, false
	}
	for len(in) > 0 {
		token := in[0]
		in = in[1:]
		n, ok := length(int(token >> 4))
		if !ok || n > len(in) || len(out)+n > lz4Block {
			return nil, errLZ4
		}
		out = append(out, in[:n]...)
		if in = in[n:]; len(in) == 0 {
			return out, nil // the last sequence has only literals
		}
		if len(in) < 2 {
			return nil, errLZ4
		}
		back := int(binary.LittleEndian.Uint16(in))
		in = in[2:]
		n, ok = length(int(token & 15))
		n += 4
		if !ok || back == 0 || back > len(out) || len(out)+n > lz4Block {
			return nil, errLZ4
		}
		for n > 0 { // it may overlap its own output
			from := out[len(out)-back:]
			k := min(n, back)
			out = append(out, from[:k]...)
			n -= k
		}
	}
	return out, nil
}
