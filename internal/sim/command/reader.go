package command

import (
	"bytes"
	"io"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
)

const (
	leastBuffer = 4 << 10
	mostBuffer  = 64 << 10
)

// A Reader reads a file by records or pieces, without copying, within the
// task's limits. Close it with defer, because a task may end inside any call.
type Reader struct {
	t     *kernel.Task
	in    *Input // nil for standard input
	buf   []byte
	r, w  int
	err   error // what ended it
	prior int64 // bytes that went before buf
}

// OpenReader opens a file for reading; "-" is standard input.
func OpenReader(t *kernel.Task, name string) (*Reader, error) {
	if name == "-" {
		return StdinReader(t)
	}
	in, err := Open(t, name)
	if err != nil {
		return nil, err
	}
	return &Reader{t: t, in: in}, nil
}

// StdinReader returns a reader of standard input.
func StdinReader(t *kernel.Task) (*Reader, error) {
	if t.FD(0) == nil {
		return nil, linux.EBADF
	}
	return &Reader{t: t}, nil
}

// Close releases the file.
func (r *Reader) Close() {
	if r.in != nil {
		_ = r.in.Close()
		r.in = nil
	}
	if r.buf != nil {
		r.t.Shrink(len(r.buf))
		r.buf = nil
	}
	r.r, r.w = 0, 0
	if r.err == nil {
		r.err = io.EOF
	}
}

// Desc returns the open file.
func (r *Reader) Desc() *kernel.Desc {
	if r.in != nil {
		return r.in.Desc()
	}
	return r.t.FD(0)
}

// Err returns what ended the reading, if that was not the end of the file.
func (r *Reader) Err() error {
	if r.err == io.EOF {
		return nil
	}
	return r.err
}

// Offset counts the bytes that were taken.
func (r *Reader) Offset() int64 { return r.prior + int64(r.r) }

// raw reads once from the file itself.
func (r *Reader) raw(p []byte) (int, error) {
	if r.in != nil {
		return r.in.Read(p)
	}
	return r.t.Read(0, p)
}

// fill reads more behind what is there.
func (r *Reader) fill() bool {
	if r.err != nil {
		return false
	}
	if r.w == len(r.buf) {
		r.room()
	}
	n, err := r.raw(r.buf[r.w:])
	r.w += n
	r.t.Step(n >> 2)
	if err != nil {
		r.err = err
		return n > 0
	}
	if n == 0 {
		r.err = io.EOF
	}
	return n > 0
}

// room makes room behind a full buffer.
func (r *Reader) room() {
	if r.r > 0 && r.r >= len(r.buf)/2 && len(r.buf) >= mostBuffer || r.r == r.w && len(r.buf) >= mostBuffer {
		r.prior += int64(r.r)
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
		return
	}
	size := max(leastBuffer, 4*len(r.buf))
	if size > mostBuffer {
		size = max(mostBuffer, 2*len(r.buf))
		r.t.Bound("record", int64(r.w-r.r), r.t.K.Limits.Record)
	}
	r.t.Grow(size - len(r.buf))
	buf := make([]byte, size)
	r.prior += int64(r.r)
	r.w = copy(buf, r.buf[r.r:r.w])
	r.r = 0
	r.buf = buf
}

// Record takes the next record with the delimiter that ends it; the last one
// may have none. It is valid until the next call. ok is false at the end.
func (r *Reader) Record(delim byte) (rec []byte, ok bool) {
	r.t.Step(1)
	if i := bytes.IndexByte(r.buf[r.r:r.w], delim); i >= 0 {
		rec = r.buf[r.r : r.r+i+1]
		r.r += i + 1
		return rec, true
	}
	return r.slow(delim)
}

func (r *Reader) slow(delim byte) ([]byte, bool) {
	seen := r.w - r.r
	for r.fill() {
		if i := bytes.IndexByte(r.buf[r.r+seen:r.w], delim); i >= 0 {
			rec := r.buf[r.r : r.r+seen+i+1]
			r.r += seen + i + 1
			return rec, true
		}
		seen = r.w - r.r
	}
	if r.r == r.w {
		return nil, false
	}
	rec := r.buf[r.r:r.w]
	r.r = r.w
	return rec, true
}

// Line is Record without the delimiter; ended tells whether there was one.
func (r *Reader) Line(delim byte) (line []byte, ended, ok bool) {
	line, ok = r.Record(delim)
	if n := len(line); n > 0 && line[n-1] == delim {
		return line[:n-1], true, ok
	}
	return line, false, ok
}

// Piece takes what there is, waiting for something if there is nothing. It is
// valid until the next call, and may be changed. ok is false at the end.
func (r *Reader) Piece() (b []byte, ok bool) {
	if r.r == r.w {
		r.prior += int64(r.r)
		r.r, r.w = 0, 0
		if len(r.buf) < mostBuffer && (r.buf == nil || r.prior >= int64(len(r.buf))) {
			r.grow()
		}
		if !r.fill() {
			return nil, false
		}
	}
	b = r.buf[r.r:r.w]
	r.r = r.w
	return b, true
}

