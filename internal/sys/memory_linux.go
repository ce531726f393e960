package sys

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// MemoryFile makes a file that exists only in memory. It returns two files for it: f for any use,
// and writer, which is only open for writing.
func MemoryFile(name string) (f, writer *os.File, err error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("memfd_create: %w", err)
	}
	f = os.NewFile(uintptr(fd), name)
	if writer, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", fd), os.O_WRONLY, 0); err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, writer, nil
}
