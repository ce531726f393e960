package sys

import "golang.org/x/sys/unix"

// Arch is the number by which filters know this architecture, and X32 the bit
// that marks calls of the x32 ABI (0 where there is none).
const (
	Arch = unix.AUDIT_ARCH_AARCH64
	X32  = 0

	sysRenameat = unix.SYS_RENAMEAT
)

// oldNumbers is empty: this architecture never had the calls without "at".
func oldNumbers() map[string]uint32 { return nil }
