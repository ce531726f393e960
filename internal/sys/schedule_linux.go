package sys

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// OrdinarySchedule ends a real-time policy of the calling thread. What it starts inherits its policy. A
// thread with such a policy runs before every ordinary one of the machine.
func OrdinarySchedule() error {
	const self, flags = 0, 0
	now, err := unix.SchedGetAttr(self, flags)
	if err != nil {
		return fmt.Errorf("scheduling policy: %w", err)
	}
	switch now.Policy {
	case unix.SCHED_FIFO, unix.SCHED_RR, unix.SCHED_DEADLINE:
	default:
		return nil
	}
	if err := unix.SchedSetAttr(self, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}, flags); err != nil {
		return fmt.Errorf("scheduling policy: %w", err)
	}
	return nil
}
