package archive

import (
	"bytes"
	"compress/bzip2"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	packer "github.com/dsnet/compress/bzip2"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A format is a kind of compressed file.
type format string

const (
	gz   format = "gzip"
	bz   format = "bzip2"
	xzs  format = "xz"
	lz   format = "lzma"
	zst  format = "zstd"
	none format = ""
)

// maxWindow is how far back compressed data may refer.
const maxWindow = 128 << 20

// codecOwn is what a decoder holds beside its window.
const codecOwn = 1 << 20

// lzmaDictionary returns how much a decoder holds for the header of lzma data. The decoder refuses a larger
// dictionary than the window.
func lzmaDictionary(head []byte) int {
	dict := uint64(binary.LittleEndian.Uint32(head[1:]))
	if size := binary.LittleEndian.Uint64(head[5:]); size < dict { // else it is unknown, or no bound
		dict = size
	}
	return int(min(dict, maxWindow))
}

// sniff tells the format of data by how they begin.
func sniff(head []byte) format {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gz
	case bytes.HasPrefix(head, []byte("BZh")):
		return bz
	case bytes.HasPrefix(head, []byte("\xfd7zXZ\x00")):
		return xzs
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return zst
	case len(head) > 12 && head[0] == 0x5d && head[1] == 0 && head[2] == 0:
		return lz
	}
	return none
}

// An unpacker reads what compressed data hold. All that comes out counts
// against the limit "archive".
type unpacker struct {
	t     *kernel.Task
	r     io.Reader
	done  func()
	total int64
	held  int
}

// unpack begins to read compressed data.
func unpack(t *kernel.Task, f format, r io.Reader) (u *unpacker, err error) {
	u = &unpacker{t: t}
	defer func() {
		if err != nil {
			u.close()
		}
	}()
	err = guard(func() error {
		switch f {
		case gz:
			u.hold(64 << 10)
			g, err := gzip.NewReader(r)
			u.r = g
			return err
		case bz:
			u.hold(4 << 20)
			u.r = bzip2.NewReader(r)
		case xzs:
			u.r = newXZReader(u, r)
		case lz:
			head := make([]byte, lzma.HeaderLen)
			n, err := io.ReadFull(r, head)
			if err == nil {
				u.hold(lzmaDictionary(head) + codecOwn)
			}
			u.r, err = lzma.ReaderConfig{DictCap: maxWindow}.NewReader(io.MultiReader(bytes.NewReader(head[:n]), r))
			return err
		case zst:
			u.hold(codecOwn)
			d, err := zstd.NewReader(&zstdFrames{u: u, r: r}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(1<<62))
			if err != nil {
				return err
			}
			u.r, u.done = d, d.Close
		case none:
			u.r = r
		}
		return nil
	})
	return u, err
}

func (u *unpacker) hold(n int) {
	u.t.Grow(n)
	u.held += n
}

func (u *unpacker) close() {
	if u.done != nil {
		u.done()
		u.done = nil
	}
	u.t.Shrink(u.held)
	u.held = 0
}

func (u *unpacker) Read(p []byte) (n int, err error) {
	err = guard(func() error {
		n, err = u.r.Read(p)
		return err
	})
	u.total += int64(n)
	u.t.Step(n>>6 + 1)
	u.t.Bound("archive", u.total, u.t.K.Limits.Archive)
	return n, err
}

// guard turns a bug of a decoder into an error. The end of a task passes.
func guard(f func() error) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case runtime.Error:
			err = fmt.Errorf("corrupt data: %w", r)
		case string:
			err = errors.New("corrupt data: " + r)
		default:
			panic(r)
		}
	}()
	return f()
}

// settings are how data are compressed.
type settings struct {
	level int
	name  string // of the file, for gzip
	time  time.Time
}

// pack begins to write compressed data. Closing it does not close w.
func pack(t *kernel.Task, f format, w io.Writer, s settings) (io.WriteCloser, error) {
	p := &packing{t: t}
	var err error
	switch f {
	case gz:
		t.Grow(1 << 20)
		p.held = 1 << 20
		var g *gzip.Writer
		if g, err = gzip.NewWriterLevel(w, s.level); err == nil {
			if strings.IndexByte(s.name, 0) < 0 {
				g.Name = latin(s.name)
			}
			g.ModTime, g.OS = s.time, 3
			p.w = g
		}
	case bz:
		t.Grow(16 << 20)
		p.held = 16 << 20
		p.w, err = packer.NewWriter(w, &packer.WriterConfig{Level: s.level})
	case xzs:
		dict := 8 << 20
		if s.level < 6 {
			dict = min(1<<(18+max(s.level, 1)), 8<<20)
		}
		t.Grow(3 * dict)
		p.held = 3 * dict
		p.w, err = xz.WriterConfig{DictCap: dict, CheckSum: xz.CRC64}.NewWriter(w)
	case lz:
		t.Grow(24 << 20)
		p.held = 24 << 20
		p.w, err = lzma.WriterConfig{DictCap: 8 << 20, EOSMarker: true}.NewWriter(w)
	case zst:
		level := zstd.EncoderLevelFromZstd(s.level)
		p.held = 32 << 20
		if level == zstd.SpeedBestCompression {
			p.held = 48 << 20
		}
		t.Grow(p.held)
		p.w, err = zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithEncoderLevel(level))
	case none:
		p.w = plain{w}
	}
	if err != nil {
		t.Shrink(p.held)
		return nil, err
	}
	return p, nil
}

// latin leaves out of a name what gzip's header cannot have.
func latin(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return ""
		}
	}
	return s
}

type plain struct{ io.Writer }

func (plain) Close() error { return nil }

type packing struct {
	t    *kernel.Task
	w    io.WriteCloser
	held int
}

func (p *packing) Write(b []byte) (n int, err error) {
	p.t.Step(len(b)>>4 + 1)
	err = guard(func() error {
		n, err = p.w.Write(b)
		return err
	})
	return n, err
}

func (p *packing) Close() error {
	p.t.Shrink(p.held)
	p.held = 0
	return guard(p.w.Close)
}
