package sys

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
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

// Capabilities returns the effective and the bounding capability set of this thread, one bit for
// each capability. It reads both at once, because one call for each capability takes long on
// gVisor.
func Capabilities() (effective, bounding uint64, err error) {
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return 0, 0, err
	}
	var errs []error
	set := func(name string) uint64 {
		_, rest, _ := bytes.Cut(status, []byte("\n"+name+":"))
		line, _, _ := bytes.Cut(rest, []byte("\n"))
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("/proc/thread-self/status: %s: %w", name, err))
		}
		return n
	}
	effective, bounding = set("CapEff"), set("CapBnd")
	return effective, bounding, errors.Join(errs...)
}

// Bits in a capability set.
const (
	CapSysAdmin  = uint64(1) << unix.CAP_SYS_ADMIN
	CapSysChroot = uint64(1) << unix.CAP_SYS_CHROOT
	CapSetPCap   = uint64(1) << unix.CAP_SETPCAP
	// FileCaps are to own, to read and to change any file.
	FileCaps = uint64(1)<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID
)
