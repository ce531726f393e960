package guest

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// First runs the smallest program once more, while no other process is started or reaped.
func (s *Server) First() error {
	s.processes.starting.Lock()
	defer s.processes.starting.Unlock()
	return First(s.o.StartProcess)
}

// First makes a Probe and runs it once.
func First(start func(argv0 string, argv []string, attr *ProcAttr) (pid int, err error)) error {
	p, err := NewProbe()
	if err != nil {
		return err
	}
	return errors.Join(p.Run(start), p.Close())
}

// A Probe is the smallest program there is, open to be run.
type Probe struct{ program, null *os.File }

// NewProbe returns a Probe whose program nobody can change.
func NewProbe() (*Probe, error) {
	program, err := sys.SealedFile("probe", sys.ExitZero())
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, errors.Join(err, program.Close())
	}
	return &Probe{program, null}, nil
}

// Close closes the program's files.
func (p *Probe) Close() error { return errors.Join(p.program.Close(), p.null.Close()) }

// Run runs it, started by start as commands are, so that Ready is a fact. It needs
// nothing of the box's file tree, which may hold no program at all. It waits for the
// process by itself.
func (p *Probe) Run(start func(argv0 string, argv []string, attr *ProcAttr) (pid int, err error)) error {
	path := fmt.Sprintf("/proc/self/fd/%d", p.program.Fd())
	pid, err := start(path, []string{"probe"}, &ProcAttr{Dir: "/", Files: []*os.File{p.null, p.null, p.null}})
	if err != nil {
		return fmt.Errorf("run a first command: %w", err)
	}
	var status syscall.WaitStatus
	for {
		_, err = syscall.Wait4(pid, &status, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("wait for the first command: %w", err)
	case !status.Exited() || status.ExitStatus() != 0:
		return fmt.Errorf("the first command ended with status %#x: %w", uint32(status), paddock.Unsupported)
	}
	return nil
}
