package sys

import "golang.org/x/sys/unix"

// archCalls lists calls that not every architecture has.
func archCalls() []uint32 {
	return []uint32{unix.SYS_ARCH_PRCTL, unix.SYS_EPOLL_WAIT, unix.SYS_NEWFSTATAT, unix.SYS_POLL, unix.SYS_TIME}
}
