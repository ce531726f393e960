package shell

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/variable"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

const readUsage = "read: usage: read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]\n"

// A reading is a run of the builtin read.
type reading struct {
	s       *Shell
	raw     bool
	delim   byte
	most    int  // characters, -1 is a line
	exact   bool // -N
	array   string
	prompt  string
	timeout time.Duration // -1 is none
	fd      int
	names   []string
}

func biRead(s *Shell, args []string) int {
	r := reading{s: s, delim: '\n', most: -1, timeout: -1}
	if st := r.options(args[1:]); st >= 0 {
		return st
	}
	for _, name := range r.names {
		if ref, ok := variable.Split(name); !ok {
			s.complain("read: `%s': not a valid identifier", ref.Name)
			return 1
		}
	}
	d := s.t.FD(r.fd)
	if d == nil {
		s.complain("read: %d: invalid file descriptor: Bad file descriptor", r.fd)
		return 1
	}
	if r.prompt != "" {
		if _, ok := d.File.(kernel.Terminal); ok {
			s.flushOut()
			s.errout(r.prompt)
		}
	}
	s.flushOut()
	if r.timeout == 0 {
		return r.poll(d)
	}
	return r.run(d)
}

// options reads the arguments; a status of 0 or more is the builtin's.
func (r *reading) options(args []string) int {
	s := r.s
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		for i := 1; i < len(a); i++ {
			c := a[i]
			switch c {
			case 'r':
				r.raw = true
				continue
			case 'e', 's':
				continue
			}
			if strings.IndexByte("adinNptu", c) < 0 {
				s.complain("read: -%c: invalid option", c)
				s.errout(readUsage)
				return 2
			}
			value := a[i+1:]
			if value == "" {
				if len(args) == 0 {
					s.complain("read: -%c: option requires an argument", c)
					s.errout(readUsage)
					return 2
				}
				value, args = args[0], args[1:]
			}
			if st := r.option(c, value); st >= 0 {
				return st
			}
			break
		}
	}
	r.names = args
	return -1
}

func (r *reading) option(c byte, value string) int {
	s := r.s
	switch c {
	case 'a':
		r.array = value
	case 'd':
		r.delim = 0
		if value != "" {
			r.delim = value[0]
		}
	case 'n', 'N':
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			s.complain("read: %s: invalid number", value)
			return 1
		}
		r.most, r.exact = n, c == 'N'
	case 'p':
		r.prompt = value
	case 't':
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || f < 0 || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(value, "eExX_") {
			s.complain("read: %s: invalid timeout specification", value)
			return 1
		}
		r.timeout = time.Duration(min(f, 1e9) * float64(time.Second))
	case 'u':
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			s.complain("read: %s: invalid file descriptor specification", value)
			return 1
		}
		r.fd = n
	}
	return -1
}

// poll reports whether there is input.
func (r *reading) poll(d *kernel.Desc) int {
	p, ok := d.File.(kernel.Peeker)
	if !ok {
		return 0
	}
	al := r.s.alarm(0)
	_, err := p.Peek(r.s.t)
	al.stop()
	if err == linux.EINTR {
		return 1
	}
	return 0
}

// An alarm interrupts what the shell waits for.
type alarm struct {
	s     *Shell
	timer *time.Timer
	old   kernel.Action
	rang  bool
}

// alarm sets one; 0 rings at once.
func (s *Shell) alarm(after time.Duration) *alarm {
	a := &alarm{s: s, old: s.t.Action(linux.SIGALRM)}
	s.t.On(linux.SIGALRM, kernel.Catch)
	if after == 0 {
		s.t.Signal(linux.SIGALRM)
		return a
	}
	t := s.t
	a.timer = time.AfterFunc(after, func() { t.Signal(linux.SIGALRM) })
	return a
}

// stop ends the alarm and tells whether it has rung. Other signals that came
// are kept.
func (a *alarm) stop() bool {
	if a.timer != nil {
		a.timer.Stop()
	}
	var others []linux.Signal
	for sig := a.s.t.Caught(); sig != 0; sig = a.s.t.Caught() {
		if sig == linux.SIGALRM {
			a.rang = true
		} else {
			others = append(others, sig)
		}
	}
	a.s.t.On(linux.SIGALRM, a.old)
	for _, sig := range others {
		a.s.t.Signal(sig)
	}
	return a.rang
}

// timedOut is the status of a read that ran out of time.
const timedOut = 128 + int(linux.SIGALRM)

