package sys

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CountersMax is the number of counters in [Counters].
const CountersMax = 8

// Counters are numbers in memory that two processes share. One process sees at once what the other
// one has counted, even after the other one was killed. Every process that has the file may write
// any number.
type Counters struct {
	page    []byte
	numbers *[CountersMax]atomic.Uint64
	unmap   runtime.Cleanup
}

// countersSize is a page of every machine that is served.
const countersSize = 4096

// NewCounters makes counters that are zero, and the file by which another process opens them. The
// file's size is sealed, so that no process can take the memory away from a reader.
func NewCounters(name string) (*Counters, *os.File, error) {
	f, err := SizedMemory(name, countersSize)
	if err != nil {
		return nil, nil, err
	}
	c, err := openCounters(int(f.Fd()), unix.PROT_READ)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return c, f, nil
}

// SizedMemory returns a file in memory whose size is sealed. It holds zeros, can be written, and
// cannot be executed.
func SizedMemory(name string, size int64) (*os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Truncate(size); err != nil {
		return nil, errors.Join(fmt.Errorf("size of memfd: %w", err), f.Close())
	}
	if err := seal(f, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenCounters opens counters by a descriptor of their file, which the caller may close afterwards.
func OpenCounters(fd int) (*Counters, error) {
	return openCounters(fd, unix.PROT_READ|unix.PROT_WRITE)
}

// ReadCounters is OpenCounters for a process that only calls Load.
func ReadCounters(fd int) (*Counters, error) { return openCounters(fd, unix.PROT_READ) }

func openCounters(fd, how int) (*Counters, error) {
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		return nil, fmt.Errorf("descriptor %d holds no counters (%x): %w", fd, seals, errors.Join(err, unix.EINVAL))
	}
	return mapCounters(fd, how)
}

func mapCounters(fd, how int) (*Counters, error) {
	page, err := unix.Mmap(fd, 0, countersSize, how, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map counters: %w", err)
	}
	c := &Counters{page: page, numbers: (*[CountersMax]atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(page)))}
	c.unmap = runtime.AddCleanup(c, func(page []byte) { _ = unix.Munmap(page) }, page) // of counters that nobody closed
	return c, nil
}

// Add adds n to counter i. The counters must not be from ReadCounters.
func (c *Counters) Add(i int, n uint64) {
	c.numbers[i].Add(n)
	runtime.KeepAlive(c) // and so the memory
}

// Set sets counter i. The counters must not be from ReadCounters.
func (c *Counters) Set(i int, n uint64) {
	c.numbers[i].Store(n)
	runtime.KeepAlive(c)
}

// Load returns counter i.
func (c *Counters) Load(i int) uint64 {
	n := c.numbers[i].Load()
	runtime.KeepAlive(c)
	return n
}

// Close unmaps the memory. The counters must not be used afterwards.
func (c *Counters) Close() error {
	c.unmap.Stop()
	page := c.page
	c.page, c.numbers = nil, nil
	return unix.Munmap(page)
}
