package sys

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ProcessorTime returns the processor time of a process in this PID namespace, of
// all of its threads. It needs no rights. The caller makes sure that the number is
// still that of the process.
func ProcessorTime(pid int) (time.Duration, error) {
	const scheduler = 2 // CPUCLOCK_SCHED: MAKE_PROCESS_CPUCLOCK of linux/posix-timers.h
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &t); err != nil {
		return 0, fmt.Errorf("clock of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
