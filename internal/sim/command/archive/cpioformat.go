package archive

import (
	"archive/tar"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

// A record is a member of a cpio archive, in any of its forms.
type record struct {
	name, target     string
	ino              uint64
	mode             uint32
	uid, gid         int
	nlink            int
	rdev             uint64 // major<<8 | minor
	mtime            int64
	size             int64
	hard             string // of ustar: the name that it is another one of
	sum              uint32
	devMajor, devMin uint64
}

const (
	cpioTrailer = "TRAILER!!!"
	maxCPIOName = 64 << 10
)

var (
	errCPIOForm = errors.New("not a cpio archive")
	errCPIOEnd  = errors.New("premature end of file")
	errCPIOName = errors.New("malformed header: name is too long")
)

// A cpioReader gives the members of an archive. What is read of r between two
// is the contents.
type cpioReader struct {
	r    io.Reader
	tape *tar.Reader // of ustar
	left int64       // of the contents, and what fills them up
	pad  int64
}

// next gives the next member, or io.EOF.
func (c *cpioReader) next() (*record, error) {
	if c.tape != nil {
		return c.tapeNext()
	}
	if _, err := io.CopyN(io.Discard, c.r, c.left+c.pad); err != nil {
		return nil, errCPIOEnd
	}
	c.left, c.pad = 0, 0
	head := make([]byte, 110)
	if err := c.full(head[:6]); err != nil {
		return nil, err
	}
	var h *record
	var size, align int64
	var err error
	switch magic := string(head[:6]); {
	case magic == "070701" || magic == "070702":
		align = 4
		h, size, err = c.newc(head)
	case magic == "070707":
		align = 1
		h, size, err = c.odc(head)
	case binary.LittleEndian.Uint16(head) == 0o70707:
		align = 2
		h, size, err = c.binary(head, binary.LittleEndian)
	case binary.BigEndian.Uint16(head) == 0o70707:
		align = 2
		h, size, err = c.binary(head, binary.BigEndian)
	default:
		return nil, errCPIOForm
	}
	if err != nil {
		return nil, err
	}
	if size <= 0 || size > maxCPIOName || h.size < 0 {
		return nil, errCPIOName
	}
	name := make([]byte, size)
	if err := c.full(name); err != nil {
		return nil, err
	}
	for i, b := range name {
		if b == 0 {
			name = name[:i]
			break
		}
	}
	h.name = string(name)
	headLen := map[int64]int64{4: 110, 1: 76, 2: 26}[align]
	if _, err := io.CopyN(io.Discard, c.r, -(headLen+size)&(align-1)); err != nil {
		return nil, errCPIOEnd
	}
	if h.name == cpioTrailer {
		return nil, io.EOF
	}
	c.left, c.pad = h.size, -h.size&(align-1)
	if h.mode&linux.S_IFMT == linux.S_IFLNK {
		if h.size > maxCPIOName {
			return nil, errCPIOName
		}
		target := make([]byte, h.size)
		if err := c.full(target); err != nil {
			return nil, err
		}
		h.target, c.left = string(target), 0
	}
	return h, nil
}

func (c *cpioReader) full(b []byte) error {
	if _, err := io.ReadFull(c.r, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errCPIOEnd
		}
		return err
	}
	return nil
}

// Read returns the contents of the member.
func (c *cpioReader) Read(p []byte) (int, error) {
	if c.tape != nil {
		return c.tape.Read(p)
	}
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = errCPIOEnd
	}
	return n, err
}

func digits(b []byte, base int) (uint64, error) {
	n, err := strconv.ParseUint(string(b), base, 64)
	if err != nil {
		return 0, fmt.Errorf("malformed number %q in a header", b)
	}
	return n, nil
}

func (c *cpioReader) newc(head []byte) (h *record, size int64, err error) {
	if err := c.full(head[6:110]); err != nil {
		return nil, 0, err
	}
	var f [13]uint64
	for i := range f {
		if f[i], err = digits(head[6+8*i:14+8*i], 16); err != nil {
			return nil, 0, err
		}
	}
	return &record{
		ino: f[0] | f[7]<<40 | f[8]<<52, mode: uint32(f[1]), uid: int(f[2]), gid: int(f[3]), nlink: int(f[4]), mtime: int64(f[5]), size: int64(f[6]),
		rdev: f[9]<<8 | f[10]&0xff, sum: uint32(f[12]),
	}, int64(f[11]), nil
}

func (c *cpioReader) odc(head []byte) (h *record, size int64, err error) {
	if err := c.full(head[6:76]); err != nil {
		return nil, 0, err
	}
	var f [10]uint64
	at := 6
	for i, n := range []int{6, 6, 6, 6, 6, 6, 6, 11, 6, 11} {
		if f[i], err = digits(head[at:at+n], 8); err != nil {
			return nil, 0, err
		}
		at += n
	}
	return &record{
		ino: f[0]<<20 | f[1], mode: uint32(f[2]), uid: int(f[3]), gid: int(f[4]), nlink: int(f[5]), rdev: f[6], mtime: int64(f[7]), size: int64(f[9]),
	}, int64(f[8]), nil
}

