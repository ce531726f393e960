package machine

import (
	"context"
	"io"
	"os"

	"github.com/paddock-sandbox/paddock"
)

// A VM is a machine that was started.
type VM struct{ process *os.Process }

// Start starts QEMU. The machine does not run yet: see Cont. One that goes on
// has its devices' state. When ctx ends before, QEMU is killed.
func Start(ctx context.Context, s *Spec, start Starter) (*VM, error) {
	return nil, paddock.Unsupported
}

// PID is QEMU's.
func (v *VM) PID() int { return v.process.Pid }

// Cont lets the machine run, or go on.
func (v *VM) Cont(ctx context.Context) error { return paddock.Unsupported }

// Stop stops its processors.
func (v *VM) Stop(ctx context.Context) error { return paddock.Unsupported }

// SaveDevices writes the state of a stopped machine's devices. More than limit
// bytes is [paddock.Exhausted], and no more is written.
func (v *VM) SaveDevices(ctx context.Context, w io.Writer, limit int64) error {
	return paddock.Unsupported
}

// SaveMemory writes the memory of a stopped machine to an empty file: pages that
// are not zero, at their addresses, and the file is made as long as the memory.
// More than limit bytes of pages is [paddock.Exhausted], and no more is written.
func (v *VM) SaveMemory(ctx context.Context, w *os.File, limit int64) error {
	return paddock.Unsupported
}

// Wait waits for QEMU's end and says why it came. It may be called many times.
func (v *VM) Wait() error { return paddock.Unsupported }

// Kill ends QEMU. Wait then returns.
func (v *VM) Kill() { _ = v.process.Kill() }
