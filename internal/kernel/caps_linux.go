package kernel

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

func allThreadsCapset(hdr *capHeader, data *[2]unix.CapUserData) error {
	_, _, e := psx.Syscall3(unix.SYS_CAPSET, uintptr(unsafe.Pointer(hdr)), uintptr(unsafe.Pointer(data)), 0)
	if e != 0 {
		return fmt.Errorf("drop capabilities: %w", e)
	}
	return nil
}

// Capabilities tells the effective and the bounding set of this thread.
func Capabilities() (effective, bounding uint64, err error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return 0, 0, fmt.Errorf("capget: %w", err)
	}
	effective = uint64(data[0].Effective) | uint64(data[1].Effective)<<32
	for c := uintptr(0); c < 64; c++ {
		// Past the last capability that this kernel knows it is an error.
		if v, e := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); e == nil && v == 1 {
			bounding |= 1 << c
		}
	}
	return effective, bounding, nil
}

// CapSysAdmin is the bit of CAP_SYS_ADMIN in a capability set.
const CapSysAdmin = uint64(1) << unix.CAP_SYS_ADMIN