func (c *cpioReader) binary(head []byte, order binary.ByteOrder) (h *record, size int64, err error) {
	if err := c.full(head[6:26]); err != nil {
		return nil, 0, err
	}
	s := func(i int) int64 { return int64(order.Uint16(head[2*i:])) }
	return &record{
		ino: uint64(s(1)<<20 | s(2)), mode: uint32(s(3)), uid: int(s(4)), gid: int(s(5)), nlink: int(s(6)), rdev: uint64(s(7)),
		mtime: s(8)<<16 | s(9), size: s(11)<<16 | s(12),
	}, s(10), nil
}

func (c *cpioReader) tapeNext() (*record, error) {
	var h *tar.Header
	err := guard(func() (err error) {
		h, err = c.tape.Next()
		return err
	})
	if err != nil {
		return nil, err
	}
	r := &record{name: h.Name, target: h.Linkname, mode: uint32(h.Mode) & 0o7777, uid: h.Uid, gid: h.Gid, nlink: 1, mtime: h.ModTime.Unix(), size: h.Size}
	switch h.Typeflag {
	case tar.TypeDir:
		r.mode |= linux.S_IFDIR
	case tar.TypeSymlink:
		r.mode |= linux.S_IFLNK
	case tar.TypeFifo:
		r.mode |= linux.S_IFIFO
	case tar.TypeChar:
		r.mode |= linux.S_IFCHR
	case tar.TypeBlock:
		r.mode |= linux.S_IFBLK
	case tar.TypeLink:
		r.mode |= linux.S_IFREG
		r.hard = h.Linkname
	default:
		r.mode |= linux.S_IFREG
	}
	return r, nil
}

// A cpioWriter makes an archive.
type cpioWriter struct {
	w    io.Writer
	form string // bin, odc, newc, crc or ustar
	tape *tar.Writer
	pad  int64
}

// head writes what stands before the contents.
func (c *cpioWriter) head(h *record) error {
	if c.tape != nil {
		return c.tapeHead(h)
	}
	var b []byte
	align := int64(1)
	n := len(h.name) + 1
	switch c.form {
	case "newc", "crc":
		align = 4
		magic := "070701"
		if c.form == "crc" {
			magic = "070702"
		}
		b = fmt.Appendf(nil, "%s%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X", magic, uint32(h.ino), h.mode, uint32(h.uid), uint32(h.gid),
			h.nlink, uint32(h.mtime), uint32(h.size), h.devMajor, h.devMin, h.rdev>>8, h.rdev&0xff, n, h.sum)
		if h.size > 1<<32-1 {
			return linux.EFBIG
		}
	case "odc":
		b = fmt.Appendf(nil, "070707%06o%06o%06o%06o%06o%06o%06o%011o%06o%011o", 0, h.ino&0o777777, h.mode&0o777777, h.uid&0o777777, h.gid&0o777777,
			h.nlink&0o777777, h.rdev&0o777777, max(h.mtime, 0), n, h.size)
		if h.size > 1<<33-1 || n > 0o777777 {
			return linux.EFBIG
		}
	default:
		align = 2
		for _, x := range []int64{0o70707, 0, int64(h.ino), int64(h.mode), int64(h.uid), int64(h.gid), int64(h.nlink), int64(h.rdev), h.mtime >> 16, h.mtime, int64(n), h.size >> 16, h.size} {
			b = binary.LittleEndian.AppendUint16(b, uint16(x))
		}
		if h.size > 1<<31-1 || n > 1<<16-1 {
			return linux.EFBIG
		}
	}
	b = append(append(b, h.name...), 0)
	b = append(b, make([]byte, -int64(len(b))&(align-1))...)
	c.pad = -h.size & (align - 1)
	_, err := c.w.Write(b)
	return err
}

// filled writes what stands behind the contents.
func (c *cpioWriter) filled() error {
	if c.tape != nil || c.pad == 0 {
		return nil
	}
	_, err := c.w.Write(make([]byte, c.pad))
	return err
}

func (c *cpioWriter) Write(p []byte) (int, error) {
	if c.tape != nil {
		return c.tape.Write(p)
	}
	return c.w.Write(p)
}

func (c *cpioWriter) tapeHead(h *record) error {
	t := &tar.Header{Name: h.name, Mode: int64(h.mode & 0o7777), Uid: h.uid, Gid: h.gid, ModTime: time.Unix(h.mtime, 0), Size: h.size, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg}
	switch h.mode & linux.S_IFMT {
	case linux.S_IFDIR:
		t.Typeflag = tar.TypeDir
		t.Name += "/"
	case linux.S_IFLNK:
		t.Typeflag, t.Linkname, t.Size = tar.TypeSymlink, h.target, 0
	case linux.S_IFIFO:
		t.Typeflag = tar.TypeFifo
	case linux.S_IFCHR:
		t.Typeflag = tar.TypeChar
	case linux.S_IFBLK:
		t.Typeflag = tar.TypeBlock
	}
	return c.tape.WriteHeader(t)
}
