package archive

import (
	"archive/tar"
	"bufio"
	"io"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/pattern"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

func compile(p string) *pattern.Pattern { return pattern.Compile(p, pattern.Options{}) }

// A sink is an archive that is written.
type sink struct {
	p     *tape
	w     *tar.Writer
	count *written
	names map[link]string      // of files with more than one name
	times map[string]time.Time // for -u
	self  link                 // the archive itself
	buf   []byte
}

// written counts what is written, so that it can be filled up.
type written struct {
	w io.Writer
	n int64
}

func (w *written) Write(b []byte) (int, error) {
	n, err := w.w.Write(b)
	w.n += int64(n)
	return n, err
}

func (p *tape) create() int {
	t := p.t
	var out io.Writer
	s := &sink{p: p, names: map[link]string{}, buf: make([]byte, 32<<10)}
	if p.file == "-" {
		out = t.Stream(1)
	} else {
		o, err := command.Create(t, p.file, linux.O_TRUNC)
		if err != nil {
			return p.fatal("%s: Cannot open: %s", p.file, reason(err))
		}
		defer func() { _ = o.Close() }() // what is written was flushed before
		if i, err := o.Desc().File.Info(); err == nil && i.IsRegular() {
			s.self = link{i.Dev, i.Ino}
		}
		out = o
	}
	buffered := bufio.NewWriterSize(out, 64<<10)
	z, err := pack(t, p.format, buffered, settings{level: p.level})
	if err != nil {
		return p.fatal("%s", err)
	}
	s.count = &written{w: z}
	s.w = tar.NewWriter(s.count)
	if status := s.all(); status != 0 {
		return status
	}
	if err := s.finish(); err == nil {
		if err = z.Close(); err == nil {
			err = buffered.Flush()
		}
		if err != nil {
			return p.fatal("%s: Cannot write: %s", p.file, reason(err))
		}
	} else {
		return p.fatal("%s: Cannot write: %s", p.file, reason(err))
	}
	return 0
}

// finish ends the archive and fills up its last record.
func (s *sink) finish() error {
	if err := s.w.Close(); err != nil {
		return err
	}
	if rest := s.count.n % blocking; rest > 0 {
		_, err := s.count.Write(make([]byte, blocking-rest))
		return err
	}
	return nil
}

// append adds to an archive that is not compressed.
func (p *tape) append() int {
	t := p.t
	if p.format != none {
		return p.usage("Cannot update compressed archives")
	}
	if len(p.names) == 0 && p.op == 'r' {
		return p.usage("Cowardly refusing to create an empty archive")
	}
	if _, err := t.View.Stat(p.file); err == linux.ENOENT {
		return p.create()
	}
	end, times, status := p.last()
	if status != 0 {
		return status
	}
	d, err := t.Open(p.file, linux.O_RDWR, 0)
	if err != nil {
		return p.fatal("%s: Cannot open: %s", p.file, reason(err))
	}
	d.Hold()
	defer d.Drop()
	f, ok := d.VFS()
	if !ok {
		return p.fatal("%s: Cannot seek: %s", p.file, reason(linux.ESPIPE))
	}
	if err = f.Truncate(end); err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err != nil {
		return p.fatal("%s: Cannot seek: %s", p.file, reason(err))
	}
	s := &sink{p: p, names: map[link]string{}, buf: make([]byte, 32<<10)}
	if i, err := f.Info(); err == nil {
		s.self = link{i.Dev, i.Ino}
	}
	if p.op == 'u' {
		s.times = times
	}
	buffered := bufio.NewWriterSize(f, 64<<10)
	s.count = &written{w: buffered, n: end}
	s.w = tar.NewWriter(s.count)
	if status := s.all(); status != 0 {
		return status
	}
	if err = s.finish(); err == nil {
		err = buffered.Flush()
	}
	if err != nil {
		return p.fatal("%s: Cannot write: %s", p.file, reason(err))
	}
	return 0
}

// last finds where the last member of the archive ends, and the members'
// times.
func (p *tape) last() (end int64, times map[string]time.Time, status int) {
	src, status := p.open()
	if src == nil {
		return 0, nil, status
	}
	defer src.close()
	times = map[string]time.Time{}
	x := &extraction{p: p}
	buf := make([]byte, 32<<10)
	for {
		var h *tar.Header
		err := guard(func() error {
			var err error
			if h, err = src.r.Next(); err == nil {
				err = copyAll(io.Discard, members{x, src.r}, buf)
			}
			return err
		})
		if err == io.EOF {
			return end, times, 0
		}
		if err != nil {
			return 0, nil, p.fatal("This does not look like a tar archive")
		}
		end = (src.sums.n + 511) / 512 * 512
		p.t.Grow(len(h.Name) + 64)
		times[strings.TrimSuffix(h.Name, "/")] = h.ModTime
	}
}

// all writes all operands.
func (s *sink) all() int {
	p := s.p
	own := p.t.View.Dir
	defer func() { p.t.View.Dir = own }()
	for _, n := range p.names {
		p.t.View.Dir = own
		if n.dir != "" {
			if err := p.t.View.Chdir(n.dir); err != nil {
				return p.fatal("%s: Cannot open: %s", n.dir, reason(err))
			}
		}
		o := command.WalkOptions{OneDev: p.oneDev, Bounded: p.flat, Post: p.remove}
		if p.follow {
			o.Follow = command.FollowAll
		}
		var broken error
		command.Walk(p.t, n.name, o, func(e *command.WalkEntry) command.WalkOrder {
			order, err := s.visit(e)
			if err != nil {
				broken = err
				return command.WalkStop
			}
			return order
		})
		if broken != nil {
			return p.fatal("%s: Cannot write: %s", p.file, reason(broken))
		}
	}
	return 0
}

func (s *sink) visit(e *command.WalkEntry) (command.WalkOrder, error) {
	p := s.p
	switch e.What {
	case command.VisitLost:
		p.fail("%s: Cannot stat: %s", shown(e.Path), reason(e.Err))
		return command.WalkNext, nil
	case command.VisitFailed:
		p.fail("%s: Cannot open: %s", shown(e.Path), reason(e.Err))
		return command.WalkNext, nil
	case command.VisitLoop:
		return command.WalkSkip, nil
	case command.VisitAfter:
		if err := e.In.Rmdir(e.Name); err != nil {
			p.fail("%s: Cannot rmdir: %s", shown(e.Path), reason(err))
		}
		return command.WalkNext, nil
	case command.VisitBefore:
	}
	if p.excluded(e.Path) {
		return command.WalkSkip, nil
	}
	key := link{e.Info.Dev, e.Info.Ino}
	if key == s.self && s.self != (link{}) {
		p.t.Errorf("%s: file is the archive; not dumped", shown(e.Path))
		return command.WalkNext, nil
	}
	if !e.Info.IsDir() && !p.since.IsZero() && !e.Info.Mtime.After(p.since) {
		return command.WalkNext, nil
	}
	name := p.stripped(p.renamed(e.Path, false), "member names")
	if s.times != nil && !e.Info.IsDir() {
		if at, ok := s.times[name]; ok && e.Info.Mtime.Unix() <= at.Unix() {
			return command.WalkNext, nil
		}
	}
	return command.WalkNext, s.add(e, name, key)
}

// add writes a member.
func (s *sink) add(e *command.WalkEntry, name string, key link) error {
	p := s.p
	target := ""
	if e.Info.IsLink() {
		var err error
		if target, err = e.In.Readlink(e.Name); err != nil {
			p.fail("%s: Cannot readlink: %s", shown(e.Path), reason(err))
			return nil
		}
		target = p.renamed(target, true)
	}
	if e.Info.Mode&linux.S_IFMT == linux.S_IFSOCK {
		p.t.Errorf("%s: socket ignored", shown(e.Path))
		return nil
	}
	h := p.header(e.Info, name, target)
	if !e.Info.IsDir() && (e.Info.Nlink > 1 || len(p.names) > 1 || p.follow) { // more names may lead to one file
		if first, ok := s.names[key]; ok {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, p.stripped(first, "hard link targets"), 0
		} else {
			p.t.Grow(len(name) + 48)
			s.names[key] = name
		}
	}
	var src *vfs.File
	if h.Typeflag == tar.TypeReg {
		d, err := command.OpenIn(p.t, e.In, e.Name, linux.O_RDONLY, 0)
		if err != nil {
			p.fail("%s: Cannot open: %s", shown(e.Path), reason(err))
			return nil
		}
		d.Hold()
		defer d.Drop()
		src, _ = d.VFS() // a regular file is one of the FS
	}
	p.tell(h, h.Name, 1)
	if err := s.w.WriteHeader(h); err != nil {
		if _, isErrno := err.(linux.Errno); isErrno {
			return err
		}
		p.fail("%s: file name is too long or cannot be stored; not dumped", shown(e.Path))
		return nil
	}
	if src != nil {
		if err := s.contents(e, src, h.Size); err != nil {
			return err
		}
	}
	if p.remove && !e.Info.IsDir() {
		if err := e.In.Unlink(e.Name); err != nil {
			p.fail("%s: Cannot unlink: %s", shown(e.Path), reason(err))
		}
	}
	return nil
}

// contents writes exactly as many bytes as the header says.
func (s *sink) contents(e *command.WalkEntry, src *vfs.File, size int64) error {
	for size > 0 {
		n, err := src.Read(s.buf[:min(int64(len(s.buf)), size)])
		s.p.t.Step(n>>6 + 1)
		if n > 0 {
			if _, werr := s.w.Write(s.buf[:n]); werr != nil {
				return werr
			}
			size -= int64(n)
		}
		if err != nil {
			s.p.fail("%s: File shrank by %d bytes; padding with zeros", shown(e.Path), size)
			s.p.status = 1
			break
		}
	}
	clear(s.buf)
	for size > 0 {
		n, err := s.w.Write(s.buf[:min(int64(len(s.buf)), size)])
		if err != nil {
			return err
		}
		size -= int64(n)
	}
	return nil
}
