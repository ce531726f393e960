package emitter

import (
	"syscall"

	"gvisor.dev/gvisor/pkg/hostarch"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"
)

// opening returns the system calls that open files.
func opening() []int { return []int{syscall.SYS_OPENAT, openat2} }

// asked returns the arguments of such a call.
func asked(t *kernel.Task, c *pb.Syscall) (dir int32, path hostarch.Addr, flags uint32, ok bool) {
	switch c.GetSysno() {
	case syscall.SYS_OPENAT:
		return int32(c.GetArg1()), hostarch.Addr(c.GetArg2()), uint32(c.GetArg3()), true
	case openat2:
		return int32(c.GetArg1()), hostarch.Addr(c.GetArg2()), how(t, c.GetArg3()), true
	}
	return 0, 0, 0, false
}
