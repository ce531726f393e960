package program

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A Source opens a program each time that it is executed, without looking into the cache each time. If
// somebody has changed the file, or made it useless, it takes another one.
type Source struct {
	fresh func() (*os.File, error) // opens a file as Program.Open does

	mu     sync.Mutex
	file   *os.File // guarded by mu; nil until it is needed
	mark   string   // guarded by mu: see markOf
	closed bool     // guarded by mu
}

// Source returns a source of the program, which the caller closes.
func (p Program) Source(cache string) *Source {
	return &Source{fresh: func() (*os.File, error) { return p.Open(cache) }}
}

// Open returns a file to execute, as [Program.Open] does. The caller closes it.
func (s *Source) Open() (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, os.ErrClosed
	}
	if s.file != nil {
		if f, err := s.again(); err == nil {
			return f, nil
		}
		// What somebody made of it is not executed, and nothing else can be done about it.
		s.file.Close()
		s.file = nil
	}
	f, err := s.fresh()
	if err != nil {
		return nil, err
	}
	if err := s.take(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return s.again()
}

// take keeps a file that was just opened by fresh. The caller holds mu.
func (s *Source) take(f *os.File) error {
	st, err := f.Stat()
	if err == nil {
		err = Intact(f) // its content is that which was checked; the mark tells of what comes later
	}
	if err != nil {
		return err
	}
	_ = sys.EndLease(f) // it has none, or those who open it again have one
	s.file, s.mark = f, markOf(st)
	return nil
}

// again opens the file again, unless somebody has changed it or has it open for writing. The caller holds mu.
func (s *Source) again() (*os.File, error) {
	fd, err := syscall.Open(pathOf(s.file), syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open the program %s: %w", s.file.Name(), err)
	}
	f := os.NewFile(uintptr(fd), s.file.Name())
	err = claim(f)
	if err == nil {
		var st os.FileInfo
		if st, err = f.Stat(); err == nil && markOf(st) != s.mark {
			err = changed(f)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return sys.HighFile(f)
}

// Close closes the source. What it has opened stays.
func (s *Source) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// claim takes the lease by which Intact knows. Memory that nobody can change needs none, where the kernel gives none for it.
func claim(f *os.File) error {
	err := sys.Lease(f)
	if err != nil && !errors.Is(err, syscall.EAGAIN) && sys.Sealed(f) {
		return nil
	}
	return err
}

// Intact fails if somebody has opened a program's file for writing since [Program.Open] has returned it. The file may
// have come from another process since.
func Intact(f *os.File) error {
	if sys.Sealed(f) || sys.Leased(f) == nil {
		return nil
	}
	return changed(f)
}

func changed(f *os.File) error {
	return fmt.Errorf("the program %s was changed since it was checked, maybe by a sandbox; try again: %w", f.Name(), paddock.Unavailable)
}
