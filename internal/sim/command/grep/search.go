package grep

import (
	"bytes"
	"io"
	"math"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/regex"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// pieceSize is how much is read at a time. GNU's reads as much, which shows
// where a file turns out to be binary only later.
const pieceSize = 96 << 10

// A search is the state of grep: what concerns all files, and the file that is
// looked at.
type search struct {
	t   *kernel.Task
	o   *options
	re  *regex.Regexp
	out *command.Writer
	eol byte
	own vfs.Info // standard output

	matched, failed bool // in any file
	shown           bool // there was a line, so that groups need a separator

	// Of the file.
	name   string
	named  bool // before lines
	width  int  // of numbers, where they line up
	src    io.Reader
	seeker kernel.Seeker // of standard input
	offset int64         // where that began

	// Of the piece. The places are offsets into buf.
	buf     []byte
	pos     int   // what was looked at
	lim     int   // the end of the whole lines
	end     int   // the end of what was read
	base    int64 // bytes before buf
	ended   bool
	counted int   // where the lines were counted up to
	lines   int64 // how many there were
	last    int   // the end of what was printed, -1 where that is gone
	after   int64 // where the last selected line ended

	count   int64
	left    int64 // lines that may still be selected
	pending int   // lines of context that are due
	mute    bool  // nothing is printed
	once    bool  // the first line decides
	binary  bool  // there were zero bytes
	spoilt  bool  // a line was not printed, as it is not text
	prior   int64 // lines that were selected before the zero bytes
}

func newSearch(t *kernel.Task, o *options, re *regex.Regexp) *search {
	s := &search{t: t, o: o, re: re, out: command.StdoutStatus(t, trouble), eol: '\n'}
	if o.nul {
		s.eol = 0
	}
	if d := t.FD(1); d != nil {
		if i, err := d.File.Info(); err == nil {
			s.own = i
		}
	}
	return s
}

func (s *search) close() { s.t.Shrink(len(s.buf)) }

// search searches one file, and prints what is to be said of it.
func (s *search) search(r io.Reader) {
	o := s.o
	s.src, s.pos, s.lim, s.end, s.base, s.ended = r, 0, 0, 0, 0, false
	s.counted, s.lines, s.last, s.after = 0, 0, -1, 0
	s.count, s.left, s.pending = 0, math.MaxInt64, 0
	if o.maxCount >= 0 {
		s.left = o.maxCount
	}
	toNull := s.own.Rdev == kernel.DevNull
	s.once = o.quiet || o.files || o.filesWithout || toNull && !o.count
	s.mute = s.once || o.count
	s.binary, s.spoilt, s.prior = false, false, 0
	var err error
	if s.left > 0 {
		err = s.scan()
	}
	if s.pending > 0 && err == nil {
		err = s.trail()
	}
	if err != nil {
		s.fail(s.name, err)
	}
	s.finish()
	s.src = nil
}

func (s *search) finish() {
	o := s.o
	any := s.count > 0
	if any {
		s.matched = true
	}
	if o.count && !o.files && !o.filesWithout && !o.quiet {
		s.fileName(':')
		s.out.Bytes(append(appendInt(s.out.Space(), s.count), '\n'))
	}
	if any && o.files || !any && o.filesWithout {
		s.paint(o.colours.file, s.name)
		end := byte('\n')
		if o.nulNames {
			end = 0
		}
		s.out.Byte(end)
	}
	if o.lineFlushed {
		s.out.Flush()
	}
	if (s.spoilt || s.binary && s.count > s.prior) && !o.count && !o.quiet && !o.files && !o.filesWithout && s.own.Rdev != kernel.DevNull {
		s.t.Errorf("%s: binary file matches", s.name)
	}
	s.giveBack()
}

// giveBack leaves standard input where grep's interest ended.
func (s *search) giveBack() {
	o := s.o
	if s.seeker == nil || o.files || o.filesWithout || o.quiet {
		return
	}
	// Where it cannot, the next program has less, as with GNU's.
	if s.left == 0 {
		_, _ = s.seeker.Seek(s.offset+s.after, io.SeekStart)
	} else if !s.ended {
		_, _ = s.seeker.Seek(0, io.SeekEnd)
	}
}

// scan goes through the file until no line can be selected any more.
func (s *search) scan() error {
	for {
		err := s.fill()
		if err != nil {
			return err
		}
		if s.pos >= s.lim && s.ended {
			return nil
		}
		if s.binary && s.o.binary == binaryWithout {
			s.count = 0
			return nil
		}
		stop, err := s.piece()
		if err != nil || stop {
			return err
		}
		if s.pending > 0 {
			s.due(s.lim)
		}
		s.pos = s.lim
		if s.ended {
			return nil
		}
	}
}

// fill reads on, until there is a whole line behind pos or the file ends.
func (s *search) fill() error {
	s.discard()
	fresh := s.end
	for {
		if len(s.buf)-s.end < pieceSize {
			s.grow()
		}
		n, err := s.src.Read(s.buf[s.end : s.end+pieceSize])
		s.t.Step(1 + n>>7)
		first := s.end == 0 && s.base == 0
		s.zeros(s.end, s.end+n, first)
		s.end += n
		if err == io.EOF {
			s.ended = true
			if s.end > s.pos && s.buf[s.end-1] != s.eol {
				s.buf = append(s.buf[:s.end], s.eol)[:len(s.buf)]
				s.end++
			}
			s.lim = s.end
			return nil
		}
		if err != nil {
			return err
		}
		if i := bytes.LastIndexByte(s.buf[fresh:s.end], s.eol); i >= 0 {
			s.lim = fresh + i + 1
			return nil
		}
		fresh = s.end
		s.t.Bound("record", int64(s.end-s.pos), s.t.K.Limits.Record)
	}
}

// zeros looks for what makes the file binary.
func (s *search) zeros(from, to int, first bool) {
	if s.eol == 0 || s.o.binary == binaryText {
		return
	}
	if !s.binary {
		if bytes.IndexByte(s.buf[from:to], 0) < 0 && !(first && to-from == pieceSize && s.hollow()) {
			return
		}
		s.binary, s.prior = true, s.count
		if !s.o.count {
			s.once, s.mute = true, true
		}
	}
	for b := s.buf[from:to]; ; {
		i := bytes.IndexByte(b, 0)
		s.t.Step(1)
		if i < 0 {
			return
		}
		b[i] = s.eol
		b = b[i+1:]
	}
}

// hollow says whether there are zero bytes that nobody wrote.
func (s *search) hollow() bool {
	f, ok := s.src.(*vfs.File)
	if !ok {
		return false
	}
	i, err := f.Info()
	if err != nil || i.Blocks*512 >= i.Size {
		return false
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil {
		return false
	}
	hole, err := f.Seek(at, vfs.SeekHole)
	if _, back := f.Seek(at, io.SeekStart); back != nil {
		return false
	}
	return err == nil && hole < i.Size
}

func (s *search) grow() {
	size := max(2*pieceSize, 2*len(s.buf))
	s.t.Grow(size - len(s.buf))
	b := make([]byte, size)
	copy(b, s.buf[:s.end])
	s.buf = b
}

// discard drops what nobody needs any more: not the lines that may be printed
// before the next selected one.
func (s *search) discard() {
	keep := s.pos
	if s.o.before > 0 && !s.mute {
		least := max(s.last, 0)
		for range s.o.before {
			if keep <= least {
				break
			}
			keep = bytes.LastIndexByte(s.buf[least:keep-1], s.eol) + 1 + least
		}
	}
	if keep == 0 {
		return
	}
	if s.o.numbers && s.counted < keep && !s.mute {
		s.lines += int64(bytes.Count(s.buf[s.counted:keep], []byte{s.eol}))
		s.counted = keep
	}
	copy(s.buf, s.buf[keep:s.end])
	s.base += int64(keep)
	s.pos, s.lim, s.end, s.counted = s.pos-keep, s.lim-keep, s.end-keep, max(s.counted-keep, 0)
	if s.last >= 0 {
		if s.last -= keep; s.last < 0 {
			s.last = -1
		}
	}
}

// piece looks through the whole lines at hand. It stops when no line can be
// selected any more.
func (s *search) piece() (stop bool, err error) {
	b := s.buf[:s.lim]
	for s.pos < s.lim {
		start, end, err := s.re.FindLine(b, s.pos)
		if err != nil {
			return true, err
		}
		s.t.Step(1)
		if s.o.invert {
			to := start
			if start < 0 {
				to = s.lim
			}
			if to > s.pos && s.run(s.pos, to) {
				return true, nil
			}
			s.pos = to
			if start >= 0 {
				s.pos = end + 1
			}
			continue
		}
		if start < 0 {
			return false, nil
		}
		if s.selected(start, end+1) {
			return true, nil
		}
	}
	return false, nil
}

// selected counts and prints a line, and says whether it was the last.
func (s *search) selected(from, to int) bool {
	s.count++
	s.left--
	s.pos = to
	s.after = s.base + int64(to)
	if !s.mute {
		s.lead(from)
		s.print(from, to, ':')
		s.pending = max(s.o.after, 0)
		s.shown = true
	}
	return s.left == 0 || s.once
}

// run is selected for all lines of a stretch.
func (s *search) run(from, to int) bool {
	if s.mute && !s.once {
		n := int64(bytes.Count(s.buf[from:to], []byte{s.eol}))
		if n < s.left {
			s.count += n
			s.left -= n
			s.after = s.base + int64(to)
			return false
		}
	}
	for from < to {
		s.t.Step(1)
		end := from + bytes.IndexByte(s.buf[from:to], s.eol) + 1
		if s.selected(from, end) {
			return true
		}
		from = end
	}
	return false
}

// lead prints what comes before a selected line: the context that is due
// after the one before, a separator, and the context before this one.
func (s *search) lead(from int) {
	if s.pending > 0 {
		s.due(from)
	}
	o := s.o
	if o.before < 0 && o.after < 0 {
		return
	}
	least := max(s.last, 0)
	at := from
	for range max(o.before, 0) {
		if at <= least {
			break
		}
		at = bytes.LastIndexByte(s.buf[least:at-1], s.eol) + 1 + least
	}
	if s.shown && at != s.last && o.group {
		s.paint(o.colours.separator, o.separator)
		s.out.Byte('\n')
	}
	for at < from && !s.mute {
		end := at + bytes.IndexByte(s.buf[at:from], s.eol) + 1
		s.print(at, end, '-')
		at = end
	}
}

// due prints the context that is due up to a place.
func (s *search) due(to int) {
	at := max(s.last, 0)
	for s.pending > 0 && at < to && !s.mute {
		end := at + bytes.IndexByte(s.buf[at:to], s.eol) + 1
		s.pending--
		s.print(at, end, '-')
		at = end
	}
}

// trail prints the context after the last line that could be selected.
func (s *search) trail() error {
	if s.last >= 0 {
		s.pos = s.last // a last line that was not text counts as context too
	}
	for s.pending > 0 && !s.mute {
		if s.pos >= s.lim {
			if s.ended {
				return nil
			}
			if err := s.fill(); err != nil {
				return err
			}
			continue
		}
		end := s.pos + bytes.IndexByte(s.buf[s.pos:s.lim], s.eol) + 1
		s.pending--
		s.print(s.pos, end, '-')
		s.pos = end
	}
	return nil
}