// grow makes an empty buffer larger.
func (r *Reader) grow() {
	size := min(mostBuffer, max(leastBuffer, 4*len(r.buf)))
	r.t.Grow(size - len(r.buf))
	r.buf = make([]byte, size)
}

// Whole takes whole records, as many as there are at hand, waiting until
// there is one: the piece ends with the delimiter but at the end of the file.
func (r *Reader) Whole(delim byte) (b []byte, ok bool) {
	if i := bytes.LastIndexByte(r.buf[r.r:r.w], delim); i >= 0 {
		b = r.buf[r.r : r.r+i+1]
		r.r += i + 1
		return b, true
	}
	if r.r == r.w && len(r.buf) < mostBuffer && r.prior+int64(r.r) >= int64(len(r.buf)) {
		r.prior += int64(r.r)
		r.r, r.w = 0, 0
		r.grow()
	}
	seen := r.w - r.r
	for r.fill() {
		if i := bytes.LastIndexByte(r.buf[r.r+seen:r.w], delim); i >= 0 {
			b = r.buf[r.r : r.r+seen+i+1]
			r.r += seen + i + 1
			return b, true
		}
		seen = r.w - r.r
	}
	if r.r == r.w {
		return nil, false
	}
	b = r.buf[r.r:r.w]
	r.r = r.w
	return b, true
}

// Read reads as an io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	if r.r == r.w {
		if len(p) >= len(r.buf) {
			if r.err != nil {
				return 0, r.err
			}
			n, err := r.raw(p)
			r.prior += int64(n)
			if err != nil {
				r.err = err
			}
			return n, err
		}
		if !r.fill() {
			return 0, r.err
		}
	}
	n := copy(p, r.buf[r.r:r.w])
	r.r += n
	return n, nil
}

// ReadByte takes a byte; the error is what ended the reading, io.EOF too.
func (r *Reader) ReadByte() (byte, error) {
	if r.r == r.w && !r.fill() {
		return 0, r.err
	}
	c := r.buf[r.r]
	r.r++
	return c, nil
}

// Peek shows the next byte without taking it.
func (r *Reader) Peek() (c byte, ok bool) {
	if r.r == r.w && !r.fill() {
		return 0, false
	}
	return r.buf[r.r], true
}

// Next takes n bytes, or fewer at the end. It is valid until the next call.
func (r *Reader) Next(n int) []byte {
	for r.w-r.r < n && r.fill() {
	}
	b := r.buf[r.r:min(r.w, r.r+n)]
	r.r += len(b)
	return b
}

// Skip takes n bytes and throws them away, by seeking if the file can. It
// tells how many there were.
func (r *Reader) Skip(n int64) int64 {
	var done int64
	for done < n {
		if r.r == r.w && !r.fill() {
			return done
		}
		k := int(min(int64(r.w-r.r), n-done))
		r.r += k
		done += int64(k)
	}
	return done
}

// Unread puts back the last n bytes of what was taken last.
func (r *Reader) Unread(n int) { r.r -= n }

// Return returns what was read but not taken back to the file, where it can
// seek, so that the next program continues after what was taken.
func (r *Reader) Return() {
	if r.r == r.w {
		return
	}
	if s, ok := r.Desc().File.(kernel.Seeker); ok {
		if _, err := s.Seek(int64(r.r-r.w), io.SeekCurrent); err == nil {
			r.w = r.r
		}
	}
}

// All takes everything that is left, up to the limit "input". Its capacity is
// counted until the task ends, or is given back by Shrink.
func (r *Reader) All() ([]byte, error) {
	size := leastBuffer
	if f, ok := r.Desc().VFS(); ok {
		if i, err := f.Info(); err == nil && i.IsRegular() && i.Size < r.t.K.Limits.Input {
			size = int(i.Size) + 2 // one to see the end, one that the caller may need
		}
	}
	r.t.Grow(size)
	b := make([]byte, 0, size)
	for {
		if len(b) >= cap(b)-1 {
			size = 2 * cap(b)
			r.t.Bound("input", int64(size), 2*r.t.K.Limits.Input)
			r.t.Grow(size)
			more := append(make([]byte, 0, size), b...)
			r.t.Shrink(cap(b))
			b = more
		}
		n, err := r.Read(b[len(b) : cap(b)-1])
		r.t.Step(n >> 6)
		b = b[:len(b)+n]
		if err != nil {
			return b, r.Err()
		}
	}
}

// Text is Piece that ends inside of a UTF-8 character only at the end of the
// file.
func (r *Reader) Text() (b []byte, ok bool) {
	b, ok = r.Piece()
	k := unfinishedRune(b)
	switch {
	case k == 0:
		return b, ok
	case k < len(b):
		r.Unread(k)
		return b[:len(b)-k], true
	}
	r.Unread(k)
	b = r.Next(utf8.UTFMax)
	if !utf8.FullRune(b) {
		return b, true
	}
	_, size := utf8.DecodeRune(b)
	r.Unread(len(b) - size)
	return b[:size], true
}

// unfinishedRune tells how many bytes at the end begin a character that goes on.
func unfinishedRune(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if utf8.FullRune(b[len(b)-i:]) {
				return 0
			}
			return i
		}
	}
	return 0
}
