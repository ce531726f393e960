package shell

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/shell/parse"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// undo is what redirections replaced.
type undo struct{ list []saved }

// A saved is a descriptor as it was; nil is that it was closed.
type saved struct {
	fd      int
	d       *kernel.Desc
	cloexec bool
}

// forget lets the redirections stay.
func (s *Shell) forget(u *undo) {
	for i := range u.list {
		if d := u.list[i].d; d != nil {
			s.t.Unkeep(d)
		}
	}
	u.list = nil
}

// save notes what a descriptor is before it is changed.
func (s *Shell) save(u *undo, fd int) {
	d := s.t.FD(fd)
	if d != nil {
		s.t.Keep(d)
	}
	u.list = append(u.list, saved{fd, d, s.t.Cloexec(fd)})
}

// restore undoes redirections.
func (s *Shell) restore(u undo) {
	for i := len(u.list) - 1; i >= 0; i-- {
		e := u.list[i]
		if e.d == nil {
			_ = s.t.CloseFD(e.fd) // it may be closed already
			continue
		}
		_ = s.t.SetFD(e.fd, e.d, e.cloexec) // it was open
		s.t.Unkeep(e.d)
	}
}

// A told error is one that the script was told about.
type told struct{ error }

// redirect makes redirections. What it changed is to be undone also where it
// fails; it has said why then.
func (s *Shell) redirect(list []*parse.Redirect) (undo, error) {
	var u undo
	for _, r := range list {
		if err := s.redirectOne(&u, r); err != nil {
			var done told
			if !errors.As(err, &done) {
				s.Warn("%s", err)
			}
			if s.flow == flowNone {
				s.status = 1
			}
			return u, err
		}
	}
	return u, nil
}

func (s *Shell) redirectOne(u *undo, r *parse.Redirect) error {
	if r.Line > 0 {
		s.line = r.Line
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		text := r.Raw
		if r.Hdoc != nil {
			var err error
			if text, err = s.Expander().Document(r.Hdoc); err != nil {
				s.wordError(err)
				return told{err}
			}
		}
		s.t.Bound("heredoc", int64(len(text)), s.t.K.Limits.Heredoc)
		return s.install(u, r, 0, s.textDesc(text))
	case syntax.WordHdoc:
		text, err := s.single(&r.Word)
		if err != nil {
			s.wordError(err)
			return told{err}
		}
		return s.install(u, r, 0, s.textDesc(text+"\n"))
	}
	word, err := s.target1(r)
	if err != nil {
		return err
	}
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		return s.duplicate(u, r, word)
	case syntax.RdrAll, syntax.AppAll:
		return s.both(u, r, word)
	}
	fd, flags := 1, 0
	switch r.Op {
	case syntax.RdrIn:
		fd, flags = 0, linux.O_RDONLY
	case syntax.RdrInOut:
		fd, flags = 0, linux.O_RDWR|linux.O_CREAT
	case syntax.AppOut:
		flags = linux.O_WRONLY | linux.O_CREAT | linux.O_APPEND
	default:
		flags = linux.O_WRONLY | linux.O_CREAT | linux.O_TRUNC
	}
	d, err := s.open(word, flags, r.Op == syntax.RdrOut)
	if err != nil {
		return err
	}
	return s.install(u, r, fd, d)
}

// An expanded is the word of a redirection, expanded beforehand.
type expanded struct {
	text string
	err  error
}

// expandTargets expands the words of redirections before there are temporary
// variables.
func (s *Shell) expandTargets(list []*parse.Redirect) {
	var m map[*parse.Redirect]expanded
	for _, r := range list {
		switch {
		case r.Word.Fixed, r.Op == syntax.Hdoc, r.Op == syntax.DashHdoc, r.Op == syntax.WordHdoc:
			continue
		}
		text, err := s.target1(r)
		if m == nil {
			m = map[*parse.Redirect]expanded{}
		}
		m[r] = expanded{text, err}
	}
	s.targets = m
}

// target1 expands the word of a redirection, which must be one.
func (s *Shell) target1(r *parse.Redirect) (string, error) {
	if r.Word.Fixed {
		return r.Word.Text, nil
	}
	if t, ok := s.targets[r]; ok {
		return t.text, t.err
	}
	list, err := s.Expander().Fields(nil, r.Word.X)
	if err != nil {
		s.wordError(err)
		return "", told{err}
	}
	if len(list) != 1 {
		return "", errors.New(r.Word.Src + ": ambiguous redirect")
	}
	return list[0], nil
}

