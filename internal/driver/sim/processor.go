package sim

import (
	"syscall"
	"time"
)

// processorTime returns how much processor time this process has had.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // it knows this process, so there is no error
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// ProcessorTime returns the processor time that the process has had.
func (*Driver) ProcessorTime() time.Duration { return processorTime() }