func (r *reading) run(d *kernel.Desc) int {
	s := r.s
	in := &input{t: s.t, fd: r.fd}
	in.open(d)
	var al *alarm
	if r.timeout > 0 {
		al = s.alarm(r.timeout)
	}
	line, found, err := r.line(in)
	in.finish()
	st := 0
	if al != nil && al.stop() && err == linux.EINTR {
		st = timedOut
	} else if err == linux.EINTR {
		st = timedOut
		if sig := s.t.Caught(); sig != 0 {
			st = 128 + int(sig)
			s.caught(sig)
		}
	} else if err != nil && err != io.EOF {
		s.complain("read: read error: %d: %s", r.fd, vfs.Message(err))
		return 1
	} else if !found {
		st = 1
	}
	if e := r.assign(line); e != nil {
		if !errors.Is(e, errTold) {
			s.complain("read: %s", e)
		}
		return 1
	}
	return st
}

// A line is what was read; marks say which bytes a backslash protected.
type line struct {
	text  []byte
	marks []bool // nil if there are none
}

func (l *line) add(c byte, marked bool) {
	if marked && l.marks == nil {
		l.marks = make([]bool, len(l.text), cap(l.text)+1)
	}
	l.text = append(l.text, c)
	if l.marks != nil {
		l.marks = append(l.marks, marked)
	}
}

func (l *line) marked(i int) bool { return l.marks != nil && l.marks[i] }

// line reads up to the delimiter, or as many characters as are wanted.
func (r *reading) line(in *input) (l line, found bool, err error) {
	if r.most == 0 {
		return l, true, nil
	}
	limit := r.s.t.K.Limits.String
	if r.most < 0 {
		for {
			b, err := in.more()
			if err != nil {
				return l, false, err
			}
			n := bytes.IndexByte(b, r.delim)
			if !r.raw {
				if k := bytes.IndexByte(b, '\\'); k >= 0 && (n < 0 || k < n) {
					break
				}
			}
			if n >= 0 {
				l.text = append(l.text, b[:n]...)
				in.take(n + 1)
				l.clean()
				return l, true, nil
			}
			l.text = append(l.text, b...)
			l.clean() // a device may give nothing else, for ever
			in.take(len(b))
			r.s.t.Bound("string", int64(len(l.text)), limit)
		}
	}
	escaped := false
	chars, bytewise := 0, r.s.Expander().Bytewise()
	for {
		b, err := in.more()
		if err != nil {
			l.clean()
			return l, false, err
		}
		r.s.t.Step(1 + len(b))
		for i, c := range b {
			switch {
			case escaped:
				escaped = false
				if c == '\n' {
					continue
				}
				l.add(c, true)
			case c == '\\' && !r.raw:
				escaped = true
				continue
			case c == r.delim && !r.exact:
				in.take(i + 1)
				l.clean()
				return l, true, nil
			case c == 0:
				continue
			default:
				l.add(c, false)
			}
			if r.most < 0 {
				continue
			}
			if bytewise {
				chars++
			} else if !utf8.RuneStart(c) && len(l.text) > 1 {
				// It belongs to the character before, perhaps.
				if tail := lastChar(l.text); utf8.FullRune(tail) {
					chars++
				}
			} else if c < utf8.RuneSelf || utf8.FullRune([]byte{c}) {
				chars++
			}
			if chars >= r.most {
				in.take(i + 1)
				l.clean()
				return l, true, nil
			}
		}
		in.take(len(b))
		r.s.t.Bound("string", int64(len(l.text)), limit)
	}
}

// lastChar gives the bytes of the last character, perhaps not all of them.
func lastChar(b []byte) []byte {
	i := len(b) - 1
	for i > 0 && i > len(b)-utf8.UTFMax && !utf8.RuneStart(b[i]) {
		i--
	}
	return b[i:]
}

// clean takes out NULs.
func (l *line) clean() {
	if l.marks == nil && bytes.IndexByte(l.text, 0) >= 0 {
		l.text = bytes.ReplaceAll(l.text, []byte{0}, nil)
	}
}

// An input gives the bytes of a descriptor and leaves to others what was not
// taken.
type input struct {
	t     *kernel.Task
	fd    int
	peek  kernel.Peeker
	seek  kernel.Seeker
	buf   []byte
	chunk []byte // what was read ahead
	size  int
	taken int64 // bytes of this line, NULs too
}

func (in *input) open(d *kernel.Desc) {
	if p, ok := d.File.(kernel.Peeker); ok {
		in.peek = p
		return
	}
	in.size = 1
	if s, ok := d.File.(kernel.Seeker); ok {
		if _, err := s.Seek(0, io.SeekCurrent); err == nil {
			in.seek, in.size = s, 256
		}
	}
}

// more gives what comes next, at least a byte. It counts that, and where there
// is always more it stops for the signals that end a read.
func (in *input) more() (b []byte, err error) {
	if in.t.Waits(linux.SIGALRM) || in.t.Waits(linux.SIGINT) {
		return nil, linux.EINTR
	}
	b, err = in.next()
	in.t.Step(1 + len(b)>>6)
	return b, err
}

