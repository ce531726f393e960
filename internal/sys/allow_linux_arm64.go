package sys

import "golang.org/x/sys/unix"

// archCalls lists calls that not every architecture has.
func archCalls() []uint32 { return []uint32{unix.SYS_FSTATAT} }