// open opens a file for a redirection.
func (s *Shell) open(name string, flags int, clobbers bool) (*kernel.Desc, error) {
	if clobbers && s.opt[oNoclobber] {
		if i, err := s.t.View.Stat(name); err == nil && i.IsRegular() {
			return nil, errors.New(name + ": cannot overwrite existing file")
		} else if err != nil {
			flags |= linux.O_EXCL
		}
	}
	if kind, address, ok := network(name); ok {
		return s.dial(name, kind, address)
	}
	d, err := s.t.Open(name, flags, 0o666)
	if err == nil {
		return d, nil
	}
	if err == linux.EEXIST && flags&linux.O_EXCL != 0 {
		return nil, errors.New(name + ": cannot overwrite existing file")
	}
	return nil, errors.New(name + ": " + vfs.Message(err))
}

// install puts an open file at the descriptor that a redirection names.
func (s *Shell) install(u *undo, r *parse.Redirect, own int, d *kernel.Desc) error {
	if r.Var != "" {
		return s.installVar(r, d)
	}
	fd := own
	if r.FD >= 0 {
		fd = r.FD
	}
	return s.set(u, fd, d)
}

func (s *Shell) set(u *undo, fd int, d *kernel.Desc) error {
	d.Hold()
	defer d.Drop()
	s.save(u, fd)
	if err := s.t.SetFD(fd, d, false); err != nil {
		if last := u.list[len(u.list)-1].d; last != nil {
			s.t.Unkeep(last)
		}
		u.list = u.list[:len(u.list)-1]
		return errors.New(strconv.Itoa(fd) + ": " + vfs.Message(err))
	}
	return nil
}

// firstVarFD is the least descriptor that {name}> may get.
const firstVarFD = 10

func (s *Shell) installVar(r *parse.Redirect, d *kernel.Desc) error {
	d.Hold()
	defer d.Drop()
	fd, err := s.t.AddFD(d, firstVarFD, false)
	if err != nil {
		return errors.New(vfs.Message(err))
	}
	if err := s.setName(r.Var, strconv.Itoa(fd)); err != nil {
		_ = s.t.CloseFD(fd) // it was just opened
		s.Warn("%s", err)
		return errors.New(r.Var + ": cannot assign fd to variable")
	}
	return nil
}

// setName assigns to a variable or an element of an array.
func (s *Shell) setName(name, value string) error {
	if base, sub, ok := strings.Cut(name, "["); ok && strings.HasSuffix(sub, "]") {
		return s.Expander().AssignAt(base, sub[:len(sub)-1], value, false, false)
	}
	return s.vars.Set(name, value)
}

// duplicate makes >&word and <&word.
func (s *Shell) duplicate(u *undo, r *parse.Redirect, word string) error {
	own := 0
	if r.Op == syntax.DplOut {
		own = 1
	}
	fd := own
	if r.FD >= 0 {
		fd = r.FD
	}
	if word == "-" {
		if r.Var != "" {
			return s.closeVar(r)
		}
		if s.t.FD(fd) != nil {
			s.save(u, fd)
			return s.t.CloseFD(fd)
		}
		return nil
	}
	from, move := strings.CutSuffix(word, "-")
	n, err := strconv.Atoi(from)
	if err != nil || n < 0 || from == "" || from[0] == '+' {
		if r.Op == syntax.DplOut && (r.FD < 0 || r.FD == 1) && r.Var == "" && !s.opt[oPosix] {
			return s.both(u, r, word)
		}
		if err != nil && errors.Is(err, strconv.ErrRange) {
			return errors.New(word + ": Bad file descriptor")
		}
		return errors.New(word + ": ambiguous redirect")
	}
	d := s.t.FD(n)
	if d == nil {
		return errors.New(from + ": Bad file descriptor")
	}
	if r.Var != "" {
		if err := s.installVar(r, d); err != nil {
			return err
		}
	} else if err := s.set(u, fd, d); err != nil {
		return err
	}
	if move && n != fd {
		// bash does not open it again afterwards.
		return s.t.CloseFD(n)
	}
	return nil
}