func (in *input) next() ([]byte, error) {
	if in.peek != nil {
		return in.peek.Peek(in.t)
	}
	if len(in.chunk) > 0 {
		return in.chunk, nil
	}
	if len(in.buf) < in.size {
		in.buf = make([]byte, in.size)
	}
	n, err := in.t.Read(in.fd, in.buf[:in.size])
	in.chunk = in.buf[:n]
	if in.seek != nil && in.size < 64<<10 {
		in.size *= 4
	}
	if n > 0 {
		return in.chunk, nil
	}
	if err == nil {
		err = io.EOF
	}
	return nil, err
}

// take says that n bytes of what was given are used.
func (in *input) take(n int) {
	in.taken += int64(n)
	in.t.Bound("record", in.taken, in.t.K.Limits.Record)
	if in.peek != nil {
		in.peek.Discard(n)
		return
	}
	in.chunk = in.chunk[n:]
}

// finish leaves the rest to others.
func (in *input) finish() {
	if in.seek != nil && len(in.chunk) > 0 {
		_, _ = in.seek.Seek(-int64(len(in.chunk)), io.SeekCurrent) // it was possible when the file was opened
		in.chunk = nil
	}
}

// errTold is an error of which the user knows.
var errTold = errors.New("told")

// assign gives the variables their parts of the line.
func (r *reading) assign(l line) error {
	s := r.s
	if r.array != "" {
		return r.fill(l)
	}
	if len(r.names) == 0 {
		return s.vars.Set("REPLY", string(l.text))
	}
	if r.exact {
		err := s.setName(r.names[0], string(l.text))
		for _, name := range r.names[1:] {
			err = errors.Join(err, s.setName(name, ""))
		}
		return err
	}
	f := r.splitter(l)
	for _, name := range r.names[:len(r.names)-1] {
		word, _ := f.next()
		if err := s.setName(name, word); err != nil {
			return err
		}
	}
	return s.setName(r.names[len(r.names)-1], f.last())
}

// fill is read -a.
func (r *reading) fill(l line) error {
	if !variable.Valid(r.array) {
		return &variable.Error{Kind: variable.Invalid, Name: r.array}
	}
	var list []string
	if !r.exact {
		f := r.splitter(l)
		for {
			word, ok := f.next()
			if !ok {
				break
			}
			list = append(list, word)
		}
	} else if len(l.text) > 0 {
		list = []string{string(l.text)}
	}
	return r.s.vars.SetValues(r.array, list, 0, true)
}

// A fieldSplitter splits a line as read does.
type fieldSplitter struct {
	l     line
	at    int
	class [256]uint8
}

const (
	ifsAny = 1 << iota
	ifsSpace
)

func (r *reading) splitter(l line) *fieldSplitter {
	f := &fieldSplitter{l: l}
	ifs, ok := r.s.vars.Get("IFS")
	if !ok {
		ifs = " \t\n"
	}
	for i := range len(ifs) {
		f.class[ifs[i]] |= ifsAny
		if ifs[i] == ' ' || ifs[i] == '\t' || ifs[i] == '\n' {
			f.class[ifs[i]] |= ifsSpace
		}
	}
	return f
}

func (f *fieldSplitter) is(i int, class uint8) bool {
	return f.class[f.l.text[i]]&class != 0 && !f.l.marked(i)
}

func (f *fieldSplitter) skipSpace() {
	for f.at < len(f.l.text) && f.is(f.at, ifsSpace) {
		f.at++
	}
}

// next takes a word and what separates it from the next.
func (f *fieldSplitter) next() (string, bool) {
	f.skipSpace()
	if f.at >= len(f.l.text) {
		return "", false
	}
	start := f.at
	for f.at < len(f.l.text) && !f.is(f.at, ifsAny) {
		f.at++
	}
	word := string(f.l.text[start:f.at])
	if f.at < len(f.l.text) {
		blank := f.is(f.at, ifsSpace)
		f.at++
		f.skipSpace()
		if blank && f.at < len(f.l.text) && f.is(f.at, ifsAny) {
			f.at++
			f.skipSpace()
		}
	}
	return word, true
}

// last takes the rest: a word if there is only one.
func (f *fieldSplitter) last() string {
	f.skipSpace()
	start := f.at
	word, ok := f.next()
	if !ok {
		return ""
	}
	if f.at >= len(f.l.text) {
		return word
	}
	end := len(f.l.text)
	for end > start && f.is(end-1, ifsSpace) {
		end--
	}
	return string(f.l.text[start:end])
}
