package kernel

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// CountersMax is how many numbers there are in [Counters].
const CountersMax = 8

// Counters are numbers in memory that two processes share: what one of them has
// counted the other one knows at once, also when the first was killed. Whoever has
// the file may write any number.
type Counters struct {
	page    []byte
	numbers *[CountersMax]atomic.Uint64
	unmap   runtime.Cleanup
}

// countersSize is a page of every machine that is served.
const countersSize = 4096

// NewCounters makes counters at zero, and the file by which another process opens
// them. Its size is sealed, so that nobody takes the memory from under the reader.
func NewCounters(name string) (*Counters, *os.File, error) {
	flags := unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Truncate(countersSize); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("size of counters: %w", err), f.Close())
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("seal counters: %w", err), f.Close())
	}
	c, err := mapCounters(fd, unix.PROT_READ)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return c, f, nil
}

// OpenCounters opens counters that were made, at a descriptor that may be closed
// afterwards.
func OpenCounters(fd int) (*Counters, error) {
	return openCounters(fd, unix.PROT_READ|unix.PROT_WRITE)
}

// ReadCounters is OpenCounters for who only loads.
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

// Add adds to a number. Only who has opened the counters may.
func (c *Counters) Add(i int, n uint64) {
	c.numbers[i].Add(n)
	runtime.KeepAlive(c) // and so the memory
}

// Set replaces a number. Only who has opened the counters may.
func (c *Counters) Set(i int, n uint64) {
	c.numbers[i].Store(n)
	runtime.KeepAlive(c)
}

// Load gives a number.
func (c *Counters) Load(i int) uint64 {
	n := c.numbers[i].Load()
	runtime.KeepAlive(c)
	return n
}

// Close lets go of the memory. Nothing may be added or loaded afterwards.
func (c *Counters) Close() error {
	c.unmap.Stop()
	page := c.page
	c.page, c.numbers = nil, nil
	return unix.Munmap(page)
}
