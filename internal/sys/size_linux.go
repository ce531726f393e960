package sys

import (
	"fmt"
	"math/bits"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Affinity writes the set of processors that a thread may run on to set, as sched_getaffinity does, and
// returns how many bytes it has. Bit i of byte j is processor 8*j+i.
func Affinity(tid int, set []byte) (int, error) {
	if len(set) == 0 {
		return 0, unix.EINVAL
	}
	n, _, e := unix.RawSyscall(unix.SYS_SCHED_GETAFFINITY, uintptr(tid), uintptr(len(set)), uintptr(unsafe.Pointer(&set[0])))
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

// FirstProcessors removes all but the first most processors from a set of [Affinity]. It reports whether
// there were more.
func FirstProcessors(set []byte, most int) bool {
	cut := false
	for i, b := range set {
		for bits.OnesCount8(b) > most {
			b &^= 1 << (7 - bits.LeadingZeros8(b))
			cut = true
		}
		set[i] = b
		most -= bits.OnesCount8(b)
	}
	return cut
}

// A Size is what [SystemInfo] says of a machine's memory, in bytes.
type Size struct {
	Total, Free, Shared uint64
}

// SystemInfo returns the answer of sysinfo(2) as it is in memory, for a machine of this size without swap.
func SystemInfo(s Size) ([]byte, error) {
	var si unix.Sysinfo_t
	if err := unix.Sysinfo(&si); err != nil {
		return nil, err
	}
	si.Totalram, si.Freeram, si.Sharedram, si.Unit = s.Total, s.Free, s.Shared, 1
	si.Bufferram, si.Totalswap, si.Freeswap, si.Totalhigh, si.Freehigh = 0, 0, 0, 0, 0
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&si)), unsafe.Sizeof(si))...), nil
}

// CreateOpen makes a file in an open directory, and returns it open for writing.
func CreateOpen(dir *os.File, name string, mode uint32) (*os.File, error) {
	fd, err := unix.Openat(int(dir.Fd()), name, unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, mode)
	if err != nil {
		return nil, fmt.Errorf("make %s: %w", name, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// HasChildren reports whether this process has children that run, or that it has not waited for.
func HasChildren() bool {
	return again(func() error { return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) }) == nil
}

// Tasks returns the number of all processes and threads in sight.
func Tasks() (int, error) {
	processes, err := numbersIn("/proc")
	if err != nil {
		return 0, err
	}
	sum := 0
	for _, process := range processes {
		var st unix.Stat_t
		if unix.Stat("/proc/"+process+"/task", &st) == nil { // else it ended
			sum += int(st.Nlink) - 2
		}
	}
	return sum, nil
}
