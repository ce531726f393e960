package grep

import (
	"io"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// all searches everything that was named and gives the status.
func (s *search) all() int {
	names := s.o.operands
	bare := len(names) == 0
	switch {
	case bare && s.o.dirs == dirsRecurse:
		names = []string{"."}
	case bare:
		names = []string{"-"}
	}
	for _, name := range names {
		s.named = s.o.names
		if name == "-" {
			s.stdin()
		} else {
			s.operand(name, bare)
		}
		if s.o.quiet && s.matched {
			return 0
		}
	}
	switch {
	case s.failed:
		return trouble
	case s.matched:
		return 0
	}
	return nothing
}

func (s *search) fail(name string, err error) {
	s.failed = true
	if !s.o.silent {
		s.t.Errorf("%s: %s", name, vfs.Message(err))
	}
}

func (s *search) stdin() {
	in, err := command.Open(s.t, "-")
	if err != nil {
		s.fail(s.o.label, err)
		return
	}
	defer in.Close()
	s.name = s.o.label
	if s.alsoOutput(in.Desc()) {
		return
	}
	s.measure(in.Desc().File.Info())
	s.seeker, _ = in.Desc().File.(kernel.Seeker)
	if s.seeker != nil {
		at, err := s.seeker.Seek(0, io.SeekCurrent)
		if err != nil {
			s.seeker = nil
		}
		s.offset = at
	}
	s.search(in)
	s.seeker = nil
}

// operand searches what was named.
func (s *search) operand(name string, bare bool) {
	info, err := s.t.View.Stat(name)
	if err != nil {
		s.fail(name, err)
		return
	}
	switch kind := info.Mode & linux.S_IFMT; {
	case s.o.devices == devicesSkip && device(kind), !bare && s.skipped(name, info, true):
	case info.IsDir() && s.o.dirs == dirsRecurse:
		s.tree(name, bare)
	case info.IsDir() && s.o.dirs == dirsSkip:
	default:
		in, err := command.Open(s.t, name)
		if err != nil {
			s.fail(name, err)
			return
		}
		defer in.Close()
		s.name = name
		s.measure(info, nil)
		if !s.alsoOutput(in.Desc()) {
			s.search(in)
		}
	}
}

func device(kind uint32) bool {
	return kind == linux.S_IFCHR || kind == linux.S_IFBLK || kind == linux.S_IFIFO || kind == linux.S_IFSOCK
}

func (s *search) skipped(name string, info vfs.Info, given bool) bool {
	m := meter{s.t}
	if !info.IsDir() {
		return s.o.excluded.files.skips(m, name, given)
	}
	return s.o.excluded.dirs.skips(m, name, given)
}

// tree searches all files of a directory.
func (s *search) tree(root string, bare bool) {
	s.named = s.o.namesFound
	o := command.WalkOptions{Follow: command.FollowRoots}
	if s.o.follow {
		o.Follow = command.FollowAll
	}
	for len(root) > 1 && strings.HasSuffix(root, "//") {
		root = root[:len(root)-1]
	}
	command.Walk(s.t, root, o, func(e *command.WalkEntry) command.WalkOrder {
		name := e.Path
		if bare {
			name = strings.TrimPrefix(name, "./")
		}
		switch {
		case e.What == command.VisitLoop:
			if !s.o.silent {
				s.t.Errorf("%s: warning: recursive directory loop", name)
			}
			return command.WalkNext
		case e.What != command.VisitBefore:
			s.fail(name, e.Err)
			return command.WalkNext
		case e.Depth == 0:
			return command.WalkNext
		case s.skipped(e.Name, e.Info, false):
			return command.WalkSkip
		case e.Info.IsDir():
			return command.WalkNext
		case e.Info.IsLink() && !s.o.follow, s.o.devices != devicesRead && device(e.Info.Mode&linux.S_IFMT):
			return command.WalkNext
		}
		s.found(e, name)
		if s.o.quiet && s.matched {
			return command.WalkStop
		}
		return command.WalkNext
	})
}

// measure says how wide the numbers of a file can be.
func (s *search) measure(i vfs.Info, err error) {
	s.width = len("9223372036854775807")
	if err == nil && i.IsRegular() {
		s.width = len(strconv.FormatInt(i.Size+1, 10))
	}
}

// found searches a file of a directory.
func (s *search) found(e *command.WalkEntry, name string) {
	s.name = name
	s.measure(e.Info, nil)
	if !e.Info.IsRegular() {
		in, err := command.Open(s.t, e.Path)
		if err != nil {
			s.fail(name, err)
			return
		}
		defer in.Close()
		s.search(in)
		return
	}
	if s.mayLoop() && e.Info.Ino == s.own.Ino && e.Info.Dev == s.own.Dev {
		s.looped()
		return
	}
	f, err := e.In.Open(e.Name, linux.O_RDONLY, 0)
	if err != nil {
		s.fail(name, err)
		return
	}
	defer f.Close()
	s.search(f)
}

// mayLoop says whether reading what is written would go on for ever.
func (s *search) mayLoop() bool {
	return s.own.IsRegular() && !s.o.quiet && !s.o.files && !s.o.filesWithout && !s.o.count && (s.o.maxCount < 0 || s.o.maxCount > 1)
}

func (s *search) alsoOutput(d *kernel.Desc) bool {
	if !s.mayLoop() {
		return false
	}
	i, err := d.File.Info()
	if err != nil || !i.IsRegular() || i.Ino != s.own.Ino || i.Dev != s.own.Dev {
		return false
	}
	s.looped()
	return true
}

func (s *search) looped() {
	s.failed = true
	if !s.o.silent {
		s.t.Errorf("%s: input file is also the output", s.name)
	}
}
