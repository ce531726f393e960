package guest

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// First runs the smallest program once more, with nothing else being started
// or reaped meanwhile.
func (s *Server) First() error {
	s.processes.starting.Lock()
	defer s.processes.starting.Unlock()
	return First(s.o.StartProcess)
}

// First runs the smallest program there is, started by start as commands are,
// so that Ready is a fact. It needs nothing of the box's file tree, which may
// hold no program at all. It waits for the process by itself.
func First(start func(argv0 string, argv []string, attr *ProcAttr) (pid int, err error)) error {
	f, err := kernel.SealedFile("probe", kernel.ExitZero())
	if err != nil {
		return err
	}
	defer f.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	path := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	pid, err := start(path, []string{"probe"}, &ProcAttr{Dir: "/", Files: []*os.File{null, null, null}})
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