func (s *Shell) closeVar(r *parse.Redirect) error {
	value, _ := s.getName(r.Var)
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return errors.New(r.Var + ": ambiguous redirect")
	}
	_ = s.t.CloseFD(n) // closing one that is not open is no error
	return nil
}

// getName gives the value of a variable or an element of an array.
func (s *Shell) getName(name string) (string, bool) {
	if strings.HasSuffix(name, "]") {
		v, err := s.Expander().Text("${" + name + "}")
		return v, err == nil
	}
	return s.vars.Get(name)
}

// both makes &>word and &>>word.
func (s *Shell) both(u *undo, r *parse.Redirect, word string) error {
	flags := linux.O_WRONLY | linux.O_CREAT | linux.O_TRUNC
	if r.Op == syntax.AppAll {
		flags = linux.O_WRONLY | linux.O_CREAT | linux.O_APPEND
	}
	d, err := s.open(word, flags, r.Op != syntax.AppAll)
	if err != nil {
		return err
	}
	d.Hold()
	defer d.Drop()
	if err := s.set(u, 1, d); err != nil {
		return err
	}
	return s.set(u, 2, d)
}

// A document is the body of a here-document as a file.
type document struct {
	mu   sync.Mutex
	text []byte // guarded by mu: what is left

	heap *budget.Counter
	size int64
}

// textDesc gives a document, whose bytes are counted until it is closed.
func (s *Shell) textDesc(text string) *kernel.Desc {
	heap, size := s.t.K.Heap(), int64(len(text))
	_ = s.t.Must(heap.Add(size))
	return kernel.NewDesc(&document{text: []byte(text), heap: heap, size: size}, "pipe")
}

func (d *document) Read(_ *kernel.Task, p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.text) == 0 {
		return 0, io.EOF
	}
	n := copy(p, d.text)
	d.text = d.text[n:]
	return n, nil
}

func (d *document) Write(*kernel.Task, []byte) (int, error) { return 0, linux.EBADF }

// Peek shows what is left.
func (d *document) Peek(*kernel.Task) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.text) == 0 {
		return nil, io.EOF
	}
	return d.text, nil
}

// Discard takes what was shown.
func (d *document) Discard(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text = d.text[min(n, len(d.text)):]
}

func (d *document) Info() (vfs.Info, error) {
	return vfs.Info{Mode: linux.S_IFIFO | 0o600, Nlink: 1}, nil
}

// Close gives its bytes back; giving back does not fail.
func (d *document) Close() { _ = d.heap.Add(-d.size) }

// readLine reads a line of a descriptor, without its newline, and leaves what
// follows it to others. io.EOF comes with what there was before the end.
func (s *Shell) readLine(fd int) (string, error) {
	var line []byte
	d := s.t.FD(fd)
	if d == nil {
		return "", linux.EBADF
	}
	if p, ok := d.File.(kernel.Peeker); ok {
		for {
			b, err := p.Peek(s.t)
			if err != nil {
				return string(line), err
			}
			n := bytes.IndexByte(b, '\n')
			if n >= 0 {
				line = append(line, b[:n]...)
				p.Discard(n + 1)
				return string(line), nil
			}
			line = append(line, b...)
			s.t.Bound("source", int64(len(line)), s.t.K.Limits.Source)
			p.Discard(len(b))
		}
	}
	return s.readSeek(fd, d)
}

// readSeek is readLine of a file that can be read again from an offset.
func (s *Shell) readSeek(fd int, d *kernel.Desc) (string, error) {
	var line []byte
	seeker, _ := d.File.(kernel.Seeker)
	size := 1
	if seeker != nil {
		if _, err := seeker.Seek(0, io.SeekCurrent); err == nil {
			size = 128
		}
	}
	buf := make([]byte, 4096)
	for {
		n, err := s.t.Read(fd, buf[:size])
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			if i+1 < n {
				if _, err := seeker.Seek(int64(i+1-n), io.SeekCurrent); err != nil {
					return "", err
				}
			}
			return string(append(line, buf[:i]...)), nil
		}
		line = append(line, buf[:n]...)
		s.t.Bound("source", int64(len(line)), s.t.K.Limits.Source)
		if err != nil {
			return string(line), err
		}
		if size > 1 && size < len(buf) {
			size *= 2
		}
	}
}
